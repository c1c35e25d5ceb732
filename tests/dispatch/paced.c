/* SPDX-License-Identifier: Apache-2.0 */
/* The reference at a chosen pace: recurrent layers wait for as long as the options say, so that tests know which
 * backend is the fastest. Everything else is the reference's own. Built several times:
 *
 *   PACED_ID     "paced-a"
 *   PACED_PICKY  refuses every option of a recurrent layer and names it
 *   PACED_PAIRS  takes stacks of exactly two recurrent layers and nothing else
 *   PACED_TWINS  has two devices; the second is ten times slower
 *   PACED_AWAY   says that its device is no processor
 *   PACED_HALF   takes products in float16; gradients of weights beyond `largest` become infinite
 *   PACED_TWO    has two variants, of which `slow` takes ten times as long; it is named first
 *   PACED_LONG   has one variant, whose name is as long as the contract allows
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <seqlstm/backend.h>
#include <seqlstm/ext/footprint.h>

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static const struct seqlstm_backend *inner;

struct seqlstm_instance {
    struct seqlstm_instance *inner;
    double call_us, row_us, estimate_us, switch_us;
    const struct seqlstm_op *last; /* recurrent layer that was called; only compared */
    long fail_after;               /* calls; < 0: never */
    double largest;
    double idle_mib;
};

struct seqlstm_op {
    struct seqlstm_op *inner;
    struct seqlstm_instance *instance;
    bool paced;
    double factor;
    double layers;
#ifdef PACED_HALF
    bool half;
    int32_t weight_slot; /* -1: none */
    int64_t weight_elems;
#endif
};

struct seqlstm_binding {
    struct seqlstm_binding *inner;
    const struct seqlstm_op *op;
    int64_t rows;
};

/* PACED_FAIL=paced-a:5 fails that backend's call as `fail_after` does, and is no part of the key of a time: what is in
 * the cache stays known. */
static void read_failure(struct seqlstm_instance *instance)
{
    static const char id[] = PACED_ID ":";
    const char *failure = getenv("PACED_FAIL");
    if (failure && strncmp(failure, id, sizeof id - 1) == 0)
        instance->fail_after = strtol(failure + sizeof id - 1, NULL, 10);
}

static seqlstm_status paced_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                 uint32_t setting_count, struct seqlstm_instance **out_instance,
                                 struct seqlstm_error *err)
{
    struct seqlstm_instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory");
    instance->fail_after = -1;
    instance->largest = 65504;
    for (uint32_t i = 0; i < setting_count; i++) {
        double value = strtod(settings[i].value, NULL);
        if (strcmp(settings[i].key, "call_us") == 0)
            instance->call_us = value;
        else if (strcmp(settings[i].key, "row_us") == 0)
            instance->row_us = value;
        else if (strcmp(settings[i].key, "switch_us") == 0)
            instance->switch_us = value;
        else if (strcmp(settings[i].key, "estimate_us") == 0)
            instance->estimate_us = value;
        else if (strcmp(settings[i].key, "fail_after") == 0)
            instance->fail_after = (long)value;
        else if (strcmp(settings[i].key, "largest") == 0)
            instance->largest = value;
        else if (strcmp(settings[i].key, "idle_mib") == 0)
            instance->idle_mib = value;
    }
    read_failure(instance);
    seqlstm_status status = inner->open(host, NULL, 0, &instance->inner, err);
    if (status != SEQLSTM_OK) {
        free(instance);
        return status;
    }
    *out_instance = instance;
    return SEQLSTM_OK;
}

static void paced_close(struct seqlstm_instance *instance)
{
    if (instance)
        inner->close(instance->inner);
    free(instance);
}

static seqlstm_status paced_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                         struct seqlstm_error *err)
{
#ifdef PACED_TWINS
    (void)instance;
    (void)err;
    *out_count = 2;
    return SEQLSTM_OK;
#else
    return inner->device_count(instance->inner, out_count, err);
#endif
}

static seqlstm_status paced_device_info(struct seqlstm_instance *instance, uint32_t device,
                                        struct seqlstm_device_info *info, struct seqlstm_error *err)
{
#ifdef PACED_TWINS
    device = 0;
#endif
    seqlstm_status status = inner->device_info(instance->inner, device, info, err);
#ifdef PACED_AWAY
    strcpy(info->device_class, "far:away");
#endif
    return status;
}

#ifdef PACED_PICKY
/* The option that is refused; SEQLSTM_OPTION_NONE: none. */
static uint32_t find_refused(const struct seqlstm_recurrent_desc *d, char value[48])
{
    const struct {
        uint32_t option;
        double value;
    } numbers[] = {{SEQLSTM_OPTION_DROPOUT, d->dropout},
                   {SEQLSTM_OPTION_RECURRENT_DROPOUT, d->recurrent_dropout},
                   {SEQLSTM_OPTION_ZONEOUT, d->zoneout_cell > 0 ? d->zoneout_cell : d->zoneout_hidden},
                   {SEQLSTM_OPTION_WEIGHT_DROP, d->weight_drop},
                   {SEQLSTM_OPTION_CELL_CLIP, d->cell_clip},
                   {SEQLSTM_OPTION_GATE_CLIP, d->gate_clip},
                   {SEQLSTM_OPTION_PROJECTION, (double)d->projection}};
    const struct {
        uint32_t option, bit;
    } bits[] = {{SEQLSTM_OPTION_PEEPHOLE, SEQLSTM_BIT_RECURRENT_PEEPHOLE},
                {SEQLSTM_OPTION_COUPLED_GATES, SEQLSTM_BIT_RECURRENT_COUPLED_GATES},
                {SEQLSTM_OPTION_LAYER_NORM, SEQLSTM_BIT_RECURRENT_LAYER_NORM}};
    const struct {
        uint32_t option, place, kind;
    } activations[] = {{SEQLSTM_OPTION_ACTIVATION, SEQLSTM_PLACE_CANDIDATE, SEQLSTM_ACT_TANH},
                       {SEQLSTM_OPTION_RECURRENT_ACTIVATION, SEQLSTM_PLACE_GATE, SEQLSTM_ACT_SIGMOID},
                       {SEQLSTM_OPTION_OUTPUT_ACTIVATION, SEQLSTM_PLACE_OUTPUT, SEQLSTM_ACT_TANH}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value > 0) {
            snprintf(value, 48, "%g", numbers[i].value);
            return numbers[i].option;
        }
    strcpy(value, "true");
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (d->options & bits[i].bit)
            return bits[i].option;
    strcpy(value, "another");
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (d->activations[activations[i].place][0].kind != activations[i].kind)
            return activations[i].option;
    strcpy(value, "false");
    return d->options & SEQLSTM_BIT_RECURRENT_USE_BIAS ? SEQLSTM_OPTION_NONE : SEQLSTM_OPTION_USE_BIAS;
}
#endif

#ifdef PACED_HALF
/* The descriptor that the reference understands: products in float32. */
static const struct seqlstm_desc *make_plain(const struct seqlstm_desc *desc, union seqlstm_any_desc *plain)
{
    if (desc->dtype_compute != SEQLSTM_DTYPE_FLOAT16 || desc->struct_size > sizeof *plain)
        return desc;
    memset(plain, 0, sizeof *plain);
    memcpy(plain, desc, desc->struct_size);
    plain->head.dtype_compute = SEQLSTM_DTYPE_FLOAT32;
    return &plain->head;
}

static void note_half(struct seqlstm_op *op, const struct seqlstm_desc *desc)
{
    const union seqlstm_any_desc *d = (const union seqlstm_any_desc *)(const void *)desc;
    op->half = desc->dtype_compute == SEQLSTM_DTYPE_FLOAT16;
    op->weight_slot = -1;
    if (desc->op == SEQLSTM_OP_RECURRENT && d->recurrent.layers == 1 &&
        d->recurrent.direction != SEQLSTM_DIRECTION_BIDIRECTIONAL) {
        op->weight_slot = SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_X);
        op->weight_elems = 4 * d->recurrent.hidden * d->recurrent.input;
    } else if (desc->op == SEQLSTM_OP_DENSE) {
        op->weight_slot = SEQLSTM_SLOT_DENSE_W;
        op->weight_elems = d->dense.input * d->dense.output;
    }
}

/* What float16 cannot hold. */
static void overflow(const struct seqlstm_op *op, const struct seqlstm_backward *args)
{
    if (!op->half || op->weight_slot < 0 || !(args->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS))
        return;
    float *grad = args->grads[op->weight_slot];
    for (int64_t i = 0; i < op->weight_elems; i++)
        if (fabs((double)grad[i]) > op->instance->largest)
            grad[i] = copysignf(INFINITY, grad[i]);
}
#endif

#ifdef PACED_LONG
static const char long_variant[] = "a-name-of-thirty-one-characters";
#endif

static seqlstm_status paced_supports(const char *device_class, const struct seqlstm_desc *desc,
                                     struct seqlstm_answer *answer, struct seqlstm_error *err)
{
#if defined PACED_PICKY || defined PACED_PAIRS
    const struct seqlstm_recurrent_desc *d = (const struct seqlstm_recurrent_desc *)desc;
#endif
#ifdef PACED_PICKY
    char value[48];
    uint32_t option = desc->op == SEQLSTM_OP_RECURRENT ? find_refused(d, value) : SEQLSTM_OPTION_NONE;
    if (option != SEQLSTM_OPTION_NONE) {
        answer->code = SEQLSTM_BIT_REFUSED_OPTION;
        answer->option = option;
        strcpy(answer->value, value);
        strcpy(answer->reason, "it is picky");
        return SEQLSTM_OK;
    }
#endif
#ifdef PACED_PAIRS
    if (desc->op != SEQLSTM_OP_RECURRENT || d->layers != 2) {
        answer->code = SEQLSTM_BIT_REFUSED_OPERATION;
        strcpy(answer->reason, "it takes stacks of two layers");
        return SEQLSTM_OK;
    }
#endif
#ifdef PACED_AWAY
    device_class = "cpu:any";
#endif
#ifdef PACED_HALF
    union seqlstm_any_desc plain;
    desc = make_plain(desc, &plain);
#endif
    seqlstm_status status = inner->supports(device_class, desc, answer, err);
#ifdef PACED_TWO
    if (answer->accepted) {
        answer->variant_count = 2;
        strcpy(answer->variants[0], "slow");
        strcpy(answer->variants[1], "quick");
    }
#endif
#ifdef PACED_LONG
    _Static_assert(sizeof long_variant == SEQLSTM_MAX_VARIANT_BYTES, "as long as possible");
    if (answer->accepted) {
        answer->variant_count = 1;
        strcpy(answer->variants[0], long_variant);
    }
#endif
    return status;
}

static seqlstm_status paced_op_create(struct seqlstm_instance *instance, uint32_t device,
                                      const struct seqlstm_desc *desc, const char *variant, struct seqlstm_op **out_op,
                                      struct seqlstm_error *err)
{
    struct seqlstm_op *op = calloc(1, sizeof *op);
    if (!op)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory");
    op->instance = instance;
    op->paced = desc->op == SEQLSTM_OP_RECURRENT;
    op->factor = 1;
    op->layers = op->paced ? (double)((const struct seqlstm_recurrent_desc *)desc)->layers : 1;
#ifdef PACED_TWO
    op->factor = strcmp(variant, "slow") == 0 ? 10 : 1;
    variant = "loops";
#endif
#ifdef PACED_LONG
    if (strcmp(variant, long_variant) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no variant `%s`", variant);
    variant = "loops";
#endif
#ifdef PACED_TWINS
    op->factor = device == 1 ? 10 : 1;
    device = 0;
#endif
#ifdef PACED_HALF
    union seqlstm_any_desc plain;
    note_half(op, desc);
    desc = make_plain(desc, &plain);
#endif
    seqlstm_status status = inner->op_create(instance->inner, device, desc, variant, &op->inner, err);
    if (status != SEQLSTM_OK) {
        free(op);
        return status;
    }
    *out_op = op;
    return SEQLSTM_OK;
}

static seqlstm_status paced_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                     struct seqlstm_error *err)
{
    return inner->op_sizes(op->inner, sizes, err);
}

static seqlstm_status paced_idle_ranges(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                        const struct seqlstm_axis *axis, struct seqlstm_idle *idle,
                                        struct seqlstm_error *err)
{
    (void)sizes;
    (void)axis;
    (void)err;
    if (op->instance->idle_mib > 0)
        idle->workspace.at[idle->workspace.count++] = (struct seqlstm_range){0, (uint64_t)op->instance->idle_mib << 20};
    return SEQLSTM_OK;
}

static const void *paced_get_extension(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_footprint footprint = {.struct_size = sizeof footprint,
                                                       .idle_ranges = paced_idle_ranges};
    (void)instance;
    return strcmp(id, SEQLSTM_FOOTPRINT_EXTENSION) == 0 ? &footprint : NULL;
}

static void paced_op_destroy(struct seqlstm_op *op)
{
    if (op)
        inner->op_destroy(op->inner);
    free(op);
}

static seqlstm_status paced_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                    const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                    struct seqlstm_error *err)
{
    struct seqlstm_binding *binding = calloc(1, sizeof *binding);
    if (!binding)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory");
    binding->op = op;
    binding->rows = bind->rows;
    seqlstm_status status = inner->op_bind(op->inner, queue, bind, &binding->inner, err);
    if (status != SEQLSTM_OK) {
        free(binding);
        return status;
    }
    *out_binding = binding;
    return SEQLSTM_OK;
}

static void paced_binding_destroy(struct seqlstm_binding *binding)
{
    if (binding)
        inner->binding_destroy(binding->inner);
    free(binding);
}

static const double wake_us = 150; /* what waking takes at most where nothing else runs */

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

/* The call ends no earlier than its pace allows. It sleeps for the most of it: a thread that spins loses its core to
 * others when its share is used up, one that wakes gets it. */
static seqlstm_status keep_pace(const struct seqlstm_binding *binding, double start, struct seqlstm_error *err)
{
    struct seqlstm_instance *instance = binding->op->instance;
    if (!binding->op->paced)
        return SEQLSTM_OK;
    if (instance->fail_after >= 0 && instance->fail_after-- == 0)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the device fell off");
    double us = binding->op->factor * (instance->call_us + instance->row_us * (double)binding->rows);
    us += instance->last && instance->last != binding->op ? instance->switch_us : 0;
    instance->last = binding->op;
    const double left = start + us - now_us() - wake_us;
    if (left > 0) {
        struct timespec time = {(time_t)(left * 1e-6), (long)(fmod(left, 1e6) * 1e3)};
        nanosleep(&time, NULL);
    }
    while (now_us() < start + us)
        ;
    return SEQLSTM_OK;
}

static seqlstm_status paced_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    double start = now_us();
    SEQLSTM_TRY(inner->forward(binding->inner, queue, args, err));
    return keep_pace(binding, start, err);
}

static seqlstm_status paced_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    double start = now_us();
    SEQLSTM_TRY(inner->backward(binding->inner, queue, args, err));
#ifdef PACED_HALF
    overflow(binding->op, args);
#endif
    return keep_pace(binding, start, err);
}

static seqlstm_status paced_weights_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                         void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    return inner->weights_pack ? inner->weights_pack(op->inner, queue, slots, packed, step, err) : SEQLSTM_OK;
}

static seqlstm_status paced_estimate(const struct seqlstm_op *op, const struct seqlstm_bind *bind,
                                     struct seqlstm_cost *cost, struct seqlstm_error *err)
{
    (void)bind;
    if (op->instance->estimate_us <= 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "no opinion");
    cost->forward_ns = cost->backward_ns = op->factor * op->layers * op->instance->estimate_us * 1e3;
    return SEQLSTM_OK;
}

static const struct seqlstm_option options[] = {
    {"call_us", "float 0..1000000", "0", "microseconds that each call of a recurrent layer takes at least"},
    {"row_us", "float 0..1000", "0", "and for each row of it"},
    {"switch_us", "float 0..1000000", "0", "and where the call before was of another one: only whole steps show it"},
    {"estimate_us", "float 0..1000000", "0", "what it says that a call takes for each layer; 0: it says nothing"},
    {"idle_mib", "float 0..1000000", "0", "MiB of its workspace that it says no call touches"},
    {"largest", "float 0..1000000000", "65504", "PACED_HALF: the largest gradient of a weight"},
    {"fail_after", "int -1..1000000", "-1", "the call of a recurrent layer that fails"},
};

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);

const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    if (inner)
        return &table;
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.id = PACED_ID;
    table.option_count = sizeof options / sizeof *options;
    table.options = options;
    table.open = paced_open;
    table.close = paced_close;
    table.device_count = paced_device_count;
    table.device_info = paced_device_info;
    table.supports = paced_supports;
    table.op_create = paced_op_create;
    table.op_sizes = paced_op_sizes;
    table.op_bind = paced_op_bind;
    table.forward = paced_forward;
    table.backward = paced_backward;
    table.weights_pack = paced_weights_pack;
    table.estimate = paced_estimate;
    table.binding_destroy = paced_binding_destroy;
    table.op_destroy = paced_op_destroy;
    table.get_extension = paced_get_extension;
    return &table;
}
