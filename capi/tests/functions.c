/* Every function of the header, doing its work and refusing bad callers. Every refusal is seen to write nothing. */
#include "check.h"
#include <math.h>

#define ARGUMENT CRANEFOLD_ERROR_ARGUMENT
#define TENSOR CRANEFOLD_ERROR_TENSOR

static void errors(const cranefold_compiler *compiler) {
    CHECK(cranefold_abi_version() == CRANEFOLD_ABI_VERSION && strlen(cranefold_version()) >= 5);
    cranefold_kernel *kernel = (cranefold_kernel *)8;
    cranefold_error *error = cranefold_compile(compiler, "sum f32[2,3] ases=[1]", &kernel);
    CHECK(error && kernel == (cranefold_kernel *)8);
    CHECK(cranefold_error_code(error) == CRANEFOLD_ERROR_SPEC && cranefold_error_item(error) == -1);
    CHECK(cranefold_error_place(error) == 13 && strstr(cranefold_error_message(error), "^"));
    cranefold_error_free(error);
    error = cranefold_compile(compiler, "sum f32[2] \xff", &kernel);
    CHECK(error && cranefold_error_code(error) == ARGUMENT && cranefold_error_place(error) == 11);
    cranefold_error_free(error);
    CHECK(cranefold_error_code(NULL) == 0 && cranefold_error_message(NULL)[0] == 0);
    CHECK(cranefold_error_place(NULL) == -1 && cranefold_error_item(NULL) == -1);
    cranefold_error_free(NULL);
}

static void compilers(void) {
    cranefold_compiler *compiler = NULL;
    cranefold_options options = {sizeof options, 128, 1, 4, 1 << 20, NULL};
    REFUSED(cranefold_compiler_new(&options, NULL), ARGUMENT, "`compiler` is null");
    options.struct_size = 4;
    REFUSED(cranefold_compiler_new(&options, &compiler), ARGUMENT, "says it has 4 bytes");
    options.struct_size = sizeof options;
    options.width = 100;
    REFUSED(cranefold_compiler_new(&options, &compiler), CRANEFOLD_ERROR_COMPILE, "width=100");
    options.width = 128;
    options.threads = 4000000000u;
    REFUSED(cranefold_compiler_new(&options, &compiler), ARGUMENT, "4000000000 threads");
    options.threads = 1;
    options.schedules = "/dev"; /* a folder */
    REFUSED(cranefold_compiler_new(&options, &compiler), CRANEFOLD_ERROR_COMPILE, "/dev cannot be read");
    options.schedules = "\xff";
    REFUSED(cranefold_compiler_new(&options, &compiler), ARGUMENT, "`schedules` is no UTF-8");
    options.schedules = "/dev/null"; /* no line */
    CHECK(!compiler);
    DONE(cranefold_compiler_new(&options, &compiler));
    CHECK(cranefold_compiler_width(compiler) == 128 && cranefold_compiler_width(NULL) == 0);

    const char *specs[] = {"sum f32[4]", "max f32[4]", "sum f32[2,2]"};
    cranefold_kernel *kernels[3] = {0};
    REFUSED(cranefold_compile(NULL, specs[0], kernels), ARGUMENT, "`compiler` is null");
    REFUSED(cranefold_compile(compiler, NULL, kernels), ARGUMENT, "`spec` is null");
    REFUSED(cranefold_compile(compiler, specs[0], NULL), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_compile_many(NULL, specs, 3, kernels), ARGUMENT, "`compiler` is null");
    REFUSED(cranefold_compile_many(compiler, NULL, 3, kernels), ARGUMENT, "`specs` is null");
    REFUSED(cranefold_compile_many(compiler, specs, 3, NULL), ARGUMENT, "`kernels` is null");
    REFUSED(cranefold_compile_many(compiler, specs, SIZE_MAX, kernels), ARGUMENT, "address space");
    const char *wrong[] = {"sum f32[4]", "sum f32[4]", "summ f32[4]"}, *missing[] = {"sum f32[4]", NULL};
    cranefold_error *error = cranefold_compile_many(compiler, wrong, 3, kernels);
    CHECK(error && cranefold_error_item(error) == 2 && cranefold_error_code(error) == CRANEFOLD_ERROR_SPEC);
    CHECK(cranefold_error_place(error) == 0);
    cranefold_error_free(error);
    REFUSED(cranefold_compile_many(compiler, missing, 2, kernels), ARGUMENT, "item 1: `specs` is null");
    CHECK(!kernels[0] && !kernels[1] && !kernels[2]);
    DONE(cranefold_compile_many(compiler, NULL, 0, NULL));
    DONE(cranefold_compile_many(compiler, specs, 3, kernels));

    cranefold_statistics told;
    REFUSED(cranefold_compiler_statistics(NULL, &told), ARGUMENT, "`compiler` is null");
    REFUSED(cranefold_compiler_statistics(compiler, NULL), ARGUMENT, "`statistics` is null");
    DONE(cranefold_compiler_statistics(compiler, &told));
    CHECK(told.failures == 0 && told.kernels >= 2 && told.kernels <= 4 && told.code_bytes > 0 && told.misses >= 2);
    REFUSED(cranefold_compiler_clear(NULL), ARGUMENT, "`compiler` is null");
    DONE(cranefold_compiler_clear(compiler));
    DONE(cranefold_compiler_statistics(compiler, &told));
    CHECK(told.kernels == 0);
    cranefold_compiler_free(compiler);
    cranefold_compiler_free(NULL);

    /* Kernels outlive their compiler. */
    float x[4] = {1, 2, 3, 4}, sum = 0;
    cranefold_tensor in = CRANEFOLD_TENSOR(x, CRANEFOLD_F32, 4), out = cranefold_tensor_of(&sum, CRANEFOLD_F32, 0, NULL);
    DONE(cranefold_run(kernels[0], &in, 1, &out, 1));
    CHECK(sum == 10);
    for (int i = 0; i < 3; i++) cranefold_kernel_free(kernels[i]);
    cranefold_kernel_free(NULL);
}

static void kernels(const cranefold_compiler *compiler) {
    cranefold_kernel *kernel =
        kernel_of(compiler, "region x:f32[2,3]@(-4,1), y:f16[2,1] axes=[1] scalar k:f64 { f64(sum(x * y)) + k }");
    CHECK(strncmp(cranefold_kernel_spec(kernel), "region x:f32[2,3]@(-4,1)", 24) == 0);
    CHECK(cranefold_kernel_spec(NULL)[0] == 0);
    CHECK(cranefold_kernel_inputs(kernel) == 3 && cranefold_kernel_outputs(kernel) == 1);
    CHECK(cranefold_kernel_inputs(NULL) == 0 && cranefold_kernel_outputs(NULL) == 0);
    CHECK(cranefold_kernel_parts(kernel) == 1 && cranefold_kernel_parts(NULL) == 0);
    CHECK(cranefold_kernel_run_scratch(NULL) == 0 && cranefold_kernel_call_scratch(NULL) == 0);
    cranefold_operand operand;
    REFUSED(cranefold_kernel_input(NULL, 0, &operand), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_kernel_output(NULL, 0, &operand), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_kernel_input(kernel, 0, NULL), ARGUMENT, "`operand` is null");
    REFUSED(cranefold_kernel_output(kernel, 0, NULL), ARGUMENT, "`operand` is null");
    REFUSED(cranefold_kernel_input(kernel, 3, &operand), ARGUMENT, "no input 3: the kernel has 3");
    REFUSED(cranefold_kernel_output(kernel, SIZE_MAX, &operand), ARGUMENT, "no output 18446744073709551615");
    DONE(cranefold_kernel_input(kernel, 0, &operand));
    CHECK(operand.ndim == 2 && operand.shape[0] == 2 && operand.shape[1] == 3);
    CHECK(operand.strides[0] == -4 && operand.strides[1] == 1 && operand.origin == 4);
    CHECK(operand.span_elems == 7 && operand.span_bytes == 28 && strcmp(operand.name, "x") == 0);
    CHECK(operand.dtype.code == CRANEFOLD_FLOAT && operand.dtype.bits == 32 && operand.dtype.lanes == 1);
    DONE(cranefold_kernel_input(kernel, 2, &operand));
    CHECK(operand.ndim == 0 && operand.span_elems == 1 && strcmp(operand.name, "k") == 0);
    cranefold_kernel *clone = NULL;
    REFUSED(cranefold_kernel_clone(NULL, &clone), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_kernel_clone(kernel, NULL), ARGUMENT, "`clone` is null");
    DONE(cranefold_kernel_clone(kernel, &clone));
    cranefold_kernel_free(kernel);
    DONE(cranefold_kernel_output(clone, 0, &operand));
    CHECK(operand.ndim == 1 && operand.shape[0] == 2 && operand.dtype.bits == 64 && operand.name[0] == 0);

    /* A negative stride: the data pointer is that of element 0, 0, which lies behind others. */
    float x[7] = {4, 5, 6, NAN, 1, 2, 3};
    uint16_t y[2] = {0x3c00, 0x4000};
    double k = 0.5, sums[2];
    int64_t shape[2] = {2, 3}, strides[2] = {-4, 1}, rows[2] = {2, 1};
    cranefold_tensor in[3] = {cranefold_tensor_of(x, CRANEFOLD_F32, 2, shape),
                              cranefold_tensor_of(y, CRANEFOLD_F16, 2, rows),
                              cranefold_tensor_of(&k, CRANEFOLD_F64, 0, NULL)};
    cranefold_tensor out = CRANEFOLD_TENSOR(sums, CRANEFOLD_F64, 2);
    in[0].strides = strides;
    in[0].byte_offset = 16;
    DONE(cranefold_run(clone, in, 3, &out, 1));
    CHECK(sums[0] == 6.5 && sums[1] == 30.5);
    in[0].strides = NULL;
    REFUSED(cranefold_run(clone, in, 3, &out, 1), TENSOR, "input 0 has strides [3, 1], and [-4, 1] are needed");
    /* The same as plain memory, from the start of the span. */
    in[0] = CRANEFOLD_MEMORY(x, CRANEFOLD_F32, 7);
    DONE(cranefold_run(clone, in, 3, &out, 1));
    CHECK(sums[0] == 6.5 && sums[1] == 30.5);
    cranefold_kernel_free(clone);

    /* A blocked layout has no strides. */
    kernel = kernel_of(compiler, "sum f32[1,5,1,2]@nChw4c axes=[1]");
    DONE(cranefold_kernel_input(kernel, 0, &operand));
    CHECK(!operand.strides && operand.span_elems == 16);
    float blocks[16], pair[2];
    for (int i = 0; i < 16; i++) blocks[i] = (float)i;
    cranefold_tensor whole = CRANEFOLD_TENSOR(blocks, CRANEFOLD_F32, 1, 5, 1, 2);
    cranefold_tensor memory = CRANEFOLD_MEMORY(blocks, CRANEFOLD_F32, 16);
    out = CRANEFOLD_TENSOR(pair, CRANEFOLD_F32, 1, 1, 2);
    REFUSED(cranefold_run(kernel, &whole, 1, &out, 1), TENSOR, "blocked layout");
    DONE(cranefold_run(kernel, &memory, 1, &out, 1));
    CHECK(pair[0] == 0 + 1 + 2 + 3 + 8 && pair[1] == 4 + 5 + 6 + 7 + 12);
    cranefold_kernel_free(kernel);
}

static void runs(const cranefold_compiler *compiler) {
    cranefold_kernel *kernel = kernel_of(compiler, "sum f32[2,3] axes=[1]");
    struct {
        float x[6], sums[2];
    } own = {{1, 2, 3, 4, 5, 6}, {-7, -7}};
    const cranefold_tensor good = CRANEFOLD_TENSOR(own.x, CRANEFOLD_F32, 2, 3);
    const cranefold_tensor good_out = CRANEFOLD_TENSOR(own.sums, CRANEFOLD_F32, 2);
    cranefold_tensor in = good, out = good_out;
    const cranefold_tensor two[2] = {good, good}, two_out[2] = {good_out, good_out};

    REFUSED(cranefold_run(NULL, &in, 1, &out, 1), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_run(kernel, NULL, 1, &out, 1), ARGUMENT, "`inputs` is null");
    REFUSED(cranefold_run(kernel, &in, 1, NULL, 1), ARGUMENT, "`outputs` is null");
    REFUSED(cranefold_run(kernel, NULL, 0, &out, 1), TENSOR, "0 inputs are given, and the kernel takes 1");
    REFUSED(cranefold_run(kernel, two, 2, &out, 1), TENSOR, "2 inputs are given, and the kernel takes 1");
    REFUSED(cranefold_run(kernel, &in, 1, NULL, 0), TENSOR, "0 outputs are given, and the kernel takes 1");
    REFUSED(cranefold_run(kernel, &in, 1, two_out, 2), TENSOR, "2 outputs are given, and the kernel takes 1");
    REFUSED(cranefold_run(kernel, &in, SIZE_MAX, &out, 1), ARGUMENT, "address space");
    REFUSED(cranefold_run(kernel, (const cranefold_tensor *)((const char *)two + 1), 1, &out, 1), ARGUMENT,
            "`inputs` is not aligned");

    /* Each field of a tensor, wrong in each way; both roles. */
    int64_t shape[2] = {2, 3}, strides[2] = {3, 1}, huge[2] = {INT64_MAX, INT64_MAX}, negative[2] = {2, -3};
    int64_t other[2] = {3, 2}, one = 6, few = 5, minus = -6;
    struct {
        cranefold_tensor tensor;
        const char *message;
    } wrong[] = {
        {good, "has no data: its pointer is null"},
        {good, "is f64, and f32 is needed"},
        {good, "is i32, and f32 is needed"},
        {good, "is of code 2, 32 bits and 4 lanes, and f32 is needed"},
        {good, "is of code 77, 32 bits and 1 lanes, and f32 is needed"},
        {good, "is on a device of kind 2, and the processor's is 1"},
        {good, "has rank 3, and 2 is needed"},
        {good, "has rank 0, and 2 is needed"},
        {good, "has rank 2147483647, and 2 is needed"},
        {good, "has rank -2147483648, and 2 is needed"},
        {good, "has no shape: its pointer is null"},
        {good, "has shape [9223372036854775807, 9223372036854775807], and [2, 3] is needed"},
        {good, "has shape [2, -3], and [2, 3] is needed"},
        {good, "has shape [3, 2], and [2, 3] is needed"},
        {good, "has strides [1, 2], and [3, 1] are needed"},
        {good, "has strides [9223372036854775807, -9223372036854775808], and [3, 1] are needed"},
        {good, "does not lie within the address space"},
        {good, "does not lie within the address space"},
        {good, "is memory of 5 elements, of which 6 are needed"},
        {good, "is memory of -6 elements, of which 6 are needed"},
        {good, "is plain memory, which has no strides"},
        {good, "is plain memory without its number of elements"},
    };
    int64_t columns[2] = {1, 2}, absurd[2] = {INT64_MAX, INT64_MIN};
    wrong[0].tensor.data = NULL;
    wrong[1].tensor.dtype = CRANEFOLD_F64;
    wrong[2].tensor.dtype = CRANEFOLD_I32;
    wrong[3].tensor.dtype.lanes = 4;
    wrong[4].tensor.dtype.code = 77;
    wrong[5].tensor.device.kind = 2;
    wrong[6].tensor.ndim = 3;
    wrong[7].tensor.ndim = 0;
    wrong[8].tensor.ndim = INT32_MAX;
    wrong[9].tensor.ndim = INT32_MIN;
    wrong[10].tensor.shape = NULL;
    wrong[11].tensor.shape = huge;
    wrong[12].tensor.shape = negative;
    wrong[13].tensor.shape = other;
    wrong[14].tensor.strides = columns;
    wrong[15].tensor.strides = absurd;
    wrong[16].tensor.byte_offset = UINT64_MAX;
    wrong[17].tensor.data = (void *)(UINTPTR_MAX - 8);
    wrong[18].tensor.ndim = wrong[19].tensor.ndim = wrong[20].tensor.ndim = wrong[21].tensor.ndim = CRANEFOLD_BUFFER;
    wrong[18].tensor.shape = &few;
    wrong[19].tensor.shape = &minus;
    wrong[20].tensor.shape = &one;
    wrong[20].tensor.strides = strides;
    wrong[21].tensor.shape = NULL;
    cranefold_kernel *copy = kernel_of(compiler, "sum f32[2,3] axes=[]");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[120];
        snprintf(message, sizeof message, "input 0 %s", wrong[i].message);
        if (strstr(message, "address space")) message[7] = 0;
        REFUSED(cranefold_run(kernel, &wrong[i].tensor, 1, &out, 1), TENSOR, message);
        REFUSED(cranefold_run_in(kernel, &wrong[i].tensor, 1, &out, 1, NULL, 0), TENSOR, message);
        cranefold_call *call = NULL;
        REFUSED(cranefold_call_new(kernel, &wrong[i].tensor, 1, &out, 1, NULL, 0, &call), TENSOR, message);
        CHECK(!call && own.sums[0] == -7 && own.sums[1] == -7);
        /* The same of an output. */
        float elsewhere[6] = {1, 2, 3, 4, 5, 6};
        in = CRANEFOLD_TENSOR(elsewhere, CRANEFOLD_F32, 2, 3);
        snprintf(message, sizeof message, "output 0 %s", wrong[i].message);
        if (strstr(message, "address space")) message[8] = 0;
        REFUSED(cranefold_run(copy, &in, 1, &wrong[i].tensor, 1), TENSOR, message);
        in = good;
    }
    for (int i = 0; i < 6; i++) CHECK(own.x[i] == (float)(i + 1));

    /* Overlap: an output over half of an input, over the end of it, and outputs over one another. */
    cranefold_tensor over = CRANEFOLD_TENSOR(own.x + 5, CRANEFOLD_F32, 2);
    REFUSED(cranefold_run(kernel, &in, 1, &over, 1), TENSOR, "output 0 overlaps input 0");
    over.data = own.x;
    REFUSED(cranefold_run(kernel, &in, 1, &over, 1), TENSOR, "output 0 overlaps input 0");
    for (int i = 0; i < 6; i++) CHECK(own.x[i] == (float)(i + 1));
    cranefold_kernel *both = kernel_of(compiler, "sum,max f32[2,3] axes=[1]");
    float three[3] = {-7, -7, -7};
    cranefold_tensor outs[2] = {CRANEFOLD_TENSOR(three, CRANEFOLD_F32, 2), CRANEFOLD_TENSOR(three + 1, CRANEFOLD_F32, 2)};
    REFUSED(cranefold_run(both, &in, 1, outs, 2), TENSOR, "outputs 0 and 1 overlap");
    CHECK(three[0] == -7 && three[1] == -7 && three[2] == -7);

    /* The right tensors: strides said, strides of no meaning, memory to spare. */
    in.strides = strides;
    DONE(cranefold_run(kernel, &in, 1, &out, 1));
    CHECK(own.sums[0] == 6 && own.sums[1] == 15);
    in = CRANEFOLD_MEMORY(own.x, CRANEFOLD_F32, 1000);
    own.sums[0] = 0;
    DONE(cranefold_run(kernel, &in, 1, &out, 1));
    CHECK(own.sums[0] == 6);
    in = good;
    (void)shape;
    int64_t none[2] = {0, 3};
    cranefold_kernel *empty = kernel_of(compiler, "sum f32[0,3] axes=[1]");
    in = cranefold_tensor_of(NULL, CRANEFOLD_F32, 2, none);
    out = cranefold_tensor_of(NULL, CRANEFOLD_F32, 1, none);
    DONE(cranefold_run(empty, &in, 1, &out, 1));

    /* In place: the output is the input. */
    cranefold_kernel *softmax = kernel_of(compiler, "softmax f32[2,2] axes=[1]");
    float data[4] = {0, 0, 1, -INFINITY};
    in = CRANEFOLD_TENSOR(data, CRANEFOLD_F32, 2, 2);
    DONE(cranefold_run(softmax, &in, 1, &in, 1));
    CHECK(data[0] == 0.5f && data[1] == 0.5f && data[2] == 1 && data[3] == 0);
    cranefold_kernel_free(softmax);
    cranefold_kernel_free(empty);
    cranefold_kernel_free(both);
    cranefold_kernel_free(copy);
    cranefold_kernel_free(kernel);
}

static void scratch(const cranefold_compiler *compiler) {
    cranefold_kernel *kernel = kernel_of(compiler, "median f32[2,40000] axes=[1]");
    size_t bytes = cranefold_kernel_run_scratch(kernel);
    CHECK(bytes >= 40000 && bytes <= cranefold_kernel_call_scratch(kernel));
    float *x = malloc(80000 * sizeof *x), medians[2] = {-7, -7};
    for (int i = 0; i < 80000; i++) x[i] = (float)(i % 1000);
    cranefold_tensor in = CRANEFOLD_TENSOR(x, CRANEFOLD_F32, 2, 40000), out = CRANEFOLD_TENSOR(medians, CRANEFOLD_F32, 2);
    char *memory = aligned_alloc(64, bytes + 64);
#define CALL CRANEFOLD_ERROR_CALL
    REFUSED(cranefold_run_in(kernel, &in, 1, &out, 1, NULL, bytes), ARGUMENT, "`scratch` is null");
    REFUSED(cranefold_run_in(kernel, &in, 1, &out, 1, NULL, 0), CALL, "the scratch memory has 0 bytes");
    REFUSED(cranefold_run_in(kernel, &in, 1, &out, 1, memory, bytes - 1), CALL, "the kernel takes");
    REFUSED(cranefold_run_in(kernel, &in, 1, &out, 1, memory + 4, bytes), CALL, "not aligned to 64 bytes");
    REFUSED(cranefold_run_in(kernel, &in, 1, &out, 1, x, bytes), TENSOR, "the scratch memory overlaps a tensor");
    REFUSED(cranefold_run_in(NULL, &in, 1, &out, 1, memory, bytes), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_run_in(kernel, &in, 1, &out, 1, memory, SIZE_MAX), ARGUMENT, "address space");
    CHECK(medians[0] == -7);
    DONE(cranefold_run_in(kernel, &in, 1, &out, 1, memory, bytes));
    CHECK(medians[0] == 499.5f && medians[1] == 499.5f);
    medians[0] = 0;
    DONE(cranefold_run(kernel, &in, 1, &out, 1));
    CHECK(medians[0] == 499.5f);

    /* Raw: pointers alone. */
    void *pointers[] = {x, medians, memory};
    medians[0] = 0;
    REFUSED(cranefold_run_raw(NULL, pointers), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_run_raw(kernel, NULL), ARGUMENT, "`pointers` is null");
    DONE(cranefold_run_raw(kernel, pointers));
    CHECK(medians[0] == 499.5f);
    cranefold_entry entry = cranefold_kernel_entry(kernel);
    CHECK(entry && !cranefold_kernel_entry(NULL));
    medians[0] = 0;
    entry(pointers);
    CHECK(medians[0] == 499.5f);
    cranefold_kernel_free(kernel);
    free(memory);
    free(x);
}

static void parts(void) {
    cranefold_compiler *compiler = compiler_of(3);
    const int64_t count = 3000000;
    cranefold_kernel *kernel = kernel_of(compiler, "sum f32[3000000]");
    size_t count_of_parts = cranefold_kernel_parts(kernel), bytes = cranefold_kernel_call_scratch(kernel);
    CHECK(count_of_parts > 1 && bytes > 0 && !cranefold_kernel_entry(kernel));
    float *x = malloc((size_t)count * sizeof *x), sum = -7, expected;
    for (int64_t i = 0; i < count; i++) x[i] = (float)i * 0.37f;
    cranefold_tensor in = cranefold_tensor_of(x, CRANEFOLD_F32, 1, &count);
    cranefold_tensor out = cranefold_tensor_of(&sum, CRANEFOLD_F32, 0, NULL);
    char *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    cranefold_call *call = NULL;
    REFUSED(cranefold_call_new(NULL, &in, 1, &out, 1, NULL, 0, &call), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_call_new(kernel, &in, 1, &out, 1, NULL, 0, NULL), ARGUMENT, "`call` is null");
    REFUSED(cranefold_call_new(kernel, &in, 1, &out, 1, memory, bytes - 1, &call), CALL, "scratch memory has");
    REFUSED(cranefold_call_new(kernel, &in, 1, &out, 1, memory + 1, bytes - 1, &call), CALL, "scratch memory");
    REFUSED(cranefold_call_new(kernel, &in, 1, &out, 1, x, bytes, &call), TENSOR, "overlaps a tensor");
    CHECK(!call);
    DONE(cranefold_run(kernel, &in, 1, &out, 1));
    expected = sum;
    for (int own = 0; own < 2; own++) {
        sum = -7;
        DONE(cranefold_call_new(kernel, &in, 1, &out, 1, own ? NULL : memory, own ? 0 : bytes, &call));
        CHECK(cranefold_call_parts(call) == count_of_parts && cranefold_call_parts(NULL) == 0);
        REFUSED(cranefold_call_run(NULL, 0), ARGUMENT, "`call` is null");
        REFUSED(cranefold_call_finish(NULL), ARGUMENT, "`call` is null");
        REFUSED(cranefold_call_run(call, count_of_parts), CALL, "out of range");
        REFUSED(cranefold_call_run(call, SIZE_MAX), CALL, "out of range");
        for (size_t part = count_of_parts; part-- > 0;) {
            REFUSED(cranefold_call_finish(call), CALL, "has not been run");
            DONE(cranefold_call_run(call, part));
            REFUSED(cranefold_call_run(call, part), CALL, "has been run before");
        }
        DONE(cranefold_call_finish(call));
        CHECK(memcmp(&sum, &expected, sizeof sum) == 0);
        REFUSED(cranefold_call_finish(call), CALL, "the call is finished");
        REFUSED(cranefold_call_run(call, 0), CALL, "the call is finished");
        cranefold_call_free(call);
    }
    /* A call that is freed before its end, and one that outlives its kernel. */
    DONE(cranefold_call_new(kernel, &in, 1, &out, 1, NULL, 0, &call));
    DONE(cranefold_call_run(call, 1));
    cranefold_call_free(call);
    cranefold_call_free(NULL);
    sum = -7;
    DONE(cranefold_call_new(kernel, &in, 1, &out, 1, NULL, 0, &call));
    cranefold_kernel_free(kernel);
    cranefold_compiler_free(compiler);
    for (size_t part = 0; part < count_of_parts; part++) DONE(cranefold_call_run(call, part));
    DONE(cranefold_call_finish(call));
    cranefold_call_free(call);
    CHECK(memcmp(&sum, &expected, sizeof sum) == 0);
    free(memory);
    free(x);
}

static void texts(const cranefold_compiler *compiler) {
    cranefold_kernel *kernel = kernel_of(compiler, "sum f32[4,10] axes=[1]");
    char *text = NULL;
    REFUSED(cranefold_explain(NULL, &text), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_explain(kernel, NULL), ARGUMENT, "`page` is null");
    REFUSED(cranefold_dump(NULL, "nest", &text), ARGUMENT, "`kernel` is null");
    REFUSED(cranefold_dump(kernel, NULL, &text), ARGUMENT, "`stage` is null");
    REFUSED(cranefold_dump(kernel, "nest", NULL), ARGUMENT, "`dump` is null");
    REFUSED(cranefold_dump(kernel, "nets", &text), CRANEFOLD_ERROR_COMPILE, "`nets` is no stage");
    CHECK(!text);
    DONE(cranefold_explain(kernel, &text));
    CHECK(strstr(text, "moves      160 bytes read, 16 written\n"));
    cranefold_text_free(text);
    DONE(cranefold_dump(kernel, "spec", &text));
    CHECK(strcmp(text, cranefold_kernel_spec(kernel)) == 0);
    cranefold_text_free(text);
    DONE(cranefold_dump(kernel, "all", &text));
    CHECK(strstr(text, "== legalize ==") && strstr(text, "== asm =="));
    cranefold_text_free(text);
    cranefold_text_free(NULL);
    cranefold_kernel_free(kernel);
}

#define STATE CRANEFOLD_ERROR_STATE

/* The last column of a matrix, in two chunks of rows. */
static void boxes(const cranefold_compiler *compiler, float *x) {
    const char *spec = "sum f32[700,3] axes=[0] order=logical";
    const int64_t shape[2] = {700, 3}, three = 3;
    float whole[3], last = -7, column[700];
    for (int row = 0; row < 700; row++) column[row] = x[3 * row + 2];
    cranefold_tensor in = cranefold_tensor_of(x, CRANEFOLD_F32, 2, shape), out = cranefold_tensor_of(whole, CRANEFOLD_F32, 1, &three);
    cranefold_kernel *kernel = kernel_of(compiler, spec);
    DONE(cranefold_run(kernel, &in, 1, &out, 1));
    cranefold_kernel_free(kernel);
    cranefold_partial *partial = NULL;
    cranefold_shard *shard = NULL;
    uint64_t box[2] = {2, 3};
    REFUSED(cranefold_partial_of(NULL, spec, box, 1, &partial), ARGUMENT, "`compiler` is null");
    REFUSED(cranefold_partial_of(compiler, NULL, box, 1, &partial), ARGUMENT, "`spec` is null");
    REFUSED(cranefold_partial_of(compiler, spec, NULL, 1, &partial), ARGUMENT, "`bounds` is null");
    REFUSED(cranefold_partial_of(compiler, spec, box, 1, NULL), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_of(compiler, spec, box, 0, &partial), CRANEFOLD_ERROR_COMPILE, "0 ranges are given");
    REFUSED(cranefold_partial_of(compiler, "sum f32[700,3] axes=[0]", box, 1, &partial), CRANEFOLD_ERROR_COMPILE, "order=logical");
    CHECK(!partial);
    DONE(cranefold_partial_of(compiler, spec, box, 1, &partial));
    const size_t bytes = cranefold_partial_state_bytes(partial);
    char *state = calloc(2, bytes);
    for (int n = 0; n < 2; n++) {
        const uint64_t bounds[4] = {n ? 333 : 0, n ? 700 : 333, 2, 3};
        const int64_t elems = (int64_t)(bounds[1] - bounds[0]);
        cranefold_tensor part = cranefold_tensor_of(column + bounds[0], CRANEFOLD_F32, 1, &elems);
        DONE(cranefold_partial_shard_of(partial, bounds, 2, &shard));
        DONE(cranefold_shard_run(shard, &part, 1, state + (size_t)n * bytes, bytes));
        cranefold_shard_free(shard);
    }
    DONE(cranefold_partial_combine(partial, state + bytes, state, bytes, 1));
    out = cranefold_tensor_of(&last, CRANEFOLD_F32, 0, NULL);
    DONE(cranefold_partial_finish(partial, state, bytes, 1, NULL, 0, &out, 1));
    CHECK(memcmp(&last, &whole[2], sizeof last) == 0);
    free(state);
    cranefold_partial_free(partial);
}

/* Chunks of any range: their states combine to the bits of the kernel. */
static void chunks(const cranefold_compiler *compiler, float *x, int64_t count) {
    const char *spec = "mean f32[100000] order=logical";
    float whole, mean = -7;
    cranefold_tensor in = cranefold_tensor_of(x, CRANEFOLD_F32, 1, &count), out = cranefold_tensor_of(&whole, CRANEFOLD_F32, 0, NULL);
    cranefold_kernel *kernel = kernel_of(compiler, spec);
    DONE(cranefold_run(kernel, &in, 1, &out, 1));
    cranefold_kernel_free(kernel);
    cranefold_partial *partial = NULL, *ordered = NULL;
    cranefold_shard *shard = NULL;
    DONE(cranefold_partial_new(compiler, spec, &partial));
    DONE(cranefold_partial_new(compiler, "mean f32[100000]", &ordered));
    uint64_t bounds[2] = {0, 5};
    REFUSED(cranefold_partial_shard_of(NULL, bounds, 1, &shard), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_shard_of(partial, NULL, 1, &shard), ARGUMENT, "`bounds` is null");
    REFUSED(cranefold_partial_shard_of(partial, bounds, 1, NULL), ARGUMENT, "`shard` is null");
    REFUSED(cranefold_partial_shard_of(partial, bounds, 0, &shard), CRANEFOLD_ERROR_COMPILE, "0 ranges are given");
    REFUSED(cranefold_partial_shard_of(ordered, bounds, 1, &shard), CRANEFOLD_ERROR_COMPILE, "order=logical");
    bounds[1] = UINT64_MAX;
    REFUSED(cranefold_partial_shard_of(partial, bounds, 1, &shard), CRANEFOLD_ERROR_COMPILE, "within the axis");
    const uint64_t ends[] = {1, 1, 4097, 99999, 100000};
    const size_t bytes = cranefold_partial_state_bytes(partial);
    char *state = calloc(2, bytes), *all = state + bytes;
    DONE(cranefold_partial_identity(partial, all, bytes, 1));
    for (size_t n = 0; n < sizeof ends / sizeof *ends; n++) {
        bounds[0] = n ? ends[n - 1] : 0;
        bounds[1] = ends[n];
        int64_t elems = (int64_t)(bounds[1] - bounds[0]);
        DONE(cranefold_partial_shard_of(partial, bounds, 1, &shard));
        cranefold_tensor part = cranefold_tensor_of(x + bounds[0], CRANEFOLD_F32, 1, &elems);
        DONE(cranefold_shard_run(shard, &part, 1, state, bytes));
        uint64_t first, end;
        size_t used, expected;
        DONE(cranefold_partial_range_of(partial, state, 64, &first, &end));
        CHECK(end - first == bounds[1] - bounds[0] && (first == end || first == bounds[0]));
        DONE(cranefold_partial_used_bytes(partial, state, 64, &used));
        DONE(cranefold_partial_range_bytes(partial, bounds[0], bounds[1], &expected));
        CHECK(used == expected && used <= bytes);
        DONE(cranefold_partial_combine(partial, state, all, bytes, 1));
        cranefold_shard_free(shard);
    }
    uint64_t first;
    size_t used, axis;
    DONE(cranefold_partial_axis(partial, &axis));
    CHECK(axis == 0);
    REFUSED(cranefold_partial_axis(NULL, &axis), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_axis(partial, NULL), ARGUMENT, "`axis` is null");
    REFUSED(cranefold_partial_axis(ordered, &axis), CRANEFOLD_ERROR_COMPILE, "order=logical");
    REFUSED(cranefold_partial_range_of(NULL, all, bytes, &first, &first), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_range_of(partial, all, bytes, NULL, &first), ARGUMENT, "`first` is null");
    REFUSED(cranefold_partial_range_of(partial, all, bytes, &first, NULL), ARGUMENT, "`end` is null");
    REFUSED(cranefold_partial_range_of(partial, all, 63, &first, &bounds[0]), CRANEFOLD_ERROR_STATE, "63 bytes");
    REFUSED(cranefold_partial_used_bytes(NULL, all, bytes, &used), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_used_bytes(partial, NULL, bytes, &used), ARGUMENT, "`state` is null");
    REFUSED(cranefold_partial_used_bytes(partial, all, bytes, NULL), ARGUMENT, "`used` is null");
    REFUSED(cranefold_partial_used_bytes(ordered, all, bytes, &used), CRANEFOLD_ERROR_STATE, "of problem");
    REFUSED(cranefold_partial_range_bytes(NULL, 0, 1, &used), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_range_bytes(partial, 0, 1, NULL), ARGUMENT, "`used` is null");
    REFUSED(cranefold_partial_range_bytes(partial, 0, 100001, &used), CRANEFOLD_ERROR_COMPILE, "within the axis");
    REFUSED(cranefold_partial_range_bytes(ordered, 0, 1, &used), CRANEFOLD_ERROR_COMPILE, "order=logical");
    out = cranefold_tensor_of(&mean, CRANEFOLD_F32, 0, NULL);
    DONE(cranefold_partial_finish(partial, all, bytes, 1, NULL, 0, &out, 1));
    CHECK(memcmp(&mean, &whole, sizeof mean) == 0);
    free(state);
    cranefold_partial_free(ordered);
    cranefold_partial_free(partial);
    boxes(compiler, x);
}

static void partials(const cranefold_compiler *compiler) {
    const char *spec = "mean f32[100000], f32[]:then scalar k:f32 then=\"r0 * y0 + k\"";
    const int64_t count = 100000;
    float *x = malloc((size_t)count * sizeof *x), y = 3, k = 0.25f, whole, mean = -7;
    for (int64_t i = 0; i < count; i++) x[i] = (float)i * 0.37f;
    cranefold_kernel *kernel = kernel_of(compiler, spec);
    cranefold_tensor in[3] = {cranefold_tensor_of(x, CRANEFOLD_F32, 1, &count), cranefold_tensor_of(&y, CRANEFOLD_F32, 0, NULL),
                              cranefold_tensor_of(&k, CRANEFOLD_F32, 0, NULL)};
    cranefold_tensor out = cranefold_tensor_of(&whole, CRANEFOLD_F32, 0, NULL);
    DONE(cranefold_run(kernel, in, 3, &out, 1));
    cranefold_kernel_free(kernel);

    cranefold_partial *partial = NULL, *other = NULL;
    REFUSED(cranefold_partial_new(NULL, spec, &partial), ARGUMENT, "`compiler` is null");
    REFUSED(cranefold_partial_new(compiler, NULL, &partial), ARGUMENT, "`spec` is null");
    REFUSED(cranefold_partial_new(compiler, spec, NULL), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_new(compiler, "softmax f32[4]", &partial), CRANEFOLD_ERROR_COMPILE, "partial results");
    REFUSED(cranefold_partial_new(compiler, "mean f32[4", &partial), CRANEFOLD_ERROR_SPEC, "");
    CHECK(!partial);
    DONE(cranefold_partial_new(compiler, spec, &partial));
    DONE(cranefold_partial_new(compiler, "sum f32[100000]", &other));
    const size_t bytes = cranefold_partial_state_bytes(partial);
    const uint64_t blocks = cranefold_partial_blocks(partial);
    CHECK(bytes > 64 && blocks > 20 && cranefold_partial_blocks(NULL) == 0 && cranefold_partial_state_bytes(NULL) == 0);
    uint64_t bounds[6], span_first, span_end;
    REFUSED(cranefold_partial_ranges(NULL, 3, bounds), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_ranges(partial, 3, NULL), ARGUMENT, "`bounds` is null");
    REFUSED(cranefold_partial_ranges(partial, SIZE_MAX, bounds), ARGUMENT, "above the limit");
    DONE(cranefold_partial_ranges(partial, 3, bounds));
    CHECK(bounds[0] == 0 && bounds[1] == bounds[2] && bounds[3] == bounds[4] && bounds[5] == blocks);
    char *text = NULL;
    REFUSED(cranefold_partial_dump(NULL, &text), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_dump(partial, NULL), ARGUMENT, "`dump` is null");
    DONE(cranefold_partial_dump(partial, &text));
    CHECK(strstr(text, "== finish: legal =="));
    cranefold_text_free(text);

    char *states = calloc(5, bytes), *poisoned = states + 3 * bytes, *saved = states + 4 * bytes;
    cranefold_shard *shard = NULL;
    REFUSED(cranefold_partial_shard(NULL, 0, 1, &shard), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_shard(partial, 0, 1, NULL), ARGUMENT, "`shard` is null");
    REFUSED(cranefold_partial_shard(partial, 0, blocks + 1, &shard), CRANEFOLD_ERROR_COMPILE, "no range of");
    REFUSED(cranefold_partial_shard(partial, 2, 1, &shard), CRANEFOLD_ERROR_COMPILE, "no range of");
    CHECK(!shard && cranefold_shard_inputs(NULL) == 0);
    for (int n = 0; n < 3; n++) {
        DONE(cranefold_partial_shard(partial, bounds[2 * n], bounds[2 * n + 1], &shard));
        cranefold_span span;
        CHECK(cranefold_shard_inputs(shard) == 1);
        REFUSED(cranefold_shard_input(NULL, 0, &span), ARGUMENT, "`shard` is null");
        REFUSED(cranefold_shard_input(shard, 0, NULL), ARGUMENT, "`span` is null");
        REFUSED(cranefold_shard_input(shard, 1, &span), ARGUMENT, "no input 1");
        DONE(cranefold_shard_input(shard, 0, &span));
        CHECK(span.input == 0 && span.dtype.bits == 32 && span.first < span.end && span.end <= (uint64_t)count);
        int64_t elems = (int64_t)(span.end - span.first), few = elems - 1;
        cranefold_tensor part = cranefold_tensor_of(x + span.first, CRANEFOLD_F32, 1, &elems), wrong = part;
        char *state = states + (size_t)n * bytes;
        REFUSED(cranefold_shard_run(NULL, &part, 1, state, bytes), ARGUMENT, "`shard` is null");
        REFUSED(cranefold_shard_run(shard, NULL, 1, state, bytes), ARGUMENT, "`inputs` is null");
        REFUSED(cranefold_shard_run(shard, NULL, 0, state, bytes), TENSOR, "0 inputs are given");
        REFUSED(cranefold_shard_run(shard, &part, 1, NULL, bytes), ARGUMENT, "`state` is null");
        REFUSED(cranefold_shard_run(shard, &part, 1, state, bytes - 1), STATE, "bytes are given for");
        REFUSED(cranefold_shard_run(shard, &part, 1, x + span.first, bytes), ARGUMENT, "overlaps");
        wrong.shape = &few;
        REFUSED(cranefold_shard_run(shard, &wrong, 1, state, bytes), TENSOR, "are needed");
        wrong.ndim = CRANEFOLD_BUFFER;
        REFUSED(cranefold_shard_run(shard, &wrong, 1, state, bytes), TENSOR, "are needed");
        wrong.ndim = 2;
        REFUSED(cranefold_shard_run(shard, &wrong, 1, state, bytes), TENSOR, "one row of elements");
        wrong = part;
        wrong.dtype = CRANEFOLD_F64;
        REFUSED(cranefold_shard_run(shard, &wrong, 1, state, bytes), TENSOR, "is f64");
        wrong = part;
        wrong.data = NULL;
        REFUSED(cranefold_shard_run(shard, &wrong, 1, state, bytes), TENSOR, "no data");
        wrong = part;
        wrong.byte_offset = UINT64_MAX;
        REFUSED(cranefold_shard_run(shard, &wrong, 1, state, bytes), TENSOR, "address space");
        for (size_t i = 0; i < bytes; i++) CHECK(state[i] == 0);
        DONE(cranefold_shard_run(shard, &part, 1, state, bytes));
        cranefold_shard_free(shard);
    }
    cranefold_shard_free(NULL);
    chunks(compiler, x, count);

    /* MPI's function: the left operand comes first in rank order, whatever the grouping. */
    memcpy(saved, states + bytes, bytes);
    char *all = calloc(2, bytes);
    REFUSED(cranefold_partial_identity(NULL, all, bytes, 1), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_identity(partial, NULL, bytes, 1), ARGUMENT, "`states` is null");
    REFUSED(cranefold_partial_identity(partial, all, bytes, 2), STATE, "bytes are given for 2 states");
    REFUSED(cranefold_partial_identity(partial, all, bytes, SIZE_MAX), STATE, "bytes are given for");
    DONE(cranefold_partial_identity(partial, all, 2 * bytes, 2));
    REFUSED(cranefold_partial_combine(NULL, states, all, bytes, 1), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_combine(partial, NULL, all, bytes, 1), ARGUMENT, "`from` is null");
    REFUSED(cranefold_partial_combine(partial, states, NULL, bytes, 1), ARGUMENT, "`into` is null");
    REFUSED(cranefold_partial_combine(partial, states, states + 64, bytes, 1), ARGUMENT, "overlaps");
    REFUSED(cranefold_partial_combine(partial, states, all, bytes, 3), STATE, "bytes are given for 3 states");
    REFUSED(cranefold_partial_combine(partial, states + 2 * bytes, states, bytes, 1), STATE, "do not follow");
    for (int n = 0; n < 3; n++) DONE(cranefold_partial_combine(partial, states + (size_t)n * bytes, all, bytes, 1));
    int one = 1, two = 2;
    cranefold_mpi_combine(states, states + bytes, &one, NULL);
    cranefold_mpi_combine(states + bytes, states + 2 * bytes, &one, NULL);
    DONE(cranefold_partial_blocks_of(partial, states + 2 * bytes, 64, &span_first, &span_end));
    CHECK(span_first == 0 && span_end == blocks);
    REFUSED(cranefold_partial_blocks_of(NULL, all, bytes, &span_first, &span_end), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_blocks_of(partial, NULL, bytes, &span_first, &span_end), ARGUMENT, "`state` is null");
    REFUSED(cranefold_partial_blocks_of(partial, all, bytes, NULL, &span_end), ARGUMENT, "`first` is null");
    REFUSED(cranefold_partial_blocks_of(partial, all, bytes, &span_first, NULL), ARGUMENT, "`end` is null");
    REFUSED(cranefold_partial_blocks_of(partial, all, 63, &span_first, &span_end), STATE, "63 bytes");

    CHECK(cranefold_partial_finish_inputs(partial) == 2 && cranefold_partial_finish_inputs(NULL) == 0);
    CHECK(cranefold_partial_finish_input(partial, 0) == 1 && cranefold_partial_finish_input(partial, 1) == 2);
    CHECK(cranefold_partial_finish_input(partial, 2) == -1 && cranefold_partial_finish_input(NULL, 0) == -1);
    out = cranefold_tensor_of(&mean, CRANEFOLD_F32, 0, NULL);
    const char *states_of[2] = {all, states + 2 * bytes};
    for (int n = 0; n < 2; n++) {
        mean = -7;
        DONE(cranefold_partial_finish(partial, states_of[n], bytes, 1, in + 1, 2, &out, 1));
        CHECK(memcmp(&mean, &whole, sizeof mean) == 0);
    }
    mean = -7;
    cranefold_tensor over = cranefold_tensor_of(all, CRANEFOLD_F32, 0, NULL);
    REFUSED(cranefold_partial_finish(NULL, all, bytes, 1, in + 1, 2, &out, 1), ARGUMENT, "`partial` is null");
    REFUSED(cranefold_partial_finish(partial, NULL, bytes, 1, in + 1, 2, &out, 1), ARGUMENT, "`from` is null");
    REFUSED(cranefold_partial_finish(partial, all, bytes, 1, NULL, 2, &out, 1), ARGUMENT, "`inputs` is null");
    REFUSED(cranefold_partial_finish(partial, all, bytes, 1, in + 1, 2, NULL, 1), ARGUMENT, "`outputs` is null");
    REFUSED(cranefold_partial_finish(partial, all, bytes, 1, in + 1, 1, &out, 1), TENSOR, "1 inputs are given");
    REFUSED(cranefold_partial_finish(partial, all, bytes, 2, in + 1, 2, &out, 1), TENSOR, "are needed");
    REFUSED(cranefold_partial_finish(partial, all, bytes, SIZE_MAX, in + 1, 2, &out, 1), TENSOR, "are needed");
    REFUSED(cranefold_partial_finish(partial, all, bytes, 1, in + 1, 2, &over, 1), ARGUMENT, "overlaps");
    REFUSED(cranefold_partial_finish(partial, states, bytes, 1, in + 1, 2, &out, 1), STATE, "to finish takes all");

    /* Bad states poison: of another spec, of no neighbours, none at all; and a poisoned one stays so. */
    DONE(cranefold_partial_identity(other, poisoned, cranefold_partial_state_bytes(other), 1));
    memcpy(states + bytes, saved, bytes);
    struct {
        char *in, *inout;
        int *len;
    } bad[] = {{poisoned, states + bytes, &one}, {all, states + bytes, &one}, {states + bytes, all + bytes, &one}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cranefold_mpi_combine(bad[i].in, bad[i].inout, bad[i].len, NULL);
        REFUSED(cranefold_partial_finish(partial, bad[i].inout, bytes, 1, in + 1, 2, &out, 1), STATE,
                "is of a combination that failed");
    }
    DONE(cranefold_partial_identity(partial, all + bytes, bytes, 1));
    cranefold_mpi_combine(states + bytes, all + bytes, &one, NULL);
    REFUSED(cranefold_partial_blocks_of(partial, all + bytes, bytes, &span_first, &span_end), STATE, "failed");
    memset(poisoned, 0x5a, 2 * bytes);
    cranefold_mpi_combine(poisoned, saved, &one, NULL);
    REFUSED(cranefold_partial_blocks_of(partial, saved, bytes, &span_first, &span_end), STATE, "failed");
    /* Two states of one message: the first stands, the second is poisoned. */
    DONE(cranefold_partial_identity(partial, poisoned, 2 * bytes, 2));
    memset(all + bytes, 0, bytes);
    cranefold_mpi_combine(all, poisoned, &two, NULL);
    DONE(cranefold_partial_finish(partial, poisoned, bytes, 1, in + 1, 2, &out, 1));
    REFUSED(cranefold_partial_blocks_of(partial, poisoned + bytes, bytes, &span_first, &span_end), STATE, "failed");
    /* Nothing that a wrong caller of MPI gives is followed. */
    int zero = 0, negative = -5;
    cranefold_mpi_combine(NULL, NULL, NULL, NULL);
    cranefold_mpi_combine(all, poisoned, &zero, NULL);
    cranefold_mpi_combine(all, poisoned, &negative, NULL);
    cranefold_mpi_combine(NULL, poisoned, &one, NULL);
    REFUSED(cranefold_partial_blocks_of(partial, poisoned, bytes, &span_first, &span_end), STATE, "failed");
    CHECK(mean != -7);

    cranefold_partial_free(other);
    cranefold_partial_free(partial);
    cranefold_partial_free(NULL);
    /* Without partial results of the spec, no state is known. */
    memset(saved, 0, bytes);
    cranefold_mpi_combine(all, saved, &one, NULL);
    CHECK(memcmp(saved, all, 8) != 0 && saved[0] != 0);
    free(all);
    free(states);
    free(x);
}

int main(void) {
    cranefold_compiler *compiler = compiler_of(1);
    errors(compiler);
    compilers();
    kernels(compiler);
    runs(compiler);
    scratch(compiler);
    parts();
    texts(compiler);
    partials(compiler);
    cranefold_compiler_free(compiler);
    printf("%d bad calls refused, width %s\n", refusals, getenv("CRANEFOLD_TEST_WIDTH") ? getenv("CRANEFOLD_TEST_WIDTH") : "of the machine");
    return 0;
}
