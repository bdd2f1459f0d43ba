/* Reductions over arrays that MPI's ranks hold any ranges of: the bits of one kernel over the whole, however the array is cut
 * and however many ranks there are.
 *
 *     mpicc reduce.c $(pkg-config --cflags --libs cranefold) -lm -o reduce && mpirun -n 3 ./reduce
 *
 * Every rank makes its own elements, reduces them to a state and hands it to MPI_Reduce and MPI_Allreduce, whose operation is
 * `cranefold_mpi_combine`. The operation is associative and not commutative. A state that is damaged poisons the result, and
 * `cranefold_partial_finish` refuses it. The program prints one line, or the first fault, and exits with 1 then. */

#include <mpi.h>
#include <cranefold.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUTS 5
#define MOST_OUTPUTS 2

static int rank, ranks;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "rank %d of %d: %s: %s\n", rank, ranks, what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void must(cranefold_error *error, const char *what) {
    if (error) fail(what, cranefold_error_message(error));
}

/* A spec over an f32 array: its extents, of which axis 0 is the one that ranks hold ranges of. */
struct job {
    const char *spec;
    int axes;
    uint64_t shape[3];
};

static const struct job JOBS[] = {
    {"sum f32[100003] order=logical", 1, {100003}},
    {"var f32[5000,7] axes=[0] order=logical", 2, {5000, 7}},
    {"argmax f32[100003] order=logical", 1, {100003}},
    {"log_sum_exp f32[3000,11] axes=[0] order=logical", 2, {3000, 11}},
    {"mean,max f32[20000] order=logical", 1, {20000}},
    {"sum f32[300,5,40] axes=[0,2] order=logical", 3, {300, 5, 40}},
};

/* Element `i` of every array. */
static float element(uint64_t i) {
    uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15u;
    return (float)((double)(bits >> 40) / (1 << 20) - 8) * (i % 97 == 0 ? 1e4f : 1.0f);
}

static uint64_t row_of(const struct job *job) {
    uint64_t row = 1;
    for (int axis = 1; axis < job->axes; axis++) row *= job->shape[axis];
    return row;
}

static float *elements(uint64_t first, uint64_t end) {
    float *x = malloc((end - first + 1) * sizeof *x);
    if (!x) fail("malloc", "no memory");
    for (uint64_t i = first; i < end; i++) x[i - first] = element(i);
    return x;
}

/* The first index of rank `r` in a cut: bounds are random and rise, so that some ranks may hold nothing. */
static uint64_t bound(uint64_t extent, int cut, int r) {
    if (r == 0) return 0;
    if (r == ranks) return extent;
    if (cut == 0) return extent * (uint64_t)r / (uint64_t)ranks;
    if (cut == 1) return r < (int)extent ? (uint64_t)r : extent; /* all but the last hold one index */
    if (cut == 2) return extent - (extent > 1);                  /* the first and the last hold all */
    /* The same numbers on every rank. */
    uint64_t least = 0;
    for (int n = 1; n <= r; n++) {
        uint64_t bits = ((uint64_t)cut * 1000 + (uint64_t)n) * 0x9e3779b97f4a7c15u;
        least += (bits >> 11) % (2 * extent / (uint64_t)ranks + 1);
    }
    return least < extent ? least : extent;
}

/* The outputs of a kernel: plain memory. */
struct outputs {
    size_t count;
    cranefold_tensor tensors[MOST_OUTPUTS];
    int64_t elems[MOST_OUTPUTS];
    size_t bytes[MOST_OUTPUTS];
};

static void allocate(const cranefold_kernel *kernel, struct outputs *outputs) {
    outputs->count = cranefold_kernel_outputs(kernel);
    for (size_t n = 0; n < outputs->count; n++) {
        cranefold_operand operand;
        must(cranefold_kernel_output(kernel, n, &operand), "output");
        outputs->elems[n] = (int64_t)operand.span_elems;
        outputs->bytes[n] = (size_t)operand.span_bytes;
        outputs->tensors[n] =
            cranefold_tensor_of(malloc(outputs->bytes[n]), operand.dtype, CRANEFOLD_BUFFER, &outputs->elems[n]);
    }
}

static void release(struct outputs *outputs) {
    for (size_t n = 0; n < outputs->count; n++) free(outputs->tensors[n].data);
}

/* Finishes a state and compares the bits with those of the kernel; or sees that a poisoned state is refused. */
static void finish(const cranefold_partial *partial, const void *state, const struct outputs *whole,
                   struct outputs *mine, int poisoned, const char *what) {
    for (size_t n = 0; n < mine->count; n++) memset(mine->tensors[n].data, 0xa5, mine->bytes[n]);
    cranefold_error *error = cranefold_partial_finish(partial, state, cranefold_partial_state_bytes(partial), 1, NULL, 0,
                                                      mine->tensors, mine->count);
    if (poisoned) {
        if (!error) fail(what, "a damaged state was finished");
        if (cranefold_error_code(error) != CRANEFOLD_ERROR_STATE) fail(what, cranefold_error_message(error));
        cranefold_error_free(error);
        return;
    }
    must(error, what);
    for (size_t n = 0; n < mine->count; n++)
        if (memcmp(mine->tensors[n].data, whole->tensors[n].data, mine->bytes[n]) != 0) fail(what, "other bits");
}

static void run(const cranefold_compiler *compiler, const struct job *job) {
    cranefold_partial *partial = NULL;
    cranefold_kernel *kernel = NULL;
    must(cranefold_partial_new(compiler, job->spec, &partial), job->spec);
    must(cranefold_compile(compiler, job->spec, &kernel), job->spec);

    /* What one kernel makes of the whole array. */
    const uint64_t row = row_of(job), all = job->shape[0] * row;
    struct outputs whole, mine;
    allocate(kernel, &whole);
    allocate(kernel, &mine);
    float *array = elements(0, all);
    const int64_t count = (int64_t)all;
    cranefold_tensor input = cranefold_tensor_of(array, CRANEFOLD_F32, CRANEFOLD_BUFFER, &count);
    must(cranefold_run(kernel, &input, 1, whole.tensors, whole.count), job->spec);
    free(array);

    const size_t bytes = cranefold_partial_state_bytes(partial);
    char *state = malloc(bytes), *result = malloc(bytes);
    if (!state || !result) fail("malloc", "no memory");
    MPI_Datatype datatype;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &datatype);
    MPI_Type_commit(&datatype);
    MPI_Op op;
    MPI_Op_create(cranefold_mpi_combine, 0, &op);

    for (int cut = 0; cut < CUTS; cut++) {
        uint64_t bounds[6] = {bound(job->shape[0], cut, rank), bound(job->shape[0], cut, rank + 1)};
        for (int axis = 1; axis < job->axes; axis++) bounds[2 * axis + 1] = job->shape[axis];
        cranefold_shard *shard = NULL;
        must(cranefold_partial_shard_of(partial, bounds, (size_t)job->axes, &shard), job->spec);
        float *x = elements(bounds[0] * row, bounds[1] * row);
        const int64_t elems = (int64_t)((bounds[1] - bounds[0]) * row);
        cranefold_tensor part = cranefold_tensor_of(x, CRANEFOLD_F32, CRANEFOLD_BUFFER, &elems);
        must(cranefold_shard_run(shard, &part, 1, state, bytes), job->spec);
        free(x);
        cranefold_shard_free(shard);

        MPI_Reduce(state, result, 1, datatype, op, 0, MPI_COMM_WORLD);
        if (rank == 0) finish(partial, result, &whole, &mine, 0, "MPI_Reduce");
        MPI_Allreduce(state, result, 1, datatype, op, MPI_COMM_WORLD);
        finish(partial, result, &whole, &mine, 0, "MPI_Allreduce");

        /* One rank's state is damaged: its header is not that of a state, or it says that it has another range. */
        if (rank == cut % ranks) {
            if (cut % 2) memset(state, 0x5a, bytes / 2);
            else state[32] = (char)(state[32] + 1);
        }
        MPI_Reduce(state, result, 1, datatype, op, 0, MPI_COMM_WORLD);
        if (rank == 0) finish(partial, result, &whole, &mine, 1, "MPI_Reduce of a damaged state");
        MPI_Allreduce(state, result, 1, datatype, op, MPI_COMM_WORLD);
        finish(partial, result, &whole, &mine, 1, "MPI_Allreduce of a damaged state");
    }
    MPI_Op_free(&op);
    MPI_Type_free(&datatype);
    release(&whole);
    release(&mine);
    free(state);
    free(result);
    cranefold_kernel_free(kernel);
    cranefold_partial_free(partial);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    cranefold_compiler *compiler = NULL;
    must(cranefold_compiler_new(NULL, &compiler), "compiler");
    const int jobs = (int)(sizeof JOBS / sizeof *JOBS);
    for (int job = 0; job < jobs; job++) run(compiler, &JOBS[job]);
    cranefold_compiler_free(compiler);
    if (rank == 0) printf("%d ranks: %d specs in %d cuts have the bits of one kernel\n", ranks, jobs, CUTS);
    MPI_Finalize();
    return 0;
}
