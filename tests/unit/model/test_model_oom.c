/* SPDX-License-Identifier: Apache-2.0 */
/* Models while memory runs out, once at every allocation and at every call of
 * an arena: each good file of the fixtures, with an overlay and flags, and each
 * bad one with its messages. The error is that of memory, never that of the
 * file.
 */
#include "model_fixture.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define OOM_ARENAS
#include "oom.h"
#include "scratch.h"

/* Appends the configuration, or what is wrong. */
static seqlstm_status load_all(const struct sl_model_request *request, struct sl_buf *out, struct seqlstm_error *err)
{
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_model *model = NULL;
    SEQLSTM_TRY(sl_diagnostics_create(&diagnostics, err));
    seqlstm_status status = sl_model_load(request, diagnostics, &model, err);
    if (status == SEQLSTM_OK)
        status = sl_model_write_config(model, 0, out, err);
    if (status != SEQLSTM_OK && status != SEQLSTM_NO_MEMORY) {
        seqlstm_status rendered = sl_diagnostics_render(diagnostics, true, out, err);
        if (rendered == SEQLSTM_OK)
            rendered = sl_diagnostics_write_json(diagnostics, out, err);
        status = rendered == SEQLSTM_OK ? status : rendered;
    }
    sl_model_destroy(model);
    sl_diagnostics_destroy(diagnostics);
    return status;
}

/* The n-th allocation fails, or the n-th of an arena; false: there are fewer. What could be done without it is as
 * always. */
static bool fail_once(const struct sl_model_request *request, int n, bool of_arena, seqlstm_status whole,
                      const char *text)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf out = {0};
    if (of_arena)
        arena_fail_at(n);
    else
        oom_fail_at(n);
    const seqlstm_status status = load_all(request, &out, &err);
    const bool failed = of_arena ? arena_disarm() : oom_disarm();
    const bool as_always = status == whole && strcmp(sl_buf_text(&out), text) == 0;
    if (!as_always && !(failed && status == SEQLSTM_NO_MEMORY && err.message[0]))
        fail_msg("%s, %s %d: %d, %s", request->path, of_arena ? "arena" : "allocation", n, (int)status, err.message);
    sl_buf_deinit(&out);
    return failed;
}

/* `stride`: the further into the file, the more are left out. */
static seqlstm_status fail_each(const struct sl_model_request *request, int stride)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf text = {0};
    const seqlstm_status whole = load_all(request, &text, &err);
    assert_int_not_equal(whole, SEQLSTM_NO_MEMORY);
    for (int of_arena = 0; of_arena < 2; of_arena++) {
        int n = 1;
        while (fail_once(request, n, of_arena, whole, sl_buf_text(&text)))
            n += 1 + n / stride;
        assert_true(n > 3);
    }
    sl_buf_deinit(&text);
    return whole;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int is_yaml(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static void fail_each_file(const char *folder, int every, int at_least)
{
    struct dirent **entries;
    char path[512];
    snprintf(path, sizeof path, "%s/tests/fixtures/models/%s", getenv("SEQLSTM_SOURCE"), folder);
    assert_int_equal(chdir(path), 0); /* relative paths in them */
    const int count = scandir(".", &entries, is_yaml, alphasort);
    assert_true(count >= at_least);
    for (int k = 0; k < count; k++) {
        const struct sl_model_request request = {.path = entries[k]->d_name};
        if (k % every == 0)
            fail_each(&request, every > 1 ? 16 : INT_MAX);
        free(entries[k]);
    }
    free(entries);
}

static void memory_runs_out_in_good_files(void **state)
{
    (void)state;
    fail_each_file("good", 1, 5);
}

static void memory_runs_out_in_bad_files(void **state)
{
    (void)state;
    fail_each_file("bad", 4, 50);
}

/* Files that are included, overlays and flags, of which some are wrong. */
static void memory_runs_out_in_merged_files(void **state)
{
    (void)state;
    static const char *const flags[] = {"train.epochs=2", "model[0].units=5", "data={type: npy, train: {x: a, y: b}}",
                                        "train.lr=${SEQLSTM_NONE:-0.5}"};
    char paths[2][200];
    struct sl_override overrides[sizeof flags / sizeof *flags];
    write_text("base.yaml", "train: {loss: mse, optimizer: sgd}\nmodel:\n  - {type: lstm, units: 3}\n");
    write_text("more.yaml", "include: base.yaml\nbackends: [reference]\n");
    write_text("rest.yaml", "dispatch: {policy: order}\n");
    write_text("plain.txt", "no: [model\n");
    write_text("m.yaml", "include: [base.yaml, rest.yaml]\nseqlstm: 1\nmodel:\n  "
                         "- {type: lstm, units: 4}\n  - {type: "
                         "dense, units: 2}\n");
    write_text("bad.yaml", "include: [more.yaml, absent.yaml, plain.txt, [a], .]\nseqlstm: 1\n");
    write_text("over.yaml", "train: {optimizer: {type: adam, learning_rate: 0.25}}\n");
    snprintf(paths[0], sizeof paths[0], "%s", scratch_path("over.yaml"));
    snprintf(paths[1], sizeof paths[1], "%s", scratch_path("absent.yaml"));
    const char *const overlays[] = {paths[0], paths[1]};
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
        overrides[k] = (struct sl_override){.origin = "--set", .assignment = flags[k]};
    for (int k = 0; k < 4; k++) {
        char path[200];
        snprintf(path, sizeof path, "%s", scratch_path(k == 1 ? "bad.yaml" : "m.yaml"));
        const struct sl_model_request request = {.path = path,
                                                 .overlays = overlays,
                                                 .overlay_count = k == 2 ? 2 : 1,
                                                 .overrides = overrides,
                                                 .override_count = 3 + (k == 3)};
        assert_true((fail_each(&request, INT_MAX) == SEQLSTM_OK) == (k == 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_runs_out_in_good_files),
        cmocka_unit_test(memory_runs_out_in_bad_files),
        cmocka_unit_test(memory_runs_out_in_merged_files),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
