/* SPDX-License-Identifier: Apache-2.0 */
/* A side of a comparison in this process, on the reference: how much of a step it gives back, that a user can stop it,
 * and that it says so wherever memory runs out and keeps nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/live.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"
#include "written_model.h"

#include "compare/sample/sample.h"
#include "compare/side/local_side.h"
#include "compare/sample/phase_graph.h"
#include "session/prepare/training.h"

static struct sl_interrupt interrupt;

static struct sl_session *open_session(const char *layers)
{
    char text[1024];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(text, sizeof text,
             "seqlstm: 1\nseed: 3\ndata: {type: csv, train: {file: t.csv}, group: s, inputs: [a, b], targets: [y], "
             "batch_size: 3}\nmodel: %s\ntrain: {loss: mse, optimizer: sgd, epochs: 1}\nbackends: [reference]\n",
             layers);
    struct sl_session *session = open_written_model(text);
    ok(sl_session_read_data(session, &err), &err);
    return session;
}

struct tried {
    struct sl_sample sample;
    struct sl_graph *graph;
    struct sl_pool *pool;
    struct sl_arena arena;
    struct sl_backend_spec spec;
    struct sl_compare_side *side;
    struct sl_compare_side_result result; /* of the first step */
    double sizes;                         /* of its values */
    double ns[32];
};

static seqlstm_status judge(struct tried *t, struct seqlstm_error *err)
{
    struct sl_compare_side_verdict *verdicts =
        SL_ARENA_ARRAY(&t->arena, struct sl_compare_side_verdict, (size_t)sl_unit_count(t->graph));
    if (!verdicts)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory");
    SEQLSTM_TRY(t->side->table->judge(t->side, verdicts, err));
    for (int32_t u = 0; u < t->graph->node_count; u++)
        assert_false(verdicts[u].failed); /* no lack of memory makes results wrong */
    return SEQLSTM_OK;
}

/* All that a comparison does with a side. */
static seqlstm_status try_side(struct sl_session *session, enum sl_phase phase, struct tried *t,
                               struct seqlstm_error *err)
{
    struct sl_compare_side_facts facts;
    struct sl_compare_side_choice choices[16] = {{0}};
    int64_t ns = 0;
    SEQLSTM_TRY(sl_backend_spec_parse(&t->arena, "reference", &t->spec, err));
    SEQLSTM_TRY(sl_sample_create(sl_session_find_train_data(session), 3, 3, 1, &t->sample, err));
    SEQLSTM_TRY(sl_phase_graph_create(session, phase, &t->sample.envelope, &t->graph, err));
    SEQLSTM_TRY(sl_pool_create(1, &t->pool, err));
    const struct sl_local_side_request request = {.session = session,
                                                  .own = &t->spec,
                                                  .other = &t->spec,
                                                  .graph = t->graph,
                                                  .sample = &t->sample,
                                                  .pool = t->pool,
                                                  .interrupt = &interrupt};
    SEQLSTM_TRY(sl_local_side_open(&request, &t->side, err));
    const struct sl_compare_side_table *table = t->side->table;
    SEQLSTM_TRY(table->get_facts(t->side, &t->arena, &facts, err));
    assert_true(t->graph->node_count <= 16);
    for (int32_t u = 0; u < t->graph->node_count; u++) {
        choices[u].unit = u;
        snprintf(choices[u].id, sizeof choices[u].id, "reference");
        snprintf(choices[u].variant, sizeof choices[u].variant, "%s", facts.units[u].variant);
    }
    SEQLSTM_TRY(table->plan(t->side, choices, t->graph->node_count, err));
    SEQLSTM_TRY(judge(t, err));
    for (int round = 0; round < 2; round++) {
        SEQLSTM_TRY(table->start(t->side, 0, &t->result, &ns, err));
        t->sizes = 0;
        for (int64_t i = 0; i < t->result.elems; i++)
            t->sizes += fabs((double)t->result.values[i]);
        SEQLSTM_TRY(table->take_turn(t->side, 1, 2, t->ns, err));
        SEQLSTM_TRY(table->stop(t->side, err));
    }
    return SEQLSTM_OK;
}

static void leave(struct tried *t)
{
    if (t->side)
        t->side->table->close(t->side);
    sl_pool_destroy(t->pool);
    sl_graph_destroy(t->graph);
    sl_sample_deinit(&t->sample);
    sl_arena_deinit(&t->arena);
    *t = (struct tried){.side = NULL};
}

static const char *const models[] = {
    "[{type: lstm, units: 2}, {type: dense, units: from_target}]",
    "[{type: lstm, units: 2, return_sequences: true}, {type: dense, units: from_target}]"};

/* Sequences of 4, 2 and 1 steps. */
static int make_table(void **state)
{
    if (scratch_make(state) != 0 || chdir(scratch_folder) != 0)
        return -1;
    FILE *file = fopen("t.csv", "w");
    if (!file || fputs("s,a,b,y\n1,1,2,1\n1,2,1,1\n1,0,1,1\n1,1,1,1\n2,3,1,2\n2,1,0,2\n3,2,2,0\n", file) < 0)
        return -1;
    return fclose(file);
}

static void a_side_gives_back_all_of_a_step(void **state)
{
    (void)state;
    static const int64_t outputs[] = {3, 7}, parameters = 4 * 2 * (2 + 2) + 4 * 2 + 2 + 1;
    for (int m = 0; m < 2; m++)
        for (int p = 0; p < 2; p++) {
            struct sl_session *session = open_session(models[m]);
            struct tried t = {.side = NULL};
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            ok(try_side(session, p ? SL_PHASE_PREDICT : SL_PHASE_TRAIN, &t, &err), &err);
            assert_true(p ? t.result.elems == outputs[m] : t.result.elems >= parameters);
            assert_true(t.sizes > 0 && t.ns[0] > 0 && (p ? t.result.loss == 0 : t.result.loss > 0));
            leave(&t);
            sl_session_close(session);
        }
}

static void a_user_stops_a_side(void **state)
{
    (void)state;
    struct sl_session *session = open_session(models[0]);
    struct tried t = {.side = NULL};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    atomic_store(&interrupt.stop, 2);
    assert_int_equal(try_side(session, SL_PHASE_TRAIN, &t, &err), SEQLSTM_CANCELLED);
    assert_string_equal(err.message, "interrupted");
    leave(&t);
    atomic_store(&interrupt.stop, 0);
    sl_session_close(session);
}

static void a_side_without_memory_says_so(void **state)
{
    (void)state;
    struct sl_session *session = open_session(models[0]);
    struct tried t = {.side = NULL};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(try_side(session, SL_PHASE_TRAIN, &t, &err), &err);
    const double sizes = t.sizes;
    leave(&t);
    const long before = live_count();
    for (int n = 1;; n++) {
        err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        oom_fail_at(n);
        const seqlstm_status status = try_side(session, SL_PHASE_TRAIN, &t, &err);
        const bool failed = oom_disarm(), whole = status == SEQLSTM_OK && t.sizes == sizes;
        leave(&t);
        if (live_count() != before)
            fail_msg("%ld blocks are left after '%s'", live_count() - before, err.message);
        if (!failed)
            break;
        if (status != SEQLSTM_NO_MEMORY && !whole)
            fail_msg("status %d, '%s'", (int)status, err.message);
    }
    sl_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_side_gives_back_all_of_a_step),
        cmocka_unit_test(a_user_stops_a_side),
        cmocka_unit_test(a_side_without_memory_says_so),
    };
    return cmocka_run_group_tests(tests, make_table, scratch_remove);
}
