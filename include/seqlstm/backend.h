/* SPDX-License-Identifier: Apache-2.0 */
/* The backend ABI: what a plugin exports, the arguments of its functions, and the services of the host.
 *
 * A backend is a shared object that exports exactly one function, `seqlstm_backend_query_v0`, which returns a constant
 * table of functions. Host and plugin exchange nothing but the structs of this folder. A plugin throws no exception out
 * of its functions, calls neither exit, abort nor longjmp, installs no signal handler, leaves the locale and the
 * floating-point mode as they are, and writes nothing to stdout or stderr.
 *
 * Version. ABI major 0 is a draft: SEQLSTM_ABI_MAJOR and SEQLSTM_ABI_MINOR of host and plugin must be equal. Every
 * struct that either side fills begins with `struct_size`, the end of the last member that its owner knows. The other
 * side reads members through SEQLSTM_HAS, so that from version 1 on structs can grow at the end.
 *
 * Life of an operation:
 *   supports      static rules, no device
 *   op_create     the operation, immutable and shareable
 *   op_sizes      upper bounds of the buffers, which the host allocates
 *   op_bind       one shape; may allocate
 *   weights_pack  whenever the weights have changed
 *   forward, backward, binding_destroy, op_destroy
 *
 * Thread classes, named at each function:
 *   [any]     from any thread, concurrently
 *   [control] one thread at a time per instance
 *   [queue]   one call at a time per queue; different queues concurrently. A binding belongs to one queue.
 *
 * Memory. The host owns all buffers in the arguments, aligned to SEQLSTM_ALIGNMENT. A plugin allocates only its private
 * data, through the host's `allocate`, and never inside forward or backward. Pointers in arguments are valid until the
 * call returns, unless a comment says otherwise.
 */
#ifndef SEQLSTM_BACKEND_H
#define SEQLSTM_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "any_desc.h"
#include "ops.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEQLSTM_ABI_MAJOR    0u
#define SEQLSTM_ABI_MINOR    10u
#define SEQLSTM_MAGIC        0x4D54534Cu /* "LSTM", little endian */
#define SEQLSTM_ALIGNMENT    64u         /* bytes; of every buffer that the host provides */
#define SEQLSTM_QUERY_SYMBOL "seqlstm_backend_query_v0"
#define SEQLSTM_MAX_ID_BYTES 48 /* of the id of a backend, with the final NUL */

/* Does the struct at `p` have `member`, according to the struct_size that its owner set? */
#define SEQLSTM_HAS(p, member) ((p)->struct_size >= SEQLSTM_END_OF(p, member))
#define SEQLSTM_END_OF(p, member)                                                                                      \
    ((uint32_t)((const char *)&(p)->member - (const char *)(p)) + (uint32_t)sizeof((p)->member))

/* ---- axes ------------------------------------------------------------------------------------ */

enum {
    SEQLSTM_BIT_AXIS_STREAM = 1u << 0, /* segments of long streams: each segment has its own per-sequence masks */
    SEQLSTM_BIT_AXIS_UNIFORM = 1u << 1 /* all lengths are equal */
};

/* A ragged axis of one batch. The host owns all arrays; they are valid as long as the binding lives. `steps`,
 * `batch_sizes` and `row_offsets` of a binding never change. `sequence_id`, `position0` and the STREAM bit of `flags`
 * may change between calls: read them in each call. */
struct seqlstm_axis {
    uint32_t struct_size;
    uint32_t flags;              /* SEQLSTM_BIT_AXIS_… */
    int64_t sequences;           /* B >= 1; sequences of length zero are left out */
    int64_t steps;               /* T >= 1 */
    int64_t rows;                /* R = sum of lengths */
    const int32_t *lengths;      /* [B], not increasing, all >= 1 */
    const int32_t *batch_sizes;  /* [T], not increasing; batch_sizes[0] == B */
    const int64_t *row_offsets;  /* [T + 1]; first row of each step, row_offsets[T] == R */
    const uint64_t *sequence_id; /* [B]; identifies the sequence in masks */
    const uint32_t *position0;   /* [B]; position of step 0 in the whole sequence */
    /* Copies of these two arrays in the memory of the device. Their addresses stay the same while the binding lives;
     * the host updates them before each call and each launch of a capture. NULL: there are no copies. */
    const uint64_t *device_sequence_id;
    const uint32_t *device_position0;
};

/* Values that change from call to call. Read them during the call; do not keep them. */
enum { SEQLSTM_BIT_STEP_SKIP = 1u << 0 /* the optimizer changes nothing */ };

struct seqlstm_step {
    uint32_t struct_size;
    uint32_t flags;            /* SEQLSTM_BIT_STEP_… */
    uint64_t seed;             /* of the run */
    uint64_t epoch;            /* key of a mask: mix64(seed, stream, epoch) */
    uint64_t update;           /* optimizer: t, counted from 1 */
    uint32_t weight_mask_step; /* weight drop: position of the segment, or number of the batch in the epoch */
    float normaliser;          /* losses: factor of the gradient */
    float loss_scale;          /* losses: a further factor; 1 in float32 */
    float learning_rate;       /* optimizer */
    float grad_scale;          /* optimizer: factor of the gradient, 1 / loss_scale */
    float alpha;               /* VECTOR */
    /* A copy of this block in the memory of the device, which the host updates before each call and each launch of a
     * capture. A captured call reads flags and seed to grad_scale there; alpha is fixed when it is captured. NULL:
     * there is no copy. */
    const struct seqlstm_step *device;
};

/* ---- host services ---------------------------------------------------------------------------- */

enum {
    SEQLSTM_LOG_ERROR = 1,
    SEQLSTM_LOG_WARNING = 2,
    SEQLSTM_LOG_INFO = 3,
    SEQLSTM_LOG_DEBUG = 4,
    SEQLSTM_LOG_TRACE = 5
};

/* Passed to `open`; valid until `close` returns. `log`, `allocate` and `release` are always there; a minimal host
 * leaves the others NULL. */
struct seqlstm_host {
    uint32_t struct_size;
    uint32_t abi_minor; /* the host's SEQLSTM_ABI_MINOR */
    void *context;      /* first argument of every service */
    /* Logs one line, given without its newline. [any] */
    void (*log)(void *context, int32_t level, const char *message);
    /* Returns `bytes` bytes aligned to SEQLSTM_ALIGNMENT, not zeroed; NULL when memory ran out. [any] */
    void *(*allocate)(void *context, uint64_t bytes);
    /* Releases what `allocate` returned; NULL is allowed. [any] */
    void (*release)(void *context, void *pointer);
    /* Returns non-zero when the user wants to stop; long kernels may poll it. [any] */
    int32_t (*cancelled)(void *context);
    /* Begin and end a named interval of the timeline; intervals nest per thread. `name` is copied. [any] */
    void (*trace_begin)(void *context, const char *name);
    void (*trace_end)(void *context);
};

struct seqlstm_queue;

/* Work sharing on a CPU queue. A queue is a part of the host's thread pool: `members` threads, of which the caller is
 * member 0. The thread that executes on the queue calls parallel_for and team; with members == 1 they run inline. They
 * do not nest: neither may be called from within the other or itself. */
struct seqlstm_queue_services {
    uint32_t struct_size;
    uint32_t reserved0;
    /* Calls fn(argument, begin, end) for [0, count) in ranges of about `grain`; returns when all are done. */
    void (*parallel_for)(struct seqlstm_queue *queue, int64_t count, int64_t grain,
                         void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);
    /* Calls fn(argument, member, members) on exactly `members` concurrent threads; returns when all have returned. */
    void (*team)(struct seqlstm_queue *queue, void (*fn)(void *argument, int32_t member, int32_t members),
                 void *argument);
    /* Inside `team` only: returns when all members have called it. Spins briefly, then sleeps. */
    void (*team_barrier)(struct seqlstm_queue *queue);
    /* Puts the other threads of the pool to sleep while the thread pool of a library runs; `lease_end` wakes them. */
    void (*lease_begin)(struct seqlstm_queue *queue);
    void (*lease_end)(struct seqlstm_queue *queue);
};

/* Where calls run. Created by the host. */
struct seqlstm_queue {
    uint32_t struct_size;
    int32_t members;                               /* CPU: threads of this queue, >= 1; devices: 1 */
    void *native_stream;                           /* devices: the vendor's stream (cudaStream_t …); CPU: NULL */
    const struct seqlstm_queue_services *services; /* CPU: never NULL */
    void *host_data;                               /* private to the host */
};

/* ---- devices, capability, cost ------------------------------------------------------------------ */

struct seqlstm_device_info {
    uint32_t struct_size;
    uint32_t flags;        /* zero */
    char name[64];         /* "AMD EPYC 9B45", "NVIDIA H200" */
    char device_class[32]; /* "cpu:x86-64-v4+amx", "cuda:sm_90" */
    char domain[64];       /* memory domain: "host", "cuda:<uuid>" */
    uint64_t memory_bytes; /* 0: the host's */
};

/* Why an answer is no, as bits for programs; `reason` says it to people. */
enum {
    SEQLSTM_BIT_REFUSED_OPERATION = 1u << 0, /* the backend does not have this operation */
    SEQLSTM_BIT_REFUSED_OPTION = 1u << 1,
    SEQLSTM_BIT_REFUSED_COMBINATION = 1u << 2,
    SEQLSTM_BIT_REFUSED_SHAPE = 1u << 3,
    SEQLSTM_BIT_REFUSED_DTYPE = 1u << 4,
    SEQLSTM_BIT_REFUSED_MODE = 1u << 5,
    SEQLSTM_BIT_REFUSED_DETERMINISM = 1u << 6,
    SEQLSTM_BIT_REFUSED_DEVICE = 1u << 7,
    SEQLSTM_BIT_REFUSED_MEMORY = 1u << 8,
    SEQLSTM_BIT_REFUSED_ABI = 1u << 9, /* the descriptor holds a value or bit that this backend does not know */
    SEQLSTM_BIT_REFUSED_DEPENDENCY = 1u << 10
};

#define SEQLSTM_MAX_VARIANTS      16
#define SEQLSTM_MAX_VARIANT_BYTES 32 /* of a name, with the final NUL */

/* Filled by `supports`. Zeroed by the host, struct_size set. */
struct seqlstm_answer {
    uint32_t struct_size;
    uint32_t accepted;      /* 1: yes, 0: no */
    uint32_t code;          /* no: SEQLSTM_BIT_REFUSED_… */
    uint32_t option;        /* no: SEQLSTM_OPTION_… */
    char value[48];         /* no: the refused value as text: "leaky_relu", "0.25" */
    char reason[256];       /* no: one sentence */
    char hint[128];         /* no: what would be accepted; may be empty */
    uint32_t variant_count; /* yes: 1 .. SEQLSTM_MAX_VARIANTS, best guess first */
    uint32_t reserved0;
    char variants[SEQLSTM_MAX_VARIANTS][SEQLSTM_MAX_VARIANT_BYTES]; /* yes: names such as "batch_slices" */
};

/* Expected time of a call. */
struct seqlstm_cost {
    uint32_t struct_size;
    uint32_t confidence; /* 0 guess .. 3 measured */
    double forward_ns;
    double backward_ns;
};

/* May calls of an operation be captured (ext/draft/memory.h)? A captured call starts work on its stream only, waits for
 * nothing and allocates nothing. When it is launched, it reads no memory of the host: it takes the values that change
 * from call to call from the device copies of the step block, ids and positions, which the host then provides. */
enum {
    SEQLSTM_CAPTURE_NONE = 0,
    SEQLSTM_CAPTURE_PER_SHAPE = 1, /* after a first ordinary call; valid while the binding and all addresses stay */
    SEQLSTM_CAPTURE_ANY_SHAPE = 2  /* likewise, and the captured work depends only on the number of rows */
};

/* Buffers of one operation: upper bounds for all batches that its descriptor allows. */
struct seqlstm_sizes {
    uint32_t struct_size;
    uint32_t capture;         /* SEQLSTM_CAPTURE_… */
    uint64_t workspace_bytes; /* scratch memory of one call; its contents are lost between calls */
    uint64_t reserve_bytes;   /* training: kept from forward to its backward; one per binding in use */
    uint64_t packed_bytes;    /* weights in the layout of the kernels; 0: canonical weights are used */
    int32_t members; /* set by the host, on CPUs: calls run on queues of at most so many members; 0: of any number */
    uint32_t reserved0;
};

/* ---- bind and execute ------------------------------------------------------------------------------ */

enum { SEQLSTM_BIT_BIND_ON_SEQUENCES = 1u << 0 /* row r belongs to sequence r: the rows lie on the sequences axis */ };

/* The shape of a binding. */
struct seqlstm_bind {
    uint32_t struct_size;
    uint32_t flags;  /* SEQLSTM_BIT_BIND_… */
    int64_t rows;    /* rows of the output; elements of a flat vector; rows of [t0, t1) on a steps axis */
    int64_t rows_in; /* GATHER, SCATTER: rows of x; ATTENTION: rows of the keys; others: as rows */
    const struct seqlstm_axis *axis; /* of the steps; NULL for operations on free tensors */
    /* Range of steps [t0, t1); 0 and axis->steps: all. Slots on the steps axis point to the first row of step t0. */
    int64_t t0;
    int64_t t1;
};

struct seqlstm_op;      /* defined by the plugin: an operation, immutable */
struct seqlstm_binding; /* defined by the plugin: an operation at one shape */

/* ops.h numbers the slots. Slots that are only read are `void *` too, so that one array holds them all. */
struct seqlstm_forward {
    uint32_t struct_size;
    uint32_t slot_count;
    void *const *slots;
    void *workspace;    /* workspace_bytes; NULL when 0 */
    void *reserve;      /* reserve_bytes; NULL in inference or when 0 */
    const void *packed; /* packed_bytes, filled by weights_pack; NULL when 0 */
    const struct seqlstm_step *step;
};

enum {
    SEQLSTM_BIT_BACKWARD_INPUTS = 1u << 0,    /* gradients of the activations that forward reads */
    SEQLSTM_BIT_BACKWARD_STATES = 1u << 1,    /* RECURRENT: dh0, dc0 */
    SEQLSTM_BIT_BACKWARD_WEIGHTS = 1u << 2,   /* gradients of parameters */
    SEQLSTM_BIT_BACKWARD_ACCUMULATE = 1u << 3 /* parameters: add to grads instead of overwriting */
};

/* `slots` are those of forward, unchanged. A pointer in `grads` may be NULL where `parts` does not ask for it, and for
 * an output whose gradient is zero everywhere (dy of an unused y, dhn). What `parts` does not ask for is not written.
 *
 * SEQLSTM_BIT_RECURRENT_STEPWISE: the steps of an axis run in segments, each with its own binding [t0, t1), but one
 * call over the rows of all segments computes dW. All segments share one reserve, packed weights and queue. The calls
 * are:
 *   1. forward of the segments in order of time; HN and CN of a segment are H0 and C0 of the next
 *   2. backward of the segments, last first, with INPUTS and STATES, never WEIGHTS
 *   3. backward with WEIGHTS alone on a binding of the whole axis; slots point to the whole tensors (states: those of
 *      the first segment). Of the gradients it uses only those of parameters. Afterwards the contents of the reserve
 *      are lost.
 * Between these calls the host does not touch the reserve. Directions other than FORWARD have one segment. */
struct seqlstm_backward {
    uint32_t struct_size;
    uint32_t slot_count;
    void *const *slots;
    void *const *grads;
    uint32_t parts; /* SEQLSTM_BIT_BACKWARD_… */
    uint32_t reserved0;
    void *workspace;
    void *reserve; /* that of forward; its contents are lost afterwards (STEPWISE: see above) */
    const void *packed;
    const struct seqlstm_step *step; /* same seed, epoch and mask step as in forward */
};

/* ---- the plugin's table ------------------------------------------------------------------------------ */

struct seqlstm_instance; /* defined by the plugin: one opened backend */

/* One option that a model file may set in the `options:` of this backend. */
struct seqlstm_option {
    const char *key;
    const char *type; /* "int", "float" (both also with a range: "int 1..64"), "bool", "string", or "a|b|c" */
    const char *default_value;
    const char *help; /* one sentence */
};

/* The value that the user gave to an option, as text; the host has checked key and type. */
struct seqlstm_setting {
    const char *key;
    const char *value;
};

struct seqlstm_memory;  /* ext/draft/memory.h: domains other than the host's */
struct seqlstm_streams; /* ext/draft/memory.h */

/* The table of a plugin, constant. Members up to `op_destroy` are required; the others may be NULL. */
struct seqlstm_backend {
    uint32_t struct_size;
    uint32_t magic;            /* SEQLSTM_MAGIC */
    uint32_t abi_major;        /* SEQLSTM_ABI_MAJOR */
    uint32_t abi_minor_needed; /* lowest SEQLSTM_ABI_MINOR of a host that suffices */
    const char *id;            /* [a-z][a-z0-9-]*, shorter than SEQLSTM_MAX_ID_BYTES: "cpu-blas" */
    const char *version;       /* of the plugin, "0.1.0" */
    const char *vendor;
    const char *license;        /* SPDX expression */
    const char *build;          /* libraries and compiler: "OpenBLAS 0.3.21, gcc 12.2" */
    uint32_t sanitizers;        /* bit 0 address, 1 thread, 2 undefined, 3 memory */
    uint32_t desc_count;        /* entries of desc_bytes */
    const uint32_t *desc_bytes; /* by SEQLSTM_OP_…: bytes of the descriptor that it reads; 0: not offered */
    uint32_t option_count;
    uint32_t reserved0;
    const struct seqlstm_option *options;

    /* Opens the backend. UNAVAILABLE: it cannot run on this machine; err says why. [control] */
    seqlstm_status (*open)(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                           uint32_t setting_count, struct seqlstm_instance **out_instance, struct seqlstm_error *err);
    /* Called after all operations and bindings are destroyed; NULL is allowed. [control] */
    void (*close)(struct seqlstm_instance *instance);
    seqlstm_status (*device_count)(struct seqlstm_instance *instance, uint32_t *out_count,
                                   struct seqlstm_error *err); /* [any] */
    seqlstm_status (*device_info)(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_device_info *info,
                                  struct seqlstm_error *err); /* [any] */
    /* Answers whether a device of this class can run the operation, by static rules: without instance, device or
     * allocation, in less than 1 ms, always with the same answer. An error is not a *no*: the host reports it as a bug
     * of the plugin. [any] */
    seqlstm_status (*supports)(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                               struct seqlstm_error *err);
    /* Creates an operation; copies `desc`. `variant` is one that `supports` named. UNSUPPORTED, with the reason in err:
     * the host tries the next backend. OK is a promise: later calls fail with NO_MEMORY or DEVICE only. [control] */
    seqlstm_status (*op_create)(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                                const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err);
    seqlstm_status (*op_sizes)(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                               struct seqlstm_error *err); /* [any] */
    /* May allocate. The host keeps `bind->axis` valid, with the same shape, while the binding lives. [queue] */
    seqlstm_status (*op_bind)(const struct seqlstm_op *op, struct seqlstm_queue *queue, const struct seqlstm_bind *bind,
                              struct seqlstm_binding **out_binding, struct seqlstm_error *err);
    /* Never allocates. On a CPU the work is done when it returns; on a device it is queued on the stream. [queue] */
    seqlstm_status (*forward)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_forward *args, struct seqlstm_error *err);
    void (*binding_destroy)(struct seqlstm_binding *binding); /* NULL is allowed. [queue] */
    void (*op_destroy)(struct seqlstm_op *op);                /* NULL is allowed. [control] */

    /* (optional; without it: inference only) [queue] */
    seqlstm_status (*backward)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                               const struct seqlstm_backward *args, struct seqlstm_error *err);
    /* (optional; without it: packed_bytes is always 0) Converts the parameters in `slots` to the layout of the kernels,
     * in `packed`; in training it also applies the weight mask. Other slots may be NULL. Called whenever the weights
     * that the kernels use have changed: after an update or a load, or with a new weight mask. [queue] */
    seqlstm_status (*weights_pack)(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                   void *packed, const struct seqlstm_step *step, struct seqlstm_error *err);
    /* (optional; without it: no estimate) Cost of one call at this shape. [any] */
    seqlstm_status (*estimate)(const struct seqlstm_op *op, const struct seqlstm_bind *bind, struct seqlstm_cost *cost,
                               struct seqlstm_error *err);
    const struct seqlstm_memory *memory;   /* (optional; without it: the host's memory) */
    const struct seqlstm_streams *streams; /* (optional; without it: the host's queues) */
    /* (optional; without it: no extensions) The table of an extension by name and revision, "name/1"; NULL: unknown.
     * [any] */
    const void *(*get_extension)(struct seqlstm_instance *instance, const char *id);
};

/* The one exported function. It opens no device or file, creates no thread and calls no service of the host, and may be
 * called any number of times. `host_minor` is the host's SEQLSTM_ABI_MINOR. It never returns NULL. [any] */
typedef const struct seqlstm_backend *(*seqlstm_backend_query_fn)(uint32_t host_minor);

#if defined(__GNUC__)
#define SEQLSTM_EXPORT __attribute__((visibility("default")))
#else
#define SEQLSTM_EXPORT
#endif

#ifdef __cplusplus
}
#endif

#endif
