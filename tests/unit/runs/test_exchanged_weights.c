/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that come into a run or leave it: the files of an export, imports that are refused or fail, weights of
 * another run and vectors of words. */
#include "opened_run.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "oom.h"
#include "session/record/session_record.h"
#include "train/checkpoint/weights.h"

#define DATA                                                                                                           \
    "seqlstm: 1\nname: classes\nseed: 3\ndata:\n  type: lines\n  label: first\n  train: {file: lines.txt}\n"           \
    "  tokenizer: {type: whitespace, specials: [unk]}\n  batch_size: 2\nbackends: [reference]\n"                       \
    "dispatch: {policy: order}\n"
#define MODEL(embedding, train)                                                                                        \
    DATA "train: {epochs: 1" train "}\nmodel:\n  - {type: embedding, dim: 3" embedding "}\n"                           \
         "  - {type: lstm, units: 4}\n  - {type: output, activation: softmax}\n"

static int setup(void **state)
{
    struct opened_run run;
    struct sl_run_result result;
    if (scratch_make(state) != 0 || chdir(scratch_folder) != 0)
        return -1;
    put_file("lines.txt", "good fine day\nbad grey day\nfair mild day\nbad cold day\ngood warm day\n");
    open_text(&run, "trained", MODEL("", ""));
    ok(train_run(&run, &result), &run.err);
    ok(sl_session_read_weights(run.session, &run.err), &run.err);
    close_run(&run);
    return 0;
}

/* ---- out -------------------------------------------------------------------------------------------------------- */

static void test_exports_are_named_by_the_last_ending(void **state)
{
    static const struct {
        const char *path, *encoder, *decoder;
    } cases[] = {
        {"m.onnx", "m.encoder.onnx", "m.decoder.onnx"},
        {"m", "m.encoder", "m.decoder"},
        {"a.b/m", "a.b/m.encoder", "a.b/m.decoder"},
        {"a.b/m.v2.onnx", "a.b/m.v2.encoder.onnx", "a.b/m.v2.decoder.onnx"},
        {"v1.5.onnx", "v1.5.encoder.onnx", "v1.5.decoder.onnx"},
        {"../m", "../m.encoder", "../m.decoder"},
    };
    static const enum sl_weights_format whole[] = {SL_WEIGHTS_CANONICAL, SL_WEIGHTS_PYTORCH, SL_WEIGHTS_KERAS};
    struct sl_model model = {.train = {.task = SL_TASK_SEQ2SEQ}};
    const struct sl_session session = {.model = &model};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sl_buf paths[2] = {{0}}, one[2] = {{0}};
        model.train.task = SL_TASK_SEQ2SEQ;
        assert_int_equal(sl_session_name_exports(&session, SL_WEIGHTS_ONNX, cases[k].path, paths), 2);
        assert_string_equal(sl_buf_text(&paths[0]), cases[k].encoder);
        assert_string_equal(sl_buf_text(&paths[1]), cases[k].decoder);
        for (size_t f = 0; f < sizeof whole / sizeof *whole; f++)
            assert_int_equal(sl_session_name_exports(&session, whole[f], cases[k].path, one), 1);
        model.train.task = SL_TASK_CLASSIFY;
        assert_int_equal(sl_session_name_exports(&session, SL_WEIGHTS_ONNX, cases[k].path, one), 1);
        assert_int_equal(one[0].length_bytes, 4 * strlen(cases[k].path)); /* each appends the path as it is */
        assert_int_equal(one[1].length_bytes, 0);
        sl_buf_deinit(&paths[0]);
        sl_buf_deinit(&paths[1]);
        sl_buf_deinit(&one[0]);
    }
}

/* ---- in --------------------------------------------------------------------------------------------------------- */

static seqlstm_status import(const char *name, const char *file, enum sl_weights_format format, size_t renames,
                             struct opened_run *run)
{
    static const struct sl_rename rename = {"a", "b"};
    char path[256];
    struct sl_buf notes = {0};
    snprintf(path, sizeof path, "%s", scratch_path(file));
    const struct sl_import_request request = {
        .path = path, .format = format, .renames = &rename, .rename_count = renames};
    open_text(run, name, MODEL("", ""));
    const seqlstm_status status = sl_session_import(run->session, &request, &notes, &run->err);
    sl_buf_deinit(&notes);
    return status;
}

static void expect_refused(const char *file, enum sl_weights_format format, size_t renames, seqlstm_status status,
                           const char *message)
{
    struct opened_run run;
    assert_int_equal(import("refused", file, format, renames, &run), status);
    assert_int_equal(run.err.code, status);
    assert_string_equal(hide_scratch(run.err.message), message);
    assert_false(sl_file_exists(run.out)); /* nothing was made */
    close_run(&run);
}

/* The weights of the trained run, with a change, as a file. */
static void save_changed(const char *name, int32_t view, int64_t element, float value)
{
    struct opened_run run;
    open_to_read(&run, "trained");
    ok(sl_session_read_weights(run.session, &run.err), &run.err);
    struct sl_params *params = run.session->params;
    if (view >= 0)
        params->values[params->views[view].offset_elems + element] = value;
    ok(sl_weights_save(params, scratch_path(name), NULL, 0, &run.err), &run.err);
    close_run(&run);
}

static void export_to(const char *name, enum sl_weights_format format)
{
    struct opened_run run;
    struct sl_buf notes = {0};
    open_to_read(&run, "trained");
    ok(sl_session_export(run.session, format, scratch_path(name), &notes, &run.err), &run.err);
    sl_buf_deinit(&notes);
    close_run(&run);
}

static void test_imports_of_each_format_make_a_run_of_the_same_weights(void **state)
{
    static const struct {
        const char *file, *run;
        enum sl_weights_format out, in;
    } cases[] = {
        {"canonical.v1.file", "run-a", SL_WEIGHTS_CANONICAL, SL_WEIGHTS_AUTO},
        {"torch.v1.file", "run-b", SL_WEIGHTS_PYTORCH, SL_WEIGHTS_AUTO},
        {"keras.onnx.file", "run-c", SL_WEIGHTS_KERAS, SL_WEIGHTS_AUTO},
        {"model.v1.onnx", "run-d", SL_WEIGHTS_ONNX, SL_WEIGHTS_AUTO},
        {"model.file", "run-e", SL_WEIGHTS_ONNX, SL_WEIGHTS_ONNX},
        {"canonical.onnx", "run-f", SL_WEIGHTS_CANONICAL, SL_WEIGHTS_CANONICAL},
    };
    struct opened_run trained, run;
    (void)state;
    open_to_read(&trained, "trained");
    ok(sl_session_read_weights(trained.session, &trained.err), &trained.err);
    const struct sl_params *wanted = trained.session->params;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char name[64];
        export_to(cases[k].file, cases[k].out);
        ok(import(cases[k].run, cases[k].file, cases[k].in, 0, &run), &run.err);
        close_run(&run);
        snprintf(name, sizeof name, "%s/checksums.json", cases[k].run);
        assert_true(file_says(name, "\"final.safetensors\"") && file_says(name, "\"data.json\""));
        open_to_read(&run, cases[k].run);
        ok(sl_session_read_weights(run.session, &run.err), &run.err);
        const struct sl_params *got = run.session->params;
        assert_int_equal(got->elems, wanted->elems);
        for (int64_t i = 0; i < got->elems; i++)
            assert_true(fabsf(got->values[i] - wanted->values[i]) <= 1e-6f * (1 + fabsf(wanted->values[i])));
        assert_string_equal(sl_buf_text(&run.said), "");
        close_run(&run);
    }
    close_run(&trained);
}

static void test_what_does_not_fit_makes_no_run(void **state)
{
    static const char rename[] = "`--rename` is for the names of PyTorch and Keras";
    struct opened_run run;
    struct sl_run_result result;
    (void)state;
    open_text(&run, "lean",
              DATA "train: {epochs: 1}\nmodel:\n  - {type: embedding, dim: 2}\n"
                   "  - {type: lstm, units: 4}\n  - {type: output, activation: softmax}\n");
    ok(train_run(&run, &result), &run.err);
    close_run(&run);
    expect_refused("lean/final.safetensors", SL_WEIGHTS_CANONICAL, 0, SEQLSTM_CORRUPT_DATA,
                   "`embedding_1.w` is F32 [7, 2] in the file, the model has float32 [7, 3]");
    export_to("plain.safetensors", SL_WEIGHTS_CANONICAL);
    export_to("plain.onnx", SL_WEIGHTS_ONNX);
    expect_refused("plain.safetensors", SL_WEIGHTS_CANONICAL, 1, SEQLSTM_INVALID_ARGUMENT, rename);
    expect_refused("plain.safetensors", SL_WEIGHTS_AUTO, 1, SEQLSTM_INVALID_ARGUMENT, rename);
    expect_refused("plain.onnx", SL_WEIGHTS_ONNX, 1, SEQLSTM_INVALID_ARGUMENT, rename);
    expect_refused("plain.onnx", SL_WEIGHTS_AUTO, 1, SEQLSTM_INVALID_ARGUMENT, rename);
    expect_refused("none.safetensors", SL_WEIGHTS_CANONICAL, 0, SEQLSTM_NOT_FOUND,
                   "cannot open `/x/none.safetensors`: No such file or directory");
}

/* The place of the value among those of its parameter does not matter, nor does that of the parameter. */
static void test_values_that_are_not_finite_are_named(void **state)
{
    struct opened_run run;
    char names[16][64], message[200];
    int64_t elems[16];
    (void)state;
    open_to_read(&run, "trained");
    ok(sl_session_read_weights(run.session, &run.err), &run.err);
    const int32_t count = run.session->params->view_count;
    assert_in_range(count, 4, 16);
    for (int32_t v = 0; v < count; v++) {
        snprintf(names[v], sizeof names[v], "%s", run.session->params->views[v].name);
        elems[v] = run.session->params->views[v].elems;
    }
    close_run(&run);
    for (int32_t v = 0; v < count; v++)
        for (int end = 0; end < 2; end++) {
            save_changed("wrong.safetensors", v, end ? elems[v] - 1 : 0, end ? INFINITY : NAN);
            snprintf(message, sizeof message,
                     "/x/wrong.safetensors: what becomes `%s` holds values that are not finite", names[v]);
            expect_refused("wrong.safetensors", SL_WEIGHTS_CANONICAL, 0, SEQLSTM_CORRUPT_DATA, message);
        }
}

/* Whichever write fails, no folder of half a run is left. */
static void test_an_import_that_cannot_be_written_leaves_nothing(void **state)
{
    struct opened_run run;
    int failures = 0;
    (void)state;
    export_to("plain.safetensors", SL_WEIGHTS_CANONICAL);
    for (int n = 1;; n++) {
        char path[256];
        struct sl_buf notes = {0};
        snprintf(path, sizeof path, "%s", scratch_path("plain.safetensors"));
        const struct sl_import_request request = {.path = path, .format = SL_WEIGHTS_AUTO};
        open_text(&run, "written", MODEL("", ""));
        io_fail_at(n, ENOSPC, 3);
        const seqlstm_status status = sl_session_import(run.session, &request, &notes, &run.err);
        const bool failed = io_disarm();
        sl_buf_deinit(&notes);
        if (status != SEQLSTM_OK) {
            assert_int_equal(status, SEQLSTM_IO);
            if (sl_file_exists(run.out))
                fail_msg("write %d: %s", n, run.err.message);
            failures++;
        }
        close_run(&run);
        if (!failed)
            break;
        if (status == SEQLSTM_OK) /* what is not needed may fail */
            assert_int_equal(scratch_remove_folder("written"), 0);
    }
    assert_true(failures > 5);
}

/* ---- initial weights -------------------------------------------------------------------------------------------- */

/* What is logged of the initial weights. */
static void expect_said(const char *model, const char *message)
{
    struct opened_run run;
    struct sl_run_result result;
    scratch_remove_folder("initial");
    open_text(&run, "initial", model);
    ok(train_run(&run, &result), &run.err);
    const char *said = sl_buf_text(&run.said), *at = strstr(said, message);
    if (at == NULL || (at != said && at[-1] != '\n') || at[strlen(message)] != '\n')
        fail_msg("expected\n  %s\nin\n%s", message, said);
    close_run(&run);
}

static void test_weights_of_another_run_are_counted(void **state)
{
#define OTHER(from)                                                                                                    \
    DATA "train: {epochs: 1, init_from: " from "}\nmodel:\n  - {type: embedding, dim: 3}\n"                            \
         "  - {type: dense, units: 2}\n  - {type: gru, units: 5, name: reader}\n"                                      \
         "  - {type: output, activation: softmax, name: last}\n"
    (void)state;
    expect_said(OTHER("trained"), "info: init_from trained/final.safetensors: 1 parameter loaded, 7 of this model not "
                                  "in it, 5 of it not in this model");
    save_changed("some.file", -1, 0, 0);
    expect_said(OTHER("some.file"),
                "info: init_from some.file: 1 parameter loaded, 7 of this model not in it, 5 of it not in this model");
}

static void test_a_run_with_a_link_is_not_trusted(void **state)
{
    struct opened_run run;
    struct sl_run_result result;
    (void)state;
    save_changed("elsewhere.file", -1, 0, 0);
    const char *const parts[] = {"linked", "linked/final.safetensors"};
    char target[256];
    snprintf(target, sizeof target, "%s", scratch_path("elsewhere.file"));
    assert_int_equal(sl_file_make_folders(scratch_path(parts[0]), NULL), SEQLSTM_OK);
    put_file("linked/config.yaml", "seqlstm: 1\n");
    assert_int_equal(symlink(target, scratch_path(parts[1])), 0);
    for (int trust = 0; trust < 2; trust++) {
        open_text(&run, "from-a-link", MODEL("", ", init_from: linked"));
        run.session->options.trust = trust;
        const seqlstm_status status = train_run(&run, &result);
        if (status != (trust ? SEQLSTM_OK : SEQLSTM_INVALID_CONFIG))
            fail_msg("status %d: %s", (int)status, run.err.message);
        if (!trust)
            assert_string_equal(run.err.message,
                                "final.safetensors is a link, and what it leads to is not in the run folder; use "
                                "`--trust` if you made it yourself");
        close_run(&run);
        assert_int_equal(scratch_remove_folder("from-a-link"), 0);
    }
}

static void test_words_with_a_vector_are_counted(void **state)
{
    (void)state;
    put_file("some.vec", "fine 1 2 3\nnowhere 4 5 6\nday 7 8 9\n");
    put_file("none.vec", "nowhere 4 5 6\n");
    expect_said(MODEL(", weights: some.vec", ""), "info: embedding_1: 2 of 7 words have a vector in /x/some.vec");
    expect_said(MODEL(", weights: none.vec", ""), "warning: embedding_1: 0 of 7 words have a vector in /x/none.vec");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exports_are_named_by_the_last_ending),
        cmocka_unit_test(test_imports_of_each_format_make_a_run_of_the_same_weights),
        cmocka_unit_test(test_what_does_not_fit_makes_no_run),
        cmocka_unit_test(test_values_that_are_not_finite_are_named),
        cmocka_unit_test(test_an_import_that_cannot_be_written_leaves_nothing),
        cmocka_unit_test(test_weights_of_another_run_are_counted),
        cmocka_unit_test(test_a_run_with_a_link_is_not_trusted),
        cmocka_unit_test(test_words_with_a_vector_are_counted),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
