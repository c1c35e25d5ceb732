/* SPDX-License-Identifier: Apache-2.0 */
/* int8 for a trained run: ranges on the validation data, and the metrics with and without int8.
 *
 * Evaluates the same batches twice. The first evaluation, in the precision of the model, notes the smallest and the
 * largest element of the input and output of each recurrent layer; both use one scale, because the recurrent product
 * reads the output of the step before. The second evaluation runs those layers in int8 where a backend can.
 */
#include "session/evaluate/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/evaluate/evaluate.h"
#include "session/record/session_record.h"
#include "session/run_files/run_lock.h"
#include "session/run_folder/stored_quantization.h"

struct quantizing {
    struct sl_session *session;
    struct sl_quantize_result *result;
    struct sl_arena *arena; /* of names */
    bool second;
};

static struct sl_quantized_report *find_report(const struct quantizing *q, const char *name)
{
    for (int32_t l = 0; l < q->result->count; l++)
        if (strcmp(q->result->layers[l].name, name) == 0)
            return &q->result->layers[l];
    return NULL;
}

static seqlstm_status add_report(const struct quantizing *q, const char *name, struct sl_quantized_report **out_report,
                                 struct seqlstm_error *err)
{
    struct sl_quantize_result *r = q->result;
    struct sl_quantized_report *more = realloc(r->layers, ((size_t)r->count + 1) * sizeof *more);
    char *copy = sl_arena_strdup(q->arena, name);
    if (more)
        r->layers = more;
    if (more == NULL || copy == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the ranges of the layers");
    r->layers[r->count] = (struct sl_quantized_report){
        .name = copy, .low = INFINITY, .high = -INFINITY, .backend = "", .variant = "", .reason = ""};
    *out_report = &r->layers[r->count++];
    return SEQLSTM_OK;
}

static seqlstm_status widen(struct sl_exec *exec, int32_t tensor, struct sl_quantized_report *report,
                            struct seqlstm_error *err)
{
    const float *values;
    int64_t elems;
    SEQLSTM_TRY(sl_exec_read(exec, tensor, &values, &elems, err));
    float low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < elems; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    report->low = fmin(report->low, (double)low);
    report->high = fmax(report->high, (double)high);
    return SEQLSTM_OK;
}

static bool within_one(const struct seqlstm_activation *a, bool gate)
{
    return a->kind == SEQLSTM_ACT_SIGMOID || a->kind == SEQLSTM_ACT_HARD_SIGMOID ||
           (!gate && (a->kind == SEQLSTM_ACT_TANH || a->kind == SEQLSTM_ACT_SOFTSIGN));
}

/* Does h lie in [-1, 1], whatever the weights? */
static bool is_bounded(const struct seqlstm_recurrent_desc *d)
{
    const int curve = d->cell == SEQLSTM_CELL_LSTM ? SEQLSTM_PLACE_OUTPUT : SEQLSTM_PLACE_CANDIDATE;
    const int directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    for (int i = 0; i < directions; i++)
        if (!within_one(&d->activations[curve][i], false) ||
            (d->cell != SEQLSTM_CELL_RNN && !within_one(&d->activations[SEQLSTM_PLACE_GATE][i], true)))
            return false;
    return d->projection == 0;
}

/* Is h the layer's output, element by element? */
static bool is_seen(const struct sl_node *node)
{
    const struct seqlstm_recurrent_desc *d = &node->desc.recurrent;
    return node->slots[SEQLSTM_SLOT_RECURRENT_Y] >= 0 &&
           (d->direction != SEQLSTM_DIRECTION_BIDIRECTIONAL || d->merge == SEQLSTM_KIND_MERGE_CONCAT);
}

/* If the h of a layer is not seen, it is either known to lie in [-1, 1], or no range is known. */
static seqlstm_status watch_ranges(void *context, struct sl_exec *exec, const struct sl_node *node,
                                   struct seqlstm_error *err)
{
    const struct quantizing *q = context;
    if (node->desc.head.op != SEQLSTM_OP_RECURRENT)
        return SEQLSTM_OK;
    struct sl_quantized_report *report = find_report(q, node->name);
    if (report == NULL)
        SEQLSTM_TRY(add_report(q, node->name, &report, err));
    SEQLSTM_TRY(widen(exec, node->slots[SEQLSTM_SLOT_RECURRENT_X], report, err));
    if (is_seen(node))
        return widen(exec, node->slots[SEQLSTM_SLOT_RECURRENT_Y], report, err);
    if (!is_bounded(&node->desc.recurrent))
        report->reason = "its hidden state is not kept, and its range is not known";
    report->low = fmin(report->low, -1);
    report->high = fmax(report->high, 1);
    return SEQLSTM_OK;
}

static void note_refusal(const struct quantizing *q, const struct sl_call *call, struct sl_quantized_report *report)
{
    for (int32_t r = 0; r < call->refusal_count; r++)
        if (call->refusals[r].option_id == SEQLSTM_OPTION_DTYPE || report->reason[0] == '\0') {
            const char *reason =
                sl_arena_printf(q->arena, "%s: %s", call->refusals[r].backend, call->refusals[r].reason);
            report->reason = reason ? reason : "";
        }
}

static seqlstm_status note_calls(void *context, const struct sl_stage *stage, struct seqlstm_error *err)
{
    const struct quantizing *q = context;
    int32_t count;
    const struct sl_exec_timing *timing = sl_exec_get_timing(stage->exec, &count);
    for (int32_t c = 0; c < count; c++) {
        const struct sl_call *call = &stage->plan->calls[c];
        struct sl_quantized_report *report = find_report(q, call->node->name);
        if (report == NULL)
            continue;
        *(q->second ? &report->after_ns : &report->before_ns) = (double)timing[c].forward_ns;
        if (!q->second)
            continue;
        report->accepted = call->node->desc.head.dtype_compute == SEQLSTM_DTYPE_INT8;
        report->backend = sl_arena_strdup(q->arena, sl_backend_get_id(call->backend));
        report->variant = sl_arena_strdup(q->arena, call->variant);
        if (report->backend == NULL || report->variant == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report");
        if (!report->accepted)
            note_refusal(q, call, report);
    }
    return SEQLSTM_OK;
}

/* The range includes zero, because states begin with it. */
static void find_scale(struct sl_quantized_report *report)
{
    const double low = fmin(report->low, 0), high = fmax(report->high, 0);
    const double scale = high > low ? 255 / (high - low) : 1;
    report->scale = (float)scale;
    report->shift = (float)fmin(fmax(nearbyint(-low * scale), 0), 255);
}

/* The layers of the report (with `accepted`: only those that were accepted) in the form that the graph needs. */
static seqlstm_status list_layers(const struct quantizing *q, bool accepted, struct sl_quantization *out,
                                  struct seqlstm_error *err)
{
    const struct sl_quantize_result *r = q->result;
    struct sl_quantized_layer *layers = SL_ARENA_ARRAY(q->arena, struct sl_quantized_layer, (size_t)r->count + 1);
    if (layers == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the ranges of the layers");
    *out = (struct sl_quantization){.layers = layers};
    for (int32_t l = 0; l < r->count; l++)
        if (accepted ? r->layers[l].accepted : r->layers[l].reason[0] == '\0')
            layers[out->count++] =
                (struct sl_quantized_layer){r->layers[l].name, r->layers[l].scale, r->layers[l].shift};
    return SEQLSTM_OK;
}

static seqlstm_status quantize(struct quantizing *q, struct seqlstm_error *err)
{
    struct sl_session *session = q->session;
    struct sl_quantize_result *r = q->result;
    const struct sl_quantization none = {.count = 0};
    struct sl_quantization all;
    struct sl_evaluation evaluation;
    struct sl_evaluation_watch watch = {
        .on_call = watch_ranges, .on_end = note_calls, .context = q, .quantization = &none};
    session->quantization.layers.count = 0; /* an earlier one is neither used nor compared */
    SEQLSTM_TRY(sl_session_evaluate_watched(session, SL_SPLIT_VALID, &watch, &evaluation, err));
    r->before = evaluation.values;
    if (r->count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the model has no recurrent layer");
    for (int32_t l = 0; l < r->count; l++) {
        if (!isfinite(r->layers[l].low) || !isfinite(r->layers[l].high))
            SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "inputs or outputs of `%s` are not finite", r->layers[l].name);
        find_scale(&r->layers[l]);
    }
    SEQLSTM_TRY(list_layers(q, false, &all, err));
    watch = (struct sl_evaluation_watch){.on_end = note_calls, .context = q, .quantization = &all};
    q->second = true;
    SEQLSTM_TRY(sl_session_evaluate_watched(session, SL_SPLIT_VALID, &watch, &evaluation, err));
    r->after = evaluation.values;
    SEQLSTM_TRY(list_layers(q, true, &session->quantization.layers, err));
    if (session->quantization.layers.count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "no backend runs `%s` in int8: %s", r->layers[0].name,
                     r->layers[0].reason);
    session->quantization.weights = sl_session_hash_weights(session);
    SEQLSTM_TRY(sl_run_lock_take(session, err));
    SEQLSTM_TRY(sl_run_lock_check(session, err));
    return sl_stored_quantization_write(session, r, err);
}

seqlstm_status sl_session_quantize(struct sl_session *session, struct sl_quantize_result *out_result,
                                   struct seqlstm_error *err)
{
    *out_result = (struct sl_quantize_result){0};
    struct quantizing q = {.session = session, .result = out_result, .arena = &session->quantization.arena};
    return quantize(&q, err);
}
