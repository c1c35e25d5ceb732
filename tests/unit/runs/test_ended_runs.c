/* SPDX-License-Identifier: Apache-2.0 */
/* What the folder of a run that has ended says of it, from results that the test makes up: summary.json and report.html
 * as a whole. */
#include "golden.h"
#include "model_fixture.h"

#include <jansson.h>
#include <math.h>

#include "base/value/buf.h"
#include "exec/exec.h"
#include "ok.h"
#include "oom.h"
#include "runs/metric_rows.h"
#include "scratch.h"
#include "session/record/session_record.h"
#include "session/report/examples.h"
#include "session/report/report.h"
#include "session/run_folder/plan_json.h"
#include "session/run_folder/summary.h"
#include "timeline/print.h"

/* ---- what the session holds -------------------------------------------------------------------------------------- */

enum { CALLS = 3, SAID_BYTES = 512 };

static struct sl_exec_captures captures;
static const struct sl_exec_timing computed[CALLS] = {
    {.calls = 1, .rows = 300}, {.calls = 1, .rows = 1234}, {.calls = 1, .rows = 7}};
static const struct sl_exec_timing nothing[CALLS] = {{.calls = 0}};
static const struct sl_exec_timing *timing = computed;

const struct sl_exec_timing *__wrap_sl_exec_get_timing(const struct sl_exec *exec, int32_t *out_count);
const struct sl_exec_captures *__wrap_sl_exec_get_captures(const struct sl_exec *exec);
const char *__wrap_sl_backend_get_id(const struct sl_backend *backend);
struct json_t *__wrap_sl_metric_rows_read(const char *folder);
void __wrap_sl_session_write_plan_table(const struct sl_session *session, const struct sl_plan *plan, bool brief,
                                        struct sl_buf *out);
void __wrap_sl_timeline_print_section(const struct sl_timeline *timeline, const struct sl_timeline_advices *advices,
                                      struct sl_buf *out);

const struct sl_exec_timing *__wrap_sl_exec_get_timing(const struct sl_exec *exec, int32_t *out_count)
{
    (void)exec;
    *out_count = CALLS;
    return timing;
}

const struct sl_exec_captures *__wrap_sl_exec_get_captures(const struct sl_exec *exec)
{
    (void)exec;
    return &captures;
}

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend)
{
    return (const char *)backend;
}

/* Validation is best after update 4, and as good after 7. Epochs have become longer. */
struct json_t *__wrap_sl_metric_rows_read(const char *folder)
{
    (void)folder;
    return json_loads("[{\"split\": \"valid\", \"span\": \"validation\", \"update\": 2, \"epoch\": 1, \"metrics\": "
                      "{\"loss\": 3}}, {\"split\": \"valid\", \"span\": \"validation\", \"update\": 4, \"epoch\": 2, "
                      "\"metrics\": {\"loss\": 1}}, {\"split\": \"valid\", \"span\": \"validation\", \"update\": 7, "
                      "\"epoch\": 3, \"metrics\": {\"loss\": 1}}]",
                      0, NULL);
}

void __wrap_sl_session_write_plan_table(const struct sl_session *session, const struct sl_plan *plan, bool brief,
                                        struct sl_buf *out)
{
    (void)session;
    sl_buf_printf(out, "%s plan of %d calls, <first>\n", brief ? "brief" : "whole", plan->call_count);
}

void __wrap_sl_timeline_print_section(const struct sl_timeline *timeline, const struct sl_timeline_advices *advices,
                                      struct sl_buf *out)
{
    (void)timeline, (void)advices;
    sl_buf_append_text(out, "<p>the profile</p>\n");
}

/* ---- what is written --------------------------------------------------------------------------------------------- */

static struct sl_buf out;

/* Of pages the part below the styles: their own tests look at these. */
static void add_file(const struct sl_session *session, const char *name)
{
    char path[256], *text;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s", session->folder, name);
    ok(sl_file_read(path, 1 << 20, &text, NULL, &err), &err);
    const char *shown = strstr(text, "<h1>");
    if (shown) {
        assert_non_null(strstr(text, sl_report_style));
        assert_int_equal(strstr(text, sl_timeline_style) != NULL, session->timeline != NULL);
    }
    shown = shown ? shown : text;
    for (const char *at; (at = strstr(shown, session->folder)) != NULL; shown = at + strlen(session->folder))
        sl_buf_printf(&out, "%.*sFOLDER", (int)(at - shown), shown);
    sl_buf_append_text(&out, shown);
    free(text);
}

static struct sl_node nodes[CALLS] = {{.name = "first"}, {.name = "<second>"}, {.name = "third"}};
static const char *const backends[CALLS] = {"one", "two", "one"}, *const variants[CALLS] = {"slow", "quick", "tiled"};

/* A session that has trained a model of three calls. */
struct made {
    struct loaded loaded;
    struct sl_call calls[CALLS];
    struct sl_plan plan;
    struct sl_session session;
};

static void make_session(struct made *made, enum sl_padding padding, bool profiled)
{
    static char timeline;
    memset(made, 0, sizeof *made);
    made->loaded = load_clean("seqlstm: 1\nname: shown\n"
                              "data: {type: generator, name: adding_problem, length: 5, train: {size: 8}, "
                              "batch_size: 4}\nmodel:\n  - {type: lstm, units: 3}\n"
                              "  - {type: dense, units: from_target}\ntrain: {loss: mse, epochs: 1}\n");
    for (int c = 0; c < CALLS; c++) {
        made->calls[c].node = &nodes[c];
        made->calls[c].backend = (struct sl_backend *)(uintptr_t)backends[c];
        made->calls[c].variant = variants[c];
    }
    made->plan = (struct sl_plan){.calls = made->calls, .call_count = CALLS};
    made->session = (struct sl_session){
        .model = made->loaded.model, .folder = scratch_folder, .timeline = profiled ? (void *)&timeline : NULL};
    made->session.model->data.batching.padding = padding;
    made->session.train.plan = &made->plan;
}

static void add_run(const char *title, enum sl_padding padding, bool profiled, const struct sl_run_result *result)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct made made;
    make_session(&made, padding, profiled);
    sl_buf_printf(&out, "== %s\n", title);
    ok(sl_run_folder_write_summary(&made.session, result, &err), &err);
    sl_report_write(&made.session, result);
    add_file(&made.session, "summary.json");
    add_file(&made.session, "report.html");
    unload(&made.loaded);
}

#define METRICS(...)                                                                                                   \
    {                                                                                                                  \
        .count = sizeof((const struct sl_metric_value[]){__VA_ARGS__}) / sizeof(struct sl_metric_value), .items = {    \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

static void runs_are_told_as_they_ended(void **state)
{
    (void)state;
    struct sl_examples *examples = calloc(1, sizeof *examples);
    assert_non_null(examples);
    examples->kind = SL_EXAMPLES_VALUES;
    examples->split = SL_SPLIT_TEST;
    examples->rows = examples->worst_count = 1;
    examples->worst[0] = (struct sl_example){.error = 3, .record = 6, .actual = -1, .predicted = -4};
    struct sl_run_result result = {.has_test = true,
                                   .examples = examples,
                                   .seconds = 100,
                                   .test = METRICS({"loss", 0.75, NULL}, {"mae", NAN, NULL}, {"bleu", 31.5, "BLEU|v:2"},
                                                   {"chrf", 41.25, "chrF|v:3"}),
                                   .train = {.end = SL_END_EARLY_STOPPING,
                                             .progress = {.updates = 6, .epochs = 3.5, .tokens = 1200, .seconds = 55},
                                             .made = 4,
                                             .overflows = 3,
                                             .train = METRICS({"loss", 0.5, NULL}, {"mae", 0.25, NULL}),
                                             .has_valid = true,
                                             .valid = METRICS({"loss", 1, NULL}, {"mae", 0.125, NULL},
                                                              {"r2", -INFINITY, NULL}, {"bleu", 30, "BLEU|v:1"}),
                                             .restored = true,
                                             .best_update = 2,
                                             .best_epochs = 1.25,
                                             .spent_seconds = 40,
                                             .validation_seconds = 9.5,
                                             .wait_seconds = 8,
                                             .wait_share = 0.2}};
    captures = (struct sl_exec_captures){.captured = 5,
                                         .launched = 50,
                                         .uncaptured = 2,
                                         .ahead = 40,
                                         .gaps = 12,
                                         .idle_ns = 2.5e9,
                                         .refusal = "no memory"};
    add_run("stopped early, the best weights are back", SL_PADDING_NONE, true, &result);
    struct sl_run_result again = {.seconds = 2, .train = {.train = METRICS({"loss", 5, NULL})}};
    again.train.progress = (struct sl_progress){.updates = 6, .epochs = 3, .tokens = 1200, .seconds = 55};
    captures = (struct sl_exec_captures){.captured = 0};
    timing = nothing;
    add_run("evaluated again: what was said of the training stays", SL_PADDING_NONE, false, &again);
    timing = computed;
    result.examples = NULL;
    result.has_test = result.train.restored = false;
    result.train.end = SL_END_EPOCHS;
    result.train.made = result.train.progress.updates;
    result.train.wait_seconds = 60; /* more than was spent */
    result.seconds = 49;            /* less than its parts */
    add_run("no test, batches are padded", SL_PADDING_LONGEST, false, &result);
    result.train.has_valid = false;
    result.train.end = SL_END_DIVERGED;
    snprintf(result.train.reason, sizeof result.train.reason, "the loss is \"infinite\"");
    result.train.train.items[0].value = INFINITY;
    result.train.made = 2; /* of six */
    add_run("no validation, diverged after a resume with padding", SL_PADDING_BATCH, false, &result);
    result.train = (struct sl_train_result){.end = SL_END_UPDATES,
                                            .progress = {.updates = 1, .epochs = 1, .tokens = 1, .seconds = 1},
                                            .made = 1,
                                            .train = METRICS({"loss", 0.5, NULL})};
    add_run("one update of one step", SL_PADDING_NONE, false, &result);
    assert_false(out.failed);
    golden_expect("reports/ended_runs.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
    free(examples);
}

static void note(void *context, enum sl_log_level level, const char *message)
{
    (void)level;
    snprintf(context, SAID_BYTES, "%s", message);
}

/* Where memory runs out, there is no report, and that is said: none has lost a part. */
static void a_report_is_whole_or_not_there(void **state)
{
    static char said[SAID_BYTES];
    const struct sl_log log = {.write = note, .context = said, .level = SL_LOG_INFO};
    const struct sl_run_result result = {
        .has_test = true,
        .seconds = 100,
        .test = METRICS({"loss", 0.75, NULL}),
        .train = {.progress = {.updates = 6, .epochs = 3, .tokens = 1200, .seconds = 55},
                  .made = 6,
                  .train = METRICS({"loss", 0.5, NULL}),
                  .spent_seconds = 40}};
    struct made made;
    char path[256], *whole = NULL;
    int failures = 0;
    (void)state;
    make_session(&made, SL_PADDING_NONE, true);
    made.session.options.log = &log;
    snprintf(path, sizeof path, "%s/report.html", scratch_folder);
    for (int n = 0;; n++) {
        char *text = NULL;
        said[0] = '\0';
        remove(path);
        if (n > 0)
            oom_fail_at(n);
        sl_report_write(&made.session, &result);
        const bool failed = oom_disarm();
        const bool there = sl_file_exists(path);
        if (there)
            assert_int_equal(sl_file_read(path, 1 << 20, &text, NULL, NULL), SEQLSTM_OK);
        if (n == 0) {
            whole = text;
            assert_non_null(whole);
            continue;
        }
        if (there ? strcmp(text, whole) != 0 : strncmp(said, "no report.html: ", 16) != 0)
            fail_msg("without allocation %d: %s", n, there ? "a part is lost" : said);
        free(text);
        failures += failed;
        if (!failed)
            break;
    }
    assert_true(failures > 50);
    free(whole);
    unload(&made.loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_told_as_they_ended),
        cmocka_unit_test(a_report_is_whole_or_not_there),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
