/* SPDX-License-Identifier: Apache-2.0 */
/* The reference with one mistake, chosen by -DFAULT_…=1, which the conformance kit must notice. Everything else is the
 * reference's own table. Only one operation exists at a time, so the mistakes may use static variables. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <seqlstm/backend.h>
#include <seqlstm/ext/draft/float64.h>
#include <seqlstm/ext/footprint.h>
#include <seqlstm/ext/rebind.h>

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static const struct seqlstm_backend *inner;
static const struct seqlstm_host *host;
static union seqlstm_any_desc desc; /* of the newest op */
static struct seqlstm_bind bind;    /* of the newest binding */
static int calls;                   /* forward calls on it */

enum { KEPT = 256 };
static struct seqlstm_op *kept_ops[KEPT];
static int kept_count;

static float *slot(void *const *slots, int k)
{
    return slots[k];
}

/* Elements of a row of y of the current recurrent layer. */
static int64_t y_features(void)
{
    const struct seqlstm_recurrent_desc *d = &desc.recurrent;
    int64_t width = d->projection ? d->projection : d->hidden;
    bool both = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL && d->merge == SEQLSTM_KIND_MERGE_CONCAT;
    return both ? 2 * width : width;
}

#ifdef FAULT_EXITS_AT_LOAD
__attribute__((constructor)) static void leave(void)
{
    exit(0);
}
#endif

#ifdef FAULT_ABORTS_AT_END
__attribute__((destructor)) static void die(void)
{
    abort();
}
#endif

#ifdef FAULT_GREETS
__attribute__((constructor)) static void greet(void)
{
    puts("thank you for choosing libgreet");
}
#endif

static seqlstm_status faulty_open(const struct seqlstm_host *services, const struct seqlstm_setting *settings,
                                  uint32_t setting_count, struct seqlstm_instance **out_instance,
                                  struct seqlstm_error *err)
{
    host = services;
    return inner->open(services, settings, setting_count, out_instance, err);
}

static seqlstm_status faulty_supports(const char *device_class, const struct seqlstm_desc *d,
                                      struct seqlstm_answer *answer, struct seqlstm_error *err)
{
#ifdef FAULT_KNOWS_EVERYTHING
    answer->accepted = 1;
    answer->variant_count = 1;
    strcpy(answer->variants[0], "loops");
    (void)device_class, (void)d, (void)err;
    return SEQLSTM_OK;
#else
    seqlstm_status rc = inner->supports(device_class, d, answer, err);
#ifdef FAULT_SLOW_ANSWERS
    usleep(1500);
#endif
#ifdef FAULT_FICKLE
    static int asked;
    if (answer->accepted && asked++ % 2) {
        strcpy(answer->variants[1], "sometimes");
        answer->variant_count = 2;
    }
#endif
#ifdef FAULT_BEHIND_A_REFUSAL
    if (answer->accepted) {
        memcpy(answer->variants[1], answer->variants[0], sizeof answer->variants[1]);
        strcpy(answer->variants[0], "refused");
        answer->variant_count = 2;
    }
#endif
    return rc;
#endif
}

static seqlstm_status faulty_op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *d,
                                       const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    memset(&desc, 0, sizeof desc);
    memcpy(&desc, d, d->struct_size < sizeof desc ? d->struct_size : sizeof desc);
    union seqlstm_any_desc used = desc;
#ifdef FAULT_IGNORES_OPTION
    if (d->op == SEQLSTM_OP_RECURRENT)
        used.recurrent.recurrent_dropout = 0;
#endif
#ifdef FAULT_KNOWS_EVERYTHING
    variant = "loops";
#endif
#ifdef FAULT_BEHIND_A_REFUSAL
    if (variant && strcmp(variant, "refused") == 0) {
        snprintf(err->message, sizeof err->message, "not here");
        return SEQLSTM_UNSUPPORTED;
    }
#endif
    return inner->op_create(instance, device, &used.head, variant, out_op, err);
}

#if defined(FAULT_FORGETS_RANGE) || defined(FAULT_REBIND_FORGETS_RANGE)
/* Dropout draws as if every range began at step 0. */
static const struct seqlstm_bind *forget_range(const struct seqlstm_bind *b)
{
    static struct seqlstm_axis moved;
    static int64_t offsets[64];
    if (desc.head.op != SEQLSTM_OP_DROPOUT || !b->axis || b->t0 == 0)
        return b;
    moved = *b->axis;
    moved.steps = b->t1 - b->t0;
    moved.rows = b->rows;
    moved.sequences = b->axis->batch_sizes[b->t0];
    moved.batch_sizes = b->axis->batch_sizes + b->t0;
    for (int64_t t = 0; t <= moved.steps; t++)
        offsets[t] = b->axis->row_offsets[b->t0 + t] - b->axis->row_offsets[b->t0];
    moved.row_offsets = offsets;
    bind = *b;
    bind.axis = &moved;
    bind.t0 = 0;
    bind.t1 = moved.steps;
    return &bind;
}
#endif

#if defined(FAULT_REBIND_FORGETS_RANGE) || defined(FAULT_REBIND_ALLOCATES) || defined(FAULT_REBINDS_ONCE)
#define REBINDS
#ifdef FAULT_REBINDS_ONCE
static struct seqlstm_binding *rebound[4]; /* new bindings may get their addresses: they are forgotten in op_bind */

static void forget_rebound(const struct seqlstm_binding *binding)
{
    for (int k = 0; k < 4; k++)
        if (rebound[k] == binding)
            rebound[k] = NULL;
}

/* Whether it was noted before. */
static bool note_rebound(struct seqlstm_binding *binding)
{
    for (int k = 0; k < 4; k++)
        if (rebound[k] == binding)
            return true;
    for (int k = 0; k < 4; k++)
        if (rebound[k] == NULL) {
            rebound[k] = binding;
            break;
        }
    return false;
}
#endif
static seqlstm_status faulty_rebind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_bind *b, struct seqlstm_error *err)
{
    const struct seqlstm_rebind *right = inner->get_extension(NULL, SEQLSTM_REBIND_EXTENSION);
#ifdef FAULT_REBIND_ALLOCATES
    void *more = host->allocate(host->context, 8);
    if (more == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for another shape");
    host->release(host->context, more);
#elif defined(FAULT_REBINDS_ONCE)
    if (note_rebound(binding))
        return SEQLSTM_OK;
#else
    b = forget_range(b);
#endif
    return right->rebind(binding, queue, b, err);
}

static const void *faulty_get_extension(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_rebind rebind = {.struct_size = sizeof rebind, .rebind = faulty_rebind};
    return strcmp(id, SEQLSTM_REBIND_EXTENSION) == 0 ? &rebind : inner->get_extension(instance, id);
}
#endif

static seqlstm_status faulty_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *b, struct seqlstm_binding **out_binding,
                                     struct seqlstm_error *err)
{
    bind = *b;
    calls = 0;
#ifdef FAULT_FORGETS_RANGE
    b = forget_range(b);
#endif
#ifdef FAULT_REBINDS_ONCE
    const seqlstm_status status = inner->op_bind(op, queue, b, out_binding, err);
    forget_rebound(status == SEQLSTM_OK ? *out_binding : NULL);
    return status;
#endif
#ifdef FAULT_UNBOUNDED
    /* accepts any number of steps, but runs only as many as it has room for */
    if (b->axis && desc.head.max_steps > 0 && b->t1 - b->t0 > desc.head.max_steps) {
        bind.t1 = b->t0 + desc.head.max_steps;
        bind.rows = bind.rows_in = b->axis->row_offsets[bind.t1] - b->axis->row_offsets[b->t0];
        return inner->op_bind(op, queue, &bind, out_binding, err);
    }
#endif
    return inner->op_bind(op, queue, b, out_binding, err);
}

#if defined(FAULT_TOUCHES_IDLE) || defined(FAULT_TOUCHES_IDLE_IN_INFERENCE)
#define TOUCHES_IDLE
#endif

#if defined(TOUCHES_IDLE) || defined(FAULT_LEAVES_IDLE) || defined(FAULT_IDLE_BEYOND)
/* Requests 8 MiB more workspace than the reference, 6 of which must stay untouched. */
static uint64_t workspace_bytes;
enum { MORE = 8 << 20, IDLE = 6 << 20 };

static seqlstm_status faulty_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                      struct seqlstm_error *err)
{
    seqlstm_status rc = inner->op_sizes(op, sizes, err);
    sizes->workspace_bytes += MORE;
    workspace_bytes = sizes->workspace_bytes;
    return rc;
}

static seqlstm_status faulty_idle_ranges(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                         const struct seqlstm_axis *axis, struct seqlstm_idle *idle,
                                         struct seqlstm_error *err)
{
    (void)op, (void)axis, (void)err;
    uint64_t end = sizes->workspace_bytes;
#ifdef FAULT_IDLE_BEYOND
    end++;
#endif
    idle->workspace.at[idle->workspace.count++] = (struct seqlstm_range){sizes->workspace_bytes - IDLE, end};
    return SEQLSTM_OK;
}

static const void *faulty_get_extension(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_footprint footprint = {.struct_size = sizeof footprint,
                                                       .idle_ranges = faulty_idle_ranges};
    return strcmp(id, SEQLSTM_FOOTPRINT_EXTENSION) == 0 ? &footprint : inner->get_extension(instance, id);
}
#endif

#if defined(FAULT_RECORDS) || defined(FAULT_RECORDS_BACKWARD) || defined(FAULT_RECORDS_TWICE) ||                       \
    defined(FAULT_RECORDS_AHEAD) || defined(FAULT_CANNOT_RECORD)
#define RECORDS
#include "faulty_recorder.h"

static const void *faulty_get_extension(struct seqlstm_instance *instance, const char *id)
{
    return strcmp(id, SEQLSTM_RECORDER_EXTENSION) == 0 ? &faulty_recorder : inner->get_extension(instance, id);
}
#endif

static void faulty_op_destroy(struct seqlstm_op *op)
{
#ifdef FAULT_LEAKS_MEMORY
    kept_ops[kept_count++ % KEPT] = op; /* kept until close, so that leak checkers report only what the kit finds */
#else
    inner->op_destroy(op);
#endif
}

static void faulty_close(struct seqlstm_instance *instance)
{
    while (kept_count > 0)
        inner->op_destroy(kept_ops[--kept_count % KEPT]);
    inner->close(instance);
}

/* Exchanges the rows of two gates of W_x of the first layer. */
static void swap_gates(void *const *slots, int a, int b)
{
    int64_t n = desc.recurrent.hidden * desc.recurrent.input;
    float *w = slot(slots, SEQLSTM_SLOT_RECURRENT_PARAM(desc.recurrent.layers, 0, SEQLSTM_PARAM_W_X));
    for (int64_t i = 0; i < n; i++) {
        float kept = w[a * n + i];
        w[a * n + i] = w[b * n + i];
        w[b * n + i] = kept;
    }
}

static void spoil_output(struct seqlstm_queue *queue, const struct seqlstm_forward *args)
{
    float *y = slot(args->slots, SEQLSTM_SLOT_RECURRENT_Y);
    int64_t features = y_features();
    (void)queue;
    (void)features;
    if (!y)
        return;
#if defined(FAULT_VALUE) || defined(FAULT_BEHIND_A_REFUSAL)
    y[bind.rows * features - 1] *= 1.001f;
#endif
#ifdef FAULT_GUARD
    memset(y + bind.rows * features, 0, 4);
#endif
#ifdef FAULT_GUARD_BEFORE
    memset((char *)y - 1, 0, 1);
#endif
#ifdef FAULT_OFF_BY_ONE
    /* the last step of the shortest sequence repeats the step before it */
    int64_t k = bind.axis->sequences - 1, last = bind.axis->lengths[k] - 1;
    if (last > 0)
        memcpy(y + (bind.axis->row_offsets[last] + k) * features, y + (bind.axis->row_offsets[last - 1] + k) * features,
               (size_t)features * sizeof *y);
#endif
#ifdef FAULT_LEAKED_STATE
    static float kept;
    y[0] += 1e-3f * kept;
    kept = y[features > 1];
#endif
#ifdef FAULT_KEEPS_DATA
    static float known; /* something made of the first data that is not made anew for other data */
    y[0] += known != 0 && known != y[features > 1] ? 1e-3f : 0;
    known = y[features > 1];
#endif
#ifdef FAULT_NONDETERMINISM
    static unsigned asked; /* the last bit varies, as with threads that add in the order in which they arrive */
    y[0] = nextafterf(y[0], asked++ % 2 ? 2.0f : -2.0f);
#endif
#ifdef FAULT_UNSET_ROW
    memset(y + (bind.rows - 1) * features, 0xFF, 4);
#endif
#if defined(FAULT_SHARED) || defined(FAULT_SHARED_BY_MORE)
    static pthread_t first; /* what the first thread may do, others may not: two queues share something */
    static bool known;
    first = known ? first : pthread_self();
    known = true;
#ifdef FAULT_SHARED_BY_MORE
    if (queue->members == 1) /* only the second queue has other results */
        first = pthread_self();
#endif
    if (!pthread_equal(first, pthread_self()))
        y[0] += 0.01f;
#endif
#ifdef FAULT_THREADS
    if (queue->members == 3)
        y[0] += 0.01f;
#endif
#ifdef FAULT_CHANGES_INPUT
    *slot(args->slots, SEQLSTM_SLOT_RECURRENT_X) += 1;
#endif
#ifdef FAULT_MALLOCS
    void *volatile block = malloc(64);
    free(block);
#endif
#ifdef FAULT_LEAVES_FOLDER
    if (chdir("/") != 0)
        y[0] = NAN;
#endif
#ifdef FAULT_ALLOCATES
    host->release(host->context, host->allocate(host->context, 64));
#endif
}

#if defined(FAULT_HIDES_NAN) || defined(FAULT_HIDES_EARLIER_NAN)
/* The maximum as a comparison finds it: one with NaN is false, so that either NaN loses or what is before it does. */
static void hide_nan(const struct seqlstm_forward *args)
{
    const float *x = slot(args->slots, SEQLSTM_SLOT_UNARY_X);
    float *y = slot(args->slots, SEQLSTM_SLOT_UNARY_Y);
    const int64_t features = desc.pool.features;
    for (int64_t k = 0; k < bind.axis->sequences; k++)
        for (int64_t c = 0; c < features; c++) {
            float most = x[k * features + c];
            for (int32_t t = 1; t < bind.axis->lengths[k]; t++) {
                const float next = x[(bind.axis->row_offsets[t] + k) * features + c];
#ifdef FAULT_HIDES_NAN
                most = next > most ? next : most;
#else
                most = most > next ? most : next;
#endif
            }
            y[k * features + c] = most;
        }
}
#endif

static seqlstm_status faulty_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    bool is_lstm = desc.head.op == SEQLSTM_OP_RECURRENT && desc.recurrent.cell == SEQLSTM_CELL_LSTM;
    calls++;
#ifdef FAULT_PRINTS
    printf("forward %d\n", calls);
#endif
#ifdef FAULT_BESIDE
    srand48(1); /* and backward relies on it: this state belongs to the whole process */
#endif
#ifdef FAULT_COMPLAINS
    fprintf(stderr, "slow path\n");
#endif
#ifdef FAULT_SWAPPED_GATES
    if (is_lstm)
        swap_gates(args->slots, 0, 1);
#else
    (void)swap_gates;
#endif
#ifdef FAULT_CRASH
    if (is_lstm && desc.recurrent.hidden == 17)
        *(volatile int *)(uintptr_t)(args->slot_count & 0) = 1;
#endif
#ifdef FAULT_EXITS
    if (is_lstm)
        exit(0);
#endif
#ifdef FAULT_HANG
    for (volatile int forever = 1; is_lstm && forever;) {
    }
#endif
#ifdef FAULT_WAIT
    while (is_lstm)
        pause();
#endif
#ifdef FAULT_WORKSPACE
    static float first;
    first = args->workspace ? *(float *)args->workspace : 0;
#endif
    seqlstm_status rc = inner->forward(binding, queue, args, err);
#ifdef TOUCHES_IDLE
#ifdef FAULT_TOUCHES_IDLE_IN_INFERENCE
    if (desc.head.mode == SEQLSTM_MODE_INFERENCE)
#endif
        for (uint64_t place = 1 << 20; place < MORE; place += 1 << 20)
            ((char *)args->workspace)[workspace_bytes - place] = 0;
#endif
#ifdef FAULT_WORKSPACE
    if (is_lstm && args->slots[SEQLSTM_SLOT_RECURRENT_Y])
        *slot(args->slots, SEQLSTM_SLOT_RECURRENT_Y) += 0 * first;
#endif
#ifdef FAULT_SWAPPED_GATES
    if (is_lstm)
        swap_gates(args->slots, 0, 1);
#endif
    if (is_lstm)
        spoil_output(queue, args);
#if defined(FAULT_FTZ) && defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
#if defined(FAULT_HIDES_NAN) || defined(FAULT_HIDES_EARLIER_NAN)
    if (desc.head.op == SEQLSTM_OP_POOL)
        hide_nan(args);
#endif
#ifdef FAULT_SAMPLES_ZERO
    if (desc.head.op == SEQLSTM_OP_LOSS)
        ((double *)args->slots[SEQLSTM_SLOT_LOSS_SUMS])[1] += 1;
#endif
    return rc;
}

static seqlstm_status faulty_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    struct seqlstm_backward used = *args;
#ifdef FAULT_NO_ACCUMULATE
    used.parts &= ~(uint32_t)SEQLSTM_BIT_BACKWARD_ACCUMULATE;
#endif
    seqlstm_status rc = inner->backward(binding, queue, &used, err);
#ifdef FAULT_BESIDE
    if (desc.head.op == SEQLSTM_OP_RECURRENT)
        *slot(args->grads, SEQLSTM_SLOT_RECURRENT_PARAM(desc.recurrent.layers, 0, SEQLSTM_PARAM_W_H)) *=
            (float)drand48();
#endif
#ifdef FAULT_NAN
    if (desc.head.op == SEQLSTM_OP_RECURRENT) {
        float *dw =
            slot(args->grads,
                 SEQLSTM_SLOT_RECURRENT_PARAM(desc.recurrent.layers *
                                                  (desc.recurrent.direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1),
                                              0, SEQLSTM_PARAM_W_H));
        if (dw)
            dw[0] = NAN;
    }
#endif
#ifdef FAULT_NO_DW
    if (desc.head.op == SEQLSTM_OP_RECURRENT && args->parts == SEQLSTM_BIT_BACKWARD_WEIGHTS)
        memset(slot(args->grads, SEQLSTM_SLOT_RECURRENT_PARAM(desc.recurrent.layers, 0, SEQLSTM_PARAM_W_X)), 0, 4);
#endif
#ifdef FAULT_NO_DH0
    if (desc.head.op == SEQLSTM_OP_RECURRENT && args->parts == SEQLSTM_BIT_BACKWARD_STATES)
        memset(slot(args->grads, SEQLSTM_SLOT_RECURRENT_STATES), 0, 4);
#endif
#ifdef FAULT_NO_DX
    if (desc.head.op == SEQLSTM_OP_RECURRENT && args->grads[SEQLSTM_SLOT_RECURRENT_X] &&
        args->parts == SEQLSTM_BIT_BACKWARD_INPUTS)
        memset(args->grads[SEQLSTM_SLOT_RECURRENT_X], 0, 4);
#endif
#ifdef FAULT_THREADS_BACKWARD
    if (queue->members == 3)
        *slot(args->grads, SEQLSTM_SLOT_RECURRENT_PARAM(desc.recurrent.layers, 0, SEQLSTM_PARAM_W_X)) += 0.01f;
#endif
    return rc;
}

#ifdef FAULT_INPUT_SLOPE
#define FAULT_SLOPE 1
#endif
#ifdef FAULT_SLIGHT_SLOPE
#define FAULT_SLOPE  1
#define TOO_LARGE_BY 3e-6
#elif defined(FAULT_NAN_SLOPE)
#define FAULT_SLOPE  1
#define TOO_LARGE_BY NAN
#else
#define TOO_LARGE_BY 1e-4
#endif
#ifdef FAULT_SLOPE
static struct seqlstm_float64 float64;
static seqlstm_status (*float64_backward)(struct seqlstm_binding *, struct seqlstm_queue *,
                                          const struct seqlstm_backward *, struct seqlstm_error *);

/* The gradient of W_h, or of x, is too large by this share, in float64. */
static seqlstm_status steeper_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                       const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    seqlstm_status rc = float64_backward(binding, queue, args, err);
#ifdef FAULT_INPUT_SLOPE
    double *gradient = args->grads[SEQLSTM_SLOT_RECURRENT_X];
    const int64_t elems = bind.rows * desc.recurrent.input;
#else
    double *gradient = args->grads[SEQLSTM_SLOT_RECURRENT_PARAM(desc.recurrent.layers, 0, SEQLSTM_PARAM_W_H)];
    const int64_t elems = desc.recurrent.hidden * desc.recurrent.hidden;
#endif
    for (int64_t i = 0; i < elems; i++)
        gradient[i] *= 1 + TOO_LARGE_BY;
    return rc;
}

static const void *faulty_float64(struct seqlstm_instance *instance, const char *id)
{
    const void *found = inner->get_extension(instance, id);
    if (!found || strcmp(id, SEQLSTM_FLOAT64_EXTENSION) != 0)
        return found;
    memcpy(&float64, found, sizeof float64);
    float64_backward = float64.backward;
    float64.backward = steeper_backward;
    return &float64;
}
#endif

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);
SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.id = "faulty";
    table.open = faulty_open;
    table.close = faulty_close;
    table.supports = faulty_supports;
    table.op_create = faulty_op_create;
    table.op_bind = faulty_op_bind;
    table.op_destroy = faulty_op_destroy;
#if defined(TOUCHES_IDLE) || defined(FAULT_LEAVES_IDLE) || defined(FAULT_IDLE_BEYOND)
    table.op_sizes = faulty_op_sizes;
    table.get_extension = faulty_get_extension;
#endif
#if defined(RECORDS) || defined(REBINDS)
    table.get_extension = faulty_get_extension;
#endif
#ifdef FAULT_SLOPE
    table.get_extension = faulty_float64;
#endif
    table.forward = faulty_forward;
    table.backward = faulty_backward;
    return &table;
}
