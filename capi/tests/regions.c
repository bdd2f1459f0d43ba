/* The regions of docs/regions.md have the bits that Rust prints for them.
 *
 *     cargo run --release --example regions | regions */
#include "check.h"
#include <inttypes.h>

/* Elements by the formula of examples/regions.rs. */
static void *elements(cranefold_dtype dtype, uint64_t count, uint32_t state) {
    char *bytes = malloc(count * 8 + 1);
    for (uint64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        const int32_t number = (int32_t)(state >> 16 & 0xff) - 128;
        const float value = (float)number / 16;
        const double wide = value;
        const int64_t integer = number & 3;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        const uint16_t half = (uint16_t)(bits >> 16);
        const char truth = (char)(number & 1), byte = (char)integer;
        const size_t size = dtype.bits / 8;
        const void *element = NULL;
        if (dtype.code == CRANEFOLD_FLOAT && size == 4) element = &value;
        if (dtype.code == CRANEFOLD_FLOAT && size == 8) element = &wide;
        if (dtype.code == CRANEFOLD_BFLOAT) element = &half;
        if (dtype.code == CRANEFOLD_BOOL) element = &truth;
        if (dtype.code == CRANEFOLD_INT && size == 8) element = &integer;
        if (dtype.code == CRANEFOLD_INT && size == 1) element = &byte;
        CHECK(element);
        memcpy(bytes + i * size, element, size);
    }
    return bytes;
}

static uint64_t hash(const unsigned char *bytes, uint64_t count) {
    uint64_t hash = 0xcbf29ce484222325;
    for (uint64_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

int main(void) {
    cranefold_compiler *compiler = compiler_of(1);
    static char line[10000];
    int regions = 0, outputs = 0;
    while (fgets(line, sizeof line, stdin)) {
        char *spec = strchr(line, '\t');
        CHECK(spec && strchr(spec, '\n'));
        *strchr(spec, '\n') = 0;
        *spec = 0;
        cranefold_kernel *kernel = kernel_of(compiler, spec + 1);
        const size_t count_in = cranefold_kernel_inputs(kernel), count_out = cranefold_kernel_outputs(kernel);
        cranefold_tensor in[16], out[16];
        cranefold_operand operand;
        CHECK(count_in <= 16 && count_out <= 16);
        for (size_t n = 0; n < count_in; n++) {
            DONE(cranefold_kernel_input(kernel, n, &operand));
            in[n] = cranefold_tensor_of(elements(operand.dtype, operand.span_elems, (uint32_t)n + 1), operand.dtype, operand.ndim, operand.shape);
        }
        for (size_t n = 0; n < count_out; n++) {
            DONE(cranefold_kernel_output(kernel, n, &operand));
            out[n] = cranefold_tensor_of(elements(operand.dtype, operand.span_elems, (uint32_t)(count_in + n) + 1), operand.dtype, operand.ndim, operand.shape);
        }
        DONE(cranefold_run(kernel, in, count_in, out, count_out));
        char *rest = line;
        for (size_t n = 0; n < count_out; n++, outputs++) {
            DONE(cranefold_kernel_output(kernel, n, &operand));
            const uint64_t expected = strtoull(rest, &rest, 16), found = hash(out[n].data, operand.span_bytes);
            if (found != expected) FAIL("output %zu of %s: %016" PRIx64 ", not %016" PRIx64, n, spec + 1, found, expected);
            free(out[n].data);
        }
        for (size_t n = 0; n < count_in; n++) free(in[n].data);
        cranefold_kernel_free(kernel);
        regions++;
    }
    cranefold_compiler_free(compiler);
    CHECK(regions == 10);
    printf("%d regions, %d outputs with the bits of Rust\n", regions, outputs);
    return 0;
}
