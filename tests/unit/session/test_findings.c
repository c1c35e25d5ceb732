/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of later phases at the places of the model file that they are about, and files that a saved run names: what is
 * missing, and what is not opened because a run folder says so. */
#include "model_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "ok.h"
#include "scratch.h"
#include "session/finding/finding.h"
#include "session/finding/mismatch.h"
#include "session/finding/missing.h"
#include "session/record/session_record.h"
#include "session/run_files/trusted_files.h"

static const char pairs[] = "seqlstm: 1\n"
                            "data:\n"
                            "  type: lines\n"
                            "  train: {source: a.txt, target: b.txt}\n"
                            "  valid: {source: c.txt, target: d.txt}\n"
                            "  test: {source: e.txt, target: f.txt}\n"
                            "  tokenizer: {type: whitespace, vocab: words}\n"
                            "  source_tokenizer: {type: whitespace, vocab: source_words}\n"
                            "model:\n"
                            "  encoder:\n"
                            "    - {type: embedding, dim: 3, weights: w.npy}\n"
                            "    - {type: lstm, name: reader, units: 4}\n"
                            "  decoder:\n"
                            "    - {type: embedding, dim: 3, weights: v.npy}\n"
                            "    - {type: lstm, units: 4, return_sequences: true}\n"
                            "    - {type: output, activation: softmax}\n"
                            "train: {epochs: 1, init_from: other/run}\n";
static const char arrays[] = "seqlstm: 1\n"
                             "data: {train: {type: npy, x: x.npy, y: y.npy, lengths: counts.npy}}\n"
                             "model:\n"
                             "  - {type: gru, units: 8, return_sequences: true}\n"
                             "  - {type: dense, units: 5, activation: softmax}\n"
                             "train: {epochs: 1}\n";
static const char models[] = "seqlstm: 1\n"
                             "data:\n"
                             "  type: lines\n"
                             "  train: {source: a.txt, target: b.txt}\n"
                             "  tokenizer: {type: sentencepiece, model: of_target}\n"
                             "  source_tokenizer: {type: sentencepiece, model: of_source}\n"
                             "model:\n"
                             "  encoder:\n"
                             "    - {type: embedding, dim: 3}\n"
                             "    - {type: lstm, units: 4}\n"
                             "  decoder:\n"
                             "    - {type: embedding, dim: 3}\n"
                             "    - {type: lstm, units: 4, return_sequences: true}\n"
                             "    - {type: output, activation: softmax}\n"
                             "train: {epochs: 1}\n";

/* A folder of its own for each test. */
static int enter(void **state)
{
    static int number;
    char name[24];
    (void)state;
    snprintf(name, sizeof name, "test-%d", number++);
    const char *folder = scratch_path(name);
    return mkdir(folder, 0777) || chdir(folder);
}

static void put(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static struct loaded load_plain(const char *text)
{
    struct loaded l = load(text);
    if (l.status != SEQLSTM_OK)
        fail_msg("%s", sl_buf_text(&l.text));
    return l;
}

static struct sl_session make_session(const struct loaded *l)
{
    sl_diagnostics_forget(l->diagnostics);
    return (struct sl_session){.model = l->model, .diagnostics = l->diagnostics};
}

/* The findings since the last time, as they are printed. */
static void expect_findings(const struct loaded *l, const char *expected)
{
    struct sl_buf out = {0};
    assert_int_equal(sl_diagnostics_render(l->diagnostics, false, &out, NULL), SEQLSTM_OK);
    if (strcmp(sl_buf_text(&out), expected) != 0)
        fail_msg("got:\n%s\nexpected:\n%s", sl_buf_text(&out), expected);
    sl_buf_deinit(&out);
    sl_diagnostics_forget(l->diagnostics);
}

/* ---- places --------------------------------------------------------------------------------------------------- */

static void test_which_errors_are_findings(void **state)
{
    static const struct {
        seqlstm_status status;
        int findings;
    } rows[] = {{SEQLSTM_OK, 0},
                {SEQLSTM_INVALID_ARGUMENT, 0},
                {SEQLSTM_INVALID_CONFIG, 1},
                {SEQLSTM_NOT_FOUND, 1},
                {SEQLSTM_UNSUPPORTED, 1},
                {SEQLSTM_UNAVAILABLE, 1},
                {SEQLSTM_CORRUPT_DATA, 1},
                {SEQLSTM_ABI_MISMATCH, 0},
                {SEQLSTM_NUMERIC, 0},
                {SEQLSTM_NO_MEMORY, 0},
                {SEQLSTM_IO, 0},
                {SEQLSTM_CANCELLED, 0}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct loaded l = load_plain(arrays);
        struct sl_session session = make_session(&l);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        strcpy(err.message, "it is so");
        assert_int_equal(sl_session_add_finding(&session, "E0501", "data", rows[k].status, &err), rows[k].status);
        assert_int_equal(sl_diagnostics_count(l.diagnostics, SL_SEVERITY_ERROR), rows[k].findings);
        assert_int_equal(sl_session_add_finding(&session, "E0501", "data", rows[k].status, NULL), rows[k].status);
        session.diagnostics = NULL;
        assert_int_equal(sl_session_add_finding(&session, "E0501", "data", rows[k].status, &err), rows[k].status);
        unload(&l);
    }
}

/* The place that the error names, which is underlined as far as the value or key reaches; else that of the key. */
static void test_where_findings_are(void **state)
{
    static const struct {
        const char *where, *key, *expected; /* line, column, length */
    } rows[] = {
        {"m.yaml:4:11", NULL, "4:11+6"}, /* a key of the model file */
        {"m.yaml:4:19", NULL, "4:19+5"}, /* a value of it */
        {"m.yaml:12:7", NULL, "12:7+1"}, /* a layer */
        {"m.yaml:4:12", NULL, "4:12+1"}, /* neither */
        {"m.yaml:4:12", "train", "4:12+1"},
        {"m.yaml:4:1", "train", "4:1+1"},
        {"m.yaml:1:1", NULL, "1:1+7"},
        {"m.yaml:1:0", "train.init_from", "17:31+9"}, /* there is no such place */
        {"m.yaml:0:1", "train.init_from", "17:31+9"},
        {"m.yaml:5", "train.init_from", "17:31+9"},
        {"m.yaml", "train.init_from", "17:31+9"},
        {"", "data.train.target", "4:34+5"},
        {"finding.c:20", "data.valid.source", "5:19+5"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct loaded l = load_plain(pairs);
        struct sl_session session = make_session(&l);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf json = {0};
        int line, column, length;
        char place[32];
        strcpy(err.message, "it is so");
        strcpy(err.where, rows[k].where);
        sl_session_add_finding(&session, "E0501", rows[k].key, SEQLSTM_CORRUPT_DATA, &err);
        assert_int_equal(sl_diagnostics_write_json(l.diagnostics, &json, NULL), SEQLSTM_OK);
        const char *at = strstr(sl_buf_text(&json), "\"line\"");
        assert_non_null(at);
        assert_int_equal(sscanf(at, "\"line\": %d, \"column\": %d, \"length\": %d", &line, &column, &length), 3);
        snprintf(place, sizeof place, "%d:%d+%d", line, column, length);
        if (strcmp(place, rows[k].expected) != 0)
            fail_msg("%s, %s: %s, not %s", rows[k].where, rows[k].key ? rows[k].key : "no key", place,
                     rows[k].expected);
        sl_buf_deinit(&json);
        unload(&l);
    }
}

static void test_help_is_cut_off(void **state)
{
    struct loaded l = load_plain(pairs);
    struct sl_session session = make_session(&l);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    strcpy(err.message, "so it is; use that; use more");
    sl_session_add_finding(&session, "E0502", "train", SEQLSTM_INVALID_CONFIG, &err);
    expect_findings(&l, "error[E0502]: so it is\n"
                        "  --> m.yaml:17:8\n"
                        "   |\n"
                        "17 | train: {epochs: 1, init_from: other/run}\n"
                        "   |        ^\n"
                        "   = help: use that; use more\n\n");
    unload(&l);
}

/* An error of the data of a split is at the option whose file it names. */
static void test_findings_of_data(void **state)
{
    static const struct {
        enum sl_split split;
        const char *message, *place;
    } rows[] = {{SL_SPLIT_TRAIN, "%s/a.txt:3: too long", "--> m.yaml:4:19\n"},
                {SL_SPLIT_TRAIN, "%s/b.txt is short", "--> m.yaml:4:34\n"},
                {SL_SPLIT_VALID, "line 3 of %s/d.txt", "--> m.yaml:5:34\n"},
                {SL_SPLIT_TEST, "%s/e.txt", "--> m.yaml:6:18\n"},
                {SL_SPLIT_TEST, "%s/a.txt", "--> m.yaml:6:9\n"}, /* a file of another split */
                {SL_SPLIT_VALID, "%s", "--> m.yaml:5:10\n"}};
    char folder[256];
    (void)state;
    assert_non_null(getcwd(folder, sizeof folder));
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct loaded l = load_plain(pairs);
        struct sl_session session = make_session(&l);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf out = {0};
        snprintf(err.message, sizeof err.message, rows[k].message, folder);
        sl_session_add_data_finding(&session, rows[k].split, SEQLSTM_CORRUPT_DATA, &err);
        assert_int_equal(sl_diagnostics_render(l.diagnostics, false, &out, NULL), SEQLSTM_OK);
        if (!strstr(sl_buf_text(&out), rows[k].place) || !strstr(sl_buf_text(&out), "error[E0501]"))
            fail_msg("%s: %s", rows[k].message, sl_buf_text(&out));
        sl_buf_deinit(&out);
        unload(&l);
    }
}

static void test_data_are_to_blame(void **state)
{
    (void)state;
    for (int status = SEQLSTM_OK; status <= SEQLSTM_CANCELLED; status++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const bool blamed = status == SEQLSTM_NOT_FOUND || status == SEQLSTM_IO;
        const seqlstm_status expected = blamed ? SEQLSTM_CORRUPT_DATA : (seqlstm_status)status;
        err.code = (seqlstm_status)status;
        assert_int_equal(sl_session_blame_data((seqlstm_status)status, &err), expected);
        assert_int_equal(err.code, expected);
        assert_int_equal(sl_session_blame_data((seqlstm_status)status, NULL), expected);
    }
}

/* ---- another configuration than that of the weights -------------------------------------------------------------- */

static void test_what_does_not_fit_the_weights(void **state)
{
    static const struct {
        const char *name, *set, *where;
    } rows[] = {{"reader.kernel", NULL, "m.yaml:12:7"},
                {"reader.kernel", "model.encoder.reader.dropout=0.5", "--set"},
                {"readers.kernel", NULL, "m.yaml:9:1"}, /* of no layer */
                {"optimizer.reader.kernel.m", "train.optimizer=sgd", "--set"},
                {"carried.0", "data.batch_size=3", "--set"},
                {"other", "train.optimizer=sgd", "m.yaml:9:1"}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct sl_override override = {.origin = "--set", .assignment = rows[k].set};
        const struct sl_model_request request = {.overrides = &override, .override_count = rows[k].set ? 1 : 0};
        struct loaded l = load_text("m.yaml", pairs, sizeof pairs - 1, &request);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        if (l.status != SEQLSTM_OK)
            fail_msg("%s", sl_buf_text(&l.text));
        struct sl_session session = make_session(&l);
        strcpy(err.message, "the shape is [2, 3]");
        strcpy(err.where, rows[k].name);
        assert_int_equal(sl_session_add_mismatch(&session, "r/x", SEQLSTM_INVALID_CONFIG, &err),
                         SEQLSTM_INVALID_CONFIG);
        if (!strstr(err.where, rows[k].where))
            fail_msg("%s, %s: %s", rows[k].name, rows[k].set ? rows[k].set : "", err.where);
        assert_string_equal(
            err.message, "r/x was made with another configuration: the shape is [2, 3]; use `seqlstm run` to train a "
                         "new run with this one, or take the change back");
        assert_int_equal(sl_diagnostics_count(l.diagnostics, SL_SEVERITY_ERROR), 1);
        assert_int_equal(sl_session_add_mismatch(&session, "r/x", SEQLSTM_IO, &err), SEQLSTM_IO);
        assert_int_equal(sl_diagnostics_count(l.diagnostics, SL_SEVERITY_ERROR), 1);
        unload(&l);
    }
}

/* ---- files that are missing ------------------------------------------------------------------------------------- */

static void test_missing_data(void **state)
{
    struct loaded l = load_plain(pairs);
    struct sl_session session = make_session(&l);
    (void)state;
    static const char *const there[] = {"a.txt", "b.txt", "c.txt", "d.txt", "e.txt"};
    put("f.text");
    put(".f.txt");
    assert_int_equal(sl_session_find_missing_files(&session), 6);
    sl_diagnostics_forget(l.diagnostics);
    for (size_t k = 0; k < sizeof there / sizeof *there; k++) {
        assert_int_equal(sl_session_find_missing_files(&session), 6 - k);
        sl_diagnostics_forget(l.diagnostics);
        put(there[k]);
    }
    assert_int_equal(sl_session_find_missing_files(&session), 1);
    struct sl_buf out = {0};
    assert_int_equal(sl_diagnostics_render(l.diagnostics, false, &out, NULL), SEQLSTM_OK);
    assert_non_null(strstr(sl_buf_text(&out), "error[E0501]: there is no file `"));
    assert_non_null(strstr(sl_buf_text(&out), "f.txt`\n --> m.yaml:6:33\n"));
    sl_buf_deinit(&out);
    put("f.txt");
    assert_int_equal(sl_session_find_missing_files(&session), 0);
    unload(&l);
}

/* Only a name that is near enough is suggested, and no hidden file. */
static void test_what_may_be_meant(void **state)
{
    struct loaded l = load_plain(arrays);
    struct sl_session session = make_session(&l);
    struct sl_buf out = {0};
    (void)state;
    put("count.npy");
    put("lengths-of-all.npy");
    put(".counts.npy");
    assert_int_equal(sl_session_find_missing_files(&session), 3);
    assert_int_equal(sl_diagnostics_render(l.diagnostics, false, &out, NULL), SEQLSTM_OK);
    const char *help = strstr(sl_buf_text(&out), "did you mean `");
    assert_true(help && strncmp(help, "did you mean `count.npy`, which is there?", 41) == 0);
    assert_null(strstr(help + 1, "did you mean `"));
    sl_buf_deinit(&out);
    unload(&l);
}

static void test_missing_weights(void **state)
{
    struct loaded l = load_plain(pairs);
    struct sl_session session = make_session(&l);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    put("w.npy");
    assert_int_equal(sl_session_find_missing_parts(&session, &err), SEQLSTM_NOT_FOUND);
    assert_string_equal(err.message, "initial weights are missing");
    struct sl_buf out = {0};
    assert_int_equal(sl_diagnostics_render(l.diagnostics, false, &out, NULL), SEQLSTM_OK);
    assert_int_equal(sl_diagnostics_count(l.diagnostics, SL_SEVERITY_ERROR), 2);
    assert_non_null(strstr(sl_buf_text(&out), "error[E0505]: there is no file `"));
    assert_non_null(strstr(sl_buf_text(&out), "v.npy`\n  --> m.yaml:14:33\n"));
    assert_non_null(strstr(sl_buf_text(&out), "error[E0505]: other/run: no run there: neither a run folder nor a name "
                                              "below runs/ (a run folder holds config.yaml)\n  --> m.yaml:17:31\n"));
    sl_buf_deinit(&out);
    sl_diagnostics_forget(l.diagnostics);
    put("v.npy");
    assert_int_equal(sl_session_find_missing_parts(&session, &err), SEQLSTM_NOT_FOUND);
    assert_int_equal(sl_diagnostics_count(l.diagnostics, SL_SEVERITY_ERROR), 1);
    mkdir("other", 0777);
    put("other/run");
    ok(sl_session_find_missing_parts(&session, &err), &err);
    unload(&l);
}

/* ---- files that are not opened ---------------------------------------------------------------------------------- */

/* Each of the model's files, one at a time a pipe. */
static void check_pipes(const char *text, const char *const (*files)[2], size_t count)
{
    for (size_t k = 0; k < count; k++) {
        struct loaded l = load_plain(text);
        struct sl_session session = make_session(&l);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char expected[256];
        for (size_t other = 0; other < count; other++)
            put(files[other][1]);
        ok(sl_trusted_files_check_paths(&session, &err), &err);
        unlink(files[k][1]);
        ok(sl_trusted_files_check_paths(&session, &err), &err);
        assert_int_equal(mkdir(files[k][1], 0777), 0);
        ok(sl_trusted_files_check_paths(&session, &err), &err);
        rmdir(files[k][1]);
        assert_int_equal(mkfifo(files[k][1], 0600), 0);
        if (sl_trusted_files_check_paths(&session, &err) != SEQLSTM_INVALID_CONFIG)
            fail_msg("%s is a pipe", files[k][0]);
        snprintf(expected, sizeof expected, "`%s` of the saved run names ", files[k][0]);
        assert_ptr_equal(strstr(err.message, expected), err.message);
        snprintf(expected, sizeof expected, "%s, which is a pipe", files[k][1]);
        assert_non_null(strstr(err.message, expected));
        assert_int_equal(sl_diagnostics_count(l.diagnostics, SL_SEVERITY_ERROR), 1);
        session.options.trust = true;
        ok(sl_trusted_files_check_paths(&session, &err), &err);
        unlink(files[k][1]);
        unload(&l);
    }
}

static void test_pipes_that_a_run_names(void **state)
{
    static const char *const of_pairs[][2] = {{"data.train.source", "a.txt"},
                                              {"data.train.target", "b.txt"},
                                              {"data.valid.source", "c.txt"},
                                              {"data.valid.target", "d.txt"},
                                              {"data.test.source", "e.txt"},
                                              {"data.test.target", "f.txt"},
                                              {"data.tokenizer.vocab", "words"},
                                              {"data.source_tokenizer.vocab", "source_words"},
                                              {"weights", "w.npy"},
                                              {"weights", "v.npy"}};
    static const char *const of_arrays[][2] = {
        {"data.train.x", "x.npy"}, {"data.train.y", "y.npy"}, {"data.train.lengths", "counts.npy"}};
    static const char *const of_models[][2] = {{"data.tokenizer.model", "of_target"},
                                               {"data.source_tokenizer.model", "of_source"}};
    (void)state;
    check_pipes(pairs, of_pairs, sizeof of_pairs / sizeof *of_pairs);
    check_pipes(arrays, of_arrays, sizeof of_arrays / sizeof *of_arrays);
    check_pipes(models, of_models, sizeof of_models / sizeof *of_models);
    assert_int_equal(mkdir("other", 0777), 0);
    static const char *const initial[][2] = {{"train.init_from", "other/run"}};
    check_pipes(pairs, initial, 1);
}

/* What stands in the place of a file or folder of a run; `refused`: what is said of it without and with `--trust`. */
enum entry { A_FILE, A_FOLDER, A_PIPE, A_LINK, A_LINK_TO_A_FOLDER, A_LINK_TO_A_PIPE, A_LINK_TO_NOTHING };

static void make_entry(const char *path, enum entry entry)
{
    if (entry == A_FILE)
        put(path);
    else if (entry == A_FOLDER)
        assert_int_equal(mkdir(path, 0777), 0);
    else if (entry == A_PIPE)
        assert_int_equal(mkfifo(path, 0600), 0);
    else
        assert_int_equal(symlink(entry == A_LINK               ? "../file"
                                 : entry == A_LINK_TO_A_FOLDER ? "../folder"
                                 : entry == A_LINK_TO_A_PIPE   ? "../pipe"
                                                               : "../nothing",
                                 path),
                         0);
}

static void check_entry(const char *name, enum entry entry, const char *untrusted, const char *trusted)
{
    char path[64];
    snprintf(path, sizeof path, "r/%s", name);
    make_entry(path, entry);
    for (int trust = 0; trust < 2; trust++) {
        struct loaded l = load_plain(arrays);
        struct sl_session session = make_session(&l);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const char *says = trust ? trusted : untrusted;
        session.options.trust = trust;
        const seqlstm_status status = sl_trusted_files_check(&session, "r", &err);
        if ((status == SEQLSTM_OK) != (says == NULL))
            fail_msg("%s, entry %d, trust %d: %s", name, entry, trust, err.message);
        if (says) {
            assert_int_equal(strncmp(err.message, name, strlen(name)), 0);
            assert_non_null(strstr(err.message, says));
            assert_int_equal(sl_diagnostics_count(l.diagnostics, SL_SEVERITY_ERROR), 1);
        }
        unload(&l);
    }
    assert_int_equal(remove(path), 0);
}

static void test_entries_of_a_run_folder(void **state)
{
    static const char *const names[] = {"config.yaml",   "data.json",    "plan.json",         "sources.json",
                                        "metrics.jsonl", "summary.json", "final.safetensors", "quantization.json",
                                        "report.html",   "flags.json",   "checksums.json",    "lock"};
    static const char link[] = "is a link, and what it leads to is not in the run folder", pipe[] = "is a pipe",
                      file[] = "is a folder, and a run has a file of this name", folder[] = "is no folder";
    (void)state;
    assert_true(mkdir("r", 0777) == 0 && mkdir("folder", 0777) == 0 && mkfifo("pipe", 0600) == 0);
    put("file");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        check_entry(names[k], A_FILE, NULL, NULL);
        check_entry(names[k], A_FOLDER, file, file);
        check_entry(names[k], A_PIPE, pipe, pipe);
        check_entry(names[k], A_LINK, link, NULL);
        check_entry(names[k], A_LINK_TO_A_FOLDER, link, file);
        check_entry(names[k], A_LINK_TO_A_PIPE, link, pipe);
        check_entry(names[k], A_LINK_TO_NOTHING, link, NULL);
    }
    check_entry("other.txt", A_PIPE, NULL, NULL);
    check_entry("checkpoints", A_FILE, folder, folder);
    check_entry("checkpoints", A_FOLDER, NULL, NULL);
    check_entry("checkpoints", A_LINK, link, folder);
    check_entry("checkpoints", A_LINK_TO_A_FOLDER, link, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_errors_are_findings),
        cmocka_unit_test(test_where_findings_are),
        cmocka_unit_test(test_help_is_cut_off),
        cmocka_unit_test(test_findings_of_data),
        cmocka_unit_test(test_data_are_to_blame),
        cmocka_unit_test(test_what_does_not_fit_the_weights),
        cmocka_unit_test_setup(test_missing_data, enter),
        cmocka_unit_test_setup(test_what_may_be_meant, enter),
        cmocka_unit_test_setup(test_missing_weights, enter),
        cmocka_unit_test_setup(test_pipes_that_a_run_names, enter),
        cmocka_unit_test_setup(test_entries_of_a_run_folder, enter),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
