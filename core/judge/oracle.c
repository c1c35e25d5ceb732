/* SPDX-License-Identifier: Apache-2.0 */
/* See oracle.h.
 *
 * Invariants
 * 1. values[t] holds tensor t once the node that writes it has run. grads[t] holds the sum over its readers so far;
 *    NULL where none has written yet.
 * 2. Rows of the sequences axis behind those with steps are zero, which are the right initial states.
 * 3. Calls of a loop are judged on all steps at once, with the results of the step before as inputs. */
#include "judge/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "measure/batch_rows.h"
#include "registry/plugin.h"

struct walk {
    const struct sl_oracle_request *request;
    const struct sl_graph *graph;
    struct sl_arena *arena;      /* of the results */
    struct sl_arena tensors;     /* of the walk */
    double **values, **grads;    /* [tensor_count] */
    struct seqlstm_axis rows[2]; /* every sequence as one step; of the target and of the source */
    struct sl_subject reference;
    struct sl_queue reference_queue, queue;
    struct sl_slot *slots; /* [SL_SLOTS_MAX] */
    struct sl_judgement *judgements;
    int32_t count;
    struct seqlstm_error *err;
};

static seqlstm_status no_memory(struct walk *w)
{
    SEQLSTM_FAIL(w->err, SEQLSTM_NO_MEMORY, "no memory for the reference's run of the model");
}

static int64_t tensor_elems(const struct walk *w, const struct sl_tensor *tensor)
{
    bool free = tensor->axis == SL_AXIS_FREE;
    return (free ? tensor->rows : sl_batch_count_rows(w->request->batch, tensor->axis)) * tensor->features;
}

/* ---- values that are known before anything runs ------------------------------------------------------------ */

static void load_field(const struct sl_field *field, int64_t elems, double *out)
{
    for (int64_t i = 0; i < elems; i++)
        out[i] = field->kind == SL_FIELD_IDS ? (double)field->ids[i] : (double)field->values[i];
}

static void load_tensor(struct walk *w, const struct sl_tensor *tensor, int64_t elems, double *out)
{
    const struct sl_oracle_request *r = w->request;
    switch (tensor->role) {
    case SL_TENSOR_INPUT:
        load_field(&r->batch->input, elems, out);
        break;
    case SL_TENSOR_TARGET:
        load_field(&r->batch->target, elems, out);
        break;
    case SL_TENSOR_WEIGHT:
        load_field(&r->batch->weight, elems, out);
        break;
    case SL_TENSOR_CLASS_WEIGHTS:
        for (int64_t i = 0; i < elems; i++)
            out[i] = r->class_weights ? (double)r->class_weights[i] : 1.0;
        break;
    case SL_TENSOR_ROW_WEIGHT:
        for (int64_t i = 0; i < elems; i++) {
            const int value = r->batch->target.values[i] > 0.5f;
            const bool weighted = r->batch->weight.kind == SL_FIELD_VALUES;
            out[i] = (weighted ? (double)r->batch->weight.values[i] : 1.0) *
                     (r->class_weights ? (double)r->class_weights[value] : 1.0);
        }
        break;
    case SL_TENSOR_PARAM:
        for (int64_t i = 0; i < elems; i++)
            out[i] = (double)r->params->values[r->params->views[tensor->owner].offset_elems + i];
        break;
    default: /* states begin as zeros; results are written later */
        sl_batch_load_index(r->batch, tensor, out);
        break;
    }
}

static seqlstm_status make_rows_axis(struct walk *w)
{
    const struct sl_batch *batch = w->request->batch;
    int64_t n = batch->sequences;
    int32_t *ones = SL_ARENA_ARRAY(&w->tensors, int32_t, (size_t)n + 1);
    int64_t *offsets = SL_ARENA_ARRAY(&w->tensors, int64_t, 2);
    if (!ones || !offsets)
        return no_memory(w);
    for (int64_t k = 0; k < n; k++)
        ones[k] = 1;
    ones[n] = (int32_t)n;
    offsets[1] = n;
    for (int side = 0; side < 2; side++) {
        const struct seqlstm_axis *steps = side ? &batch->source.axis : &batch->axis;
        w->rows[side] =
            (struct seqlstm_axis){.struct_size = sizeof w->rows[side],
                                  .flags = SEQLSTM_BIT_AXIS_UNIFORM | (steps->flags & SEQLSTM_BIT_AXIS_STREAM),
                                  .sequences = n,
                                  .steps = 1,
                                  .rows = n,
                                  .lengths = ones,
                                  .batch_sizes = ones + n,
                                  .row_offsets = offsets,
                                  .sequence_id = steps->sequence_id,
                                  .position0 = steps->position0};
    }
    return SEQLSTM_OK;
}

static seqlstm_status begin(struct walk *w)
{
    size_t tensors = (size_t)w->graph->tensor_count;
    size_t units = (size_t)(w->graph->node_count + w->graph->alternative_count);
    w->values = SL_ARENA_ARRAY(&w->tensors, double *, tensors);
    w->grads = SL_ARENA_ARRAY(&w->tensors, double *, tensors);
    w->slots = SL_ARENA_ARRAY(&w->tensors, struct sl_slot, SL_SLOTS_MAX);
    w->judgements = SL_ARENA_ARRAY(w->arena, struct sl_judgement, units * (size_t)w->request->subject_count + 1);
    if (!w->values || !w->grads || !w->slots || !w->judgements)
        return no_memory(w);
    for (int32_t t = 0; t < w->graph->tensor_count; t++) {
        int64_t elems = tensor_elems(w, &w->graph->tensors[t]);
        w->values[t] = SL_ARENA_ARRAY(&w->tensors, double, (size_t)elems);
        if (!w->values[t])
            return no_memory(w);
        load_tensor(w, &w->graph->tensors[t], elems, w->values[t]);
    }
    return make_rows_axis(w);
}

/* ---- one operation as the data of a case ---------------------------------------------------------------------- */

static const struct seqlstm_axis *axis_of(const struct walk *w, const struct sl_node *node)
{
    enum sl_axis axis = sl_graph_get_axis(w->graph, node);
    return sl_axis_is_steps(axis) ? sl_batch_get_axis(w->request->batch, axis) : &w->rows[sl_axis_is_source(axis)];
}

static bool is_state(const struct sl_slot *slot)
{
    return slot->axis == SL_SLOT_ON_STATES;
}

/* The tensor that slot k reads; -1: zeros. For a state that a loop carries, it is the initial one, since here the
 * calls of a loop take all steps at once. */
static int32_t tensor_of(const struct walk *w, const struct sl_node *node, const struct sl_slot *slot, int32_t k)
{
    int32_t t = k < node->slot_count ? node->slots[k] : -1;
    bool carried = t >= 0 && is_state(slot) && w->graph->tensors[t].role == SL_TENSOR_BEFORE;
    return carried ? w->graph->loop.carries[w->graph->tensors[t].owner].initial : t;
}

static int64_t slot_rows(const struct sl_data *d, const struct sl_slot *slot)
{
    if (slot->axis == SL_SLOT_FREE)
        return slot->rows;
    return slot->axis == SL_SLOT_ON_ROWS ? d->rows : slot->axis == SL_SLOT_ON_ROWS_IN ? d->rows_in : d->axis.sequences;
}

static void describe_case(const struct walk *w, const struct sl_node *node, struct sl_data *d)
{
    bool training = w->graph->phase == SL_PHASE_TRAIN && node->needs_backward;
    struct sl_case *c = &d->c;
    sl_text_snprintf(c->text, sizeof c->text, "%.200s", node->name);
    c->pass = training ? SL_PASS_BACKWARD : SL_PASS_INFERENCE;
    c->lengths = d->axis.flags & SEQLSTM_BIT_AXIS_UNIFORM ? SL_LENGTHS_UNIFORM : SL_LENGTHS_RAGGED;
    c->steps = d->axis.steps;
    c->sequences = d->axis.sequences;
    c->rows = d->rows;
    c->rows_in = d->rows_in;
    c->desc = node->desc;
    c->on_sequences = !sl_axis_is_steps(sl_graph_get_axis(w->graph, node));
    c->no_input_grad = true;
    for (int32_t k = 0; k < d->count; k++)
        if (d->slots[k].role == SL_SLOT_INPUT && !is_state(&d->slots[k]) &&
            w->graph->tensors[node->slots[k]].needs_grad)
            c->no_input_grad = false;
}

static seqlstm_status make_data(struct walk *w, struct sl_arena *arena, const struct sl_node *node,
                                struct sl_data **out_data)
{
    struct sl_data *d = SL_ARENA_NEW(arena, struct sl_data);
    int32_t count;
    if (!d)
        return no_memory(w);
    SEQLSTM_TRY(sl_op_signature(&node->desc.head, w->slots, SL_SLOTS_MAX, &count, w->err));
    size_t n = (size_t)count;
    d->count = count;
    d->slots = SL_ARENA_ARRAY(arena, struct sl_slot, n);
    d->elems = SL_ARENA_ARRAY(arena, int64_t, n);
    d->values = SL_ARENA_ARRAY(arena, double *, n);
    d->upstream = SL_ARENA_ARRAY(arena, double *, n);
    d->base = SL_ARENA_ARRAY(arena, double *, n);
    if (!d->slots || !d->elems || !d->values || !d->upstream || !d->base)
        return no_memory(w);
    d->axis = *axis_of(w, node);
    d->rows = d->axis.rows;
    d->rows_in = sl_batch_count_rows_in(w->request->batch, w->graph, node);
    d->step = (struct seqlstm_step){.struct_size = sizeof d->step,
                                    .seed = w->request->seed,
                                    .update = 1,
                                    .normaliser = (float)(1.0 / (double)d->rows),
                                    .loss_scale = 1,
                                    .grad_scale = 1};
    for (int32_t k = 0; k < count; k++) {
        struct sl_slot *slot = &d->slots[k];
        int32_t t = k < node->slot_count ? node->slots[k] : -1;
        *slot = w->slots[k];
        if (w->slots[k].name == w->slots[k].name_storage)
            slot->name = slot->name_storage;
        if (t < 0)
            slot->role = SL_SLOT_ABSENT;
        if (slot->role == SL_SLOT_ABSENT)
            continue;
        d->elems[k] = slot_rows(d, slot) * slot->features;
        if (slot->role == SL_SLOT_OUTPUT) {
            d->upstream[k] = w->grads[t];
            continue;
        }
        t = tensor_of(w, node, slot, k);
        d->values[k] = t >= 0 ? w->values[t] : SL_ARENA_ARRAY(arena, double, (size_t)d->elems[k] + 1);
        if (!d->values[k])
            return no_memory(w);
    }
    describe_case(w, node, d);
    *out_data = d;
    return SEQLSTM_OK;
}

/* Sums start at zero for each node; their results are not kept. */
static void keep_outputs(struct walk *w, const struct sl_node *node, const struct sl_data *d,
                         const struct sl_runner *runner)
{
    for (int32_t k = 0; k < d->count; k++) {
        if (d->slots[k].role != SL_SLOT_OUTPUT)
            continue;
        double *out = w->values[node->slots[k]];
        sl_runner_read(runner, k, false, out);
        for (int64_t i = 0; i < d->elems[k]; i++)
            out[i] = sl_dtype_round(d->slots[k].dtype, out[i]);
    }
}

static seqlstm_status keep_gradients(struct walk *w, struct sl_arena *arena, const struct sl_node *node,
                                     const struct sl_data *d, const struct sl_runner *runner)
{
    for (int32_t k = 0; k < d->count; k++) {
        int32_t t = d->slots[k].role == SL_SLOT_INPUT ? tensor_of(w, node, &d->slots[k], k) : -1;
        double *now = NULL;
        if (t < 0 || (d->c.no_input_grad && !is_state(&d->slots[k])) || !w->graph->tensors[t].needs_grad ||
            !sl_slot_is_float(&d->slots[k]))
            continue;
        now = SL_ARENA_ARRAY(arena, double, (size_t)d->elems[k]);
        if (!w->grads[t])
            w->grads[t] = SL_ARENA_ARRAY(&w->tensors, double, (size_t)tensor_elems(w, &w->graph->tensors[t]));
        if (!now || !w->grads[t])
            return no_memory(w);
        if (!sl_runner_read(runner, k, true, now))
            continue;
        for (int64_t i = 0; i < d->elems[k]; i++)
            w->grads[t][i] = sl_dtype_round(d->slots[k].dtype, w->grads[t][i] + now[i]);
    }
    return SEQLSTM_OK;
}

/* ---- forward ----------------------------------------------------------------------------------------------- */

static seqlstm_status run_node(struct walk *w, const struct sl_node *node)
{
    struct sl_arena arena;
    struct sl_data *d = NULL;
    struct sl_runner *runner = NULL;
    if (sl_interrupt_get_stop(w->request->interrupt))
        SEQLSTM_FAIL(w->err, SEQLSTM_CANCELLED, "interrupted");
    sl_arena_init(&arena);
    seqlstm_status status = make_data(w, &arena, node, &d);
    if (status == SEQLSTM_OK)
        status = sl_runner_create(&w->reference, d, NULL, NULL, &runner, w->err);
    if (status == SEQLSTM_OK)
        status = sl_runner_forward(runner, w->err);
    if (status == SEQLSTM_OK)
        keep_outputs(w, node, d, runner);
    sl_runner_destroy(runner);
    sl_arena_deinit(&arena);
    return status;
}

/* Fills what a loop reads of the step before, from what its calls have written so far. */
static void fill_before(struct walk *w, const struct sl_carry *carry)
{
    const struct seqlstm_axis *axis = &w->request->batch->axis;
    int64_t features = w->graph->tensors[carry->before].features;
    for (int64_t t = 0; t < axis->steps; t++)
        for (int64_t i = 0; i < axis->batch_sizes[t] * features; i++)
            w->values[carry->before][axis->row_offsets[t] * features + i] =
                t > 0                 ? w->values[carry->value][axis->row_offsets[t - 1] * features + i]
                : carry->initial >= 0 ? w->values[carry->initial][i]
                                      : 0;
}

/* The body takes all steps at once, and runs as often as there are steps. Each run makes one more step right. */
static seqlstm_status run_loop(struct walk *w)
{
    const struct sl_loop *loop = &w->graph->loop;
    for (int64_t t = 0; t < w->request->batch->axis.steps; t++) {
        for (int32_t k = 0; k < loop->carry_count; k++)
            fill_before(w, &loop->carries[k]);
        for (int32_t n = loop->first; n < loop->first + loop->count; n++)
            SEQLSTM_TRY(run_node(w, &w->graph->nodes[n]));
    }
    return SEQLSTM_OK;
}

static seqlstm_status walk_forward(struct walk *w)
{
    const struct sl_loop *loop = &w->graph->loop;
    for (int32_t n = 0; n < w->graph->node_count; n++) {
        if (n < loop->first || n >= loop->first + loop->count)
            SEQLSTM_TRY(run_node(w, &w->graph->nodes[n]));
        else if (n == loop->first)
            SEQLSTM_TRY(run_loop(w));
    }
    return SEQLSTM_OK;
}

/* ---- judging ----------------------------------------------------------------------------------------------- */

/* The gradients that the program itself would ask for. */
static uint32_t parts_of(const struct walk *w, const struct sl_node *node, const struct sl_data *d)
{
    uint32_t parts = d->c.no_input_grad ? 0 : SEQLSTM_BIT_BACKWARD_INPUTS;
    for (int32_t k = 0; k < d->count; k++)
        if (d->slots[k].role == SL_SLOT_PARAM && w->graph->tensors[node->slots[k]].needs_grad)
            parts |= SEQLSTM_BIT_BACKWARD_WEIGHTS;
        else if (d->slots[k].role == SL_SLOT_INPUT && is_state(&d->slots[k]) &&
                 w->graph->tensors[node->slots[k]].needs_grad)
            parts |= SEQLSTM_BIT_BACKWARD_STATES;
    return parts;
}

static bool has_upstream(const struct sl_node *node, const struct sl_data *d)
{
    if (node->desc.head.op == SEQLSTM_OP_LOSS || node->desc.head.op == SEQLSTM_OP_DENSE_LOSS)
        return true;
    for (int32_t k = 0; k < d->count; k++)
        if (d->upstream[k])
            return true;
    return false;
}

static struct sl_subject make_subject(const struct sl_backend *backend, uint32_t device, struct sl_queue *queue)
{
    return (struct sl_subject){.table = sl_backend_get_table(backend),
                               .instance = sl_backend_get_instance(backend),
                               .device = device,
                               .device_class = sl_backend_get_device(backend, device)->device_class,
                               .queue = &queue->queue};
}

/* That memory runs out says nothing about the results of a backend. */
static seqlstm_status fail_without_memory(struct walk *w, const struct sl_judgement *j, const char *why)
{
    SEQLSTM_FAIL(w->err, SEQLSTM_NO_MEMORY, "no memory to judge `%s` on %s: %.400s", j->node->name,
                 sl_backend_get_id(j->backend), why);
}

/* Compares on the device. `expected` has run. Errors of the subject become verdicts, except NO_MEMORY. */
static seqlstm_status compare_there(struct walk *w, struct sl_domain *domain, struct sl_judgement *j,
                                    const struct sl_data *d, struct sl_runner *expected, uint32_t parts,
                                    struct sl_arena *arena, struct sl_check_result *result)
{
    struct sl_bench bench = {.subject = make_subject(j->backend, j->offer.device, domain ? &domain->queue : &w->queue),
                             .reference = w->reference,
                             .seed = w->request->seed};
    struct sl_check check = {.bench = &bench, .data = d, .variant = j->offer.variant, .arena = arena, .result = result};
    struct sl_runner *got = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    bench.subject.domain = domain;
    bool fine = sl_check_status(&check, sl_runner_create(&bench.subject, d, j->offer.variant, NULL, &got, &err),
                                "creating the operation", &err) &&
                sl_check_status(&check, sl_runner_forward(got, &err), "forward", &err);
    if (fine && parts)
        fine = sl_check_status(&check, sl_runner_backward(got, parts, false, &err), "backward", &err);
    if (fine)
        sl_check_compare(&check, got, expected, parts != 0, parts, parts ? "forward and backward" : "forward");
    sl_runner_destroy(got);
    return check.no_memory ? fail_without_memory(w, j, result->detail) : SEQLSTM_OK;
}

/* Compares in the memory of the backend's device. */
static seqlstm_status compare(struct walk *w, struct sl_judgement *j, const struct sl_data *d,
                              struct sl_runner *expected, uint32_t parts, struct sl_arena *arena,
                              struct sl_check_result *result)
{
    const char *name = sl_backend_get_device(j->backend, j->offer.device)->domain;
    struct sl_domain domain = {.table = NULL};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (strcmp(name, "host") == 0)
        return compare_there(w, NULL, j, d, expected, parts, arena, result);
    seqlstm_status status = sl_domain_open(&domain, sl_backend_get_table(j->backend),
                                           sl_backend_get_instance(j->backend), j->offer.device, name, &err);
    if (status == SEQLSTM_OK) {
        status = compare_there(w, &domain, j, d, expected, parts, arena, result);
        sl_domain_close(&domain);
        return status;
    }
    if (status == SEQLSTM_NO_MEMORY)
        return fail_without_memory(w, j, err.message);
    result->verdict = SL_VERDICT_FAIL;
    sl_text_snprintf(result->detail, sizeof result->detail, "its device does not open: %.400s", err.message);
    return SEQLSTM_OK;
}

static seqlstm_status judge_one(struct walk *w, const struct sl_node *node, const struct sl_data *d,
                                struct sl_runner *expected, uint32_t parts, const struct sl_oracle_subject *subject,
                                struct sl_arena *arena, struct sl_judgement *j)
{
    struct sl_check_result result = {.verdict = SL_VERDICT_PASS};
    *j = (struct sl_judgement){.node = node, .backend = subject->backend, .backward = parts != 0, .detail = ""};
    SEQLSTM_TRY(sl_offer_ask(subject->backend, w->graph, node, subject->variant, &j->offer, w->err));
    if (!j->offer.accepted) {
        j->verdict = SL_VERDICT_UNSUPPORTED;
        j->detail = j->offer.reason;
    } else {
        SEQLSTM_TRY(compare(w, j, d, expected, parts, arena, &result));
        j->verdict = result.verdict;
        j->worst = result.worst;
        j->detail = sl_arena_strdup(w->arena, result.detail);
    }
    return j->detail ? SEQLSTM_OK : no_memory(w);
}

/* Runs the reference on one node or alternative, and compares every backend with it. `into`: the first of the
 * judgements. */
static seqlstm_status judge(struct walk *w, const struct sl_node *node, bool keep, struct sl_judgement *into)
{
    struct sl_arena arena;
    struct sl_data *d = NULL;
    struct sl_runner *expected = NULL;
    sl_arena_init(&arena);
    seqlstm_status status = make_data(w, &arena, node, &d);
    uint32_t parts = 0;
    if (status == SEQLSTM_OK && d->c.pass == SL_PASS_BACKWARD && has_upstream(node, d))
        parts = parts_of(w, node, d);
    if (status == SEQLSTM_OK)
        status = sl_runner_create(&w->reference, d, NULL, NULL, &expected, w->err);
    if (status == SEQLSTM_OK)
        status = sl_runner_forward(expected, w->err);
    if (status == SEQLSTM_OK && parts)
        status = sl_runner_backward(expected, parts, false, w->err);
    for (int32_t s = 0; status == SEQLSTM_OK && s < w->request->subject_count; s++) {
        if (sl_interrupt_get_stop(w->request->interrupt))
            status = seqlstm_error_set(w->err, SEQLSTM_CANCELLED, __FILE__, __LINE__, "interrupted");
        else
            status = judge_one(w, node, d, expected, parts, &w->request->subjects[s], &arena, &into[s]);
    }
    if (status == SEQLSTM_OK && keep && parts)
        status = keep_gradients(w, &arena, node, d, expected);
    sl_runner_destroy(expected);
    sl_arena_deinit(&arena);
    return status;
}

/* Judges the alternatives whose last node is n, before their nodes pass their gradients on. */
static seqlstm_status walk_back(struct walk *w)
{
    int32_t subjects = w->request->subject_count;
    w->count = (w->graph->node_count + w->graph->alternative_count) * subjects;
    int32_t at = w->count;
    for (int32_t n = w->graph->node_count - 1; n >= 0; n--) {
        for (int32_t a = w->graph->alternative_count - 1; a >= 0; a--) {
            const struct sl_alternative *alternative = &w->graph->alternatives[a];
            if (alternative->first + alternative->count - 1 != n)
                continue;
            at -= subjects;
            SEQLSTM_TRY(judge(w, &alternative->node, false, &w->judgements[at]));
        }
        at -= subjects;
        SEQLSTM_TRY(judge(w, &w->graph->nodes[n], true, &w->judgements[at]));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_oracle_run(const struct sl_oracle_request *request, struct sl_arena *arena,
                             struct sl_judgement **out_judgements, int32_t *out_count, struct seqlstm_error *err)
{
    struct walk w = {.request = request, .graph = request->graph, .arena = arena, .err = err};
    const struct seqlstm_backend *table = sl_backend_get_table(request->reference);
    sl_arena_init(&w.tensors);
    sl_queue_init(&w.reference_queue, NULL);
    sl_queue_init(&w.queue, request->pool);
    w.reference = make_subject(request->reference, 0, &w.reference_queue);
    w.reference.float64 = sl_plugin_get_extension(table, w.reference.instance, SEQLSTM_FLOAT64_EXTENSION);
    seqlstm_status status =
        w.reference.float64
            ? begin(&w)
            : seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__,
                                "the backend `%s` does not compute in float64: it is no oracle", table->id);
    if (status == SEQLSTM_OK)
        status = walk_forward(&w);
    if (status == SEQLSTM_OK)
        status = walk_back(&w);
    sl_arena_deinit(&w.tensors);
    SEQLSTM_TRY(status);
    *out_judgements = w.judgements;
    *out_count = w.count;
    return SEQLSTM_OK;
}
