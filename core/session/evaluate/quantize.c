/* SPDX-License-Identifier: Apache-2.0 */
/* int8 for a trained run.
 *
 * First evaluations, in the precision of the model, note the values of inputs and hidden states of each recurrent layer
 * on the training and validation data. Both share one scale, because the recurrent product reads the output of the step
 * before. A range which is too narrow clips what comes later, and one which is too wide rounds coarsely. So the main
 * split (validation, or training where there is none) is evaluated in int8 with ranges from wide to narrow, and the
 * first wins which costs less than a quarter of what int8 may cost. If none is good enough, one layer after the other
 * gets a wider type, bfloat16 and then tf32, or stays as it is: the one that helps most.
 */
#include "session/evaluate/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "data/dataset/dataset.h"
#include "session/data/read_data.h"
#include "session/evaluate/calibration.h"
#include "session/evaluate/evaluate.h"
#include "session/record/session_record.h"
#include "session/run_files/run_lock.h"
#include "session/run_folder/stored_quantization.h"

/* From the safest to the most precise. */
static const struct sl_range_rule RULES[] = {{0, 4},   {0, 2},      {0, 1.5},    {0, 1.25},
                                             {0, 1.1}, {1e-5, 1.1}, {1e-4, 1.1}, {1e-3, 1.1}};
enum { RULES_COUNT = sizeof RULES / sizeof *RULES };

struct quantizing {
    struct sl_session *session;
    const struct sl_quantize_request *request;
    struct sl_quantize_result *result;
    struct sl_arena *arena; /* of names */
    struct sl_calibration calibration;
};

/* ---- what calls say ----------------------------------------------------------------------------------- */

static struct sl_quantized_report *find_report(const struct quantizing *q, const char *name)
{
    for (int32_t l = 0; l < q->result->count; l++)
        if (strcmp(q->result->layers[l].name, name) == 0)
            return &q->result->layers[l];
    return NULL;
}

static seqlstm_status note_refusal(const struct quantizing *q, const struct sl_call *call,
                                   struct sl_quantized_report *report, struct seqlstm_error *err)
{
    for (int32_t r = 0; r < call->refusal_count; r++)
        if (call->refusals[r].option_id == SEQLSTM_OPTION_DTYPE || report->reason[0] == '\0') {
            const char *reason =
                sl_arena_printf(q->arena, "%s: %s", call->refusals[r].backend, call->refusals[r].reason);
            if (reason == NULL)
                SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report");
            report->reason = reason;
        }
    return SEQLSTM_OK;
}

static seqlstm_status note_call(const struct quantizing *q, const struct sl_call *call, double forward_ns,
                                struct sl_quantized_report *report, struct seqlstm_error *err)
{
    report->after_ns = forward_ns;
    report->accepted = call->node->is_quantized;
    report->backend = sl_arena_strdup(q->arena, sl_backend_get_id(call->backend));
    report->variant = sl_arena_strdup(q->arena, call->variant);
    if (report->backend == NULL || report->variant == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report");
    if (!report->accepted && report->reason[0] == '\0')
        return note_refusal(q, call, report, err);
    return SEQLSTM_OK;
}

static seqlstm_status note_calls(void *context, const struct sl_stage *stage, struct seqlstm_error *err)
{
    const struct quantizing *q = context;
    int32_t count;
    const struct sl_exec_timing *timing = sl_exec_get_timing(stage->exec, &count);
    for (int32_t c = 0; c < count; c++) {
        const struct sl_call *call = &stage->plan->calls[c];
        struct sl_quantized_report *report = find_report(q, call->node->name);
        if (report)
            SEQLSTM_TRY(note_call(q, call, (double)timing[c].forward_ns, report, err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status note_times(void *context, const struct sl_stage *stage, struct seqlstm_error *err)
{
    const struct sl_calibration *calibration = context;
    int32_t count;
    const struct sl_exec_timing *timing = sl_exec_get_timing(stage->exec, &count);
    (void)err;
    for (int32_t c = 0; c < count; c++)
        for (int32_t l = 0; l < calibration->count; l++)
            if (strcmp(calibration->layers[l].name, stage->plan->calls[c].node->name) == 0)
                calibration->layers[l].forward_ns = (double)timing[c].forward_ns;
    return SEQLSTM_OK;
}

/* ---- evaluations -------------------------------------------------------------------------------------- */

static bool is_measured(const struct quantizing *q, enum sl_split split)
{
    return split == SL_SPLIT_TRAIN || sl_dataset_has_split(q->session->model, split);
}

/* Texts are written for other splits only. */
static const struct sl_metric_list *get_metrics(const struct quantizing *q, enum sl_split split)
{
    const struct sl_train_config *train = &q->session->model->train;
    return split == SL_SPLIT_TRAIN ? &train->metrics : NULL;
}

/* As the run is; notes the values of its layers, but not on the test data. */
static seqlstm_status evaluate_before(struct quantizing *q, enum sl_split split, struct seqlstm_error *err)
{
    const struct sl_quantization none = {.count = 0};
    const struct sl_evaluation_watch watch = {.on_call = split == SL_SPLIT_TEST ? NULL : sl_calibration_watch,
                                              .on_end = split == q->result->main ? note_times : NULL,
                                              .context = &q->calibration,
                                              .quantization = &none,
                                              .metrics = get_metrics(q, split)};
    struct sl_evaluation evaluation;
    SEQLSTM_TRY(sl_session_evaluate_watched(q->session, split, &watch, &evaluation, err));
    const struct sl_metric_value *unsound = sl_metric_values_find_unsound(&evaluation.values);
    if (unsound)
        SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "the %s of the %s split is not finite before anything is quantized",
                     unsound->name, sl_split_get_name(split));
    q->result->splits[split] = (struct sl_quantized_split){.is_measured = true, .before = evaluation.values};
    return SEQLSTM_OK;
}

/* The layers of the report which are wanted in another precision, in the form that the graph needs. */
static seqlstm_status list_layers(const struct quantizing *q, struct sl_quantization *out, struct seqlstm_error *err)
{
    const struct sl_quantize_result *r = q->result;
    struct sl_quantized_layer *layers = SL_ARENA_ARRAY(q->arena, struct sl_quantized_layer, (size_t)r->count + 1);
    if (layers == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the ranges of the layers");
    *out = (struct sl_quantization){.layers = layers};
    for (int32_t l = 0; l < r->count; l++)
        if (r->layers[l].reason[0] == '\0') {
            const bool is_int8 = r->layers[l].dtype == SEQLSTM_DTYPE_INT8;
            layers[out->count++] =
                (struct sl_quantized_layer){r->layers[l].name, r->layers[l].dtype, is_int8 ? r->layers[l].scale : 0,
                                            is_int8 ? r->layers[l].shift : 0};
        }
    return SEQLSTM_OK;
}

static double get_value(const struct sl_metric_values *values, const char *name)
{
    for (int32_t m = 0; m < values->count; m++)
        if (strcmp(values->items[m].name, name) == 0)
            return values->items[m].value;
    return NAN;
}

/* By how much the judged metric has become worse, as a share; infinite where it is no number any more. */
static double compute_loss(const struct quantizing *q, const struct sl_quantized_split *split)
{
    const double before = get_value(&split->before, q->result->metric);
    const double after = get_value(&split->after, q->result->metric);
    const double worse = q->result->is_higher_better ? before - after : after - before;
    if (sl_metric_values_find_unsound(&split->after) || !(worse <= INFINITY))
        return INFINITY;
    return worse == 0 ? 0 : before == 0 ? copysign(INFINITY, worse) : worse / fabs(before);
}

/* By what ranges are chosen: the judged metric, and a quarter of what the loss has lost. A metric such as accuracy may
 * not move where the loss shows that results have become less sure. */
static double compute_score(const struct sl_quantized_split *split)
{
    const char *loss = sl_metric_get_name(SL_METRIC_LOSS);
    const double before = get_value(&split->before, loss), after = get_value(&split->after, loss);
    const double share = before > 0 ? (after / before - 1) / 4 : 0;
    return fmax(split->loss, isfinite(share) ? share : 0);
}

/* Evaluates a split with the wanted layers in their precision. */
static seqlstm_status evaluate_after(struct quantizing *q, enum sl_split split, struct seqlstm_error *err)
{
    struct sl_quantized_split *out = &q->result->splits[split];
    struct sl_quantization layers;
    SEQLSTM_TRY(list_layers(q, &layers, err));
    const struct sl_evaluation_watch watch = {.on_end = split == q->result->main ? note_calls : NULL,
                                              .context = q,
                                              .quantization = &layers,
                                              .metrics = get_metrics(q, split),
                                              .clipped = &out->clipped};
    struct sl_evaluation evaluation;
    q->session->quantization.layers = layers; /* for texts that are written */
    seqlstm_status status = sl_session_evaluate_watched(q->session, split, &watch, &evaluation, err);
    q->session->quantization.layers.count = 0;
    SEQLSTM_TRY(status);
    out->after = evaluation.values;
    out->loss = compute_loss(q, out);
    return SEQLSTM_OK;
}

/* ---- ranges ------------------------------------------------------------------------------------------- */

static void set_range(struct sl_quantized_report *report, double low, double high)
{
    const double scale = high > low ? 255 / (high - low) : 1;
    report->low = low;
    report->high = high;
    report->scale = (float)scale;
    report->shift = (float)fmin(fmax(nearbyint(-low * scale), 0), 255);
}

/* True if that changes a scale. */
static bool set_ranges(struct quantizing *q, const struct sl_range_rule *rule)
{
    bool changed = false;
    for (int32_t l = 0; l < q->result->count; l++) {
        struct sl_quantized_report *report = &q->result->layers[l];
        const float scale = report->scale, shift = report->shift;
        double low, high;
        if (sl_layer_values_find_range(&q->calibration.layers[l], rule, &low, &high))
            set_range(report, low, high);
        else
            report->reason = "its hidden state is not kept, and its range is not known";
        changed =
            changed || report->scale < scale || report->scale > scale || report->shift < shift || report->shift > shift;
    }
    return changed;
}

static bool has_any(const struct quantizing *q)
{
    for (int32_t l = 0; l < q->result->count; l++)
        if (q->result->layers[l].accepted)
            return true;
    return false;
}

/* Leaves the ranges by the best rule, and what the main split says with them. */
static seqlstm_status choose_rule(struct quantizing *q, struct seqlstm_error *err)
{
    const struct sl_quantized_split *main = &q->result->splits[q->result->main];
    double least = INFINITY;
    int best = 0, last = -1;
    for (int k = 0; k < RULES_COUNT; k++) {
        if (!set_ranges(q, &RULES[k]) && k > 0)
            continue;
        SEQLSTM_TRY(evaluate_after(q, q->result->main, err));
        last = k;
        if (k == 0 && !has_any(q))
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "no backend runs `%s` in int8: %s", q->result->layers[0].name,
                         q->result->layers[0].reason);
        if (compute_score(main) <= q->request->bound / 4)
            return SEQLSTM_OK;
        if (compute_score(main) < least || k == 0) {
            least = compute_score(main);
            best = k;
        }
    }
    if (best == last)
        return SEQLSTM_OK;
    set_ranges(q, &RULES[best]);
    return evaluate_after(q, q->result->main, err);
}

/* ---- wider types -------------------------------------------------------------------------------------- */

/* The type to try after `dtype`, between it and the model's precision; that of the model itself if there is none. */
static bool find_wider(const struct quantizing *q, uint32_t dtype, uint32_t *out_dtype)
{
    const enum sl_precision precision = q->session->model->precision;
    *out_dtype = dtype == SEQLSTM_DTYPE_INT8 ? SEQLSTM_DTYPE_BFLOAT16 : SEQLSTM_DTYPE_TF32;
    return dtype == SEQLSTM_DTYPE_INT8       ? precision == SL_PRECISION_FLOAT32 || precision == SL_PRECISION_TF32
           : dtype == SEQLSTM_DTYPE_BFLOAT16 ? precision == SL_PRECISION_FLOAT32
                                             : false;
}

static void widen_type(const struct quantizing *q, struct sl_quantized_report *report, const char *cause)
{
    if (find_wider(q, report->dtype, &report->dtype))
        report->cause = cause;
    else
        report->reason = cause;
}

/* What is wrong with the layers as they are: "in int8, mse is 22 % worse". */
static const char *describe_loss(const struct quantizing *q, uint32_t dtype)
{
    const struct sl_quantized_split *main = &q->result->splits[q->result->main];
    const bool by_loss = compute_score(main) > main->loss;
    return sl_arena_printf(q->arena, "with it in %s, %s is %.2g %% worse", sl_dtype_name(dtype),
                           by_loss ? "loss" : q->result->metric, 100 * compute_score(main) * (by_loss ? 4 : 1));
}

/* Widens the layer of which that helps most. `*out_found` is false if no layer would be left in a lower precision. */
static seqlstm_status widen_one(struct quantizing *q, bool *out_found, struct seqlstm_error *err)
{
    struct sl_quantize_result *r = q->result;
    const struct sl_quantized_split *main = &r->splits[r->main];
    double least = INFINITY;
    int32_t best = -1;
    const char **causes = SL_ARENA_ARRAY(q->arena, const char *, (size_t)r->count);
    if (causes == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report");
    for (int32_t l = 0; l < r->count; l++)
        causes[l] = describe_loss(q, r->layers[l].dtype);
    for (int32_t l = 0; l < r->count; l++) {
        const struct sl_quantized_report before = r->layers[l];
        if (causes[l] == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report");
        if (before.reason[0] != '\0')
            continue;
        widen_type(q, &r->layers[l], causes[l]);
        SEQLSTM_TRY(evaluate_after(q, r->main, err));
        if (has_any(q) && (best < 0 || compute_score(main) < least)) {
            least = compute_score(main);
            best = l;
        }
        r->layers[l] = before;
    }
    *out_found = best >= 0;
    if (best >= 0)
        widen_type(q, &r->layers[best], causes[best]);
    return evaluate_after(q, r->main, err);
}

/* The test data shall stay within the bound, too, so that on the main split half of it may be used. */
static seqlstm_status widen_types(struct quantizing *q, struct seqlstm_error *err)
{
    bool found = true;
    while (found && compute_score(&q->result->splits[q->result->main]) > q->request->bound / 2)
        SEQLSTM_TRY(widen_one(q, &found, err));
    return SEQLSTM_OK;
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

/* The first metric of validation which the main split has, or the loss. */
static void choose_metric(struct quantizing *q)
{
    const struct sl_metric_list *list = &q->session->model->train.validate.metrics;
    struct sl_quantize_result *r = q->result;
    enum sl_metric metric = SL_METRIC_LOSS;
    for (size_t m = list->count; m > 0; m--)
        if (isfinite(get_value(&r->splits[r->main].before, sl_metric_get_name(list->items[m - 1]))))
            metric = list->items[m - 1];
    r->metric = sl_metric_get_name(metric);
    r->is_higher_better = sl_metric_get_mode(metric) == SL_MODE_MAX;
}

static seqlstm_status calibrate(struct quantizing *q, struct seqlstm_error *err)
{
    struct sl_quantize_result *r = q->result;
    r->main = is_measured(q, SL_SPLIT_VALID) ? SL_SPLIT_VALID : SL_SPLIT_TRAIN;
    SEQLSTM_TRY(sl_session_read_data(q->session, err)); /* once for all evaluations */
    for (int split = 0; split < SL_SPLIT_COUNT; split++)
        if (is_measured(q, (enum sl_split)split))
            SEQLSTM_TRY(evaluate_before(q, (enum sl_split)split, err));
    if (q->calibration.count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the model has no recurrent layer");
    r->layers = calloc((size_t)q->calibration.count, sizeof *r->layers);
    if (r->layers == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the ranges of the layers");
    r->count = q->calibration.count;
    for (int32_t l = 0; l < r->count; l++) {
        const struct sl_layer_values *layer = &q->calibration.layers[l];
        r->layers[l] = (struct sl_quantized_report){.name = layer->name,
                                                    .dtype = SEQLSTM_DTYPE_INT8,
                                                    .backend = "",
                                                    .variant = "",
                                                    .cause = "",
                                                    .reason = "",
                                                    .before_ns = layer->forward_ns};
        if (layer->x->strange + layer->h->strange > 0)
            SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "inputs or outputs of `%s` are not finite", layer->name);
    }
    return SEQLSTM_OK;
}

static seqlstm_status quantize(struct quantizing *q, struct seqlstm_error *err)
{
    struct sl_session *session = q->session;
    struct sl_quantize_result *r = q->result;
    session->quantization.layers.count = 0; /* an earlier one is neither used nor compared */
    SEQLSTM_TRY(calibrate(q, err));
    choose_metric(q);
    SEQLSTM_TRY(choose_rule(q, err));
    SEQLSTM_TRY(widen_types(q, err));
    if (r->splits[SL_SPLIT_TEST].is_measured)
        SEQLSTM_TRY(evaluate_after(q, SL_SPLIT_TEST, err));
    for (int split = 0; split < SL_SPLIT_COUNT; split++)
        if (r->splits[split].after.count > 0 && !(r->splits[split].loss <= q->request->bound))
            r->is_too_bad = true;
    if (r->is_too_bad && !q->request->force)
        return SEQLSTM_OK;
    SEQLSTM_TRY(list_layers(q, &session->quantization.layers, err));
    session->quantization.weights = sl_session_hash_weights(session);
    SEQLSTM_TRY(sl_run_lock_take(session, err));
    SEQLSTM_TRY(sl_run_lock_check(session, err));
    r->is_written = true;
    return sl_stored_quantization_write(session, r, err);
}

seqlstm_status sl_session_quantize(struct sl_session *session, const struct sl_quantize_request *request,
                                   struct sl_quantize_result *out_result, struct seqlstm_error *err)
{
    *out_result = (struct sl_quantize_result){.metric = ""};
    struct quantizing q = {.session = session,
                           .request = request,
                           .result = out_result,
                           .arena = &session->quantization.arena,
                           .calibration = {.arena = &session->quantization.arena}};
    seqlstm_status status = quantize(&q, err);
    sl_calibration_deinit(&q.calibration);
    return status;
}
