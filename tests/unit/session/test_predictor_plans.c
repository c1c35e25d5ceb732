/* SPDX-License-Identifier: Apache-2.0 */
/* For what the model is planned as a predictor is opened: the batches of each use, on how many threads, with which of
 * them timed; limits that are refused; and that nothing stays behind where something fails. The plans are made up. */
#include "model_fixture.h"

#include "decode/decoder.h"
#include "decode/sampler.h"
#include "ok.h"
#include "oom.h"
#include "session/predict/predictor.h"
#include "session/prepare/decoding.h"
#include "session/prepare/pair.h"
#include "session/prepare/sampling.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"

enum { PLANS_MOST = 16, KIB = 1024 };

/* A plan that was asked for. */
struct asked {
    struct sl_graph_request graph;
    struct sl_data_facts facts;
    int32_t threads, choices, profiles; /* -1: none are given */
    int64_t widths[8], rows, sources;   /* of the profiles; steps of all of them, and of their sources */
    double weights[8];
};

static struct asked asked[PLANS_MOST];
static int asked_count, fails_at, live; /* fails_at: the plan that cannot be made, from 1 */
static struct sl_data_facts facts;
static int64_t packed[PLANS_MOST]; /* bytes of each plan */
static struct sl_predictor_request made;
static int made_count;

seqlstm_status __wrap_sl_session_prepare_stage(struct sl_session *session, const struct sl_graph_request *request,
                                               const struct sl_profiles *profiles, const struct sl_choices *choices,
                                               bool with_exec, struct sl_stage *stage, struct seqlstm_error *err);
void __wrap_sl_plan_destroy(struct sl_plan *plan);
void __wrap_sl_graph_destroy(struct sl_graph *graph);
seqlstm_status __wrap_sl_session_require_trained(const struct sl_session *session, struct seqlstm_error *err);
seqlstm_status __wrap_sl_session_load_backends(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status __wrap_sl_session_open_params(struct sl_session *session, const struct sl_graph *graph,
                                             struct seqlstm_error *err);
seqlstm_status __wrap_sl_session_load_weights(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status __wrap_sl_params_pull(struct sl_params *params, struct seqlstm_error *err);
uint64_t __wrap_sl_session_hash_weights(const struct sl_session *session);
struct sl_never __wrap_sl_session_find_never(const struct sl_session *session);
const struct sl_data_facts *__wrap_sl_data_state_get_facts(const struct sl_data_state *state);
seqlstm_status __wrap_sl_batcher_sample(const struct sl_batcher *batcher, struct sl_profiles *out,
                                        struct seqlstm_error *err);
struct sl_envelope __wrap_sl_batcher_envelope(const struct sl_batcher *batcher);
seqlstm_status __wrap_sl_predictor_create(const struct sl_predictor_request *request,
                                          struct sl_predictor **out_predictor, struct seqlstm_error *err);

seqlstm_status __wrap_sl_session_prepare_stage(struct sl_session *session, const struct sl_graph_request *request,
                                               const struct sl_profiles *profiles, const struct sl_choices *choices,
                                               bool with_exec, struct sl_stage *stage, struct seqlstm_error *err)
{
    assert_true(asked_count < PLANS_MOST && !with_exec);
    struct asked *a = &asked[asked_count++];
    *a = (struct asked){.graph = *request,
                        .facts = *request->facts,
                        .threads = session->planned_pool ? sl_pool_get_members(session->planned_pool) : 0,
                        .choices = choices ? choices->count : -1,
                        .profiles = profiles ? profiles->count : -1};
    for (int32_t p = 0; p < a->profiles; p++) {
        const struct sl_profile *profile = &profiles->items[p];
        a->widths[p] = profile->sequences;
        a->weights[p] = profile->weight;
        for (int64_t k = 0; k < a->widths[p]; k++) {
            a->rows += profile->lengths[k];
            a->sources += profile->source_lengths ? profile->source_lengths[k] : 0;
        }
    }
    if (asked_count == fails_at)
        return seqlstm_error_set(err, SEQLSTM_UNSUPPORTED, "a.c", 1, "no backend");
    stage->graph = calloc(1, sizeof *stage->graph);
    stage->plan = calloc(1, sizeof *stage->plan);
    live += (stage->graph != NULL) + (stage->plan != NULL);
    if (!stage->graph || !stage->plan)
        return seqlstm_error_set(err, SEQLSTM_NO_MEMORY, "a.c", 1, "no memory");
    stage->graph->facts = *request->facts;
    stage->plan->packed_bytes = packed[asked_count - 1];
    return SEQLSTM_OK;
}

void __wrap_sl_plan_destroy(struct sl_plan *plan)
{
    live -= plan != NULL;
    free(plan);
}

void __wrap_sl_graph_destroy(struct sl_graph *graph)
{
    live -= graph != NULL;
    free(graph);
}

seqlstm_status __wrap_sl_session_require_trained(const struct sl_session *session, struct seqlstm_error *err)
{
    (void)session, (void)err;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_session_load_backends(struct sl_session *session, struct seqlstm_error *err)
{
    (void)session, (void)err;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_session_open_params(struct sl_session *session, const struct sl_graph *graph,
                                             struct seqlstm_error *err)
{
    (void)session, (void)err;
    assert_non_null(graph);
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_session_load_weights(struct sl_session *session, struct seqlstm_error *err)
{
    (void)session, (void)err;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_params_pull(struct sl_params *params, struct seqlstm_error *err)
{
    (void)params, (void)err;
    return SEQLSTM_OK;
}

uint64_t __wrap_sl_session_hash_weights(const struct sl_session *session)
{
    (void)session;
    return 0xabc;
}

struct sl_never __wrap_sl_session_find_never(const struct sl_session *session)
{
    (void)session;
    return (struct sl_never){0};
}

const struct sl_data_facts *__wrap_sl_data_state_get_facts(const struct sl_data_state *state)
{
    (void)state;
    return &facts;
}

/* Four sequences and two, of which the second is a third as frequent. */
seqlstm_status __wrap_sl_batcher_sample(const struct sl_batcher *batcher, struct sl_profiles *out,
                                        struct seqlstm_error *err)
{
    (void)batcher;
    SEQLSTM_TRY(sl_profiles_add(out, 4, (const int32_t[]){3, 2, 2, 2}, (const int32_t[]){7, 5, 4, 3}, 0.75, err));
    return sl_profiles_add(out, 2, (const int32_t[]){1, 1}, (const int32_t[]){3, 2}, 0.25, err);
}

struct sl_envelope __wrap_sl_batcher_envelope(const struct sl_batcher *batcher)
{
    (void)batcher;
    return (struct sl_envelope){.sequences = 4, .steps = 3, .rows = 9, .source_steps = 7, .source_rows = 19};
}

/* Takes the plans over, also where it fails. */
seqlstm_status __wrap_sl_predictor_create(const struct sl_predictor_request *request,
                                          struct sl_predictor **out_predictor, struct seqlstm_error *err)
{
    (void)err;
    made = *request;
    made_count++;
    *out_predictor = (void *)&made;
    for (int use = 0; use < SL_USE_COUNT; use++) {
        __wrap_sl_plan_destroy(request->plans[use].plan);
        __wrap_sl_graph_destroy(request->plans[use].graph);
    }
    return SEQLSTM_OK;
}

/* ---- models ----------------------------------------------------------------------------------------------------- */

#define HEAD "seqlstm: 1\nname: m\n"
static const char streamable[] = HEAD "data: {type: generator, name: adding_problem, length: 5, train: {size: 8}}\n"
                                      "model:\n  - {name: low, type: lstm, units: 3, return_sequences: true}\n"
                                      "  - {name: high, type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"
                                      "train: {loss: mse, epochs: 1}\n";
static const char whole_only[] = HEAD "data: {type: generator, name: adding_problem, length: 5, train: {size: 8}}\n"
                                      "model:\n  - {type: lstm, units: 3, direction: bidirectional}\n"
                                      "  - {type: dense, units: from_target}\ntrain: {loss: mse, epochs: 1}\n";
static const char pairs[] = HEAD "data:\n  train: {type: generator, name: addition, digits: 3, size: 60, seed: 5}\n"
                                 "model:\n  encoder:\n    - {type: embedding, dim: 2}\n    - {type: lstm, units: 3}\n"
                                 "  decoder:\n    - {type: embedding, dim: 2}\n"
                                 "    - {type: lstm, units: 3, return_sequences: true}\n"
                                 "    - {type: output, activation: softmax}\n"
                                 "train: {optimizer: adam, epochs: 1}\ndecode: {beam: 3}\n";

struct world {
    struct loaded loaded;
    struct sl_session session;
};

static void make_world(struct world *w, const char *text, int64_t longest)
{
    w->loaded = load_clean(text);
    w->session = (struct sl_session){.model = w->loaded.model, .state = (void *)&facts};
    facts =
        (struct sl_data_facts){.has_steps = true, .has_weight = true, .longest = longest, .source_longest = longest};
    asked_count = fails_at = live = made_count = 0;
    memset(packed, 0, sizeof packed);
}

static seqlstm_status open(struct world *w, const struct sl_predictor_limits *limits, struct seqlstm_error *err)
{
    struct sl_predictor *predictor = NULL;
    asked_count = 0;
    const seqlstm_status status = sl_session_open_predictor(&w->session, limits, &predictor, err);
    assert_true((predictor != NULL) == (status == SEQLSTM_OK));
    assert_true(live == 0 && w->session.planned_pool == NULL);
    return status;
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static void test_limits_that_are_refused(void **state)
{
    static const struct {
        struct sl_predictor_limits limits;
        const char *told; /* NULL: they are fine */
    } rows[] = {
        {{.sequences = -1}, "the predictor's limit `sequences` is -1, expected 1 to 2147483647"},
        {{.sequences = INT64_C(1) << 31}, "the predictor's limit `sequences` is 2147483648, expected 1 to 2147483647"},
        {{.steps = -7}, "the predictor's limit `steps` is -7, expected 1 to 2147483647"},
        {{.steps = INT64_C(1) << 31}, "the predictor's limit `steps` is 2147483648, expected 1 to 2147483647"},
        {{.rows = -1}, "the predictor's limit `rows` is -1, expected 1 to 9223372036854775807"},
        {{.streams = -1}, "the predictor's limit `streams` is -1, expected 1 to 2147483647"},
        {{.streams = INT64_C(1) << 31}, "the predictor's limit `streams` is 2147483648, expected 1 to 2147483647"},
        {{.stream_steps = -1}, "the predictor's limit `stream_steps` is -1, expected 1 to 2147483647"},
        {{.threads = -1}, "the predictor's limit `threads` is -1, expected 1 to 1024"},
        {{.threads = 1025}, "the predictor's limit `threads` is 1025, expected 1 to 1024"},
        {{.threads = 3}, NULL},
        {{.threads = 1024}, NULL},
        {{.sequences = INT32_MAX}, NULL},
        {{.steps = INT32_MAX}, NULL},
        {{.rows = INT64_MAX}, NULL},
        {{.streams = INT32_MAX}, NULL},
        {{.stream_steps = INT32_MAX}, NULL},
        {{.steps = 10, .rows = 9}, "the predictor's limit `rows` is 9, which is less than `steps`, 10"},
        {{.rows = 255}, "the predictor's limit `rows` is 255, which is less than `steps`, 256"},
        {{.rows = 256}, NULL},
        {{.layer = "lo"}, "the model has no layer `lo`; config.yaml in the run's folder names its layers"},
        {{.layer = "low"}, NULL},
        {{.layer = "low", .embeds = true}, "the predictor's `layer` is `low` and its flags ask for another"},
        {{.embeds = true}, NULL},
    };
    struct world w;
    (void)state;
    make_world(&w, streamable, 5);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = open(&w, &rows[k].limits, &err);
        const bool layer = rows[k].told && strncmp(rows[k].told, "the model", 9) == 0;
        assert_int_equal(status, !rows[k].told ? SEQLSTM_OK
                                 : layer       ? SEQLSTM_INVALID_CONFIG
                                               : SEQLSTM_INVALID_ARGUMENT);
        if (rows[k].told) {
            assert_string_equal(err.message, rows[k].told);
            assert_int_equal(asked_count, 0);
            continue;
        }
        assert_int_equal(made.threads, rows[k].limits.threads ? rows[k].limits.threads : 1);
        const char *output = rows[k].limits.layer ? "low" : rows[k].limits.embeds ? "high" : NULL;
        assert_true((made.output != NULL) == (output != NULL));
        for (int a = 0; a < asked_count; a++)
            assert_ptr_equal(asked[a].graph.output_layer, made.output);
        if (output)
            assert_string_equal(made.output->name, output);
    }
    unload(&w.loaded);
}

/* What is said reaches the predictor. */
static void test_what_is_passed_on(void **state)
{
    struct world w;
    (void)state;
    make_world(&w, streamable, 5);
    for (int bits = 0; bits < 4; bits++) {
        const struct sl_predictor_limits limits = {.reproducible = bits & 1, .shares_lock = bits & 2, .sequences = 7};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        ok(open(&w, &limits, &err), &err);
        assert_true(made.reproducible == (bits & 1) && made.shares_lock == (bits >> 1));
        assert_true(made.warms && made.pool == NULL && made.weights == 0xabc && !made.attention);
        assert_true(made.sequences == 7 && made.rows == 4096 && made.model == w.loaded.model);
    }
    unload(&w.loaded);
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

struct batch {
    int64_t sequences, steps, rows;
    bool stream, carries;
    const char *widths; /* that are timed; NULL: none */
    int64_t timed_rows;
};

#define PLAIN(sequences, steps, rows)                                                                                  \
    {                                                                                                                  \
        sequences, steps, rows, false, false, NULL, 0                                                                  \
    }
#define TIMED(sequences, steps, rows, widths, timed)                                                                   \
    {                                                                                                                  \
        sequences, steps, rows, false, false, widths, timed                                                            \
    }
#define STREAM(sequences, steps, widths, timed)                                                                        \
    {                                                                                                                  \
        sequences, steps, (sequences) * (steps), true, true, widths, timed                                             \
    }

/* Whole sequences are never timed, and of the others the widths that the use may have, with their first steps. */
static void test_batches_of_each_use(void **state)
{
    static const struct {
        const char *model;
        int64_t longest;
        struct sl_predictor_limits limits;
        struct batch batches[7];
    } rows[] = {
        {streamable,
         5,
         {.measures = true},
         {PLAIN(64, 256, 4096), TIMED(1, 256, 256, "1 ", 16), TIMED(8, 256, 2048, "8 4 2 ", 14 * 16),
          STREAM(1, 1, "1 ", 1)}},
        {streamable,
         5000,
         {.measures = true, .streams = 6, .stream_steps = 4, .chunk_steps = 9, .sequences = 20},
         {PLAIN(20, 5000, 5000),
          TIMED(1, 5000, 5000, "1 ", 16),
          TIMED(8, 5000, 5000, "8 4 2 ", 14 * 16),
          STREAM(1, 4, "1 ", 4),
          STREAM(6, 1, "6 ", 6),
          {20, 9, 180, false, true, "20 ", 180}}},
        {streamable, 5, {.sequences = 8, .steps = 3}, {PLAIN(8, 3, 24), PLAIN(1, 3, 3), STREAM(1, 1, NULL, 0)}},
        {streamable, 5, {.sequences = 1, .steps = 3, .rows = 3}, {PLAIN(1, 3, 3), STREAM(1, 1, NULL, 0)}},
        {streamable,
         5,
         {.sequences = 9, .steps = 3, .rows = 20},
         {PLAIN(9, 3, 20), PLAIN(1, 3, 3), PLAIN(8, 3, 20), STREAM(1, 1, NULL, 0)}},
        {whole_only, 300, {.streams = 4}, {PLAIN(64, 300, 4096), PLAIN(1, 300, 300), PLAIN(8, 300, 2400)}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct world w;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        int count = 0;
        make_world(&w, rows[k].model, rows[k].longest);
        ok(open(&w, &rows[k].limits, &err), &err);
        for (; rows[k].batches[count].sequences > 0; count++) {
            const struct batch *want = &rows[k].batches[count];
            const struct asked *got = &asked[count];
            const struct sl_envelope *e = &got->facts.envelope;
            char widths[80] = "";
            for (int32_t p = 0; p < got->profiles; p++)
                snprintf(widths + strlen(widths), sizeof widths - strlen(widths), "%lld ", (long long)got->widths[p]);
            if (e->sequences != want->sequences || e->steps != want->steps || e->rows != want->rows ||
                e->stream != want->stream || strcmp(widths, want->widths ? want->widths : "") != 0)
                fail_msg("row %zu, plan %d: %lld of %lld, %lld rows, stream %d, timed: %s", k, count,
                         (long long)e->sequences, (long long)e->steps, (long long)e->rows, e->stream, widths);
            assert_int_equal(got->graph.carry_state, want->carries);
            assert_int_equal(got->rows, want->timed_rows);
            assert_int_equal(got->profiles > 0, want->widths != NULL);
            assert_int_equal(got->choices, want->widths ? 0 : -1); /* those of training do not count */
            assert_true(got->graph.phase == SL_PHASE_PREDICT && got->graph.need_output && !got->facts.has_weight);
            assert_int_equal(got->threads, 1);
        }
        assert_int_equal(asked_count, count);
        unload(&w.loaded);
    }
}

/* What training reads in parts counts as a part, or as the default for rows if that is more. */
static void test_the_longest_sequence(void **state)
{
    static const struct {
        enum sl_batch_unit unit;
        int64_t bptt, longest, expected;
    } rows[] = {
        {SL_UNIT_SEQUENCE, 0, 100000, 100000}, {SL_UNIT_SEQUENCE, 20, 100000, 100000},
        {SL_UNIT_STREAM, 20, 100000, 4096},    {SL_UNIT_STREAM, 4097, 100000, 4097},
        {SL_UNIT_STREAM, 5000, 4999, 4999},    {SL_UNIT_STREAM, 20, 4096, 4096},
        {SL_UNIT_STREAM, 20, 30, 30},
    };
    struct world w;
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        make_world(&w, streamable, rows[k].longest);
        struct sl_model model = *w.session.model;
        model.data.batching.unit = rows[k].unit;
        model.data.batching.bptt = rows[k].bptt;
        w.session.model = &model;
        const int64_t got = sl_session_get_longest(&w.session);
        if (got != rows[k].expected)
            fail_msg("row %zu: %lld", k, (long long)got);
        unload(&w.loaded);
    }
    make_world(&w, pairs, 0);
    facts.longest = 9;
    facts.source_longest = 5000;
    assert_int_equal(sl_session_get_longest(&w.session), 5000);
    w.session.state = NULL; /* nothing is known */
    assert_int_equal(sl_session_get_longest(&w.session), 0);
    unload(&w.loaded);
}

/* An encoder reads whole sources, and a decoder makes one step of all hypotheses. */
static void test_an_encoder_and_a_decoder(void **state)
{
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_predictor_limits limits = {.sequences = 5, .steps = 7, .streams = 3, .measures = true};
    (void)state;
    make_world(&w, pairs, 5);
    ok(open(&w, &limits, &err), &err);
    assert_int_equal(asked_count, 2);
    const struct sl_envelope *encoder = &asked[0].facts.envelope, *step = &asked[1].facts.envelope;
    assert_true(asked[0].graph.part == SL_PART_ENCODER && asked[1].graph.part == SL_PART_DECODER);
    assert_true(encoder->sequences == 5 && encoder->source_steps == 7 && encoder->source_rows == 35);
    assert_true(step->sequences == 15 && step->rows == 15 && step->steps == 1 && step->source_rows == 35);
    for (int a = 0; a < 2; a++)
        assert_true(asked[a].profiles == -1 && !asked[a].facts.has_weight && !asked[a].graph.attention_weights);
    assert_true(made.plans[SL_USE_ENCODER].plan && made.plans[SL_USE_DECODER].plan && !made.plans[SL_USE_WHOLE].plan);
    unload(&w.loaded);
}

/* Batches are told to the encoder as they are, and to the decoder as one step of all hypotheses. */
static void test_batches_of_a_decoder(void **state)
{
    struct world w;
    struct sl_stage_pair pair = {.own_bytes = 0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static struct sl_plan_choice item;
    const struct sl_choices choices = {.items = &item, .count = 1};
    struct sl_pair_request request = {
        .batches = (void *)&item, .places = 3, .choices = &choices, .attention = true, .exact = true};
    (void)state;
    make_world(&w, pairs, 5);
    for (int n = 0;; n++) {
        asked_count = 0;
        if (n > 0)
            oom_fail_at(n);
        const seqlstm_status status = sl_stage_pair_plan(&w.session, &request, &pair, &err);
        const bool failed = oom_disarm();
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        sl_stage_pair_deinit(&pair);
        assert_int_equal(live, 0);
        if (n > 0 && !failed)
            break;
    }
    assert_int_equal(asked_count, 2);
    const struct asked *encoder = &asked[0], *step = &asked[1];
    assert_true(encoder->profiles == 2 && encoder->widths[0] == 4 && encoder->widths[1] == 2);
    assert_true(encoder->rows == 9 + 2 && encoder->sources == 19 + 5 && encoder->facts.envelope.sequences == 4);
    assert_true(step->profiles == 2 && step->widths[0] == 12 && step->widths[1] == 6);
    assert_true(step->rows == 18 && step->sources == 18);
    assert_true(step->weights[0] == 0.75 && step->weights[1] == 0.25 && step->facts.envelope.sequences == 12);
    assert_true(step->choices == 1 && encoder->choices == 1);
    assert_true(step->graph.attention_weights && !encoder->graph.attention_weights);
    request.exact = false; /* then they are not known */
    ok(sl_stage_pair_plan(&w.session, &request, &pair, &err), &err);
    assert_true(asked[2].profiles == -1 && asked[3].profiles == -1 && asked[3].facts.envelope.rows == 12);
    sl_stage_pair_deinit(&pair);
    unload(&w.loaded);
}

/* What writes texts and what samples tokens of a training: their own choices of a stored plan, places for a beam or
 * for one, and the memory of what drives them. */
static void test_decoding_and_sampling(void **state)
{
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static struct sl_plan_choice items[5];
    struct sl_decoding decoding = {.attention = false};
    struct sl_sampling sampling = {.sampler = NULL};
    (void)state;
    make_world(&w, pairs, 5);
    struct sl_session *session = &w.session;
    struct sl_model model = *session->model;
    session->model = &model;
    session->valid_batcher = (void *)&items[0];
    session->train_batcher = (void *)&items[1];
    session->stored.phases = (struct sl_choices){.items = items, .count = 1};
    session->stored.decoding = (struct sl_choices){.items = items, .count = 2};
    session->stored.sampling = (struct sl_choices){.items = items, .count = 4};
    for (int again = 0; again < 2; again++) { /* earlier plans are freed */
        asked_count = 0;
        model.train.teacher_forcing.kind = SL_TEACHER_CONSTANT;
        ok(sl_decoding_plan(session, session->valid_batcher, again, !again, &decoding, &err), &err);
        ok(sl_sampling_plan(session, &sampling, &err), &err);
        assert_int_equal(asked_count, 4);
        assert_int_equal(live, 8);
        for (int a = 0; a < 4; a++) {
            assert_int_equal(asked[a].choices, a < 2 ? 2 : 4); /* those of the decoding bind in a validation */
            assert_int_equal(asked[a].profiles, again && a < 2 ? -1 : 2);
            assert_int_equal(asked[a].facts.envelope.sequences, a == 1 ? 4 * 3 : 4);
            assert_int_equal(asked[a].graph.attention_weights, again && a == 1);
        }
        assert_int_equal(decoding.attention, again);
        assert_int_equal(decoding.pair.own_bytes, sl_decoder_count_bytes(decoding.pair.step.graph, &model.decode, 7));
        assert_int_equal(sampling.pair.own_bytes, sl_sampler_count_bytes(sampling.pair.step.graph));
    }
    ok(sl_decoding_plan(session, session->train_batcher, false, false, &decoding, &err), &err);
    assert_int_equal(asked[5].choices, 3); /* others may take what the plan of the training has */
    model.train.teacher_forcing.kind = SL_TEACHER_ALWAYS;
    ok(sl_sampling_plan(session, &sampling, &err), &err);
    assert_int_equal(asked_count, 6); /* nothing is sampled */
    assert_true(live == 4 && sampling.pair.step.plan == NULL && sampling.pair.own_bytes == 0);
    sl_decoding_deinit(&decoding);
    sl_sampling_deinit(&sampling);
    unload(&w.loaded);
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

/* One sequence with few weights is planned for one thread; with many it is planned anew for all. */
static void test_threads_of_each_use(void **state)
{
    static const struct {
        int64_t alone, stream; /* bytes of their plans */
        int32_t threads[7];
    } rows[] = {
        {704 * KIB, 1536 * KIB, {3, 1, 3, 1}},
        {704 * KIB + 1, 1536 * KIB, {3, 1, 3, 3, 1}},
        {704 * KIB, 1536 * KIB + 1, {3, 1, 3, 1, 3}},
        {9999 * KIB, 9999 * KIB, {3, 1, 3, 3, 1, 3}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct world w;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        int count = 0;
        make_world(&w, streamable, 5);
        while (rows[k].threads[count])
            count++;
        packed[1] = rows[k].alone;
        packed[count > 4 && rows[k].threads[2] == 3 && rows[k].threads[3] == 3 ? 4 : 3] = rows[k].stream;
        ok(open(&w, &(struct sl_predictor_limits){.threads = 3}, &err), &err);
        assert_int_equal(asked_count, count);
        for (int a = 0; a < count; a++)
            assert_int_equal(asked[a].threads, rows[k].threads[a]);
        unload(&w.loaded);
    }
}

/* Whichever plan cannot be made, and whatever finds no memory, nothing of the others stays. */
static void test_plans_that_fail(void **state)
{
    static const char *const models[] = {streamable, pairs};
    const struct sl_predictor_limits limits = {.threads = 2, .streams = 2, .chunk_steps = 3, .measures = true};
    (void)state;
    for (int m = 0; m < 2; m++) {
        struct world w;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        make_world(&w, models[m], 5);
        packed[1] = 9999 * KIB; /* it is planned twice */
        for (fails_at = 1;; fails_at++) {
            const seqlstm_status status = open(&w, &limits, &err);
            if (asked_count < fails_at)
                break;
            assert_true(status == SEQLSTM_UNSUPPORTED && asked_count == fails_at);
            assert_string_equal(err.message, "no backend");
        }
        assert_int_equal(fails_at, m == 0 ? 8 : 3);
        fails_at = made_count = 0;
        for (int n = 1;; n++) {
            oom_fail_at(n);
            const seqlstm_status status = open(&w, &limits, &err);
            if (!oom_disarm())
                break;
            assert_int_equal(status, SEQLSTM_NO_MEMORY);
        }
        assert_int_equal(made_count, 1);
        unload(&w.loaded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_that_are_refused), cmocka_unit_test(test_what_is_passed_on),
        cmocka_unit_test(test_batches_of_each_use),     cmocka_unit_test(test_an_encoder_and_a_decoder),
        cmocka_unit_test(test_batches_of_a_decoder),    cmocka_unit_test(test_threads_of_each_use),
        cmocka_unit_test(test_plans_that_fail),         cmocka_unit_test(test_decoding_and_sampling),
        cmocka_unit_test(test_the_longest_sequence),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
