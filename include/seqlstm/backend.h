/* SPDX-License-Identifier: Apache-2.0 */
/* The backend ABI: what a plugin exports, what it is called with, and what the host offers it.
 *
 * A backend is a shared object that exports exactly one function, `seqlstm_backend_query_v0`. It returns
 * a constant table. Nothing else crosses the line but the structs of this folder: no exception, exit,
 * abort, longjmp, signal handler, locale or floating-point-mode change, no output to stdout or stderr.
 *
 * Version. ABI major 0 is a draft: host and plugin must agree on SEQLSTM_ABI_MAJOR and
 * SEQLSTM_ABI_MINOR exactly. Every struct that either side fills begins with its owner's `struct_size` (the end
 * of its last member) and is read through SEQLSTM_HAS, so that from v1 on structs grow at the end.
 *
 * Life of an operation:
 *   supports (static rules, no device) -> op_create (immutable, shareable) -> op_sizes (upper bounds; the host
 *   allocates) -> op_bind (one shape; may allocate) -> weights_pack (when weights changed) -> forward
 *   -> backward -> binding_destroy -> op_destroy
 *
 * Thread classes, named at each function:
 *   [any]     from any thread, concurrently
 *   [control] one thread at a time per instance
 *   [queue]   one call at a time per queue; different queues concurrently. Bindings belong to one queue.
 *
 * Memory. The host owns every buffer that crosses; a plugin allocates only what is private to it, through
 * the host's `allocate`, and never inside forward or backward. Pointers in arguments are valid for the call.
 * Buffers given by the host are aligned to SEQLSTM_ALIGNMENT.
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
#define SEQLSTM_ABI_MINOR    6u
#define SEQLSTM_MAGIC        0x4D54534Cu /* "LSTM", little endian */
#define SEQLSTM_ALIGNMENT    64u         /* bytes; of every buffer the host hands over */
#define SEQLSTM_QUERY_SYMBOL "seqlstm_backend_query_v0"
#define SEQLSTM_MAX_ID_BYTES 48 /* of the id of a backend, with its end */

/* Does the struct that `p` points to have `member`, by its owner's word? */
#define SEQLSTM_HAS(p, member) ((p)->struct_size >= SEQLSTM_END_OF(p, member))
#define SEQLSTM_END_OF(p, member)                                                                                      \
    ((uint32_t)((const char *)&(p)->member - (const char *)(p)) + (uint32_t)sizeof((p)->member))

/* ---- axes ------------------------------------------------------------------------------------ */

enum {
    SEQLSTM_BIT_AXIS_STREAM = 1u << 0, /* segments of long streams: per-sequence masks change with the segment */
    SEQLSTM_BIT_AXIS_UNIFORM = 1u << 1 /* all lengths are equal */
};

/* A ragged axis of one batch. All arrays are the host's, valid as long as the binding. For a binding
 * `steps`, `batch_sizes` and `row_offsets` never change; sequence_id, position0 and `flags`'s STREAM bit may change
 * between calls and are read at each one. */
struct seqlstm_axis {
    uint32_t struct_size;
    uint32_t flags;              /* SEQLSTM_BIT_AXIS_… */
    int64_t sequences;           /* B >= 1, without those of length zero */
    int64_t steps;               /* T >= 1 */
    int64_t rows;                /* R = sum of lengths */
    const int32_t *lengths;      /* [B], not increasing, all >= 1 */
    const int32_t *batch_sizes;  /* [T], not increasing; batch_sizes[0] == B */
    const int64_t *row_offsets;  /* [T + 1]; first row of each step, row_offsets[T] == R */
    const uint64_t *sequence_id; /* [B]; who it is, for masks */
    const uint32_t *position0;   /* [B]; absolute position of the sequence's step 0 */
    /* The same two in the memory of the device, at addresses that stay while the binding lives, renewed before each
     * call and each launch of a graph; NULL: there are no such copies. */
    const uint64_t *device_sequence_id;
    const uint32_t *device_position0;
};

/* Values that change from call to call. Read at execution, never kept. */
enum { SEQLSTM_BIT_STEP_SKIP = 1u << 0 /* the optimizer changes nothing */ };

struct seqlstm_step {
    uint32_t struct_size;
    uint32_t flags;            /* SEQLSTM_BIT_STEP_… */
    uint64_t seed;             /* of the run */
    uint64_t epoch;            /* mask keys: mix64(seed, stream, epoch) */
    uint64_t update;           /* optimizer: t, counted from 1 */
    uint32_t weight_mask_step; /* weight drop: position of the segment, or ordinal of the batch in the epoch */
    float normaliser;          /* losses: factor of the gradient */
    float loss_scale;          /* losses: further factor; 1 in float32 */
    float learning_rate;       /* optimizer */
    float grad_scale;          /* optimizer: factor of the gradient, 1 / loss_scale */
    float alpha;               /* VECTOR */
    /* This block in the memory of the device, renewed before each call and each launch of a graph, which reads seed to
     * grad_scale and the flags there (alpha belongs to the call); NULL: there is no such copy. */
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

/* Given to `open`; valid until `close` returns. log, allocate and release are always there; the others
 * may be NULL (the minimal host). */
struct seqlstm_host {
    uint32_t struct_size;
    uint32_t abi_minor; /* the host's SEQLSTM_ABI_MINOR */
    void *context;      /* first argument of every service */
    /* One line, no newline. [any] */
    void (*log)(void *context, int32_t level, const char *message);
    /* `bytes` aligned to SEQLSTM_ALIGNMENT, not zeroed; NULL when memory ran out. [any] */
    void *(*allocate)(void *context, uint64_t bytes);
    /* NULL is fine. [any] */
    void (*release)(void *context, void *pointer);
    /* Non-zero when the user wants to stop; long kernels may poll it. [any] */
    int32_t (*cancelled)(void *context);
    /* Named span of the timeline, nested per thread. `name` is copied. [any] */
    void (*trace_begin)(void *context, const char *name);
    void (*trace_end)(void *context);
};

struct seqlstm_queue;

/* Work sharing on a CPU queue. A queue is a slice of the host's thread pool: `members` threads, the
 * caller being member 0. The functions are called by the thread that executes on the queue; with members
 * == 1 they run inline. They do not nest: no parallel_for or team from within one. */
struct seqlstm_queue_services {
    uint32_t struct_size;
    uint32_t reserved0;
    /* fn(argument, begin, end) over [0, count) in ranges of about `grain`; returns when all are done. */
    void (*parallel_for)(struct seqlstm_queue *queue, int64_t count, int64_t grain,
                         void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);
    /* fn(argument, member, members) on exactly `members` concurrent threads; returns when all returned. */
    void (*team)(struct seqlstm_queue *queue, void (*fn)(void *argument, int32_t member, int32_t members),
                 void *argument);
    /* Inside `team` only: returns when all members have called it. Spins briefly, then sleeps. */
    void (*team_barrier)(struct seqlstm_queue *queue);
    /* Parks the pool's other threads while a vendor's own pool runs; `lease_end` wakes them. */
    void (*lease_begin)(struct seqlstm_queue *queue);
    void (*lease_end)(struct seqlstm_queue *queue);
};

/* Where calls run. Made by the host. */
struct seqlstm_queue {
    uint32_t struct_size;
    int32_t members;                               /* CPU: threads of this slice, >= 1; devices: 1 */
    void *native_stream;                           /* devices: the vendor's stream (cudaStream_t …); CPU: NULL */
    const struct seqlstm_queue_services *services; /* CPU: never NULL */
    void *host_data;                               /* the host's own */
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

/* Why an answer is no: a bit mask, for programs; the sentence is for people. */
enum {
    SEQLSTM_BIT_REFUSED_OPERATION = 1u << 0, /* this operation is not among the backend's */
    SEQLSTM_BIT_REFUSED_OPTION = 1u << 1,
    SEQLSTM_BIT_REFUSED_COMBINATION = 1u << 2,
    SEQLSTM_BIT_REFUSED_SHAPE = 1u << 3,
    SEQLSTM_BIT_REFUSED_DTYPE = 1u << 4,
    SEQLSTM_BIT_REFUSED_MODE = 1u << 5,
    SEQLSTM_BIT_REFUSED_DETERMINISM = 1u << 6,
    SEQLSTM_BIT_REFUSED_DEVICE = 1u << 7,
    SEQLSTM_BIT_REFUSED_MEMORY = 1u << 8,
    SEQLSTM_BIT_REFUSED_ABI = 1u << 9, /* the descriptor says something this backend cannot read */
    SEQLSTM_BIT_REFUSED_DEPENDENCY = 1u << 10
};

#define SEQLSTM_MAX_VARIANTS      16
#define SEQLSTM_MAX_VARIANT_BYTES 32 /* of a name, with its end */

/* Filled by `supports`. Zeroed by the host, struct_size set. */
struct seqlstm_answer {
    uint32_t struct_size;
    uint32_t accepted;      /* 1: yes, 0: no */
    uint32_t code;          /* no: SEQLSTM_BIT_REFUSED_… */
    uint32_t option;        /* no: SEQLSTM_OPTION_… */
    char value[48];         /* no: the value that is refused, as text: "leaky_relu", "0.25" */
    char reason[256];       /* no: one sentence */
    char hint[128];         /* no: what would be accepted; may be empty */
    uint32_t variant_count; /* yes: 1 .. SEQLSTM_MAX_VARIANTS, best guess first */
    uint32_t reserved0;
    char variants[SEQLSTM_MAX_VARIANTS][SEQLSTM_MAX_VARIANT_BYTES]; /* yes: names such as "batch_slices" */
};

/* What a call is expected to cost. */
struct seqlstm_cost {
    uint32_t struct_size;
    uint32_t confidence; /* 0 guess .. 3 measured */
    double forward_ns;
    double backward_ns;
};

/* May calls of an op be captured into a graph (ext/draft/memory.h)? A captured call starts work on its stream alone,
 * waits for nothing, allocates nothing, reads no memory of the host when it is launched, and finds what changes from
 * call to call through the device's copies of step block, ids and positions, which the host then gives. */
enum {
    SEQLSTM_CAPTURE_NONE = 0,
    SEQLSTM_CAPTURE_PER_SHAPE = 1, /* once the binding has run; right while it and the addresses of the call stay */
    SEQLSTM_CAPTURE_ANY_SHAPE = 2  /* likewise; what is started depends on the number of rows alone */
};

/* Buffers of one op, upper bounds over the whole range of its descriptor. */
struct seqlstm_sizes {
    uint32_t struct_size;
    uint32_t capture;         /* SEQLSTM_CAPTURE_… */
    uint64_t workspace_bytes; /* scratch of one call; contents are lost between calls */
    uint64_t reserve_bytes;   /* training: from forward to its backward; one per binding in flight */
    uint64_t packed_bytes;    /* weights as the kernels want them; 0: canonical ones are used directly */
    int32_t members; /* the host's, on CPUs: calls run on queues of at most so many members; 0: of any number */
    uint32_t reserved0;
};

/* ---- bind and execute ------------------------------------------------------------------------------ */

enum { SEQLSTM_BIT_BIND_ON_SEQUENCES = 1u << 0 /* rows are those of the sequences axis: row r = sequence r */ };

/* One shape. */
struct seqlstm_bind {
    uint32_t struct_size;
    uint32_t flags;  /* SEQLSTM_BIT_BIND_… */
    int64_t rows;    /* rows of the output; elements for flat vectors; rows of [t0, t1) on a steps axis */
    int64_t rows_in; /* GATHER, SCATTER: rows of x; ATTENTION: of the keys; otherwise as rows */
    const struct seqlstm_axis *axis; /* of the steps; NULL for operations on free tensors */
    int64_t t0;                      /* range of steps [t0, t1); 0, axis->steps: all. Slots on the steps axis point */
    int64_t t1;                      /* to the first row of step t0 */
};

struct seqlstm_op;      /* a plugin's: an operation, immutable */
struct seqlstm_binding; /* a plugin's: an operation at one shape */

/* Slots as ops.h says; pointers of const meaning are passed as void * for one array type. */
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
    SEQLSTM_BIT_BACKWARD_INPUTS = 1u << 0,    /* gradients of activations that forward read */
    SEQLSTM_BIT_BACKWARD_STATES = 1u << 1,    /* RECURRENT: dh0, dc0 */
    SEQLSTM_BIT_BACKWARD_WEIGHTS = 1u << 2,   /* gradients of parameters */
    SEQLSTM_BIT_BACKWARD_ACCUMULATE = 1u << 3 /* parameters: add to grads instead of overwriting */
};

/* `slots` are forward's, unchanged. A grads pointer may be NULL when its part is not in `parts`, and for
 * an output slot whose gradient is zero everywhere (dy of an unused y, dhn).
 *
 * SEQLSTM_BIT_RECURRENT_STEPWISE: the steps of an axis run in segments, each with a binding [t0, t1) of its own, but dW
 * is made at once, from more rows than a segment has. All segments share one reserve, packed weights and queue:
 *   forward of the segments in order of time; H0 and C0 of a segment are HN and CN of the one before
 *   backward of the segments, last first, with INPUTS and STATES, never WEIGHTS
 *   backward with WEIGHTS alone on a binding of the whole axis; slots point to the whole tensors (states: the
 *   first segment's), gradients but those of parameters are not read. Then the contents of the reserve are lost.
 * Between these calls the host leaves the reserve alone. Directions other than FORWARD have one segment. */
struct seqlstm_backward {
    uint32_t struct_size;
    uint32_t slot_count;
    void *const *slots;
    void *const *grads;
    uint32_t parts; /* SEQLSTM_BIT_BACKWARD_… */
    uint32_t reserved0;
    void *workspace;
    void *reserve; /* forward's; contents are lost afterwards (STEPWISE: see above) */
    const void *packed;
    const struct seqlstm_step *step; /* same seed, epoch and mask step as forward's */
};

/* ---- the plugin's table ------------------------------------------------------------------------------ */

struct seqlstm_instance; /* a plugin's: one opened backend */

/* One option of the model file's `options:` map. */
struct seqlstm_option {
    const char *key;
    const char *type; /* "int", "float" (each also as "int 1..64"), "bool", "string", or "a|b|c" */
    const char *default_value;
    const char *help; /* one sentence */
};

/* One setting given by the user, as text; the host has checked key and type. */
struct seqlstm_setting {
    const char *key;
    const char *value;
};

struct seqlstm_memory;  /* ext/draft/memory.h: domains other than the host's */
struct seqlstm_streams; /* ext/draft/memory.h */

/* Constant, in the plugin's read-only data. Slots up to `op_destroy` are required, the others may be NULL. */
struct seqlstm_backend {
    uint32_t struct_size;
    uint32_t magic;            /* SEQLSTM_MAGIC */
    uint32_t abi_major;        /* SEQLSTM_ABI_MAJOR */
    uint32_t abi_minor_needed; /* lowest host minor that is enough */
    const char *id;            /* [a-z][a-z0-9-]*, shorter than SEQLSTM_MAX_ID_BYTES: "cpu-blas" */
    const char *version;       /* the plugin's own, "0.1.0" */
    const char *vendor;
    const char *license;        /* SPDX expression */
    const char *build;          /* what it was built with: "OpenBLAS 0.3.21, gcc 12.2" */
    uint32_t sanitizers;        /* bit 0 address, 1 thread, 2 undefined, 3 memory */
    uint32_t desc_count;        /* entries of desc_bytes */
    const uint32_t *desc_bytes; /* by SEQLSTM_OP_…: descriptor bytes this backend reads; 0: not offered */
    uint32_t option_count;
    uint32_t reserved0;
    const struct seqlstm_option *options;

    /* Starts the backend. UNAVAILABLE: not on this machine, with the reason. [control] */
    seqlstm_status (*open)(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                           uint32_t setting_count, struct seqlstm_instance **out_instance, struct seqlstm_error *err);
    /* After all ops and bindings are destroyed; NULL is fine. [control] */
    void (*close)(struct seqlstm_instance *instance);
    seqlstm_status (*device_count)(struct seqlstm_instance *instance, uint32_t *out_count,
                                   struct seqlstm_error *err); /* [any] */
    seqlstm_status (*device_info)(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_device_info *info,
                                  struct seqlstm_error *err); /* [any] */
    /* Static rules for a class of device: no instance, no device, no allocation, under 1 ms, always the
     * same answer. An error is not a no: it is reported as a bug. [any] */
    seqlstm_status (*supports)(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                               struct seqlstm_error *err);
    /* UNSUPPORTED with the reason in err: dispatch goes on. After OK it is a promise: only NO_MEMORY and
     * DEVICE may follow. `variant` is one of the answer's. desc is copied. [control] */
    seqlstm_status (*op_create)(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                                const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err);
    seqlstm_status (*op_sizes)(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                               struct seqlstm_error *err); /* [any] */
    /* May allocate. `bind->axis` must stay valid and its shape unchanged while the binding lives. [queue] */
    seqlstm_status (*op_bind)(const struct seqlstm_op *op, struct seqlstm_queue *queue, const struct seqlstm_bind *bind,
                              struct seqlstm_binding **out_binding, struct seqlstm_error *err);
    /* Never allocates. On a CPU it has finished when it returns; on a device it is ordered on the stream. [queue] */
    seqlstm_status (*forward)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_forward *args, struct seqlstm_error *err);
    void (*binding_destroy)(struct seqlstm_binding *binding); /* NULL is fine. [queue] */
    void (*op_destroy)(struct seqlstm_op *op);                /* NULL is fine. [control] */

    /* (optional: inference only) [queue] */
    seqlstm_status (*backward)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                               const struct seqlstm_backward *args, struct seqlstm_error *err);
    /* (optional: packed_bytes is always 0) Parameter slots -> packed; others may be NULL. Also applies the
     * weight mask in training. Called when effective weights changed: update, load, new weight mask. [queue] */
    seqlstm_status (*weights_pack)(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                   void *packed, const struct seqlstm_step *step, struct seqlstm_error *err);
    /* (optional: no opinion) Cost of one call at this shape. [any] */
    seqlstm_status (*estimate)(const struct seqlstm_op *op, const struct seqlstm_bind *bind, struct seqlstm_cost *cost,
                               struct seqlstm_error *err);
    const struct seqlstm_memory *memory;   /* (optional: the host's memory) */
    const struct seqlstm_streams *streams; /* (optional: the host's queues) */
    /* (optional: none) A table by id and revision, "name/1", or NULL. [any] */
    const void *(*get_extension)(struct seqlstm_instance *instance, const char *id);
};

/* The one exported symbol. Pure: no device, thread, file or host is touched; may be called any number of
 * times. `host_minor` is the host's SEQLSTM_ABI_MINOR. Never NULL. [any] */
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
