/* Threads that share a compiler: each compiles, runs and frees at random for some seconds, in every way to call.
 *
 *     threads SECONDS THREADS */
#define _POSIX_C_SOURCE 200112L
#include "check.h"
#include <pthread.h>
#include <time.h>

static cranefold_compiler *compiler;
static double seconds;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint32_t next(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

/* A kernel that all threads share, replaced now and then by any of them. */
static cranefold_kernel *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *given) {
    uint32_t state = (uint32_t)(uintptr_t)given * 2654435761u + 7;
    const double end = now() + seconds;
    size_t calls = 0;
    float *x = malloc(64 * 64 * sizeof *x), *sums = malloc(64 * sizeof *sums);
    for (int i = 0; i < 64 * 64; i++) x[i] = (float)(i % 7);
    while (now() < end) {
        const int rows = 1 + (int)(next(&state) >> 8) % 6, columns = 1 + (int)(next(&state) >> 8) % 9;
        const int64_t shape[2] = {rows, columns};
        char spec[64];
        snprintf(spec, sizeof spec, "%s f32[%d,%d] axes=[1]", next(&state) & 1024 ? "sum" : "max", rows, columns);
        cranefold_kernel *kernel = kernel_of(compiler, spec), *clone;
        DONE(cranefold_kernel_clone(kernel, &clone));
        cranefold_tensor in = cranefold_tensor_of(x, CRANEFOLD_F32, 2, shape), out = cranefold_tensor_of(sums, CRANEFOLD_F32, 1, shape);
        switch (next(&state) >> 8 & 7) {
        case 0: {
            cranefold_call *call;
            DONE(cranefold_call_new(clone, &in, 1, &out, 1, NULL, 0, &call));
            DONE(cranefold_call_run(call, 0));
            DONE(cranefold_call_finish(call));
            cranefold_call_free(call);
            break;
        }
        case 1: REFUSED(cranefold_run(clone, &in, 1, &in, 1), CRANEFOLD_ERROR_TENSOR, "output 0"); break;
        case 2: {
            char *text;
            DONE(cranefold_dump(clone, "schedule", &text));
            cranefold_text_free(text);
            break;
        }
        case 3: {
            pthread_mutex_lock(&lock);
            cranefold_kernel *old = shared;
            shared = clone;
            clone = NULL;
            pthread_mutex_unlock(&lock);
            cranefold_kernel_free(old);
            break;
        }
        case 4: {
            cranefold_statistics told;
            DONE(cranefold_compiler_statistics(compiler, &told));
            if (next(&state) >> 8 & 1) DONE(cranefold_compiler_clear(compiler));
            break;
        }
        default: break;
        }
        DONE(cranefold_run(kernel, &in, 1, &out, 1));
        float expected = 0;
        const int is_sum = spec[0] == 's';
        for (int i = 0; i < columns; i++) expected = is_sum ? expected + x[i] : x[i] > expected ? x[i] : expected;
        CHECK(sums[0] == expected);
        cranefold_kernel_free(clone);
        cranefold_kernel_free(kernel);
        calls++;
    }
    free(sums);
    free(x);
    return (void *)calls;
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    seconds = atof(arguments[1]);
    const int threads = atoi(arguments[2]);
    CHECK(threads >= 1 && threads <= 64);
    const cranefold_options options = {sizeof options, getenv("CRANEFOLD_TEST_WIDTH") ? (uint32_t)atoi(getenv("CRANEFOLD_TEST_WIDTH")) : 0, 1, 40, 1 << 20, NULL};
    DONE(cranefold_compiler_new(&options, &compiler));
    pthread_t all[64];
    size_t calls = 0;
    for (int n = 0; n < threads; n++) CHECK(pthread_create(&all[n], NULL, work, (void *)(uintptr_t)(n + 1)) == 0);
    for (int n = 0; n < threads; n++) {
        void *own;
        CHECK(pthread_join(all[n], &own) == 0);
        calls += (size_t)own;
    }
    cranefold_kernel_free(shared);
    cranefold_compiler_free(compiler);
    printf("%zu rounds on %d threads\n", calls, threads);
    return 0;
}
