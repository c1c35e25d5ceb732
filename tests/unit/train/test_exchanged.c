/* SPDX-License-Identifier: Apache-2.0 */
/* Where gradients are added, which of them a stage has, and which of them ranks exchange as factors or as rows of
 * embeddings, worked out by hand for a tagger of 200 words, 40 numbers each, 48 hidden units and 150 tags. */
#include "fake_collectives.h"
#include "model_fixture.h"
#include "ok.h"
#include "oom.h"

#include "exec/params/params.h"
#include "exec/params/params_mirror.h"
#include "train/exchanged.h"
#include "train/trainer/stages.h"

enum { WORDS = 200, TAGS = 150, PARAMS_MOST = 8 };

struct tagger {
    struct loaded loaded;
    struct sl_graph *graph;
    struct sl_params *params;
};

static void open_tagger(struct tagger *tagger, const char *layers)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_data_facts facts = {
        .input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = WORDS},
        .target = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = TAGS},
        .has_steps = true,
        .envelope = {.sequences = 4, .steps = 6, .rows = 19}};
    char text[1024];
    snprintf(text, sizeof text,
             "seqlstm: 1\ndata: {type: conll, train: {file: a}, label: 2}\nmodel: [%s]\n"
             "train: {loss: cross_entropy, epochs: 1}\n",
             layers);
    tagger->loaded = load(text);
    if (tagger->loaded.model == NULL)
        fail_msg("%s", sl_buf_text(&tagger->loaded.text));
    const struct sl_graph_request request = {.model = tagger->loaded.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    ok(sl_graph_create(&request, &tagger->graph, &err), &err);
    ok(sl_params_create(tagger->graph, true, 0, NULL, &tagger->params, &err), &err);
}

static void close_tagger(struct tagger *tagger)
{
    sl_params_destroy(tagger->params);
    sl_graph_destroy(tagger->graph);
    unload(&tagger->loaded);
}

#define PLAIN                                                                                                          \
    "{type: embedding, name: words, dim: 40}, {type: lstm, name: l, units: 48, return_sequences: true}, {type: "       \
    "output, name: o, activation: softmax}"
#define FROZEN                                                                                                         \
    "{type: embedding, name: words, dim: 40, trainable: false}, {type: lstm, name: l, units: 48, return_sequences: "   \
    "true}, {type: output, name: o, activation: softmax}"

/* Elements: words [200, 40], l.w_x [192, 40], l.w_h [192, 48], o.w [150, 48]; biases are never listed. Factors pay
 * where twice their elements are fewer: of rank 16, 2 * 16 * (192 + 40) = 7424 < 7680, but 2 * 16 * (150 + 48) = 6336 <
 * 7200; of rank 17, 7888 > 7680, 8160 < 9216 and 6732 < 7200; of rank 19 alone 9120 < 9216 pays. */
static const struct {
    const char *layers;
    int64_t rank, lookups;
    const char *listed; /* factors in brackets */
} cases[] = {
    {PLAIN, 0, 10, "words.w"},
    {PLAIN, 16, 10, "words.w [l.l0.forward.w_x] [l.l0.forward.w_h] [o.w]"},
    {PLAIN, 17, 10, "words.w [l.l0.forward.w_h] [o.w]"},
    {PLAIN, 19, 10, "words.w [l.l0.forward.w_h]"},
    {PLAIN, 20, 10, "words.w"},
    {PLAIN, 2, 48, "words.w [l.l0.forward.w_x] [l.l0.forward.w_h] [o.w]"}, /* 48 * 40 = 4 * 2 * (200 + 40) */
    {PLAIN, 2, 49, "[words.w] [l.l0.forward.w_x] [l.l0.forward.w_h] [o.w]"},
    {PLAIN, 0, 100000, "words.w"},
    {FROZEN, 2, 100000, "[l.l0.forward.w_x] [l.l0.forward.w_h] [o.w]"},
    {FROZEN, 0, 1, ""},
};

static void matrices_of_which_less_is_exchanged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tagger tagger;
        struct sl_bundle_matrix matrices[PARAMS_MOST];
        struct sl_buf got = {0};
        const struct sl_exchanged_request request = {.compress_rank = cases[i].rank, .lookups = cases[i].lookups};
        open_tagger(&tagger, cases[i].layers);
        assert_true(tagger.graph->param_count <= PARAMS_MOST);
        const int32_t count = sl_exchanged_find_matrices(tagger.graph, tagger.params, &request, matrices);
        for (int32_t k = 0; k < count; k++) {
            const struct sl_param_view *view = tagger.params->views;
            int32_t p = 0;
            while (view->offset_elems != matrices[k].offset)
                view++, p++;
            assert_int_equal(matrices[k].rows, view->rows);
            assert_int_equal(matrices[k].columns, view->columns);
            assert_int_equal(matrices[k].compressed, sl_exchanged_is_compressed(tagger.graph, p, &request));
            sl_buf_printf(&got, matrices[k].compressed ? "%s[%s]" : "%s%s", k ? " " : "", view->name);
        }
        if (strcmp(sl_buf_text(&got), cases[i].listed) != 0)
            fail_msg("rank %d, %d look-ups: `%s`, expected `%s`", (int)cases[i].rank, (int)cases[i].lookups,
                     sl_buf_text(&got), cases[i].listed);
        sl_buf_deinit(&got);
        close_tagger(&tagger);
    }
}

static void lookups_of_an_update(void **state)
{
    (void)state;
    const struct sl_envelope batch = {.sequences = 3, .steps = 9, .rows = 17, .source_steps = 5, .source_rows = 11};
    assert_int_equal(sl_exchanged_count_lookups(&batch, 0), 28);
    assert_int_equal(sl_exchanged_count_lookups(&batch, 1), 28);
    assert_int_equal(sl_exchanged_count_lookups(&batch, 4), 112);
}

/* ---- memory of the collectives ---- */

static struct {
    uint64_t bytes; /* what was asked for last; 0: nothing */
    void *memory;
} asked;

static seqlstm_status lend(struct seqlstm_connection *connection, uint64_t bytes, int64_t timeout_ns, void **out_memory,
                           struct seqlstm_error *err)
{
    (void)connection, (void)timeout_ns;
    asked.bytes = bytes;
    if (posix_memalign(&asked.memory, SEQLSTM_ALIGNMENT, (size_t)bytes) != 0)
        return seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a test");
    memset(asked.memory, 0, (size_t)bytes);
    *out_memory = asked.memory;
    return SEQLSTM_OK;
}

static seqlstm_status lend_nothing(struct seqlstm_connection *connection, uint64_t bytes, int64_t timeout_ns,
                                   void **out_memory, struct seqlstm_error *err)
{
    (void)connection, (void)timeout_ns, (void)out_memory;
    asked.bytes = bytes;
    return seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "the shared memory is full");
}

/* All gradients and one number more lie in memory of the collectives where they have any. Those of devices do not. */
static void gradients_lie_where_they_are_added(void **state)
{
    static const struct {
        seqlstm_status (*allocate)(struct seqlstm_connection *connection, uint64_t bytes, int64_t timeout_ns,
                                   void **out_memory, struct seqlstm_error *err);
        bool has_mirrors, asks, lends;
        seqlstm_status status;
    } rows[] = {{lend, false, true, true, SEQLSTM_OK},
                {NULL, false, false, false, SEQLSTM_OK},
                {lend_nothing, false, true, false, SEQLSTM_NO_MEMORY},
                {lend, true, false, false, SEQLSTM_OK}};
    static struct sl_mirrors mirrors;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_connection *connection = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct tagger tagger;
        bool lends = true;
        fake_reset();
        fake.table.allocate = rows[i].allocate;
        asked.bytes = 0;
        asked.memory = NULL;
        ok(fake_connect(0, 2, &connection, &err), &err);
        open_tagger(&tagger, PLAIN);
        struct sl_params *params = tagger.params;
        const float *before = params->grads;
        if (rows[i].has_mirrors)
            params->mirrors = &mirrors;
        assert_int_equal(sl_exchanged_place_grads(params, connection, &lends, &err), rows[i].status);
        params->mirrors = NULL;
        assert_int_equal(lends, rows[i].lends);
        assert_int_equal(asked.bytes, rows[i].asks ? ((uint64_t)params->elems + 1) * sizeof(float) : 0);
        assert_ptr_equal(params->grads, rows[i].lends ? asked.memory : before);
        if (rows[i].status != SEQLSTM_OK)
            assert_string_equal(err.message, "the shared memory is full");
        close_tagger(&tagger);
        sl_connection_close(connection);
        free(asked.memory);
    }
}

/* ---- the gradients of a stage ---- */

#define FROZEN_BETWEEN                                                                                                 \
    "{type: embedding, name: words, dim: 40}, {type: lstm, name: l, units: 48, return_sequences: true, trainable: "    \
    "false}, {type: output, name: o, activation: softmax}"

/* Of the parameters that its stage owns, those that are trained, one after the other; the others stay as they are.
 * Without stages, and with a single one, they are where they were. */
static void a_stage_takes_what_it_trains(void **state)
{
    static const char *const layers[] = {PLAIN, FROZEN, FROZEN_BETWEEN};
    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int32_t stages = 1; stages <= 3; stages++)
            for (int32_t stage = 0; stage < stages; stage++) {
                struct tagger tagger;
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                int32_t owns[PARAMS_MOST];
                bool shared[PARAMS_MOST] = {false};
                const struct sl_owners owners = {.params = owns, .shared = shared};
                struct sl_ranks ranks = {.stages = stages, .stage = stage};
                open_tagger(&tagger, layers[i]);
                struct sl_params *params = tagger.params;
                struct sl_trainer trainer = {.request = {.params = params, .ranks = &ranks}};
                assert_int_equal(sl_trainer_count_own(&trainer), params->trainable_elems);
                assert_ptr_equal(sl_trainer_take_own(&trainer), params->grads);
                for (int32_t v = 0; v < params->view_count; v++)
                    owns[v] = (2 * v + 1) % stages;
                for (int64_t k = 0; k < params->elems; k++)
                    params->grads[k] = (float)k + 1;
                trainer.request.owners = &owners;
                ok(sl_trainer_open_stages(&trainer, &err), &err);
                float *own = sl_trainer_take_own(&trainer);
                int64_t count = 0;
                for (int32_t v = 0; v < params->view_count; v++)
                    for (int64_t k = 0; k < params->views[v].elems; k++)
                        if (owns[v] == stage && params->views[v].trainable) {
                            const float expected = (float)(params->views[v].offset_elems + k) + 1;
                            assert_true(stages == 1 || own[count] == expected);
                            if (stages > 1)
                                own[count] = -expected;
                            count++;
                        }
                assert_int_equal(sl_trainer_count_own(&trainer), stages > 1 ? count : params->trainable_elems);
                assert_int_equal(own == params->grads, stages == 1);
                sl_trainer_put_own(&trainer);
                for (int32_t v = 0; v < params->view_count; v++)
                    for (int64_t k = 0; k < params->views[v].elems; k++) {
                        const int64_t at = params->views[v].offset_elems + k;
                        const bool changed = stages > 1 && owns[v] == stage && params->views[v].trainable;
                        assert_true(params->grads[at] == (changed ? -1 : 1) * ((float)at + 1));
                    }
                assert_int_equal(sl_trainer_is_last_stage(&trainer), stage == stages - 1);
                sl_trainer_close_stages(&trainer);
                assert_null(trainer.stages);
                close_tagger(&tagger);
            }
}

/* Gradients are added on the device where there is one, whose memory the collectives reach, and where nothing has to be
 * done to the gradients on the way. */
static void where_gradients_are_added(void **state)
{
    (void)state;
    static const struct {
        const char *domain; /* of the device; that of the collectives is "host" */
        int devices;
        enum sl_reduce_kind how;
        enum sl_reduce_dtype dtype;
        int64_t compress_rank;
        bool stays;
    } rows[] = {
        {"host", 1, SL_REDUCE_ALL, SL_REDUCE_FLOAT32, 0, true},
        {"host:1", 1, SL_REDUCE_ALL, SL_REDUCE_FLOAT32, 0, true},
        {"hos", 1, SL_REDUCE_ALL, SL_REDUCE_FLOAT32, 0, false},
        {"cuda:1", 1, SL_REDUCE_ALL, SL_REDUCE_FLOAT32, 0, false},
        {"host", 0, SL_REDUCE_ALL, SL_REDUCE_FLOAT32, 0, false},
        {"host", 2, SL_REDUCE_ALL, SL_REDUCE_FLOAT32, 0, false},
        {"host", 1, SL_REDUCE_CENTRAL, SL_REDUCE_FLOAT32, 0, false},
        {"host", 1, SL_REDUCE_ALL, SL_REDUCE_BFLOAT16, 0, false},
        {"host", 1, SL_REDUCE_ALL, SL_REDUCE_FLOAT32, 1, false},
    };
    struct sl_connection *connection = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_mirrors *mirrors = calloc(1, sizeof *mirrors);
    fake_reset();
    ok(fake_connect(0, 2, &connection, &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sl_reduce_config reduce = {.how = rows[i].how, .dtype = rows[i].dtype};
        const struct sl_ranks ranks = {
            .connection = connection, .ranks = 2, .reduce = &reduce, .compress_rank = rows[i].compress_rank};
        const struct sl_params params = {.mirrors = rows[i].devices ? mirrors : NULL};
        mirrors->count = rows[i].devices;
        snprintf(mirrors->mirrors[0].domain.name, sizeof mirrors->mirrors[0].domain.name, "%s", rows[i].domain);
        snprintf(mirrors->mirrors[1].domain.name, sizeof mirrors->mirrors[1].domain.name, "host");
        if (sl_exchanged_stays_on_device(&params, &ranks) != rows[i].stays)
            fail_msg("row %zu", i);
    }
    sl_connection_close(connection);
    free(mirrors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_which_less_is_exchanged), cmocka_unit_test(lookups_of_an_update),
        cmocka_unit_test(where_gradients_are_added),           cmocka_unit_test(gradients_lie_where_they_are_added),
        cmocka_unit_test(a_stage_takes_what_it_trains),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
