/* SPDX-License-Identifier: Apache-2.0 */
/* Run folders of every kind, damaged ones too: what is read of them, found by name, key and condition, compared, drawn
 * and removed. */
#include "golden.h"

#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "base/memory/arena.h"
#include "base/system/file_lock.h"
#include "base/value/buf.h"
#include "model/load/entries.h"
#include "ok.h"
#include "runs/catalogue.h"
#include "runs/comparison.h"
#include "runs/metric_rows.h"
#include "runs/page.h"
#include "runs/removal.h"
#include "runs/run_value.h"
#include "scratch.h"

#define ROW(split, span, update, loss)                                                                                 \
    "{\"split\": \"" split "\", \"span\": \"" span "\", \"update\": " update                                           \
    ", \"epoch\": 0.5, \"seconds\": 2.25, \"metrics\": {\"loss\": " loss "}}\n"

static const char first_config[] = "seed: 3\nname: \"a b\"\nmodel:\n  - name: reader\n    type: lstm\n    units: 8\n"
                                   "  - name: out\n    units: 1e1\ntrain:\n  epochs: 2\n  lr: 0.001\n";
static const char second_config[] = "seed: 3\nname: 'a b'\nmodel:\n  - name: reader\n    type: gru\n    units: 16\n"
                                    "  - name: out\n    units: 10\ntrain:\n  epochs: 2\n  lr: 1e-3\n  clip: 5\n";

/* NAME/FILE and what is in it; "": a folder. */
static const struct {
    const char *path, *text;
} files[] = {
    {"all/010/config.yaml", first_config},
    {"all/010/summary.json",
     "{\"end\": \"epochs\", \"updates\": 1234567, \"epochs\": 2, \"seconds\": 61.5, \"metrics\": "
     "{\"train\": {\"loss\": 0.5}, "
     "\"test\": {\"loss\": 0.75, \"mae\": 1e-7}, \"valid\": {\"loss\": 123456.789}}}"},
    {"all/010/metrics.jsonl",
     ROW("train", "report", "2", "3.5") ROW("train", "epoch", "6", "2.5") ROW("valid", "epoch", "6", "2.75")
         ROW("train", "report", "8", "9.5") ROW("valid", "update", "9", "2.25") ROW("train", "epoch", "12", "1.5")
             ROW("valid", "epoch", "12", "NaN") "{\"split\": \"train\n"},
    {"all/9/config.yaml", second_config},
    {"all/9/metrics.jsonl",
     "{\"split\": \"train\", \"metrics\": {\"loss\": 8}, \"update\": 1}\nno row\n{\"epoch\": 9}\n"
     "{\"split\": \"train\", \"span\": \"report\", \"update\": 7, \"epoch\": 0.7, \"seconds\": "
     "3, \"metrics\": {\"loss\": 4, \"acc\": \"high\"}}\n"
     "{\"split\": \"valid\", \"update\": -3, \"epoch\": -1, \"seconds\": \"x\", \"metrics\": "
     "{\"loss\": 5}}\n"},
    {"deep/a/b/config.yaml", "seed: 4\n"},
    {"deep/a/b/final.safetensors", "w"},
    {"deep/a/c/d/config.yaml", "seed: 4\n"},     /* too deep */
    {"deep/a/b/inner/config.yaml", "seed: 4\n"}, /* within a run */
    {"half/config.yaml", "seed: 4\n"},
    {"half/final.safetensors", "w"},
    {"half/checkpoints", ""},
    {"odd <&>/config.yaml", "not: [closed\n"},
    {"odd <&>/summary.json",
     "{\"end\": 3, \"updates\": -1, \"epochs\": \"two\", \"seconds\": -2, \"metrics\": {\"test\": "
     "{\"loss\": -0.25, \"acc\": null}, \"other\": {\"loss\": 1}}}"},
    {"odd <&>/metrics.jsonl", ROW("test", "epoch", "5", "1")},
    {"broken/config.yaml", "seed: 1\n"},
    {"broken/summary.json", "{\"end\": \"epochs\""},
    {"no-run/model.yaml", "seed: 1\n"},
    {".hidden/config.yaml", "seed: 1\n"},
};

static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
}

static void put(const char *name, const char *text)
{
    char path[256];
    const struct utimbuf times = {86400, 86400};
    snprintf(path, sizeof path, "%s", scratch_path(name));
    make_parents(path);
    if (text[0] == '\0') {
        assert_int_equal(mkdir(path, 0777), 0);
        return;
    }
    assert_int_equal(sl_file_write(path, text, strlen(text), NULL), SEQLSTM_OK);
    assert_int_equal(utime(path, &times), 0);
}

static struct sl_arena arena;
static struct sl_run_catalogue runs;

static int setup(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    setenv("TZ", "UTC", 1);
    if (scratch_make(state) != 0)
        return -1;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        put(files[k].path, files[k].text);
    char link[256];
    snprintf(link, sizeof link, "%s", scratch_path("link"));
    assert_int_equal(symlink(scratch_path("all/9"), link), 0);
    sl_arena_init(&arena);
    ok(sl_run_catalogue_read(&arena, scratch_folder, &runs, &err), &err);
    return 0;
}

static int teardown(void **state)
{
    sl_arena_deinit(&arena);
    return scratch_remove(state);
}

static const struct sl_run_facts *find(const char *name)
{
    for (size_t r = 0; r < runs.count; r++)
        if (strcmp(runs.runs[r].name, name) == 0)
            return &runs.runs[r];
    fail_msg("there is no run %s", name);
    return NULL;
}

/* Folders of the scratch tree are named /x. */
static char *hide_folder(const char *text)
{
    struct sl_buf out = {0};
    const size_t bytes = strlen(scratch_folder);
    while (*text) {
        const bool is_here = strncmp(text, scratch_folder, bytes) == 0;
        sl_buf_append(&out, is_here ? "/x" : text, is_here ? 2 : 1);
        text += is_here ? bytes : 1;
    }
    char *hidden = strdup(sl_buf_text(&out));
    sl_buf_deinit(&out);
    return hidden;
}

static void add_facts(struct sl_buf *out)
{
    static const char *const keys[] = {"name",
                                       "state",
                                       "end",
                                       "started",
                                       "updates",
                                       "epochs",
                                       "seconds",
                                       "train.loss",
                                       "valid.loss",
                                       "test.loss",
                                       "test.mae",
                                       "train.acc",
                                       "test.acc",
                                       "other.loss",
                                       "seed",
                                       "model[0].units",
                                       "model.reader.units",
                                       "model.reader.type",
                                       "model.out.units",
                                       "model.none.units",
                                       "model.reader",
                                       "train.lr",
                                       "train.clip",
                                       "nothing"};
    for (size_t r = 0; r < runs.count; r++) {
        const struct sl_run_facts *run = &runs.runs[r];
        struct sl_config_entries config = {0};
        sl_buf_printf(out, "== %s %s holder '%s'\n", run->name, run->folder, run->holder);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            static const char *const kinds[] = {"none", "number", "text"};
            struct sl_run_value value;
            assert_true(sl_run_value_find(&arena, run, &config, keys[k], &value));
            sl_buf_printf(out, "%s: %s %s", keys[k], kinds[value.kind], value.text);
            if (value.kind == SL_RUN_VALUE_NUMBER)
                sl_buf_printf(out, " %.9g", value.number);
            else
                assert_true(isnan(value.number));
            sl_buf_append_char(out, '\n');
        }
        for (size_t m = 0; m < run->metric_count; m++)
            sl_buf_printf(out, "%s %s %.9g\n", run->metrics[m].split, run->metrics[m].name, run->metrics[m].value);
    }
}

static void add_comparison(struct sl_buf *out, const char *title, const struct sl_run_facts *const *compared,
                           size_t count)
{
    struct sl_run_comparison c;
    assert_true(sl_run_comparison_make(&arena, compared, count, &c));
    sl_buf_printf(out, "== %s\n", title);
    for (size_t k = 0; k < c.config_count + c.metric_count; k++) {
        const struct sl_compared_row *row = k < c.config_count ? &c.config[k] : &c.metrics[k - c.config_count];
        sl_buf_append_text(out, row->key);
        for (size_t r = 0; r < count; r++)
            sl_buf_printf(out, " | %s", row->values[r].text);
        sl_buf_append_char(out, '\n');
    }
    sl_runs_page_write(out, compared, &c);
}

static void test_what_is_read(void **state)
{
    struct sl_buf out = {0};
    (void)state;
    const struct sl_run_facts *three[] = {find("all/9"), find("all/010"), find("odd <&>")};
    const struct sl_run_facts *two[] = {three[1], three[0]}, *same[] = {three[1], three[1]};
    add_facts(&out);
    add_comparison(&out, "three", three, 3);
    add_comparison(&out, "two", two, 2);
    add_comparison(&out, "a run and itself", same, 2);
    add_comparison(&out, "one", same, 1);
    char *text = hide_folder(sl_buf_text(&out));
    golden_expect("reports/runs.txt", "== ", text);
    free(text);
    sl_buf_deinit(&out);
}

/* As many runs as a page may have: each has a colour of its own. */
static void test_a_page_of_most_runs(void **state)
{
    const struct sl_run_facts *most[SL_COMPARED_MOST];
    struct sl_run_comparison c;
    struct sl_buf out = {0};
    (void)state;
    for (int r = 0; r < SL_COMPARED_MOST; r++)
        most[r] = find(r % 2 ? "all/9" : "all/010");
    assert_true(sl_run_comparison_make(&arena, most, SL_COMPARED_MOST, &c));
    sl_runs_page_write(&out, most, &c);
    for (int r = 0; r < SL_COMPARED_MOST; r++) {
        char colour[32];
        int count = 0;
        snprintf(colour, sizeof colour, "<i class=\"r%d\"></i>", r);
        for (const char *at = strstr(sl_buf_text(&out), colour); at; at = strstr(at + 1, colour))
            count++;
        assert_true(count >= 2); /* of its row, and of its column in what differs */
    }
    sl_buf_deinit(&out);
}

/* Runs that have no metric in common: each has a row, with a value of its run alone. */
static void test_metrics_of_one_run_each(void **state)
{
    enum { RUNS = 3, EACH = 4 };
    struct sl_arena own;
    struct sl_run_facts facts[RUNS];
    const struct sl_run_facts *compared[RUNS];
    struct sl_run_comparison c;
    (void)state;
    sl_arena_init(&own);
    for (int r = 0; r < RUNS; r++) {
        char name[16], path[64], text[256];
        int used = snprintf(text, sizeof text, "{\"end\": \"epochs\", \"metrics\": {\"valid\": {");
        for (int m = 0; m < EACH; m++)
            used +=
                snprintf(text + used, sizeof text - (size_t)used, "%s\"m%d%d\": %d", m ? ", " : "", r, m, 10 * r + m);
        snprintf(text + used, sizeof text - (size_t)used, "}}}");
        snprintf(name, sizeof name, "own-%d", r);
        snprintf(path, sizeof path, "%s/config.yaml", name);
        put(path, "seed: 1\n");
        snprintf(path, sizeof path, "%s/summary.json", name);
        put(path, text);
        assert_true(sl_run_facts_read(&own, scratch_path(name), name, &facts[r]));
        compared[r] = &facts[r];
    }
    assert_true(sl_run_comparison_make(&own, compared, RUNS, &c));
    assert_int_equal(c.metric_count, RUNS * EACH);
    for (int k = 0; k < RUNS * EACH; k++)
        for (int r = 0; r < RUNS; r++) {
            char expected[32];
            snprintf(expected, sizeof expected, "valid.m%d%d", k / EACH, k % EACH);
            assert_string_equal(c.metrics[k].key, expected);
            snprintf(expected, sizeof expected, "%d", 10 * r + k % EACH);
            assert_string_equal(c.metrics[k].values[r].text, r == k / EACH ? expected : "-");
        }
    sl_arena_deinit(&own);
}

/* The rows of an epoch are read from the end of a log; a line that is cut there is none. */
static void test_the_end_of_a_long_log(void **state)
{
    struct sl_arena own;
    struct sl_buf log = {0};
    struct sl_run_facts facts;
    (void)state;
    sl_buf_append_text(&log, ROW("test", "epoch", "1", "77"));
    for (int k = 2; k <= 3000; k++)
        sl_buf_printf(&log, "{\"split\": \"train\", \"update\": %d, \"metrics\": {\"loss\": %d}}\n", k, k);
    sl_buf_append_text(&log, "{\"split\": \"train\", \"update\": 9000, ");
    put("long/config.yaml", "seed: 1\n");
    put("long/metrics.jsonl", sl_buf_text(&log));
    sl_arena_init(&own);
    assert_true(sl_run_facts_read(&own, scratch_path("long"), "long", &facts));
    assert_int_equal(facts.state, SL_RUN_STOPPED);
    assert_int_equal(facts.updates, 3000);
    assert_int_equal(facts.metric_count, 1);
    assert_true(sl_run_facts_find_metric(&facts, "train", "loss") == 3000);
    assert_true(isnan(sl_run_facts_find_metric(&facts, "train", "los")));
    assert_true(isnan(sl_run_facts_find_metric(&facts, "valid", "loss")));
    sl_arena_deinit(&own);
    sl_buf_deinit(&log);
}

/* A summary has any number of metrics: as many as there is room for are read, the first of them. */
static void test_more_metrics_than_there_is_room_for(void **state)
{
    enum { MOST = 256 };
    (void)state;
    for (int more = -1; more <= 3; more++) {
        struct sl_arena own;
        struct sl_buf summary = {0};
        struct sl_run_facts facts;
        char name[32], path[64];
        sl_buf_append_text(&summary, "{\"end\": \"epochs\", \"metrics\": {\"train\": {");
        for (int k = 0; k < MOST + more; k++)
            sl_buf_printf(&summary, "%s\"m%d\": %d", k > 0 ? ", " : "", k, k + 1);
        sl_buf_append_text(&summary, "}, \"valid\": {\"loss\": 7}}}");
        snprintf(name, sizeof name, "many-%d", more + 1);
        snprintf(path, sizeof path, "%s/config.yaml", name);
        put(path, "seed: 1\n");
        snprintf(path, sizeof path, "%s/summary.json", name);
        put(path, sl_buf_text(&summary));
        sl_arena_init(&own);
        assert_true(sl_run_facts_read(&own, scratch_path(name), name, &facts));
        assert_int_equal(facts.metric_count, MOST);
        for (int k = 0; k < MOST + (more < 0 ? more : 0); k++) {
            snprintf(name, sizeof name, "m%d", k);
            assert_true(sl_run_facts_find_metric(&facts, "train", name) == k + 1);
        }
        assert_true(isnan(sl_run_facts_find_metric(&facts, "valid", "loss")) == (more >= 0));
        sl_arena_deinit(&own);
        sl_buf_deinit(&summary);
    }
}

static void test_links_and_pipes_are_not_read(void **state)
{
    struct sl_arena own;
    struct sl_run_facts facts;
    char from[256], to[256];
    (void)state;
    put("linked/config.yaml", "seed: 1\n");
    snprintf(from, sizeof from, "%s", scratch_path("all/010/summary.json"));
    snprintf(to, sizeof to, "%s", scratch_path("linked/summary.json"));
    assert_int_equal(symlink(from, to), 0);
    assert_int_equal(mkfifo(scratch_path("linked/metrics.jsonl"), 0600), 0);
    sl_arena_init(&own);
    assert_true(sl_run_facts_read(&own, scratch_path("linked"), "linked", &facts));
    assert_int_equal(facts.state, SL_RUN_STOPPED);
    assert_true(facts.updates == -1 && facts.metric_count == 0 && facts.end[0] == '\0' && isnan(facts.epochs));
    sl_arena_deinit(&own);
}

static void test_names_that_mean_a_run(void **state)
{
    static const struct {
        const char *word;
        bool matches;
    } rows[] = {{"all", true},     {"all/", true}, {"all/010", true}, {"all/010/", true},   {"all/010//", true},
                {"all/01", false}, {"al", false},  {"010", false},    {"all/010/x", false}, {"ALL", false}};
    (void)state;
    const struct sl_run_facts *run = find("all/010");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (sl_run_catalogue_matches(run, rows[k].word) != rows[k].matches)
            fail_msg("'%s'", rows[k].word);
    assert_true(sl_run_catalogue_matches(run, run->folder));
    assert_true(sl_run_catalogue_matches(run, scratch_folder));
    assert_true(sl_run_catalogue_matches(run, scratch_path("all")));
    assert_false(sl_run_catalogue_matches(run, scratch_path("al")));
}

/* Nothing was done yet, which is not the same as not known. */
static void test_counts_of_zero(void **state)
{
    static const char *const keys[] = {"updates", "epochs", "seconds", "test.loss"};
    struct sl_arena own;
    struct sl_run_facts facts;
    struct sl_buf page = {0};
    (void)state;
    put("zero/config.yaml", "seed: 1\n");
    put("zero/summary.json", "{\"end\": \"updates\", \"updates\": 0, \"epochs\": 0, \"seconds\": 0.0, "
                             "\"metrics\": {\"test\": {\"loss\": 0}}}");
    sl_arena_init(&own);
    assert_true(sl_run_facts_read(&own, scratch_path("zero"), "zero", &facts));
    assert_true(facts.updates == 0 && facts.epochs == 0 && facts.seconds == 0);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        struct sl_config_entries config = {0};
        struct sl_run_value value;
        assert_true(sl_run_value_find(&own, &facts, &config, keys[k], &value));
        assert_int_equal(value.kind, SL_RUN_VALUE_NUMBER);
        assert_string_equal(value.text, "0");
    }
    const struct sl_run_facts *one[] = {&facts};
    struct sl_run_comparison c;
    assert_true(sl_run_comparison_make(&own, one, 1, &c));
    sl_runs_page_write(&page, one, &c);
    assert_non_null(strstr(sl_buf_text(&page), "</i>zero</td><td>finished</td><td>0</td><td>0</td>"));
    sl_buf_deinit(&page);
    sl_arena_deinit(&own);
}

/* A run that is resumed has the summary of its first end, and is not finished while a process holds it. */
static void test_a_run_that_goes_on(void **state)
{
    struct sl_arena own;
    struct sl_run_facts facts;
    struct sl_file_lock *lock = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    put("again/config.yaml", "seed: 1\n");
    put("again/final.safetensors", "w");
    put("again/summary.json", "{\"end\": \"epochs\", \"updates\": 5}");
    put("again/metrics.jsonl", ROW("train", "epoch", "9", "1"));
    sl_arena_init(&own);
    ok(sl_file_lock_take(scratch_path("again/lock"), &lock, &err), &err);
    assert_true(sl_run_facts_read(&own, scratch_path("again"), "again", &facts));
    assert_int_equal(facts.state, SL_RUN_LIVE);
    assert_int_equal(facts.updates, 9);
    assert_true(facts.holder[0] != '\0' && facts.end[0] == '\0');
    sl_file_lock_release(lock);
    assert_true(sl_run_facts_read(&own, scratch_path("again"), "again", &facts));
    assert_int_equal(facts.state, SL_RUN_FINISHED);
    assert_int_equal(facts.updates, 5);
    assert_true(facts.holder[0] == '\0');
    sl_arena_deinit(&own);
}

/* Whatever the order of the runs and whichever lack it, a key has one row, and a run that lacks it has a dash. */
static void test_each_key_has_one_row(void **state)
{
    const struct sl_run_facts *all[] = {find("half"), find("all/010"), find("all/9")};
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    (void)state;
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        const struct sl_run_facts *three[3];
        struct sl_run_comparison c;
        bool found = false;
        for (int r = 0; r < 3; r++)
            three[r] = all[orders[o][r]];
        assert_true(sl_run_comparison_make(&arena, three, 3, &c));
        assert_int_equal(c.config_count, 10);
        for (size_t k = 0; k < c.config_count; k++) {
            for (size_t other = 0; other < k; other++)
                assert_string_not_equal(c.config[k].key, c.config[other].key);
            if (strcmp(c.config[k].key, "train.clip") != 0)
                continue;
            for (int r = 0; r < 3; r++)
                assert_string_equal(c.config[k].values[r].text, orders[o][r] == 2 ? "5" : "-");
            found = true;
        }
        assert_true(found);
    }
}

/* A layer may have points in its name. */
static void test_options_of_layers_by_name(void **state)
{
    static const char text[] = "model:\n  - name: a.b\n    units: 3\n  - name: a\n    units: 4\n    b.units: 5\n"
                               "  - name: units\n    b: 6\n";
    static const char *const rows[][2] = {
        {"model.a.b.units", "3"}, {"model.a.units", "4"}, {"model.units.b", "6"}, {"model.b.units", "-"}};
    const struct sl_run_facts *run = find("half");
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_config_entries config = {0};
        struct sl_run_value value;
        char own[sizeof text];
        memcpy(own, text, sizeof text);
        assert_true(sl_config_entries_read(&arena, own, &config));
        assert_true(sl_run_value_find(&arena, run, &config, rows[k][0], &value));
        if (strcmp(value.text, rows[k][1]) != 0)
            fail_msg("%s is %s, expected %s", rows[k][0], value.text, rows[k][1]);
    }
}

/* A page draws all of a long log, of which the facts need the end alone. */
static void test_all_rows_of_a_long_log(void **state)
{
    enum { LINES = 15000 };
    struct sl_buf log = {0};
    (void)state;
    for (int k = 1; k <= LINES; k++)
        sl_buf_printf(&log, "{\"split\":\"train\",\"update\":%d,\"metrics\":{\"loss\":%d}, \"seconds\": %d}\n", k, k,
                      k);
    assert_true(log.length_bytes > 1 << 20);
    put("thousands/metrics.jsonl", sl_buf_text(&log));
    json_t *rows = sl_metric_rows_read(scratch_path("thousands"));
    assert_int_equal(json_array_size(rows), LINES);
    assert_true(sl_metric_row_find_metric(json_array_get(rows, LINES - 1), "loss") == LINES);
    json_decref(rows);
    sl_buf_deinit(&log);
}

static void test_a_folder_that_is_not_there(void **state)
{
    struct sl_run_catalogue none;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    assert_int_equal(sl_run_catalogue_read(&arena, scratch_path("nowhere"), &none, &err), SEQLSTM_NOT_FOUND);
    assert_non_null(strstr(err.message, "cannot read the folder"));
    ok(sl_run_catalogue_read(&arena, scratch_path("no-run"), &none, &err), &err);
    assert_int_equal(none.count, 0);
}

static void test_removal(void **state)
{
    struct sl_arena own;
    struct sl_run_facts facts;
    char other[256], link[256];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    put("gone/1/config.yaml", "12345");
    put("gone/1/below/weights", "123456");
    put("gone/1/below/lock", "1"); /* not that of the run */
    put("gone/2/config.yaml", "1");
    put("kept.txt", "123456789012345678901234567890");
    snprintf(other, sizeof other, "%s", scratch_path("kept.txt"));
    snprintf(link, sizeof link, "%s", scratch_path("gone/1/link"));
    assert_int_equal(symlink(other, link), 0);
    put("theirs/data.txt", "123"); /* what links lead to is not the run's */
    snprintf(other, sizeof other, "%s", scratch_path("theirs"));
    snprintf(link, sizeof link, "%s", scratch_path("gone/1/below/folder"));
    assert_int_equal(symlink(other, link), 0);
    sl_arena_init(&own);
    assert_true(sl_run_facts_read(&own, scratch_path("gone/1"), "gone/1", &facts));
    assert_int_equal(sl_run_count_bytes(&facts), 12);
    assert_int_equal(sl_run_count_bytes(&facts), 12);
    ok(sl_run_remove(&facts, &err), &err);
    assert_int_equal(access(scratch_path("gone/1"), F_OK), -1);
    assert_int_equal(access(scratch_path("kept.txt"), F_OK), 0);
    assert_int_equal(access(scratch_path("theirs/data.txt"), F_OK), 0);
    assert_int_equal(access(scratch_path("gone"), F_OK), 0); /* another run is in it */
    assert_true(sl_run_facts_read(&own, scratch_path("gone/2"), "gone/2", &facts));
    ok(sl_run_remove(&facts, &err), &err);
    assert_int_equal(access(scratch_path("gone"), F_OK), -1);
    /* a run beside others keeps the folder above it, which is the folder of all runs */
    put("top/alone/config.yaml", "1");
    assert_true(sl_run_facts_read(&own, scratch_path("top/alone"), "alone", &facts));
    ok(sl_run_remove(&facts, &err), &err);
    assert_int_equal(access(scratch_path("top"), F_OK), 0);
    assert_int_equal(sl_run_remove(&facts, &err), SEQLSTM_NOT_FOUND);
    sl_arena_deinit(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_a_page_of_most_runs),
        cmocka_unit_test(test_metrics_of_one_run_each),
        cmocka_unit_test(test_the_end_of_a_long_log),
        cmocka_unit_test(test_more_metrics_than_there_is_room_for),
        cmocka_unit_test(test_links_and_pipes_are_not_read),
        cmocka_unit_test(test_names_that_mean_a_run),
        cmocka_unit_test(test_counts_of_zero),
        cmocka_unit_test(test_a_run_that_goes_on),
        cmocka_unit_test(test_each_key_has_one_row),
        cmocka_unit_test(test_options_of_layers_by_name),
        cmocka_unit_test(test_all_rows_of_a_long_log),
        cmocka_unit_test(test_a_folder_that_is_not_there),
        cmocka_unit_test(test_removal),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
