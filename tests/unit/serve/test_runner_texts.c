/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a runner: which are written beside each other, what becomes of those that are refused, and what is noted of
 * a batch. The decoder is the test's: a text takes as many tokens as it has letters, and its answer is itself. */
#include "oom.h"
#include "runner_fixture.h"

#include "predict/batches.h"
#include "predict/joined_texts.h"

enum { ROOM = 3, LETTERS_MOST = 20 };

/* Texts that are being written. One that begins with `!` is refused, `?` ends without numbers, `#` finds no memory. */
static struct {
    void *tag;
    char text[LETTERS_MOST + 1];
    int left;
} live[ROOM];
static int live_count, dropped;

seqlstm_status __wrap_sl_context_provide_continuous(struct sl_context *context, struct seqlstm_error *err);
seqlstm_status __wrap_sl_context_provide_decoder(struct sl_context *context, struct sl_decoder **out,
                                                 struct seqlstm_error *err);
seqlstm_status __wrap_sl_context_join_texts(struct sl_context *context, const char *const *texts, const size_t *bytes,
                                            void *const *tags, int64_t count, bool *out_joined,
                                            struct seqlstm_error *err);
seqlstm_status __wrap_sl_context_step_texts(struct sl_context *context, sl_joined_write_fn *write, void *write_context,
                                            struct seqlstm_error *err);
int64_t __wrap_sl_context_count_texts(const struct sl_context *context);
void __wrap_sl_context_drop_text(struct sl_context *context, const void *tag);
seqlstm_status __wrap_sl_context_predict_texts(struct sl_context *context, const char *const *texts,
                                               const size_t *bytes, int64_t count, sl_prediction_fn *write,
                                               void *write_context, struct seqlstm_error *err);

seqlstm_status __wrap_sl_context_provide_continuous(struct sl_context *context, struct seqlstm_error *err)
{
    (void)context, (void)err;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_context_provide_decoder(struct sl_context *context, struct sl_decoder **out,
                                                 struct seqlstm_error *err)
{
    (void)context, (void)out, (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status refuse(const char *text, size_t bytes, struct seqlstm_error *err)
{
    if (*text == '!')
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "no %.*s", (int)bytes, text);
    if (*text == '#')
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %.*s", (int)bytes, text);
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_context_join_texts(struct sl_context *context, const char *const *texts, const size_t *bytes,
                                            void *const *tags, int64_t count, bool *out_joined,
                                            struct seqlstm_error *err)
{
    (void)context;
    memset(out_joined, 0, (size_t)count * sizeof *out_joined);
    for (int64_t k = 0; k < count; k++)
        SEQLSTM_TRY(refuse(texts[k], bytes[k], err));
    for (int64_t k = 0; k < count && live_count < ROOM; k++, live_count++) {
        out_joined[k] = true;
        live[live_count].tag = tags[k];
        live[live_count].left = (int)bytes[k];
        snprintf(live[live_count].text, sizeof live->text, "%.*s", (int)bytes[k], texts[k]);
    }
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_context_step_texts(struct sl_context *context, sl_joined_write_fn *write, void *write_context,
                                            struct seqlstm_error *err)
{
    int kept = 0, count = live_count;
    (void)context;
    for (int k = 0; k < count; k++) {
        const struct sl_joined_answer answer = {live[k].text, strlen(live[k].text), 0.5 * (double)strlen(live[k].text)};
        if (--live[k].left == 0)
            SEQLSTM_TRY(write(write_context, live[k].tag, live[k].text[0] == '?' ? NULL : &answer, err));
        else
            live[kept++] = live[k];
    }
    live_count = kept;
    return SEQLSTM_OK;
}

int64_t __wrap_sl_context_count_texts(const struct sl_context *context)
{
    (void)context;
    return live_count;
}

void __wrap_sl_context_drop_text(struct sl_context *context, const void *tag)
{
    int kept = 0;
    (void)context;
    for (int k = 0; k < live_count; k++)
        if (live[k].tag != tag)
            live[kept++] = live[k];
    dropped += live_count - kept;
    live_count = kept;
}

seqlstm_status __wrap_sl_context_predict_texts(struct sl_context *context, const char *const *texts,
                                               const size_t *bytes, int64_t count, sl_prediction_fn *write,
                                               void *write_context, struct seqlstm_error *err)
{
    (void)context;
    assert_int_equal(count, 1);
    SEQLSTM_TRY(refuse(texts[0], bytes[0], err));
    tell("%.*s\n", (int)bytes[0], texts[0]);
    const struct sl_prediction_text both[] = {{.text = texts[0], .bytes = bytes[0], .score = 0.5 * (double)bytes[0]},
                                              {.text = "worse", .bytes = 5, .score = -9}};
    const struct sl_prediction prediction = {.texts = both, .text_count = 2};
    return write(write_context, &prediction, err);
}

/* ---- jobs ---------------------------------------------------------------------------------------------------- */

static char answers[400]; /* of all jobs, in the order in which they end */

static const struct sl_served_model decoder = {.decodes = true, .reads_text = true};

/* Texts with spaces between them. */
static struct sl_job *make_texts(struct scene *scene, struct seqlstm_http_request *request, const char *texts)
{
    char rest[100], *next = rest;
    snprintf(rest, sizeof rest, "%s", texts);
    *request = (struct seqlstm_http_request){.count = 0};
    for (const char *c = texts; *c; c++)
        request->count += c == texts || *c == ' ';
    struct sl_job *job = make_job(scene, request);
    free(job->x);
    job->x = NULL;
    job->texts = calloc((size_t)request->count, sizeof *job->texts);
    job->text_bytes = calloc((size_t)request->count, sizeof *job->text_bytes);
    job->written = calloc((size_t)request->count, sizeof *job->written);
    assert_true(job->texts && job->text_bytes && job->written && sl_job_prepare_failure(job));
    for (int k = 0; k < request->count; k++) {
        job->texts[k] = strdup(strsep(&next, " "));
        job->text_bytes[k] = strlen(job->texts[k]);
    }
    return job;
}

static void keep_answer(const struct sl_job *job)
{
    for (int64_t k = 0; k < job->count && job->written; k++) {
        const size_t at = strlen(answers);
        snprintf(answers + at, sizeof answers - at, "%.*s=%g%c", (int)job->written[k].bytes, job->written[k].text,
                 (double)job->y[k], k + 1 < job->count ? ' ' : '\n');
    }
}

static void start(struct scene *scene, bool reproducible)
{
    begin(scene, decoder, SL_BATCHING_STEPS, reproducible);
    on_answer = keep_answer;
    answers[0] = '\0';
    live_count = dropped = 0;
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

/* As many as there is room for, in their order; a batch ends with the first that ends, or after four tokens. It counts
 * those that are being written, and the tokens of each. */
static void texts_are_written_beside_each_other(void **state)
{
    (void)state;
    struct seqlstm_http_request first, second;
    struct scene scene;
    start(&scene, false);
    sl_runner_add(&scene.runner, make_texts(&scene, &first, "aaaa b cccccccc"));
    sl_runner_add(&scene.runner, make_texts(&scene, &second, "dd"));
    while (sl_runner_is_busy(&scene.runner))
        sl_runner_run(&scene.runner);
    assert_string_equal(answers, "dd=1\naaaa=2 b=0.5 cccccccc=4\n");
    expect_history(&scene, "3x1=3 3x2=6 2x1=2 1x4=4 ");
    assert_true(scene.serving.counters.width.sum == 9);
    assert_int_equal(scene.serving.counters.sequences, 4);
    end(&scene);
}

/* What the model cannot read fails with its reason, and its job with it; the texts of others are written. */
static void a_refused_text_spoils_no_other(void **state)
{
    (void)state;
    for (int each = 0; each < 2; each++) {
        struct seqlstm_http_request all[3];
        struct scene scene;
        start(&scene, each);
        sl_runner_add(&scene.runner, make_texts(&scene, &all[0], "aaaaaaa !b"));
        sl_runner_add(&scene.runner, make_texts(&scene, &all[1], "cc"));
        sl_runner_add(&scene.runner, make_texts(&scene, &all[2], "!d"));
        while (sl_runner_is_busy(&scene.runner))
            sl_runner_run(&scene.runner);
        assert_true(all[0].status == 400 && all[1].status == 200 && all[2].status == 400);
        assert_string_equal(all[0].message, "no !b");
        assert_string_equal(all[2].message, "no !d");
        assert_string_equal(answers, "cc=1\n");
        assert_true(live_count == 0 && dropped == (each ? 0 : 1));
        end(&scene);
    }
}

/* Without memory all that were to be written fail. */
static void without_memory_all_fail(void **state)
{
    (void)state;
    struct seqlstm_http_request all[2];
    struct scene scene;
    start(&scene, false);
    sl_runner_add(&scene.runner, make_texts(&scene, &all[0], "aaa"));
    sl_runner_add(&scene.runner, make_texts(&scene, &all[1], "#b"));
    sl_runner_run(&scene.runner);
    assert_false(sl_runner_is_busy(&scene.runner));
    for (int j = 0; j < 2; j++) {
        assert_int_equal(all[j].status, 503);
        assert_string_equal(all[j].message, "no memory for #b");
    }
    end(&scene);
}

/* Where probabilities are no numbers, that text fails alone. */
static void numbers_that_are_none(void **state)
{
    (void)state;
    struct seqlstm_http_request all[2];
    struct scene scene;
    start(&scene, false);
    sl_runner_add(&scene.runner, make_texts(&scene, &all[0], "?a"));
    sl_runner_add(&scene.runner, make_texts(&scene, &all[1], "bb ccc"));
    while (sl_runner_is_busy(&scene.runner))
        sl_runner_run(&scene.runner);
    assert_true(all[0].status == 500 && all[1].status == 200);
    assert_string_equal(all[0].message, "the decoder's probabilities are not numbers");
    assert_string_equal(answers, "bb=1 ccc=1.5\n");
    end(&scene);
}

/* Reproducible texts are written one after the other, whole; the best answer counts. */
static void reproducible_texts_are_written_alone(void **state)
{
    (void)state;
    struct seqlstm_http_request first, second;
    struct scene scene;
    start(&scene, true);
    sl_runner_add(&scene.runner, make_texts(&scene, &first, "aaaa b"));
    sl_runner_add(&scene.runner, make_texts(&scene, &second, "ccc"));
    sl_runner_run(&scene.runner);
    expect_story("aaaa\nb\nccc\nanswer of 2\nanswer of 1\n");
    assert_string_equal(answers, "aaaa=2 b=0.5\nccc=1.5\n");
    assert_int_equal(scene.history.events[0].sequences, 3);
    assert_true(scene.serving.counters.width.sum == 3);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_written_beside_each_other),
        cmocka_unit_test(a_refused_text_spoils_no_other),
        cmocka_unit_test(without_memory_all_fail),
        cmocka_unit_test(numbers_that_are_none),
        cmocka_unit_test(reproducible_texts_are_written_alone),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
