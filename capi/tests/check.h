/* The checks that the C tests share. */
#ifndef CHECK_H
#define CHECK_H

#include <cranefold.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                                \
        fprintf(stderr, __VA_ARGS__);                                                                                  \
        fputc('\n', stderr);                                                                                           \
        exit(1);                                                                                                       \
    } while (0)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) FAIL("%s", #condition);                                                                      \
    } while (0)

/* The call does its work. */
#define DONE(call)                                                                                                     \
    do {                                                                                                               \
        cranefold_error *done_error = (call);                                                                          \
        if (done_error) FAIL("%s: %s", #call, cranefold_error_message(done_error));                                    \
    } while (0)

/* The call is refused with a code, by a message that holds the text; how often, says `refusals`. */
static _Thread_local int refusals;
#define REFUSED(call, its_code, text) refused((call), (its_code), (text), #call, __FILE__, __LINE__)
static inline void refused(cranefold_error *error, int32_t code, const char *text, const char *call, const char *file,
                           int line) {
    if (!error) {
        fprintf(stderr, "%s:%d: %s is not refused\n", file, line, call);
        exit(1);
    }
    if (cranefold_error_code(error) != code || !strstr(cranefold_error_message(error), text)) {
        fprintf(stderr, "%s:%d: %s gives %d: %s\n", file, line, call, cranefold_error_code(error),
                cranefold_error_message(error));
        exit(1);
    }
    cranefold_error_free(error);
    refusals++;
}

/* A compiler with the width of the environment's CRANEFOLD_TEST_WIDTH, or the machine's. */
static inline cranefold_compiler *compiler_of(uint32_t threads) {
    const char *width = getenv("CRANEFOLD_TEST_WIDTH");
    cranefold_options options = {sizeof options, width ? (uint32_t)atoi(width) : 0, threads, 0, 0, NULL};
    cranefold_compiler *compiler;
    DONE(cranefold_compiler_new(&options, &compiler));
    return compiler;
}

static inline cranefold_kernel *kernel_of(const cranefold_compiler *compiler, const char *spec) {
    cranefold_kernel *kernel;
    DONE(cranefold_compile(compiler, spec, &kernel));
    return kernel;
}

#endif
