/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders of runs: stored plans, quantization.json and flags.json, right, damaged and of both sides of each
 * limit; new folders, and the folders that a name means. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "model/model.h"
#include "ok.h"
#include "scratch.h"
#include "session/record/session_record.h"
#include "session/run_files/run_flags.h"
#include "session/run_folder/run_folder.h"
#include "session/run_folder/run_list.h"
#include "session/run_folder/run_name.h"
#include "session/run_folder/stored_plan.h"
#include "session/run_folder/stored_quantization.h"

static char folder[128]; /* of the test */

/* A new folder for each test, with the folder `runs` in it, as the current one. */
static int enter(void **state)
{
    static int number;
    char name[24];
    (void)state;
    snprintf(name, sizeof name, "test-%d", number++);
    snprintf(folder, sizeof folder, "%s", scratch_path(name));
    return mkdir(folder, 0777) || chdir(folder);
}

static void put(const char *path, const char *text)
{
    char parent[128];
    snprintf(parent, sizeof parent, "%s", path);
    for (char *slash = strchr(parent, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(parent, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* What was logged, a line each. */
static struct sl_buf logged;

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    sl_buf_printf(&logged, "%s: %s\n", sl_log_level_name(level), message);
}

static const struct sl_log log_all = {.write = write_log, .level = SL_LOG_TRACE};

static void expect_log(const char *expected)
{
    assert_string_equal(sl_buf_text(&logged), expected);
    sl_buf_deinit(&logged);
    logged = (struct sl_buf){0};
}

/* ---- stored plans ------------------------------------------------------------------------------------------- */

#define LAYER(name) "{\"name\": \"" name "\", \"backend\": \"b\", \"variant\": \"v\"}"
#define WHOLE(more) "{\"step_ns\": 7, \"other_step_ns\": 9, \"overturned\": true, \"other\": [" more "]}"

static void test_a_whole_plan(void **state)
{
    static const char text[] =
        "{\"phase\": \"train\", \"layers\": [" LAYER("x") ", " LAYER("y") "], \"evaluate\": {\"layers\": [" LAYER(
            "z") "], "
                 "\"whole_steps\": null}, \"decoding\": {\"layers\": [" LAYER(
                     "d") "]}, \"sampling\": {\"layers\": [" LAYER("s") ", " LAYER("t") "]}, \"threads\": 3, "
                                                                                        "\"parallel\": {\"pieces\": "
                                                                                        "4}, \"devices\": "
                                                                                        "[{\"backend\": \"b\", "
                                                                                        "\"class\": "
                                                                                        "\"cpu:x\", \"name\": \"n\"}, "
                                                                                        "{\"backend\": \"c\", "
                                                                                        "\"class\": \"cpu:y\"}], "
                                                                                        "\"whole_steps\": " WHOLE(LAYER(
                                                                                            "o")) ", "
                                                                                                  "\"batching\": "
                                                                                                  "{\"edges\": [0, 5, "
                                                                                                  "9], \"step_cost\": "
                                                                                                  "{\"points\": "
                                                                                                  "[{\"width\": 1, "
                                                                                                  "\"step_ns\": 2}, "
                                                                                                  "{\"width\": 4, "
                                                                                                  "\"step_ns\": 3.5}], "
                                                                                                  "\"batch_ns\": 10, "
                                                                                                  "\"shape_ns\": -1}}}";
    struct sl_stored_plan plan = {.threads = 0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    sl_arena_init(&plan.arena);
    ok(sl_stored_plan_parse("p", text, sizeof text - 1, &plan, &err), &err);
    assert_int_equal(plan.phases.count, 3);
    static const char *const names[] = {"x", "y", "z"};
    for (int k = 0; k < 3; k++) {
        assert_string_equal(plan.phases.items[k].node, names[k]);
        assert_string_equal(plan.phases.items[k].backend, "b");
        assert_string_equal(plan.phases.items[k].variant, "v");
        assert_int_equal(plan.phases.items[k].phase, k < 2 ? SL_PHASE_TRAIN : SL_PHASE_EVALUATE);
    }
    assert_true(plan.decoding.count == 1 && strcmp(plan.decoding.items[0].node, "d") == 0);
    assert_int_equal(plan.decoding.items[0].phase, SL_PHASE_PREDICT);
    assert_true(plan.sampling.count == 2 && strcmp(plan.sampling.items[1].node, "t") == 0);
    assert_true(plan.threads == 3 && plan.pieces == 4 && plan.device_count == 2);
    assert_string_equal(plan.devices[0].name, "n");
    assert_string_equal(plan.devices[1].name, "");
    assert_string_equal(plan.devices[1].device_class, "cpu:y");
    assert_true(plan.edge_count == 3 && plan.edges[0] == 0 && plan.edges[2] == 9);
    assert_true(plan.cost.count == 2 && plan.cost.points[1].width == 4 && plan.cost.points[1].step_ns == 3.5);
    assert_true(plan.cost.batch_ns == 10 && plan.cost.shape_ns == 0);
    const struct sl_whole_steps *steps = sl_stored_plan_find_whole_steps(&plan, SL_PHASE_TRAIN);
    assert_non_null(steps);
    assert_true(steps->chosen_ns == 7 && steps->other_ns == 9 && steps->overturned && steps->other_count == 1);
    assert_string_equal(steps->other[0].node, "o");
    assert_int_equal(steps->source, SL_COST_STORED);
    assert_null(sl_stored_plan_find_whole_steps(&plan, SL_PHASE_EVALUATE));
    assert_null(sl_stored_plan_find_whole_steps(&plan, SL_PHASE_PREDICT));
    sl_arena_deinit(&plan.arena);
}

static void test_plans_at_their_limits(void **state)
{
    static const struct {
        const char *text, *says; /* NULL: it is read */
    } rows[] = {
        {"{\"layers\": []}", NULL},
        {"{", "p:1:1: "},
        {"{\"layers\": [], \"layers\": []}", "duplicate object key near '\"layers\"'"},
        {"{\"layers\": [],\n\"parallel\": {\"pieces\": 2, \"pieces\": 2}}", "p:2:"},
        {"{}", "p: no array \"layers\", expected a plan of this program"},
        {"{\"layers\": {}}", "p: no array \"layers\""},
        {"{\"phase\": \"evaluate\", \"layers\": []}", "the plan of a saved run's evaluation"},
        {"{\"layers\": [{\"name\": \"x\", \"backend\": \"b\"}]}", "p: layer 0 has no name, backend or variant"},
        {"{\"layers\": [" LAYER("x") ", {\"backend\": \"b\", \"variant\": \"v\"}]}", "p: layer 1 has no name"},
        {"{\"layers\": [], \"decoding\": {\"layers\": [7]}}", "p: layer 0 has no name"},
        {"{\"layers\": [], \"threads\": 1}", NULL},
        {"{\"layers\": [], \"threads\": 1024}", NULL},
        {"{\"layers\": [], \"threads\": 0}", "p: \"threads\" is not a number from 1 to 1024"},
        {"{\"layers\": [], \"threads\": 1025}", "p: \"threads\" is not"},
        {"{\"layers\": [], \"parallel\": {\"pieces\": 1}}", NULL},
        {"{\"layers\": [], \"parallel\": {\"pieces\": 0}}", "p: \"pieces\" is not a number from 1 to "},
        {"{\"layers\": [], \"parallel\": {\"pieces\": 1000000}}", "p: \"pieces\" is not"},
        {"{\"layers\": [], \"devices\": [{\"class\": \"c\"}]}", "p: device 0 has no backend or class"},
        {"{\"layers\": [], \"devices\": [{\"backend\": \"b\"}]}", "p: device 0 has no backend or class"},
        {"{\"layers\": [], \"whole_steps\": " WHOLE("") "}", NULL},
        {"{\"layers\": [], \"whole_steps\": {\"step_ns\": 7}}", "p: \"whole_steps\" lacks step_ns"},
        {"{\"layers\": [], \"evaluate\": {\"whole_steps\": {}}}", "p: \"whole_steps\" lacks"},
        {"{\"layers\": [], \"whole_steps\": " WHOLE("{}") "}", "p: layer 0 has no name"},
        {"{\"layers\": [], \"batching\": {\"edges\": [3]}}", NULL},
        {"{\"layers\": [], \"batching\": {\"edges\": [2147483647]}}", NULL},
        {"{\"layers\": [], \"batching\": {\"edges\": [2147483648]}}", "p: edge 0 of \"batching\" does not ascend"},
        {"{\"layers\": [], \"batching\": {\"edges\": [-1]}}", "p: edge 0 of"},
        {"{\"layers\": [], \"batching\": {\"edges\": [3, 3]}}", "p: edge 1 of"},
        {"{\"layers\": [], \"batching\": {\"step_cost\": {\"points\": [{\"width\": 0, \"step_ns\": 1}]}}}",
         "p: point 0 of \"step_cost\" is out of order"},
        {"{\"layers\": [], \"batching\": {\"step_cost\": {\"points\": [{\"width\": 1, \"step_ns\": 0}]}}}",
         "p: point 0"},
        {"{\"layers\": [], \"batching\": {\"step_cost\": {\"points\": [{\"width\": 2, \"step_ns\": 1}, {\"width\": 2, "
         "\"step_ns\": 1}]}}}",
         "p: point 1"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_stored_plan plan = {.threads = 0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        sl_arena_init(&plan.arena);
        const seqlstm_status status = sl_stored_plan_parse("p", rows[k].text, strlen(rows[k].text), &plan, &err);
        if ((status == SEQLSTM_OK) != (rows[k].says == NULL) || (rows[k].says && !strstr(err.message, rows[k].says)))
            fail_msg("%s: %s", rows[k].text, err.message);
        sl_arena_deinit(&plan.arena);
    }
}

/* Threads that are said, those of the plan, and what is logged where they differ. */
static void test_threads_of_a_plan(void **state)
{
    struct sl_session session = {.options = {.log = &log_all}};
    (void)state;
    session.stored.threads = 1;
    session.options.threads = 2;
    assert_int_equal(sl_stored_plan_choose_threads(&session), 2); /* the plan is not replayed */
    expect_log("");
    session.replay = true;
    assert_int_equal(sl_stored_plan_choose_threads(&session), 1);
    expect_log("info: 1 thread, as in the stored plan; --threads changes that\n");
    session.stored.threads = 2;
    assert_int_equal(sl_stored_plan_choose_threads(&session), 2);
    expect_log("");
    session.options.threads_given = true;
    assert_int_equal(sl_stored_plan_choose_threads(&session), 2);
    expect_log("");
    session.options.threads = 1;
    assert_int_equal(sl_stored_plan_choose_threads(&session), 1);
    expect_log("warning: 1 thread instead of the stored plan's 2: the same batches and masks, but not the same bits\n");
    session.stored.threads = 1;
    session.options.threads = 3;
    assert_int_equal(sl_stored_plan_choose_threads(&session), 3);
    expect_log(
        "warning: 3 threads instead of the stored plan's 1: the same batches and masks, but not the same bits\n");
    session.options.threads_given = false;
    session.options.threads = 1000;
    session.stored.threads = 1000;
    assert_int_equal(sl_stored_plan_choose_threads(&session), 1000);
    assert_non_null(strstr(sl_buf_text(&logged), "warning: the stored plan's 1000 threads share "));
    sl_buf_deinit(&logged);
    logged = (struct sl_buf){0};
    session.stored.threads = 0;
    assert_int_equal(sl_stored_plan_choose_threads(&session), 1000);
}

/* ---- quantization.json -------------------------------------------------------------------------------------- */

/* NULL: there is no file. */
static seqlstm_status read_quantization(const char *text, struct sl_stored_quantization *out, struct seqlstm_error *err)
{
    struct sl_session session = {.folder = folder};
    sl_arena_init(&session.quantization.arena);
    if (text)
        put("quantization.json", text);
    const seqlstm_status status = sl_stored_quantization_read(&session, err);
    *out = session.quantization;
    return status;
}

#define QUANTIZED(layers) "{\"dtype\": \"int8\", \"weights\": \"1f\", \"layers\": [" layers "]}"
#define INT8(low, high, scale, shift)                                                                                  \
    "{\"name\": \"l\", \"low\": " low ", \"high\": " high ", \"scale\": " scale ", \"shift\": " shift "}"

static void test_quantization(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {NULL, NULL},
        {QUANTIZED(""), NULL},
        {QUANTIZED(INT8("-1", "1", "127.5", "127.5")), NULL},
        {QUANTIZED(INT8("-1", "1", "128.7", "128")), NULL},
        {QUANTIZED(INT8("-1", "1", "129", "128")), "scale and shift of `l` are not those of its range"},
        {QUANTIZED(INT8("-1", "1", "127.5", "129")), "scale and shift of `l` are not"},
        {QUANTIZED(INT8("0.5", "1", "255", "0")), NULL}, /* a range holds 0 */
        {QUANTIZED(INT8("-2", "-1", "127.5", "255")), NULL},
        {QUANTIZED(INT8("0", "0", "1", "255")), NULL},
        {QUANTIZED(INT8("0", "0", "1", "255.5")), "layer 0 needs a name, a scale above 0 and a shift from 0 to 255"},
        {QUANTIZED(INT8("0", "0", "1", "-1")), "layer 0 needs"},
        {QUANTIZED(INT8("0", "0", "0", "1")), "layer 0 needs"},
        {QUANTIZED(INT8("0", "0", "1e30", "1")), "layer 0 needs"},
        {QUANTIZED("{\"scale\": 1, \"shift\": 1}"), "layer 0 needs a name"},
        {QUANTIZED("{\"name\": \"l\", \"dtype\": \"bfloat16\"}, {\"name\": \"m\", \"dtype\": \"tf32\"}"), NULL},
        {QUANTIZED("{\"name\": \"l\", \"dtype\": \"float16\"}"),
         "the dtype of `l` is none of \"bfloat16\" and \"tf32\""},
        {QUANTIZED("{\"name\": \"l\", \"dtype\": 7}"), "the dtype of `l` is none"},
        {"{\"dtype\": \"int4\", \"weights\": \"1\", \"layers\": []}", "expected \"dtype\": \"int8\", \"weights\" and"},
        {"{\"dtype\": \"int8\", \"layers\": []}", "expected \"dtype\""},
        {"{\"dtype\": \"int8\", \"weights\": \"1\"}", "expected \"dtype\""},
        {"{\"dtype\": \"int8\", \"weights\": \"1f\", \"weights\": \"1f\", \"layers\": []}",
         "duplicate object key near '\"weights\"'"},
        {"[", "quantization.json:1:1: "},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_stored_quantization stored;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = read_quantization(rows[k].text, &stored, &err);
        if ((status == SEQLSTM_OK) != (rows[k].says == NULL) || (rows[k].says && !strstr(err.message, rows[k].says)))
            fail_msg("%s: %s", rows[k].text, err.message);
        assert_int_equal(status, rows[k].says ? SEQLSTM_CORRUPT_DATA : SEQLSTM_OK);
        sl_arena_deinit(&stored.arena);
    }
}

/* What is written is read again: ranges, types, and not the layers that stay as they were. */
static void test_quantization_there_and_back(void **state)
{
    struct sl_quantized_report layers[] = {
        {.name = "a",
         .dtype = SEQLSTM_DTYPE_INT8,
         .low = -0.3,
         .high = 0.7,
         .scale = 255,
         .shift = 76.5f,
         .accepted = true},
        {.name = "b", .dtype = SEQLSTM_DTYPE_INT8, .scale = 1, .shift = 1},
        {.name = "c", .dtype = SEQLSTM_DTYPE_BFLOAT16, .accepted = true},
        {.name = "d", .dtype = SEQLSTM_DTYPE_TF32, .accepted = true},
        {.name = "e", .dtype = SEQLSTM_DTYPE_INT8, .low = 0, .high = 2, .scale = 127.5f, .shift = 0, .accepted = true},
    };
    struct sl_quantize_result result = {.main = SL_SPLIT_VALID, .layers = layers, .count = 5};
    struct sl_session session = {.folder = folder};
    struct sl_stored_quantization stored;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const char *const names[] = {"a", "c", "d", "e"};
    static const int at[] = {0, 2, 3, 4};
    (void)state;
    session.quantization.weights = UINT64_C(0xfedcba9876543210);
    result.splits[SL_SPLIT_VALID] = (struct sl_quantized_split){
        .is_measured = true, .before = {1, {{"loss", 0.25, NULL}}}, .after = {1, {{"loss", (double)NAN, NULL}}}};
    for (int test = 0; test < 2; test++) {
        char *text = NULL;
        result.splits[SL_SPLIT_TEST].is_measured = test;
        result.splits[SL_SPLIT_TEST].before = (struct sl_metric_values){2, {{"loss", 0.5, NULL}, {"mae", 3, NULL}}};
        ok(sl_stored_quantization_write(&session, &result, &err), &err);
        ok(read_quantization(NULL, &stored, &err), &err);
        assert_true(stored.weights == UINT64_C(0xfedcba9876543210));
        assert_int_equal(stored.layers.count, 4);
        for (int k = 0; k < 4; k++) {
            assert_string_equal(stored.layers.layers[k].node, names[k]);
            assert_int_equal(stored.layers.layers[k].dtype, layers[at[k]].dtype);
            if (layers[at[k]].dtype == SEQLSTM_DTYPE_INT8)
                assert_true(stored.layers.layers[k].scale == layers[at[k]].scale &&
                            stored.layers.layers[k].shift == layers[at[k]].shift);
        }
        sl_arena_deinit(&stored.arena);
        FILE *file = fopen("quantization.json", "r");
        assert_non_null(file);
        text = calloc(1, 4096);
        assert_true(text && fread(text, 1, 4095, file) > 0);
        fclose(file);
        assert_non_null(
            strstr(text, "\"split\": \"valid\",\n  \"before\": {\"loss\": 0.25},\n  \"after\": {\"loss\": null}"));
        assert_int_equal(strstr(text, "\"test\": {\n    \"before\": {\"loss\": 0.5, \"mae\": 3}") != NULL, test);
        assert_non_null(
            strstr(text, "{\"name\": \"a\", \"low\": -0.3, \"high\": 0.7, \"scale\": 255, \"shift\": 76.5}"));
        free(text);
    }
}

/* ---- flags.json --------------------------------------------------------------------------------------------- */

static seqlstm_status read_flags(struct sl_session *session, const char *text, struct seqlstm_error *err)
{
    session->folder = folder;
    session->options.log = &log_all;
    sl_arena_init(&session->stored.arena);
    put("flags.json", text);
    return sl_run_flags_read(session, err);
}

#define FLAGS(more) "{\"schema\": \"seqlstm.flags/1\"" more "}"

static void test_flags_that_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {FLAGS(""), NULL},
        {"{\"schema\": \"seqlstm.flags/2\"}", "the schema is \"seqlstm.flags/2\", expected \"seqlstm.flags/1\""},
        {"{}", "the schema is \"\""},
        {"[", "flags.json:1:1: "},
        {FLAGS(", \"threads\": 1, \"threads\": 1"), "duplicate object key near '\"threads\"'"},
        {FLAGS(", \"threads\": 1"), NULL},
        {FLAGS(", \"threads\": 1024"), NULL},
        {FLAGS(", \"threads\": 0"), "the key \"threads\" does not hold what it must"},
        {FLAGS(", \"threads\": 1025"), "the key \"threads\""},
        {FLAGS(", \"threads\": \"2\""), "the key \"threads\""},
        {FLAGS(", \"backend\": \"cpu-blas\""), NULL},
        {FLAGS(", \"backend\": \"../x\""), "the key \"backend\""},
        {FLAGS(", \"backend\": 7"), "the key \"backend\""},
        {FLAGS(", \"backend_path\": []"), NULL},
        {FLAGS(", \"backend_path\": {}"), "the key \"backend_path\""},
        {FLAGS(", \"backend_path\": [\"x\"]"), "the key \"backend_path\""},
        {FLAGS(", \"backend_path\": [7]"), "the key \"backend_path\""},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_session session = {.is_run = true};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = read_flags(&session, rows[k].text, &err);
        if ((status == SEQLSTM_OK) != (rows[k].says == NULL) || (rows[k].says && !strstr(err.message, rows[k].says)))
            fail_msg("%s: %s", rows[k].text, err.message);
        sl_arena_deinit(&session.stored.arena);
    }
    for (uint32_t folders = 64; folders <= 65; folders++) { /* as many as there may be, and one more */
        struct sl_session session = {.is_run = true, .options.trust = true};
        char text[1024] = "{\"schema\": \"seqlstm.flags/1\", \"backend_path\": [\"/p\"";
        for (uint32_t f = 1; f <= folders; f++)
            strcat(text, f < folders ? ", \"/p\"" : "]}");
        assert_int_equal(read_flags(&session, text, NULL), folders == 64 ? SEQLSTM_OK : SEQLSTM_CORRUPT_DATA);
        assert_int_equal(session.options.backend_folder_count, folders == 64 ? 64 : 0);
        sl_arena_deinit(&session.stored.arena);
    }
    expect_log("");
}

/* The command line before the file, and the plan before both. */
static void test_which_flags_hold(void **state)
{
    static const char text[] = FLAGS(", \"threads\": 3, \"backend\": \"saved\", \"backend_path\": [\"/p\", \"/q\"]");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const char *own[] = {"/own"};
    (void)state;
    for (int planned = 0; planned < 2; planned++)
        for (int given = 0; given < 2; given++)
            for (int trust = 0; trust < 2; trust++) {
                struct sl_session session = {.is_run = true};
                struct sl_session_options *options = &session.options;
                options->trust = trust;
                options->threads = given ? 5 : 0;
                options->forced_backend = given ? "said" : NULL;
                options->backend_folders = own;
                options->backend_folder_count = (uint32_t)given;
                if (planned)
                    put("plan.json", "{}");
                ok(read_flags(&session, text, &err), &err);
                assert_int_equal(options->threads, given ? 5 : planned ? 0 : 3);
                assert_int_equal(options->threads_given, !given && !planned);
                if (given)
                    assert_true(strcmp(options->forced_backend, "said") == 0 && options->used_backend == NULL);
                else
                    assert_string_equal(options->used_backend, "saved");
                if (!given && planned)
                    assert_null(options->forced_backend);
                else if (!given)
                    assert_string_equal(options->forced_backend, "saved");
                assert_int_equal(options->backend_folder_count, given ? 1 : trust ? 2 : 0);
                if (trust && !given)
                    assert_string_equal(options->backend_folders[1], "/q");
                expect_log(given || trust
                               ? ""
                               : "warning: the run was started with `--backend-path /p`; a saved run uses such "
                                 "a folder only with `--trust`, or if you give it again\n");
                sl_arena_deinit(&session.stored.arena);
            }
}

static void test_flags_there_and_back(void **state)
{
    const char *folders[] = {"/a b", "/c"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    struct sl_session none = {.folder = folder};
    ok(sl_run_flags_write(&none, &err), &err);
    assert_int_equal(access("flags.json", F_OK), -1); /* nothing is to be written */
    for (int which = 0; which < 3; which++) {
        struct sl_session session = {.folder = folder}, back = {.is_run = true};
        session.options.threads = which == 0 ? 7 : 0;
        session.options.forced_backend = which == 1 ? "cpu-blas" : NULL;
        session.options.backend_folders = folders;
        session.options.backend_folder_count = which == 2 ? 2 : 0;
        ok(sl_run_flags_write(&session, &err), &err);
        back.folder = folder;
        back.options.trust = true;
        sl_arena_init(&back.stored.arena);
        ok(sl_run_flags_read(&back, &err), &err);
        assert_int_equal(back.options.threads, session.options.threads);
        assert_int_equal(back.options.backend_folder_count, session.options.backend_folder_count);
        if (which == 1)
            assert_string_equal(back.options.forced_backend, "cpu-blas");
        else
            assert_null(back.options.forced_backend);
        if (which == 2)
            assert_string_equal(back.options.backend_folders[0], "/a b");
        sl_arena_deinit(&back.stored.arena);
    }
    /* with --plan, that plan */
    put("given.json", "{\"layers\": []}");
    struct sl_session planned = {.folder = folder, .options = {.plan_path = "given.json"}};
    ok(sl_run_flags_write(&planned, &err), &err);
    struct sl_stored_plan plan = {.threads = 0};
    sl_arena_init(&plan.arena);
    ok(sl_stored_plan_read("plan.json", &plan, &err), &err);
    sl_arena_deinit(&plan.arena);
}

/* ---- folders ------------------------------------------------------------------------------------------------ */

/* The folder must be `expected`; or the message must hold it, if `refused`. */
static void expect_folder(const char *run, bool newest, const char *expected, bool refused)
{
    char *found = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status =
        newest ? sl_run_folder_find_newest(run, &found, &err) : sl_run_folder_find(run, &log_all, &found, &err);
    if (refused) {
        assert_int_equal(status, SEQLSTM_NOT_FOUND);
        assert_non_null(strstr(err.message, expected));
        return;
    }
    ok(status, &err);
    assert_string_equal(found, expected);
    free(found);
}

static void test_what_a_name_means(void **state)
{
    (void)state;
    put("runs/m/001/config.yaml", "x");
    put("runs/m/001/final.safetensors", "x");
    put("runs/m/9/config.yaml", "x");
    put("runs/m/9/checkpoints/update-000000000001.safetensors", "x");
    put("runs/m/010/config.yaml", "x");
    put("runs/m/010/checkpoints/update-000000000001.safetensors.tmp-12", "x"); /* of a write that was killed */
    put("runs/m/010/checkpoints/update-.safetensors", "x");
    put("runs/m/11/other", "x");
    put("runs/m/-12/config.yaml", "x");
    put("runs/m/13x/config.yaml", "x");
    put("runs/bare/config.yaml", "x");
    put("runs/empty/1/config.yaml", "x");
    put("runs/empty/2/config.yaml", "x");
    put("here/config.yaml", "x");
    put("runs/file", "x");
    mkdir("runs/hollow", 0777);
    expect_folder("m", false, "runs/m/9", false);
    expect_log("warning: runs/m/010 holds no weights yet; the latest run that does is runs/m/9\n");
    expect_folder("m", true, "runs/m/010", false);
    expect_folder("runs/m", true, "runs/m/010", false);
    expect_folder("runs/m/001", false, "runs/m/001", false);
    expect_folder("m/001", false, "runs/m/001", false);
    expect_folder("bare", false, "runs/bare", false);
    expect_folder("empty", false, "runs/empty/2", false);
    expect_folder("here", false, "here", false);
    expect_folder("none", false, "none: no run there: neither a run folder nor a name below runs/", true);
    expect_folder("hollow", false, "hollow: no run there", true);
    expect_folder("/m", false, "/m: no run there", true);
    expect_log("");
    assert_true(sl_run_folder_is_run("here") && !sl_run_folder_is_run("runs/m") && !sl_run_folder_is_run("none"));
    assert_true(sl_run_folder_holds_weights("runs/m/001") && sl_run_folder_holds_weights("runs/m/9"));
    assert_false(sl_run_folder_holds_weights("runs/m/010"));
    char *names[SL_RUN_LIST_MOST];
    const size_t count = sl_run_folder_list("runs", names);
    static const char *const expected[] = {"bare", "empty", "m"};
    assert_int_equal(count, 3);
    for (size_t k = 0; k < count; k++) {
        assert_string_equal(names[k], expected[k]);
        free(names[k]);
    }
    assert_int_equal(sl_run_folder_list("none", names), 0);
}

static void test_new_folders(void **state)
{
    struct sl_model model = {.name = "m", .output = {.dir = "runs/{name}-{name}/a{run}b{x"}};
    char *made, *path;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const char *const expected[][2] = {{"runs", "runs/m-m/a001b{x"}, {"runs/m-m/a002b{x", "runs/m-m/a002b{x"}};
    (void)state;
    for (int k = 0; k < 2; k++) {
        ok(sl_run_folder_make(&model, NULL, &made, &path, &err), &err);
        assert_string_equal(made, expected[k][0]);
        assert_string_equal(path, expected[k][1]);
        assert_int_equal(access(path, F_OK), 0);
        free(made);
        free(path);
    }
    /* a folder that is named may be there, if it is empty */
    mkdir("there", 0777);
    ok(sl_run_folder_make(&model, "there", &made, &path, &err), &err);
    assert_true(strcmp(made, "") == 0 && strcmp(path, "there") == 0);
    free(made);
    free(path);
    put("there/file", "x");
    assert_int_equal(sl_run_folder_make(&model, "there", &made, &path, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(
        strstr(err.message, "there: the run folder is not empty, and holds no run; name another one (--out)"));
    put("there/config.yaml", "x");
    assert_int_equal(sl_run_folder_make(&model, "there", &made, &path, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "there: a run without weights is there, which failed or has only begun"));
    put("there/final.safetensors", "x");
    assert_int_equal(sl_run_folder_make(&model, "there", &made, &path, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "there: the run folder is not empty; `seqlstm resume there` continues it"));
    /* likewise without a number in output.dir */
    model.output.dir = "there";
    assert_int_equal(sl_run_folder_make(&model, NULL, &made, &path, &err), SEQLSTM_INVALID_CONFIG);
    put("file", "x");
    const seqlstm_status status = sl_run_folder_make(&model, "file/below", &made, &path, &err);
    assert_true(status == SEQLSTM_IO || status == SEQLSTM_NOT_FOUND);
    assert_non_null(strstr(err.message, "; use another folder: `--out DIR`, or `output.dir`"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_whole_plan, enter),
        cmocka_unit_test_setup(test_plans_at_their_limits, enter),
        cmocka_unit_test_setup(test_threads_of_a_plan, enter),
        cmocka_unit_test_setup(test_quantization, enter),
        cmocka_unit_test_setup(test_quantization_there_and_back, enter),
        cmocka_unit_test_setup(test_flags_that_are_refused, enter),
        cmocka_unit_test_setup(test_which_flags_hold, enter),
        cmocka_unit_test_setup(test_flags_there_and_back, enter),
        cmocka_unit_test_setup(test_what_a_name_means, enter),
        cmocka_unit_test_setup(test_new_folders, enter),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
