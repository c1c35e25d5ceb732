/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of the models of a server: which one a name or a path finds, who uses it, and which older ones live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "serve/models.h"
#include "serve/server.h"

enum { MODELS = 3 };

static const char *const names[MODELS] = {"ab", "a", "abc"};
static int closed;

static void close_session(void *context, struct sl_session *session)
{
    assert_ptr_equal(context, &closed);
    closed += session != NULL;
}

static const struct sl_server_request made = {
    .names = names, .count = MODELS, .close = close_session, .follow_context = &closed};

/* One that computes nothing, with a session of its own. */
static struct sl_served_model *make_version(int slot)
{
    struct sl_served_model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    *model = (struct sl_served_model){
        .name = names[slot], .slot = slot, .uses = malloc(sizeof *model->uses), .session = (void *)&closed};
    assert_non_null(model->uses);
    atomic_init(&model->uses->count, 1);
    atomic_init(&model->uses->over, false);
    return model;
}

static int open_models(void **state)
{
    struct sl_models *models = calloc(1, sizeof *models);
    assert_non_null(models);
    *models = (struct sl_models){.made = &made, .newest = calloc(MODELS, sizeof *models->newest)};
    assert_non_null(models->newest);
    assert_int_equal(pthread_mutex_init(&models->lock, NULL), 0);
    for (int m = 0; m < MODELS; m++)
        models->newest[m] = make_version(m);
    closed = 0;
    *state = models;
    return 0;
}

static int close_models(void **state)
{
    free(*state);
    return 0;
}

static long long count_uses(const struct sl_served_model *model)
{
    return atomic_load(&model->uses->count);
}

/* ---- limits of a version: those of the request, with room for padding ------------------------------------------- */

static struct sl_model plain_model;
static struct sl_predictor_limits asked;
static int64_t longest;
static const struct sl_session *opened[MODELS]; /* sessions, in their order */
static int opened_count;
static bool fails_to_open;

const struct sl_model *__wrap_sl_session_get_model(const struct sl_session *session);
const struct sl_model *__wrap_sl_session_get_model(const struct sl_session *session)
{
    assert_ptr_equal(session, &closed);
    return &plain_model;
}

int64_t __wrap_sl_session_get_longest(const struct sl_session *session);
int64_t __wrap_sl_session_get_longest(const struct sl_session *session)
{
    assert_ptr_equal(session, &closed);
    return longest;
}

seqlstm_status __wrap_sl_served_model_open(struct sl_session *session, const char *name,
                                           const struct sl_predictor_limits *limits, struct sl_served_model *out,
                                           struct seqlstm_error *err);
seqlstm_status __wrap_sl_served_model_open(struct sl_session *session, const char *name,
                                           const struct sl_predictor_limits *limits, struct sl_served_model *out,
                                           struct seqlstm_error *err)
{
    opened[opened_count++ % MODELS] = session;
    asked = *limits;
    *out = (struct sl_served_model){
        .name = name, .sequences = limits->sequences ? limits->sequences : 10, .uses = malloc(sizeof *out->uses)};
    assert_non_null(out->uses);
    atomic_init(&out->uses->count, 1);
    if (fails_to_open)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s cannot be served", name);
    return SEQLSTM_OK;
}

/* The sessions are the caller's, and stay open. */
static void each_model_is_that_of_its_session(void **state)
{
    (void)state;
    char sessions[MODELS];
    struct sl_session *const all[MODELS] = {(void *)&sessions[2], (void *)&sessions[0], (void *)&sessions[1]};
    const struct sl_server_request request = {
        .sessions = all, .names = names, .count = MODELS, .close = close_session, .follow_context = &closed};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_models models;
    closed = opened_count = 0;
    assert_int_equal(sl_models_init(&models, &request, &err), SEQLSTM_OK);
    assert_int_equal(opened_count, MODELS);
    for (int m = 0; m < MODELS; m++) {
        assert_ptr_equal(opened[m], all[m]);
        assert_string_equal(models.newest[m]->name, names[m]);
        assert_int_equal(models.newest[m]->slot, m);
        assert_null(models.newest[m]->session);
    }
    sl_models_deinit(&models);
    assert_int_equal(closed, 0);
}

/* Its session is closed all the same. */
static void a_version_that_cannot_be_opened(void **state)
{
    (void)state;
    const struct sl_models models = {.made = &made};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_served_model *model = NULL;
    closed = 0;
    fails_to_open = true;
    assert_int_equal(sl_models_open(&models, 1, (struct sl_session *)&closed, &model, &err), SEQLSTM_UNSUPPORTED);
    fails_to_open = false;
    assert_string_equal(err.message, "a cannot be served");
    assert_null(model);
    assert_int_equal(closed, 1);
}

static void limits_are_those_of_the_request(void **state)
{
    static const struct {
        enum sl_serve_batching batching;
        int64_t sequences, steps, longest; /* asked for, and of the data */
        size_t encoders;
        bool reproducible;
        int64_t most, rows, served; /* what is opened, and the sequences of a batch */
    } cases[] = {{SL_BATCHING_STEPS, 0, 0, 50, 0, false, 0, 0, 10},
                 {SL_BATCHING_STEPS, 7, 20, 50, 0, true, 7, 0, 7},
                 {SL_BATCHING_PADDED, 0, 0, 50, 0, false, 128, 8192, 64},
                 {SL_BATCHING_PADDED, 7, 0, 5000, 0, true, 14, 10000, 7},
                 {SL_BATCHING_PADDED, 7, 6000, 5000, 0, false, 14, 12000, 7},
                 {SL_BATCHING_PADDED, 7, 60, 5000, 0, false, 14, 8192, 7},
                 {SL_BATCHING_PADDED, 7, 6000, 5000, 2, false, 7, 0, 7}}; /* decoders pad within their limits */
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct sl_server_request request = {.names = names,
                                                  .count = MODELS,
                                                  .close = close_session,
                                                  .follow_context = &closed,
                                                  .batching = cases[k].batching,
                                                  .sequences = cases[k].sequences,
                                                  .steps = cases[k].steps,
                                                  .threads = 3,
                                                  .reproducible = cases[k].reproducible};
        const struct sl_models models = {.made = &request};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_served_model *model = NULL;
        plain_model.encoder_count = cases[k].encoders;
        longest = cases[k].longest;
        assert_int_equal(sl_models_open(&models, 2, (struct sl_session *)&closed, &model, &err), SEQLSTM_OK);
        assert_string_equal(model->name, "abc");
        assert_int_equal(model->slot, 2);
        assert_ptr_equal(model->session, &closed);
        assert_int_equal(model->sequences, cases[k].served);
        assert_int_equal(asked.sequences, cases[k].most);
        assert_int_equal(asked.rows, cases[k].rows);
        assert_int_equal(asked.steps, cases[k].steps);
        assert_int_equal(asked.threads, 3);
        assert_int_equal(asked.stream_steps, 32);
        assert_int_equal(asked.chunk_steps, 32);
        assert_int_equal(asked.reproducible, cases[k].reproducible);
        assert_int_equal(asked.measures, !cases[k].reproducible);
        sl_served_model_close(model);
        free(model);
    }
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static void names_and_paths_find_a_model(void **state)
{
    struct sl_models *models = *state;
    static const struct {
        const char *path;
        int found; /* -1: none */
        const char *rest;
    } paths[] = {{"/v2/models/ab", 0, ""},
                 {"/v2/models/a/infer", 1, "/infer"},
                 {"/v2/models/abc/ready", 2, "/ready"},
                 {"/v2/models/ab/versions/1/infer", 0, "/infer"},
                 {"/v2/models/a/versions/1", 1, ""},
                 {"/v2/models/a/versions/2", 1, "/versions/2"},
                 {"/v2/models/abcd", -1, NULL},
                 {"/v2/models/b", -1, NULL},
                 {"/v2/models/", -1, NULL},
                 {"/v2/model/ab", -1, NULL},
                 {"/v1/models/ab", -1, NULL},
                 {"", -1, NULL}};
    for (int m = 0; m < MODELS; m++) {
        assert_ptr_equal(sl_models_find(models, names[m]), models->newest[m]);
        assert_int_equal(count_uses(models->newest[m]), 2);
        sl_served_model_release(models->newest[m]);
    }
    assert_null(sl_models_find(models, "b"));
    assert_null(sl_models_find(models, ""));
    for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
        const char *rest = NULL;
        const struct sl_served_model *found = sl_models_find_path(models, paths[k].path, &rest);
        assert_ptr_equal(found, paths[k].found < 0 ? NULL : models->newest[paths[k].found]);
        if (found) {
            assert_string_equal(rest, paths[k].rest);
            assert_int_equal(count_uses(found), 2);
        }
        sl_served_model_release(found);
    }
    const struct sl_served_model *const *newest = sl_models_lock(models);
    for (int m = 0; m < MODELS; m++)
        assert_int_equal(count_uses(newest[m]), 1);
    sl_models_unlock(models);
    sl_models_deinit(models);
    assert_int_equal(closed, MODELS);
    sl_models_deinit(models);
    assert_int_equal(closed, MODELS);
}

/* Model 1 is replaced twice, and model 2 once. */
static void older_versions_live_as_long_as_they_are_used(void **state)
{
    struct sl_models *models = *state;
    struct sl_served_model *first = models->newest[1], *second = make_version(1), *other = models->newest[2];
    const struct sl_served_model *job = sl_models_find(models, "a");
    assert_ptr_equal(job, first);
    sl_models_replace(models, second);
    assert_ptr_equal(models->newest[1], second);
    assert_int_equal(count_uses(first), 1); /* the job's */
    sl_served_model_hold(second);
    sl_served_model_hold(second);
    sl_served_model_hold(second);
    sl_models_replace(models, make_version(1));
    sl_served_model_hold(other);
    sl_models_replace(models, make_version(2));
    assert_int_equal(count_uses(other), 1);

    assert_int_equal(sl_models_count_older(models, 0, 2), 0);
    assert_false(atomic_load(&first->uses->over) || atomic_load(&second->uses->over));
    assert_int_equal(sl_models_count_older(models, 2, 0), 1);
    assert_false(atomic_load(&other->uses->over));
    assert_int_equal(sl_models_count_older(models, 1, 2), 2);
    assert_true(atomic_load(&first->uses->over)); /* no more uses than workers */
    assert_false(atomic_load(&second->uses->over));
    assert_false(atomic_load(&other->uses->over));
    assert_int_equal(sl_models_count_older(models, 1, 3), 2);
    assert_true(atomic_load(&second->uses->over));

    sl_served_model_release(other);
    assert_int_equal(sl_models_count_older(models, 1, 3), 2); /* that of another model stays */
    assert_int_equal(closed, 0);
    sl_served_model_release(job);
    assert_int_equal(sl_models_count_older(models, 1, 3), 1);
    assert_int_equal(closed, 1);
    assert_int_equal(sl_models_count_older(models, 2, 3), 0);
    assert_int_equal(closed, 2);
    sl_models_put_aside(models, make_version(0)); /* used by nothing */
    assert_int_equal(sl_models_count_older(models, 0, 3), 0);
    assert_int_equal(closed, 3);
    sl_models_deinit(models); /* three newest, and the second of model 1 */
    assert_int_equal(closed, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_those_of_the_request),
        cmocka_unit_test(each_model_is_that_of_its_session),
        cmocka_unit_test(a_version_that_cannot_be_opened),
        cmocka_unit_test_setup_teardown(names_and_paths_find_a_model, open_models, close_models),
        cmocka_unit_test_setup_teardown(older_versions_live_as_long_as_they_are_used, open_models, close_models),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
