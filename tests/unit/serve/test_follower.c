/* SPDX-License-Identifier: Apache-2.0 */
/* Newer weights of one of several models: which session is opened again, which version is compared, what is told. What
 * the thread of the follower calls is the test's and writes a line each; so are its pauses, so that nothing waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "oom.h"
#include "serve/follow.h"
#include "serve/server.h"

enum { MODELS = 3, WORKERS = 2, PAUSES = 10 /* from one look to the next */ };

/* What of a model's data is compared. */
struct vocabularies {
    char words, source, classes;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int pauses; /* that the thread may end yet; -1: any number */
    bool waits;
    char log[2048];
    size_t bytes;
    uint64_t signs[MODELS];
    int older[MODELS];
    const char *reopen_fails, *open_fails;
    int worker_fails;            /* number from 1; 0: none */
    struct sl_served_model next; /* as another version is opened */
} world;

static char sessions[MODELS], reopened, context;
static struct sl_worker workers[WORKERS];
static struct vocabularies states[MODELS];
static struct sl_served_model versions[MODELS], *newest[MODELS];
static struct sl_models models = {.newest = newest};
static struct sl_serving serving;

/* ---- what the follower calls --------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    world.bytes += (size_t)vsnprintf(world.log + world.bytes, sizeof world.log - world.bytes, format, args);
    va_end(args);
}

static int find_session(const void *session)
{
    return (int)((const char *)session - sessions);
}

int __wrap_nanosleep(const struct timespec *nap, struct timespec *left);
uint64_t __wrap_sl_session_sign_weights(const struct sl_session *session);
seqlstm_status __wrap_sl_models_open(const struct sl_models *of, int slot, struct sl_session *session,
                                     struct sl_served_model **out_model, struct seqlstm_error *err);
void __wrap_sl_models_replace(struct sl_models *of, struct sl_served_model *model);
void __wrap_sl_models_put_aside(struct sl_models *of, struct sl_served_model *model);
int __wrap_sl_models_count_older(struct sl_models *of, int slot, int count);
seqlstm_status __wrap_sl_worker_add(struct sl_worker *worker, const struct sl_served_model *model,
                                    struct seqlstm_error *err);
void __wrap_sl_job_queue_wake(struct sl_job_queue *queue);
void __wrap_sl_counters_note_followed(struct sl_counters *counters);
const struct sl_vocabulary *__wrap_sl_data_state_find_vocabulary(const struct sl_data_state *state);
const struct sl_vocabulary *__wrap_sl_data_state_find_source_vocabulary(const struct sl_data_state *state);
const struct sl_vocabulary *__wrap_sl_data_state_find_classes(const struct sl_data_state *state);
bool __wrap_sl_vocabulary_is_same(const struct sl_vocabulary *a, const struct sl_vocabulary *b);

int __wrap_nanosleep(const struct timespec *nap, struct timespec *left)
{
    (void)nap;
    (void)left;
    pthread_mutex_lock(&world.lock);
    while (world.pauses == 0) {
        world.waits = true;
        pthread_cond_broadcast(&world.changed);
        pthread_cond_wait(&world.changed, &world.lock);
    }
    world.waits = false;
    world.pauses -= world.pauses > 0;
    pthread_mutex_unlock(&world.lock);
    return 0;
}

uint64_t __wrap_sl_session_sign_weights(const struct sl_session *session)
{
    return world.signs[find_session(session)];
}

static seqlstm_status reopen(void *follow_context, const struct sl_session *session, struct sl_session **out_session,
                             struct seqlstm_error *err)
{
    say("reopen %d%s\n", find_session(session), follow_context == &context ? "" : " with another context");
    if (world.reopen_fails)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "%s", world.reopen_fails);
    *out_session = (void *)&reopened;
    return SEQLSTM_OK;
}

static void tell(void *follow_context, const char *text)
{
    say("%s%s\n", text, follow_context == &context ? "" : " with another context");
}

seqlstm_status __wrap_sl_models_open(const struct sl_models *of, int slot, struct sl_session *session,
                                     struct sl_served_model **out_model, struct seqlstm_error *err)
{
    say("open %d%s\n", slot, of == &models && (char *)session == &reopened ? "" : " of others");
    if (world.open_fails)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "%s", world.open_fails);
    world.next.slot = slot;
    *out_model = &world.next;
    return SEQLSTM_OK;
}

void __wrap_sl_models_replace(struct sl_models *of, struct sl_served_model *model)
{
    say("replace %d%s\n", model->slot, of == &models && model == &world.next ? "" : " of others");
}

void __wrap_sl_models_put_aside(struct sl_models *of, struct sl_served_model *model)
{
    say("put aside %d%s\n", model->slot, of == &models && model == &world.next ? "" : " of others");
}

int __wrap_sl_models_count_older(struct sl_models *of, int slot, int count)
{
    if (of != &models || count != WORKERS)
        say("count for %d workers\n", count);
    return world.older[slot];
}

seqlstm_status __wrap_sl_worker_add(struct sl_worker *worker, const struct sl_served_model *model,
                                    struct seqlstm_error *err)
{
    const int number = (int)(worker - workers) + 1;
    say("worker %d adds %d%s\n", number, model->slot, model == &world.next ? "" : " of others");
    if (number == world.worker_fails)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "worker %d has no memory", number);
    return SEQLSTM_OK;
}

void __wrap_sl_job_queue_wake(struct sl_job_queue *queue)
{
    say("wake%s\n", queue == &serving.queue ? "" : " of others");
}

void __wrap_sl_counters_note_followed(struct sl_counters *counters)
{
    say("note%s\n", counters == &serving.counters ? "" : " of others");
}

static const struct vocabularies *get_vocabularies(const struct sl_data_state *state)
{
    return (const void *)state;
}

const struct sl_vocabulary *__wrap_sl_data_state_find_vocabulary(const struct sl_data_state *state)
{
    return (const void *)&get_vocabularies(state)->words;
}

const struct sl_vocabulary *__wrap_sl_data_state_find_source_vocabulary(const struct sl_data_state *state)
{
    return (const void *)&get_vocabularies(state)->source;
}

const struct sl_vocabulary *__wrap_sl_data_state_find_classes(const struct sl_data_state *state)
{
    return (const void *)&get_vocabularies(state)->classes;
}

bool __wrap_sl_vocabulary_is_same(const struct sl_vocabulary *a, const struct sl_vocabulary *b)
{
    return *(const char *)a == *(const char *)b;
}

/* ---- the world ----------------------------------------------------------------------------------------------- */

static const char *const names[MODELS] = {"first", "second", "third"};
static struct sl_session *const made_sessions[MODELS] = {(void *)&sessions[0], (void *)&sessions[1],
                                                         (void *)&sessions[2]};
static const struct sl_server_request made = {.sessions = made_sessions,
                                              .names = names,
                                              .count = MODELS,
                                              .workers = WORKERS,
                                              .reopen = reopen,
                                              .tell = tell,
                                              .follow_context = &context};

/* Models that all differ. */
static void reset(void)
{
    memset(&world, 0, sizeof world);
    pthread_mutex_init(&world.lock, NULL);
    pthread_cond_init(&world.changed, NULL);
    pthread_mutex_init(&models.lock, NULL);
    models.made = &made;
    for (int m = 0; m < MODELS; m++) {
        world.signs[m] = 11 * (uint64_t)(m + 1);
        states[m] = (struct vocabularies){(char)m, (char)(10 + m), (char)(20 + m)};
        versions[m] = (struct sl_served_model){.slot = m,
                                               .state = (void *)&states[m],
                                               .input_features = 2 + m,
                                               .output_features = 5 + m,
                                               .input_classes = 8 + m,
                                               .streams = m == 1,
                                               .reads_text = m == 2};
        newest[m] = &versions[m];
    }
}

static void start(struct sl_follower *follower)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_follower_init(follower, &made, &err), SEQLSTM_OK);
    assert_int_equal(sl_follower_start(follower, &models, &serving, workers, &err), SEQLSTM_OK);
}

/* The thread ends that many pauses, and what it has written since the last time is this. */
static void expect(int pauses, const char *log)
{
    pthread_mutex_lock(&world.lock);
    world.pauses = pauses;
    world.waits = false;
    pthread_cond_broadcast(&world.changed);
    while (!world.waits)
        pthread_cond_wait(&world.changed, &world.lock);
    pthread_mutex_unlock(&world.lock);
    assert_string_equal(world.log, log);
    world.bytes = 0;
    world.log[0] = '\0';
}

static void end(struct sl_follower *follower)
{
    pthread_mutex_lock(&world.lock);
    world.pauses = -1;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
    sl_follower_end(follower);
    sl_follower_end(follower); /* nothing is left to wait for */
    sl_follower_deinit(follower);
    sl_follower_deinit(follower);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

#define TAKEN(NUMBER, NAME)                                                                                            \
    "reopen " NUMBER "\nopen " NUMBER "\nworker 1 adds " NUMBER "\nworker 2 adds " NUMBER "\nreplace " NUMBER          \
    "\nnote\n" NAME ": newer weights are taken over\n"

static void newer_weights_are_taken_over_once(void **state)
{
    (void)state;
    struct sl_follower follower;
    reset();
    start(&follower);
    expect(3 * PAUSES, ""); /* what was there at the start */
    world.signs[1]++;
    world.next = versions[1];
    expect(PAUSES - 1, ""); /* the next look is not yet */
    expect(1, TAKEN("1", "second"));
    expect(2 * PAUSES, "");
    world.signs[2]--;
    world.next = versions[2];
    expect(PAUSES, TAKEN("2", "third"));
    world.signs[0] = 22;
    world.next = versions[0];
    expect(PAUSES, TAKEN("0", "first"));
    expect(PAUSES, "");
    end(&follower);
}

/* What fails is told, and tried again when there are still newer weights. */
static void what_fails_is_told_once(void **state)
{
    (void)state;
    struct sl_follower follower;
    reset();
    start(&follower);
    world.next = versions[1];
    world.signs[1]++;
    world.reopen_fails = "it is damaged";
    expect(2 * PAUSES, "reopen 1\nsecond: newer weights are not taken over: it is damaged\n");
    world.reopen_fails = NULL;
    world.open_fails = "it is too large";
    world.signs[1]++;
    expect(2 * PAUSES, "reopen 1\nopen 1\nsecond: newer weights are not taken over: it is too large\n");
    world.open_fails = NULL;
    world.worker_fails = 2;
    world.signs[1]++;
    expect(2 * PAUSES, "reopen 1\nopen 1\nworker 1 adds 1\nworker 2 adds 1\nput aside 1\n"
                       "second: newer weights are not taken over: worker 2 has no memory\n");
    world.worker_fails = 0;
    world.signs[1]++;
    expect(2 * PAUSES, TAKEN("1", "second"));
    end(&follower);
}

static void another_form_is_refused(void **state)
{
    (void)state;
    static const char why[][64] = {"its inputs or outputs are others", "its vocabulary is another",
                                   "its classes are others"};
    static const int reasons[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2};
    struct sl_follower follower;
    reset();
    start(&follower);
    for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++) {
        struct sl_served_model *m = &world.next;
        struct vocabularies changed = states[1];
        bool *const flags[] = {&m->reads_ids,   &m->reads_steps, &m->reads_text, &m->decodes,
                               &m->gives_steps, &m->streams,     &m->continues};
        char log[512];
        *m = versions[1];
        m->state = (void *)&changed;
        if (k < 7)
            *flags[k] = !*flags[k];
        m->input_features += k == 7;
        m->input_classes += k == 8;
        m->output_features += k == 9;
        m->classes = k == 10 ? (const void *)&changed : NULL;
        changed.words += k == 11;
        changed.source += k == 12;
        changed.classes += k == 13;
        world.signs[1]++;
        snprintf(log, sizeof log,
                 "reopen 1\nopen 1\nput aside 1\n"
                 "second: newer weights are not taken over: %s now; start the server again\n",
                 why[reasons[k]]);
        expect(PAUSES, log);
    }
    world.next = versions[1]; /* other limits are no other form */
    world.next.steps = world.next.sequences = 77;
    world.signs[1]++;
    expect(PAUSES, TAKEN("1", "second"));
    end(&follower);
}

/* As long as four older versions of this model are in use, nothing newer is opened; then it is. */
static void older_versions_are_four_at_most(void **state)
{
    (void)state;
    struct sl_follower follower;
    reset();
    start(&follower);
    world.older[1] = 4;
    world.signs[1]++;
    world.next = versions[1];
    expect(2 * PAUSES, "wake\nwake\n");
    world.older[1] = 3;
    expect(PAUSES, "wake\n" TAKEN("1", "second"));
    world.older[1] = 4; /* another model's do not count */
    world.signs[2]++;
    world.next = versions[2];
    expect(PAUSES, "wake\n" TAKEN("2", "third"));
    world.older[1] = 1; /* of one alone workers let go, too */
    expect(PAUSES, "wake\n");
    world.older[1] = 0;
    expect(PAUSES, "");
    end(&follower);
}

static void without_memory_nothing_is_kept(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_follower follower;
    reset();
    oom_fail_at(1);
    const seqlstm_status status = sl_follower_init(&follower, &made, &err);
    assert_true(oom_disarm());
    assert_int_equal(status, SEQLSTM_NO_MEMORY);
    assert_string_equal(err.message, "no memory for a server");
    sl_follower_end(&follower); /* it has no thread */
    sl_follower_deinit(&follower);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newer_weights_are_taken_over_once), cmocka_unit_test(what_fails_is_told_once),
        cmocka_unit_test(another_form_is_refused),           cmocka_unit_test(older_versions_are_four_at_most),
        cmocka_unit_test(without_memory_nothing_is_kept),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
