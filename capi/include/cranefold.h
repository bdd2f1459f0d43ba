/* cranefold.h: the C API of cranefold, a compiler for tensor reductions.
 *
 * A spec, one line of text such as "mean f32[64,512] axes=[1]", becomes a kernel of machine code. Its spec and its data
 * decide every bit of a result: no vector width, thread count or machine does. docs/c.md is the guide; this file is the
 * contract. It is valid C11 and C++11, and is held to the library by tests.
 *
 * Errors
 *   A function that can fail returns a `cranefold_error *`: NULL if it did its work, else an error that the caller owns
 *   and frees by `cranefold_error_free`. A function that fails writes nothing: neither to what its arguments point to nor
 *   to tensors; exceptions are said where they are. Functions that only read a handle return a plain value, and a neutral
 *   one (0, NULL, -1, "") of a null handle. No exception and no panic leaves the library; a bug of it is an error of
 *   the code CRANEFOLD_ERROR_INTERNAL, and its message stands on stderr too.
 *
 * Ownership
 *   Each `_new`, `_clone` and `_compile` gives a handle that the caller frees once by the `_free` of its type. NULL may
 *   be freed. A handle, an error and a text are not used after they are freed, and not freed twice: the library cannot
 *   see it, and the behaviour is undefined. Texts (`char *`) are freed by `cranefold_text_free`, never by `free`.
 *   `const char *` and the pointers in `cranefold_operand` belong to the handle they were read from and live as long as
 *   that handle or a clone of it. A kernel lives on when its compiler is freed, a shard when its partial results are,
 *   a call when its kernel is.
 *
 * Threads
 *   Any handle may be used on any thread, and on several at once, without a lock; only `_free` needs that no other thread
 *   uses the handle then. Calls in several threads at once write to different memory. Two threads that compile one spec
 *   compile it once. After `fork` the child may use handles of the parent, but for calls that had begun.
 *
 * Memory
 *   Tensors are views: the caller owns their memory, `shape` and `strides`, which are read during the function alone
 *   (of `cranefold_call_new`, the elements until the call is freed). Elements need no alignment.
 *
 * The floating-point environment is the default one during every call: rounding to nearest, subnormals kept.
 */
#ifndef CRANEFOLD_H
#define CRANEFOLD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. A library of another version has other functions or structs. */
#define CRANEFOLD_ABI_VERSION 1

/* The version of the library that runs; equal to CRANEFOLD_ABI_VERSION of the header it was built with. */
uint32_t cranefold_abi_version(void);
/* The release, as "0.1.0". */
const char *cranefold_version(void);

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

typedef struct cranefold_error cranefold_error;

/* Who can correct an error. */
#define CRANEFOLD_ERROR_ARGUMENT 1 /* a null pointer, a number out of its range, text that is no UTF-8 */
#define CRANEFOLD_ERROR_SPEC 2     /* the text of a spec; `cranefold_error_place` says where */
#define CRANEFOLD_ERROR_COMPILE 3  /* no code, or no partial results, of this spec on this machine */
#define CRANEFOLD_ERROR_TENSOR 4   /* number, type, device, shape, strides, size or overlap of tensors */
#define CRANEFOLD_ERROR_CALL 5     /* scratch memory, parts, a call that has ended */
#define CRANEFOLD_ERROR_STATE 6    /* bytes that are no state, or of another problem, or not all blocks */
#define CRANEFOLD_ERROR_MEMORY 7   /* no memory, or no threads */
#define CRANEFOLD_ERROR_INTERNAL 8 /* a bug of the library: please report it */

/* The code of an error; 0 of NULL. */
int32_t cranefold_error_code(const cranefold_error *error);
/* The message: UTF-8, for a spec with the line and a caret below the place. It lives as long as the error. */
const char *cranefold_error_message(const cranefold_error *error);
/* The byte of the given text at which the fault is, counted from 0, or -1 if there is no such place. */
int64_t cranefold_error_place(const cranefold_error *error);
/* The number of the item at fault of a function that takes several (`cranefold_compile_many`), or -1. */
int64_t cranefold_error_item(const cranefold_error *error);
void cranefold_error_free(cranefold_error *error);

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

/* The structs below have the layout of DLPack's DLDataType, DLDevice and DLTensor: a `DLTensor *` may be cast. */
typedef struct cranefold_dtype {
    uint8_t code; /* CRANEFOLD_INT to CRANEFOLD_BOOL */
    uint8_t bits;
    uint16_t lanes; /* 1 */
} cranefold_dtype;

#define CRANEFOLD_INT 0
#define CRANEFOLD_UINT 1
#define CRANEFOLD_FLOAT 2
#define CRANEFOLD_BFLOAT 4
#define CRANEFOLD_BOOL 6

typedef struct cranefold_device {
    int32_t kind; /* CRANEFOLD_CPU */
    int32_t id;   /* not read */
} cranefold_device;

#define CRANEFOLD_CPU 1

typedef struct cranefold_tensor {
    void *data;
    cranefold_device device;
    int32_t ndim; /* the rank, or CRANEFOLD_BUFFER */
    cranefold_dtype dtype;
    const int64_t *shape;   /* `ndim` extents; may be NULL of rank 0 */
    const int64_t *strides; /* `ndim` strides in elements, or NULL: row-major */
    uint64_t byte_offset;   /* from `data` to the element whose indices are all 0 */
} cranefold_tensor;

/* The rank of a tensor that is plain memory: `shape` points to one number, the elements from `data` + `byte_offset` on,
 * at least as many as the operand's span; `strides` is NULL. The elements lie where the spec says, from the start of the
 * span. It is the only form for blocked layouts such as nChw16c, and fits memory larger than a tensor. */
#define CRANEFOLD_BUFFER (-1)

/* A tensor fits an operand of a kernel if it has the operand's type, shape and strides; axes of extent 1, and tensors of
 * no elements, may have any strides. The strides are those of the spec: `f32[4,6]` is row-major, `f32[4,6]@(1,4)` is not.
 * No output may overlap another tensor, but an output may be the very memory of an input whose place it may take (each
 * element of it is read for the last time before it is written, as `softmax` over its input): give both the same tensor. */

/* ---- The compiler ----------------------------------------------------------------------------------------------- */

typedef struct cranefold_compiler cranefold_compiler;
typedef struct cranefold_kernel cranefold_kernel;

/* Options, with 0 for each default. `struct_size` is sizeof(cranefold_options), so that later versions may add fields. */
typedef struct cranefold_options {
    size_t struct_size;
    uint32_t width;           /* bits of the widest vector, 64 to 1024; default: what the machine has */
    uint32_t threads;         /* threads of `cranefold_run`, the calling one included, at most 1024; default 1 */
    uint64_t most_kernels;    /* the most codes kept; default 16000 */
    uint64_t most_code_bytes; /* the most bytes of machine code kept; default 256 MiB */
    const char *schedules;    /* the path of a file that `cranefold tune` has written; default none. Read at once. */
} cranefold_options;

/* A compiler for this machine; `options` may be NULL. Its kernels keep its threads alive. */
cranefold_error *cranefold_compiler_new(const cranefold_options *options, cranefold_compiler **compiler);
void cranefold_compiler_free(cranefold_compiler *compiler);
/* Drops all code from the cache. Code that kernels hold lives as long as they do. */
cranefold_error *cranefold_compiler_clear(const cranefold_compiler *compiler);
/* Bits of the widest vectors that the compiler's code may use. */
uint32_t cranefold_compiler_width(const cranefold_compiler *compiler);

typedef struct cranefold_statistics {
    uint64_t hits;       /* lookups that found code ready */
    uint64_t misses;     /* lookups that did not */
    uint64_t compiles;   /* compilations, failed ones included */
    uint64_t failures;   /* compilations that failed */
    uint64_t evictions;  /* codes evicted to make room */
    uint64_t kernels;    /* codes that the cache holds */
    uint64_t code_bytes; /* bytes of their executable memory */
} cranefold_statistics;

cranefold_error *cranefold_compiler_statistics(const cranefold_compiler *compiler, cranefold_statistics *statistics);

/* The kernel of a spec's text, compiled or from the cache. */
cranefold_error *cranefold_compile(const cranefold_compiler *compiler, const char *spec, cranefold_kernel **kernel);
/* The kernels of `count` texts, compiled on the compiler's threads: all of them, or none and the error of the first text
 * that fails. */
cranefold_error *cranefold_compile_many(const cranefold_compiler *compiler, const char *const *specs, size_t count,
                                        cranefold_kernel **kernels);

/* ---- The kernel ------------------------------------------------------------------------------------------------- */

/* Another handle of the same kernel; it costs next to nothing. */
cranefold_error *cranefold_kernel_clone(const cranefold_kernel *kernel, cranefold_kernel **clone);
void cranefold_kernel_free(cranefold_kernel *kernel);
/* The spec in its canonical text. */
const char *cranefold_kernel_spec(const cranefold_kernel *kernel);

/* An input or output of a kernel. */
typedef struct cranefold_operand {
    cranefold_dtype dtype;
    int32_t ndim;
    const int64_t *shape;   /* outputs: after reduction */
    const int64_t *strides; /* in elements; NULL if the layout is blocked */
    uint64_t origin;        /* elements of the span before the element whose indices are all 0 */
    uint64_t span_elems;    /* elements of the memory from the operand's first to its last, padding included */
    uint64_t span_bytes;
    const char *name; /* an input's name in the spec: "x0", "eps"; an output has none */
} cranefold_operand;

/* The inputs are in the order of the spec: elements, then inputs of `then`, then scalars (tensors of rank 0). */
size_t cranefold_kernel_inputs(const cranefold_kernel *kernel);
size_t cranefold_kernel_outputs(const cranefold_kernel *kernel);
cranefold_error *cranefold_kernel_input(const cranefold_kernel *kernel, size_t number, cranefold_operand *operand);
cranefold_error *cranefold_kernel_output(const cranefold_kernel *kernel, size_t number, cranefold_operand *operand);

/* Runs a kernel on the threads of its compiler, and returns when the outputs are written. It takes scratch memory from
 * the heap where the kernel needs some. */
cranefold_error *cranefold_run(const cranefold_kernel *kernel, const cranefold_tensor *inputs, size_t input_count,
                               const cranefold_tensor *outputs, size_t output_count);
/* Runs a kernel on the calling thread, in the caller's scratch memory: `cranefold_kernel_run_scratch` bytes or more,
 * aligned to 64, of any content, used by no other call at the same time. */
cranefold_error *cranefold_run_in(const cranefold_kernel *kernel, const cranefold_tensor *inputs, size_t input_count,
                                  const cranefold_tensor *outputs, size_t output_count, void *scratch,
                                  size_t scratch_bytes);
uint64_t cranefold_kernel_run_scratch(const cranefold_kernel *kernel);

/* Raw calls, for loops in which a check costs too much. `pointers` has a pointer to the start of the span of each input,
 * then of each output, then one to scratch memory (`cranefold_kernel_run_scratch` bytes, aligned to 64; any pointer if
 * that is 0). Nothing is checked: a pointer to less memory, or outputs that overlap what they may not, are undefined
 * behaviour. */
typedef void (*cranefold_entry)(void *const *pointers);
/* The function of the kernel's machine code, which lives as long as a handle of the kernel; NULL if there are several
 * parts. */
cranefold_entry cranefold_kernel_entry(const cranefold_kernel *kernel);
/* Calls kernels of any number of parts, one part after the other on the calling thread. */
cranefold_error *cranefold_run_raw(const cranefold_kernel *kernel, void *const *pointers);

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

/* A call whose parts the caller's scheduler runs: each once, in any order and on any threads, and then
 * `cranefold_call_finish`. No part ever waits for another. The contents of the outputs are undefined until the finish. */
typedef struct cranefold_call cranefold_call;

/* The number of parts that a call of the kernel has: 1 unless the compiler has several threads and the work is large. */
size_t cranefold_kernel_parts(const cranefold_kernel *kernel);
/* Bytes of scratch memory of a call, for all parts. */
uint64_t cranefold_kernel_call_scratch(const cranefold_kernel *kernel);
/* Checks the tensors and begins a call. The elements of the tensors, and the scratch memory, stay in place until the
 * call is freed. `scratch` may be NULL: the call then has its own. Else it is aligned to 64. */
cranefold_error *cranefold_call_new(const cranefold_kernel *kernel, const cranefold_tensor *inputs, size_t input_count,
                                    const cranefold_tensor *outputs, size_t output_count, void *scratch,
                                    size_t scratch_bytes, cranefold_call **call);
size_t cranefold_call_parts(const cranefold_call *call);
/* Runs a part; a second run of it is an error. */
cranefold_error *cranefold_call_run(const cranefold_call *call, size_t part);
/* Ends a call; an error if a part has not run to its end. */
cranefold_error *cranefold_call_finish(const cranefold_call *call);
void cranefold_call_free(cranefold_call *call);

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* The page that explains a kernel: bytes, operations, tree, loops, schedule, expected time. */
cranefold_error *cranefold_explain(const cranefold_kernel *kernel, char **page);
/* The text of one stage between the spec and the machine code, or of "all": "spec", "problem", "schedule", "nest", each
 * pass, "clif", "asm". An unknown name is an error that lists them. */
cranefold_error *cranefold_dump(const cranefold_kernel *kernel, const char *stage, char **dump);
void cranefold_text_free(char *text);

/* ---- Partial results -------------------------------------------------------------------------------------------- */

/* States of ranges of blocks of a reduction, for engines that reduce parts of the data in many processes. Neighbouring
 * states combine in any grouping, and the finished bits are those of one call. docs/partial-results.md has the rules. */
typedef struct cranefold_partial cranefold_partial;
typedef struct cranefold_shard cranefold_shard;

/* An error of the code CRANEFOLD_ERROR_COMPILE if slices are not reduced in blocks. */
cranefold_error *cranefold_partial_new(const cranefold_compiler *compiler, const char *spec,
                                       cranefold_partial **partial);
/* The partial results of a box of the kept axes: `bounds` has `kept` pairs, the first index and the end along each of them in
 * order. The spec has `order=logical` and no layouts, and operands are row-major arrays of the box. */
cranefold_error *cranefold_partial_of(const cranefold_compiler *compiler, const char *spec, const uint64_t *bounds,
                                      size_t kept, cranefold_partial **partial);
void cranefold_partial_free(cranefold_partial *partial);
/* The axis that chunks are ranges of: the first reduced axis of extent above 1. An error without `order=logical`. */
cranefold_error *cranefold_partial_axis(const cranefold_partial *partial, size_t *axis);
/* The blocks of each slice; 0 of reductions of several trees, which have shards of elements alone. */
uint64_t cranefold_partial_blocks(const cranefold_partial *partial);
/* Bytes of a state: plain bytes without pointers, which need no alignment and may be sent. */
size_t cranefold_partial_state_bytes(const cranefold_partial *partial);
/* The bytes of a state that have to be sent: of one, by its first 64 bytes, and of the state of a range of the axis. */
cranefold_error *cranefold_partial_used_bytes(const cranefold_partial *partial, const void *state, size_t bytes,
                                              size_t *used);
cranefold_error *cranefold_partial_range_bytes(const cranefold_partial *partial, uint64_t first, uint64_t end,
                                               size_t *used);
/* Writes 2 * `count` numbers, the first block and the end of each of `count` ranges of nearly the same length. */
cranefold_error *cranefold_partial_ranges(const cranefold_partial *partial, size_t count, uint64_t *bounds);
/* The nests that merge and finish states, as text. */
cranefold_error *cranefold_partial_dump(const cranefold_partial *partial, char **dump);

/* The code for the blocks from `first` to before `end`. */
cranefold_error *cranefold_partial_shard(const cranefold_partial *partial, uint64_t first, uint64_t end,
                                         cranefold_shard **shard);
/* The code for a chunk of the array: `bounds` has `axes` pairs, the first index and the end along each axis. It is any range
 * of the first reduced axis of extent above 1, and whole along all others; the spec has `order=logical` and no layouts. The
 * inputs of the shard are row-major arrays of the chunk. docs/distributed.md has the rules. */
cranefold_error *cranefold_partial_shard_of(const cranefold_partial *partial, const uint64_t *bounds, size_t axes,
                                            cranefold_shard **shard);
void cranefold_shard_free(cranefold_shard *shard);

/* The elements of an input that a shard reads: `first` to before `end`, counted from the start of the input's span. */
typedef struct cranefold_span {
    uint64_t input; /* the number of the input in the spec */
    cranefold_dtype dtype;
    uint64_t first;
    uint64_t end;
} cranefold_span;

size_t cranefold_shard_inputs(const cranefold_shard *shard);
cranefold_error *cranefold_shard_input(const cranefold_shard *shard, size_t number, cranefold_span *span);
/* Reduces the blocks of a shard and writes their state. The tensors are rows of elements, one for each input of the shard:
 * of rank 1 (or 0) with as many elements as its span, or plain memory of at least as many. */
cranefold_error *cranefold_shard_run(const cranefold_shard *shard, const cranefold_tensor *inputs, size_t input_count,
                                     void *state, size_t state_bytes);

/* Writes `count` states of no blocks, one after the other; `bytes` is `count` times the bytes of a state. */
cranefold_error *cranefold_partial_identity(const cranefold_partial *partial, void *states, size_t bytes,
                                            size_t count);
/* Combines each of `count` states with the state at the same place of `into`, which must have a neighbouring range. */
cranefold_error *cranefold_partial_combine(const cranefold_partial *partial, const void *from, void *into,
                                           size_t bytes, size_t count);
/* The blocks of one state; its first 64 bytes are enough. */
cranefold_error *cranefold_partial_blocks_of(const cranefold_partial *partial, const void *state, size_t bytes,
                                             uint64_t *first, uint64_t *end);
/* The range of the axis that one state has; its first 64 bytes are enough. */
cranefold_error *cranefold_partial_range_of(const cranefold_partial *partial, const void *state, size_t bytes,
                                            uint64_t *first, uint64_t *end);
/* The inputs of `cranefold_partial_finish` (scalars, and inputs of `then`): how many, and the number in the spec of each,
 * or -1. */
size_t cranefold_partial_finish_inputs(const cranefold_partial *partial);
int64_t cranefold_partial_finish_input(const cranefold_partial *partial, size_t number);
/* Writes the outputs of `count` states, each of all blocks. The tensors are rows of elements as those of a shard, each of
 * `count` spans of its operand one after the other. */
cranefold_error *cranefold_partial_finish(const cranefold_partial *partial, const void *from, size_t bytes,
                                          size_t count, const cranefold_tensor *inputs, size_t input_count,
                                          const cranefold_tensor *outputs, size_t output_count);

/* The combination of states for MPI_Op_create(cranefold_mpi_combine, 0, &op), of type MPI_User_function if <mpi.h> is
 * included before this header. A message is `*len` states, each of the datatype MPI_Type_contiguous(
 * cranefold_partial_state_bytes(partial), MPI_BYTE). The program holds a `cranefold_partial` of the spec meanwhile: by the
 * states the function finds it. MPI gives no way to fail, so a combination that fails (states of different specs, or that
 * are no neighbours, or none) poisons `inout`: every combination with it poisons its result, and
 * `cranefold_partial_finish` refuses it. Of `*len` > 1 states that are all unknown the first alone is poisoned. */
#ifdef MPI_VERSION
void cranefold_mpi_combine(void *in, void *inout, int *len, MPI_Datatype *datatype);
#else
void cranefold_mpi_combine(void *in, void *inout, int *len, void *datatype);
#endif

/* ---- Short forms ------------------------------------------------------------------------------------------------ */

#define CRANEFOLD_I8 ((cranefold_dtype){CRANEFOLD_INT, 8, 1})
#define CRANEFOLD_I16 ((cranefold_dtype){CRANEFOLD_INT, 16, 1})
#define CRANEFOLD_I32 ((cranefold_dtype){CRANEFOLD_INT, 32, 1})
#define CRANEFOLD_I64 ((cranefold_dtype){CRANEFOLD_INT, 64, 1})
#define CRANEFOLD_U8 ((cranefold_dtype){CRANEFOLD_UINT, 8, 1})
#define CRANEFOLD_U16 ((cranefold_dtype){CRANEFOLD_UINT, 16, 1})
#define CRANEFOLD_U32 ((cranefold_dtype){CRANEFOLD_UINT, 32, 1})
#define CRANEFOLD_U64 ((cranefold_dtype){CRANEFOLD_UINT, 64, 1})
#define CRANEFOLD_F16 ((cranefold_dtype){CRANEFOLD_FLOAT, 16, 1})
#define CRANEFOLD_BF16 ((cranefold_dtype){CRANEFOLD_BFLOAT, 16, 1})
#define CRANEFOLD_F32 ((cranefold_dtype){CRANEFOLD_FLOAT, 32, 1})
#define CRANEFOLD_F64 ((cranefold_dtype){CRANEFOLD_FLOAT, 64, 1})
#define CRANEFOLD_BOOL8 ((cranefold_dtype){CRANEFOLD_BOOL, 8, 1})

/* A row-major tensor of the processor; `shape` is read when the tensor is used. */
static inline cranefold_tensor cranefold_tensor_of(void *data, cranefold_dtype dtype, int32_t ndim,
                                                   const int64_t *shape) {
    cranefold_tensor tensor = {data, {CRANEFOLD_CPU, 0}, ndim, dtype, shape, NULL, 0};
    return tensor;
}

#if !defined(__cplusplus)
/* A row-major tensor with these extents: CRANEFOLD_TENSOR(x, CRANEFOLD_F32, 2, 3). The shape lives as long as the block. */
#define CRANEFOLD_TENSOR(data, dtype, ...)                                                                             \
    cranefold_tensor_of((data), (dtype), (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                \
                        (const int64_t[]){__VA_ARGS__})
/* Plain memory of this many elements. */
#define CRANEFOLD_MEMORY(data, dtype, elems)                                                                           \
    cranefold_tensor_of((data), (dtype), CRANEFOLD_BUFFER, (const int64_t[]){(int64_t)(elems)})
#endif

#ifdef __cplusplus
}
#endif

#endif
