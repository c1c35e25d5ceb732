/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are listed, compared and drawn where an allocation fails: that is said, and no half of a list, a page or a
 * chart counts as whole. */
#include "opened_run.h"

#include <math.h>

#include "base/memory/arena.h"
#include "descriptors.h"
#include "model/load/entries.h"
#include "oom.h"
#include "runs/catalogue.h"
#include "runs/comparison.h"
#include "runs/condition.h"
#include "runs/page.h"
#include "runs/text_chart.h"

enum { RUNS = 70 }; /* more than there is room for at first */

#define ROW(n, loss)                                                                                                   \
    "{\"split\": \"train\", \"span\": \"epoch\", \"update\": " n ", \"metrics\": {\"loss\": " loss "}}\n"

static void put_run(const char *name, const char *file, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s", scratch_path(name));
    assert_int_equal(sl_file_make_folders(path, NULL), SEQLSTM_OK);
    snprintf(path, sizeof path, "%s/%s", name, file);
    put_file(path, text);
}

static int setup(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    for (int k = 0; k < RUNS; k++) {
        char name[32];
        snprintf(name, sizeof name, "runs/m/%d", k);
        put_run(name, "config.yaml", k == 0 ? "seed: 1\nname: a\n" : "seed: 2\nname: a\n");
    }
    put_run("runs/m/0", "metrics.jsonl", ROW("1", "3") ROW("2", "2"));
    put_run("runs/m/1", "summary.json",
            "{\"end\": \"epochs\", \"updates\": 5, \"metrics\": {\"test\": {\"loss\": 1}}}");
    put_run("runs/m/2", "final.safetensors", "");
    return 0;
}

/* What `runs list`, `compare` and their pages do, as one text. False: no memory. */
static bool show(struct sl_buf *out)
{
    static const char *const keys[] = {"name",       "state",     "updates", "started",
                                       "train.loss", "test.loss", "seed",    "none"};
    struct sl_arena arena;
    struct sl_run_catalogue catalogue;
    struct sl_run_comparison comparison;
    struct sl_run_condition condition;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_arena_init(&arena);
    seqlstm_status status = sl_run_catalogue_read(&arena, scratch_path("runs"), &catalogue, &err);
    if (status == SEQLSTM_OK)
        status = sl_run_condition_read(&arena, "seed = 1", &condition, &err);
    assert_true(status == SEQLSTM_OK || status == SEQLSTM_NO_MEMORY);
    bool fine = status == SEQLSTM_OK;
    sl_buf_printf(out, "%zu runs:", fine ? catalogue.count : 0);
    for (size_t r = 0; fine && r < catalogue.count; r++)
        sl_buf_printf(out, " %s", sl_run_state_get_name(catalogue.runs[r].state));
    for (size_t r = 0; fine && r < 2; r++) {
        struct sl_config_entries config = {0};
        for (size_t k = 0; fine && k < sizeof keys / sizeof *keys; k++) {
            struct sl_run_value value;
            fine = sl_run_value_find(&arena, &catalogue.runs[r], &config, keys[k], &value);
            if (fine)
                sl_buf_printf(out, "%s %s %d\n", keys[k], value.text, sl_run_condition_holds(&condition, &value));
        }
    }
    const struct sl_run_facts *two[] = {fine ? &catalogue.runs[0] : NULL, fine ? &catalogue.runs[1] : NULL};
    fine = fine && sl_run_comparison_make(&arena, two, 2, &comparison);
    if (fine)
        sl_runs_page_write(out, two, &comparison);
    struct sl_chart chart = {.title = "loss", .names = {"train"}};
    fine = fine && sl_chart_line_add(&chart.lines[0], 1, 3) && sl_chart_line_add(&chart.lines[0], 2, 2);
    if (fine)
        sl_text_chart_append(&chart, 60, 8, true, out);
    sl_chart_deinit(&chart);
    sl_arena_deinit(&arena);
    return fine && !out->failed;
}

static void test_lists_and_pages_without_memory(void **state)
{
    struct sl_buf whole = {0};
    int failures = 0;
    (void)state;
    assert_true(show(&whole));
    assert_non_null(strstr(sl_buf_text(&whole), "70 runs:"));
    assert_non_null(strstr(sl_buf_text(&whole), " imported"));
    for (;;) {
        struct sl_buf part = {0};
        const int descriptors = descriptors_count();
        char where[512] = "";
        oom_watch();
        oom_fail_anew(10);
        const bool fine = show(&part);
        const bool failed = oom_disarm();
        assert_int_equal(descriptors_count(), descriptors);
        if (fine)
            assert_string_equal(sl_buf_text(&part), sl_buf_text(&whole));
        sl_buf_deinit(&part);
        if (oom_unwatch(where, sizeof where) > 0)
            fail_msg("memory of %s is left", where);
        if (!failed) {
            assert_true(fine);
            break;
        }
        failures++;
    }
    assert_true(failures > 30);
    sl_buf_deinit(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_and_pages_without_memory),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
