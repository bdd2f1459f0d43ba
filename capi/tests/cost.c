/* The cost of a call of `sum f32[8]`: checked, raw, by the entry, and of a plain function through a pointer.
 *
 *     cost            median of interleaved rounds, in ns for a call */
#define _POSIX_C_SOURCE 200112L
#include "check.h"
#include <time.h>

/* A round is shorter than a turn of the machine's scheduler. */
enum { ROUNDS = 2001, CALLS = 2000, WAYS = 4 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int by_value(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(void) {
    cranefold_compiler *compiler = compiler_of(1);
    cranefold_kernel *kernel = kernel_of(compiler, "sum f32[8]");
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, sum = 0;
    const cranefold_tensor in = CRANEFOLD_TENSOR(x, CRANEFOLD_F32, 8), out = cranefold_tensor_of(&sum, CRANEFOLD_F32, 0, NULL);
    void *pointers[] = {x, &sum};
    const cranefold_entry entry = cranefold_kernel_entry(kernel);
    /* The same code through a pointer that the compiler of C cannot see through. */
    void (*volatile plain)(void *const *) = entry;
    static double times[WAYS][ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int way = 0; way < WAYS; way++) {
            const double start = now();
            switch (way) {
            case 0:
                for (int i = 0; i < CALLS; i++) DONE(cranefold_run(kernel, &in, 1, &out, 1));
                break;
            case 1:
                for (int i = 0; i < CALLS; i++) DONE(cranefold_run_raw(kernel, pointers));
                break;
            case 2:
                for (int i = 0; i < CALLS; i++) entry(pointers);
                break;
            default: {
                void (*const call)(void *const *) = plain;
                for (int i = 0; i < CALLS; i++) call(pointers);
            }
            }
            times[way][round] = (now() - start) / CALLS;
        }
    }
    CHECK(sum == 36);
    const char *names[WAYS] = {"cranefold_run", "cranefold_run_raw", "cranefold_kernel_entry", "a function pointer"};
    for (int way = 0; way < WAYS; way++) {
        qsort(times[way], ROUNDS, sizeof times[way][0], by_value);
        printf("%-24s %6.2f ns\n", names[way], times[way][ROUNDS / 2]);
    }
    cranefold_kernel_free(kernel);
    cranefold_compiler_free(compiler);
    return 0;
}
