/* SPDX-License-Identifier: Apache-2.0 */
/* How int8 is chosen for the layers of a run, as a whole: on evaluations that the test makes up, in which each layer
 * costs as much as its range is coarse, and as values are outside of it. */
#define OOM_ARENAS
#include "golden.h"

#include <math.h>

#include "base/operation/op_signature.h"
#include "model_fixture.h"
#include "ok.h"
#include "oom.h"
#include "session/evaluate/evaluate.h"
#include "session/evaluate/quantize.h"
#include "session/record/session_record.h"

enum { LAYERS_MOST = 3, X = 3, Y = 4 };

/* A recurrent layer, by its values and by what narrower numbers cost. */
struct layer {
    const char *name, *refusal; /* refusal: of int8; NULL: it is accepted */
    float x[2], h[2];
    bool hidden; /* its states are not kept, and not bounded */
    double coarse, clip,
        bfloat16; /* loss for each unit of a step of int8; where the range is hardly wider than h; in bfloat16 */
};

struct scenario {
    const char *title, *model;
    double bound;
    bool force;
    int count;
    struct layer layers[LAYERS_MOST];
    double test_factor;         /* how much worse the test split is */
    double before;              /* the loss */
    double accuracy, sensitive; /* it falls by so much for each unit of loss */
};

static const struct scenario *now;
static struct sl_buf out;

/* ---- what the session is told ----------------------------------------------------------------------------------- */

seqlstm_status __wrap_sl_session_evaluate_watched(struct sl_session *session, enum sl_split split,
                                                  const struct sl_evaluation_watch *watch,
                                                  struct sl_evaluation *evaluation, struct seqlstm_error *err);
seqlstm_status __wrap_sl_session_read_data(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_read(struct sl_exec *exec, int32_t tensor, const float **values, int64_t *elems,
                                   struct seqlstm_error *err);
const struct sl_exec_timing *__wrap_sl_exec_get_timing(const struct sl_exec *exec, int32_t *count);
const char *__wrap_sl_backend_get_id(const struct sl_backend *backend);
uint64_t __wrap_sl_session_hash_weights(const struct sl_session *session);
seqlstm_status __wrap_sl_run_lock_take(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status __wrap_sl_run_lock_check(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status __wrap_sl_run_folder_write(const char *folder, const char *name, const void *bytes, size_t count,
                                          struct seqlstm_error *err);

static const float *read_values[8]; /* of each tensor, two of them */

seqlstm_status __wrap_sl_exec_read(struct sl_exec *exec, int32_t tensor, const float **values, int64_t *elems,
                                   struct seqlstm_error *err)
{
    (void)exec, (void)err;
    *values = read_values[tensor];
    *elems = 2;
    return SEQLSTM_OK;
}

static struct sl_exec_timing timing[LAYERS_MOST + 1];

const struct sl_exec_timing *__wrap_sl_exec_get_timing(const struct sl_exec *exec, int32_t *count)
{
    (void)exec;
    *count = now->count + 1;
    return timing;
}

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend)
{
    (void)backend;
    return "a-backend";
}

seqlstm_status __wrap_sl_session_read_data(struct sl_session *session, struct seqlstm_error *err)
{
    (void)session, (void)err;
    return SEQLSTM_OK;
}

uint64_t __wrap_sl_session_hash_weights(const struct sl_session *session)
{
    (void)session;
    return 0xabc;
}

seqlstm_status __wrap_sl_run_lock_take(struct sl_session *session, struct seqlstm_error *err)
{
    (void)session, (void)err;
    sl_buf_append_text(&out, "locked\n");
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_run_lock_check(struct sl_session *session, struct seqlstm_error *err)
{
    (void)session, (void)err;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_run_folder_write(const char *folder, const char *name, const void *bytes, size_t count,
                                          struct seqlstm_error *err)
{
    (void)err;
    sl_buf_printf(&out, "writes %s/%s: ", folder, name);
    sl_buf_append(&out, bytes, count);
    return SEQLSTM_OK;
}

/* ---- evaluations ------------------------------------------------------------------------------------------------ */

static const int32_t slots[SEQLSTM_SLOT_RECURRENT_Y + 1] = {
    [SEQLSTM_SLOT_RECURRENT_X] = X, [SEQLSTM_SLOT_RECURRENT_Y] = Y};
static const int32_t hidden_slots[SEQLSTM_SLOT_RECURRENT_Y + 1] = {
    [SEQLSTM_SLOT_RECURRENT_X] = X, [SEQLSTM_SLOT_RECURRENT_Y] = -1};

static struct sl_node make_node(const struct layer *layer)
{
    struct sl_node node = {
        .name = layer->name, .slots = layer->hidden ? hidden_slots : slots, .slot_count = SEQLSTM_SLOT_RECURRENT_Y + 1};
    node.desc.recurrent = (struct seqlstm_recurrent_desc){.head.op = SEQLSTM_OP_RECURRENT, .cell = SEQLSTM_CELL_LSTM};
    if (!layer->hidden)
        for (int place = 0; place < 3; place++)
            node.desc.recurrent.activations[place][0].kind =
                place == SEQLSTM_PLACE_GATE ? SEQLSTM_ACT_SIGMOID : SEQLSTM_ACT_TANH;
    else
        node.desc.recurrent.activations[SEQLSTM_PLACE_OUTPUT][0].kind = SEQLSTM_ACT_RELU;
    return node;
}

static const struct sl_quantized_layer *find(const struct sl_quantization *quantization, const char *name)
{
    for (int32_t l = 0; l < quantization->count; l++)
        if (strcmp(quantization->layers[l].node, name) == 0)
            return &quantization->layers[l];
    return NULL;
}

/* By how much the loss grows, as a share; what it says of each layer. */
static double get_damage(const struct sl_quantization *quantization)
{
    double damage = 0;
    for (int l = 0; l < now->count; l++) {
        const struct layer *layer = &now->layers[l];
        const struct sl_quantized_layer *q = find(quantization, layer->name);
        if (!q || layer->refusal)
            continue;
        if (q->dtype != SEQLSTM_DTYPE_INT8) {
            sl_buf_printf(&out, " %s %s", layer->name, sl_dtype_name(q->dtype));
            damage += q->dtype == SEQLSTM_DTYPE_BFLOAT16 ? layer->bfloat16 : 0;
            continue;
        }
        sl_buf_printf(&out, " %s %.5g+%g", layer->name, (double)q->scale, (double)q->shift);
        const double high = (255 - (double)q->shift) / (double)q->scale;
        damage += layer->coarse / (double)q->scale + (high < 1.3 * (double)layer->h[1] ? layer->clip : 0);
    }
    return damage;
}

static seqlstm_status show_calls(const struct sl_evaluation_watch *watch, struct seqlstm_error *err)
{
    struct sl_node nodes[LAYERS_MOST + 1] = {{.name = "loss"}};
    struct sl_call calls[LAYERS_MOST + 1] = {{.node = &nodes[0], .variant = "x"}};
    struct sl_refusal refusals[LAYERS_MOST + 1] = {{0}};
    struct sl_plan plan = {.calls = calls, .call_count = now->count + 1};
    const struct sl_stage stage = {.plan = &plan};
    for (int l = 0; l < now->count; l++) {
        nodes[l + 1] = make_node(&now->layers[l]);
        nodes[l + 1].is_quantized = find(watch->quantization, now->layers[l].name) && !now->layers[l].refusal;
        calls[l + 1] = (struct sl_call){.node = &nodes[l + 1], .variant = "packed"};
        timing[l + 1].forward_ns = (nodes[l + 1].is_quantized ? 100 : 300) * (l + 1);
        if (now->layers[l].refusal) {
            refusals[l + 1] = (struct sl_refusal){
                .backend = "a-backend", .reason = now->layers[l].refusal, .option_id = SEQLSTM_OPTION_DTYPE};
            calls[l + 1].refusals = &refusals[l + 1];
            calls[l + 1].refusal_count = 1;
        }
    }
    return watch->on_end(watch->context, &stage, err);
}

seqlstm_status __wrap_sl_session_evaluate_watched(struct sl_session *session, enum sl_split split,
                                                  const struct sl_evaluation_watch *watch,
                                                  struct sl_evaluation *evaluation, struct seqlstm_error *err)
{
    (void)session;
    sl_buf_printf(&out, "%s%s:", sl_split_get_name(split), watch->metrics ? " with the metrics of training" : "");
    for (int l = 0; watch->on_call && l < now->count; l++) {
        const struct sl_node node = make_node(&now->layers[l]);
        static const float wide[2] = {-90, 90};
        read_values[X] = split == SL_SPLIT_TEST ? wide : now->layers[l].x; /* no range depends on the test data */
        read_values[Y] = split == SL_SPLIT_TEST ? wide : now->layers[l].h;
        SEQLSTM_TRY(watch->on_call(watch->context, NULL, &node, err));
    }
    const double damage = get_damage(watch->quantization) * (split == SL_SPLIT_TEST ? now->test_factor : 1);
    if (watch->on_end)
        SEQLSTM_TRY(show_calls(watch, err));
    *evaluation = (struct sl_evaluation){.values = {.count = 1}};
    evaluation->values.items[0] =
        (struct sl_metric_value){.name = sl_metric_get_name(SL_METRIC_LOSS), .value = now->before * (1 + damage)};
    if (now->accuracy > 0)
        evaluation->values.items[evaluation->values.count++] = (struct sl_metric_value){
            .name = sl_metric_get_name(SL_METRIC_ACCURACY), .value = now->accuracy - now->sensitive * damage};
    if (watch->clipped)
        *watch->clipped = (struct sl_clipped){.clipped = damage > 0, .values = 10};
    sl_buf_printf(&out, " loss %.6g\n", evaluation->values.items[0].value);
    return SEQLSTM_OK;
}

/* ---- scenarios -------------------------------------------------------------------------------------------------- */

#define MODEL(valid, test, precision, metrics)                                                                         \
    "seqlstm: 1\nname: m\nprecision: " precision "\ndata: {type: lines, train: {file: a}" valid test                   \
    ", tokenizer: whitespace}\nmodel:\n"                                                                               \
    "  - {type: embedding, dim: 2}\n  - {type: lstm, units: 3, return_sequences: true}\n  - {type: output, "           \
    "activation: softmax}\n"                                                                                           \
    "train: {epochs: 1" metrics "}\n"
#define WHOLE MODEL(", valid: {file: b}", ", test: {file: c}", "float32", "")

static const struct scenario scenarios[] = {
    {"fine at once",
     WHOLE,
     0.01,
     false,
     2,
     {{"a", NULL, {-1, 1}, {-0.5f, 0.75f}, .coarse = 0.001}, {"b", NULL, {0, 1}, {0, 1}, .coarse = 0.01}},
     1,
     2,
     0,
     0},
    {"nothing may be lost, and nothing is",
     WHOLE,
     0,
     false,
     1,
     {{"a", NULL, {-1, 1}, {-0.5f, 0.75f}, .coarse = 0}},
     1,
     2,
     0,
     0},
    {"a narrower range", WHOLE, 0.01, false, 1, {{"a", NULL, {-1, 3}, {-1, 1}, .coarse = 0.1}}, 1, 2, 0, 0},
    {"the best of all ranges",
     WHOLE,
     0.04,
     false,
     1,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 1, .clip = 5}},
     1,
     2,
     0,
     0},
    {"one layer is wider",
     WHOLE,
     0.01,
     false,
     3,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 0.1},
      {"b", NULL, {-1, 1}, {-1, 1}, .coarse = 10, .bfloat16 = 0.001},
      {"c", NULL, {-1, 1}, {-1, 1}, .coarse = 0.2}},
     1,
     2,
     0,
     0},
    {"wider and wider",
     WHOLE,
     0.01,
     false,
     2,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 9, .bfloat16 = 0.1},
      {"b", NULL, {-1, 1}, {-1, 1}, .coarse = 10, .bfloat16 = 0.2}},
     1,
     2,
     0,
     0},
    {"wider and wider, from bfloat16",
     MODEL(", valid: {file: b}", "", "bfloat16", ""),
     0.01,
     false,
     2,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 9}, {"b", NULL, {-1, 1}, {-1, 1}, .coarse = 10}},
     1,
     2,
     0,
     0},
    {"too bad for the test data", WHOLE, 0.01, false, 1, {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 0.2}}, 20, 2, 0, 0},
    {"too bad, but wanted", WHOLE, 0.01, true, 1, {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 0.2}}, 20, 2, 0, 0},
    {"without validation",
     MODEL("", "", "float32", ""),
     0.01,
     false,
     1,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 0.01}},
     1,
     2,
     0,
     0},
    {"an accuracy that falls",
     MODEL(", valid: {file: b}", "", "float32", ", validate: {metrics: [accuracy]}"),
     0.01,
     false,
     1,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 0.1, .bfloat16 = 0.0001}},
     1,
     2,
     0.5,
     40},
    {"an accuracy that stays",
     MODEL(", valid: {file: b}", "", "float32", ", validate: {metrics: [accuracy]}"),
     0.01,
     false,
     2,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 3, .bfloat16 = 0.001}, {"b", NULL, {-1, 1}, {-1, 1}, .coarse = 1}},
     1,
     2,
     0.5,
     0},
    {"one layer is refused",
     WHOLE,
     0.01,
     false,
     2,
     {{"a", "no int8 here", {-1, 1}, {-1, 1}, .coarse = 0.01}, {"b", NULL, {-1, 1}, {-1, 1}, .coarse = 0.01}},
     1,
     2,
     0,
     0},
    {"all layers are refused",
     WHOLE,
     0.01,
     false,
     2,
     {{"a", "no int8 here", {-1, 1}, {-1, 1}, .coarse = 0.01}, {"b", "nor here", {-1, 1}, {-1, 1}, .coarse = 0.01}},
     1,
     2,
     0,
     0},
    {"a layer whose states are not kept",
     WHOLE,
     0.01,
     false,
     2,
     {{"a", NULL, {-1, 1}, {-1, 1}, .hidden = true}, {"b", NULL, {-1, 1}, {-1, 1}, .coarse = 0.01}},
     1,
     2,
     0,
     0},
    {"values that are not finite",
     WHOLE,
     0.01,
     false,
     1,
     {{"a", NULL, {-1, NAN}, {-1, 1}, .coarse = 0.01}},
     1,
     2,
     0,
     0},
    {"states that are not finite",
     WHOLE,
     0.01,
     false,
     1,
     {{"a", NULL, {-1, 1}, {-INFINITY, 1}, .coarse = 0.01}},
     1,
     2,
     0,
     0},
    {"a loss that is not finite",
     WHOLE,
     0.01,
     false,
     1,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 0}},
     1,
     (double)NAN,
     0,
     0},
    {"a loss that becomes infinite",
     WHOLE,
     0.01,
     false,
     1,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = (double)INFINITY, .bfloat16 = 0.001}},
     1,
     2,
     0,
     0},
    {"a loss of zero", WHOLE, 0.01, false, 1, {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 1}}, 1, 0, 0, 0},
    {"of two layers that are alike the first is widened",
     WHOLE,
     0.01,
     false,
     2,
     {{"a", NULL, {-1, 1}, {-1, 1}, .coarse = 0.4}, {"b", NULL, {-1, 1}, {-1, 1}, .coarse = 0.4}},
     1,
     2,
     0,
     0},
    {"no recurrent layer", WHOLE, 0.01, false, 0, {{.name = NULL}}, 1, 2, 0, 0},
};

static void add_result(const struct sl_quantize_result *r)
{
    sl_buf_printf(&out, "by %s (%s is better) of %s, too bad %d, written %d\n", r->metric,
                  r->is_higher_better ? "more" : "less", sl_split_get_name(r->main), r->is_too_bad, r->is_written);
    for (int split = 0; split < SL_SPLIT_COUNT; split++)
        if (r->splits[split].is_measured)
            sl_buf_printf(&out, "%s: loss %.6g, clipped %lld of %lld, %d and %d values\n",
                          sl_split_get_name((enum sl_split)split), r->splits[split].loss,
                          (long long)r->splits[split].clipped.clipped, (long long)r->splits[split].clipped.values,
                          r->splits[split].before.count, r->splits[split].after.count);
    for (int32_t l = 0; l < r->count; l++) {
        const struct sl_quantized_report *layer = &r->layers[l];
        sl_buf_printf(&out, "%s: %s, %.6g to %.6g, accepted %d by %s:%s, %g to %g ns, cause '%s', reason '%s'\n",
                      layer->name, sl_dtype_name(layer->dtype), layer->low, layer->high, layer->accepted,
                      layer->backend, layer->variant, layer->before_ns, layer->after_ns, layer->cause, layer->reason);
    }
}

static void test_what_is_chosen(void **state)
{
    char folder[] = "runs/m";
    (void)state;
    for (size_t k = 0; k < sizeof scenarios / sizeof *scenarios; k++) {
        struct loaded l = load(scenarios[k].model);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_quantize_result result;
        if (l.status != SEQLSTM_OK)
            fail_msg("%s", sl_buf_text(&l.text));
        struct sl_session session = {.model = l.model, .folder = folder};
        const struct sl_quantize_request request = {.bound = scenarios[k].bound, .force = scenarios[k].force};
        now = &scenarios[k];
        sl_arena_init(&session.quantization.arena);
        sl_buf_printf(&out, "== %s\n", now->title);
        const seqlstm_status status = sl_session_quantize(&session, &request, &result, &err);
        if (status == SEQLSTM_OK)
            add_result(&result);
        else
            sl_buf_printf(&out, "error %d: %s\n", (int)status, err.message);
        free(result.layers);
        sl_arena_deinit(&session.quantization.arena);
        unload(&l);
    }
    golden_expect("reports/quantize.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* Whatever finds no memory, there is the whole result or none: no range is chosen from half of the values. */
static void test_choices_without_memory(void **state)
{
    char folder[] = "runs/m";
    int failures = 0;
    (void)state;
    for (size_t k = 0; k < sizeof scenarios / sizeof *scenarios; k++) {
        struct sl_buf whole = {0};
        bool arenas = false; /* they are what lacks memory */
        for (int n = 0;; n++) {
            struct loaded l = load(scenarios[k].model);
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_quantize_result result;
            struct sl_session session = {.model = l.model, .folder = folder};
            const struct sl_quantize_request request = {.bound = scenarios[k].bound, .force = scenarios[k].force};
            now = &scenarios[k];
            out = (struct sl_buf){0};
            sl_arena_init(&session.quantization.arena);
            if (n > 0 && arenas)
                arena_fail_at(n);
            else if (n > 0)
                oom_fail_anew(6);
            const seqlstm_status status = sl_session_quantize(&session, &request, &result, &err);
            const bool failed = arenas ? arena_disarm() : oom_disarm();
            if (status == SEQLSTM_OK)
                add_result(&result);
            else
                sl_buf_printf(&out, "error %d: %s\n", (int)status, err.message);
            if (n == 0)
                sl_buf_append_text(&whole, sl_buf_text(&out));
            else if (!out.failed && (status != SEQLSTM_NO_MEMORY || !failed)) /* it is the test's own text as well */
                assert_string_equal(sl_buf_text(&out), sl_buf_text(&whole));
            failures += failed;
            free(result.layers);
            sl_arena_deinit(&session.quantization.arena);
            sl_buf_deinit(&out);
            unload(&l);
            if (n > 0 && !failed && arenas)
                break;
            if (n > 0 && !failed) {
                arenas = true;
                n = 0;
            }
        }
        sl_buf_deinit(&whole);
    }
    assert_true(failures > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_chosen),
        cmocka_unit_test(test_choices_without_memory),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
