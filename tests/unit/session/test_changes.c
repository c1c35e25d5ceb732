/* SPDX-License-Identifier: Apache-2.0 */
/* What --set changes in a saved run is told and counted, or the comparison fails: without memory nothing counts as
 * unchanged. */
#include "model_fixture.h"
#include "oom.h"

#include "session/record/session_record.h"
#include "session/run_folder/changes.h"

#define MODEL(units, epochs)                                                                                           \
    "seqlstm: 1\nname: m\ndata: {type: generator, name: adding_problem, length: [5, 8], train: {size: 8}, "            \
    "batch_size: 4}\nmodel:\n  - {type: lstm, units: " units "}\n  - {type: dense, units: from_target}\n"              \
    "train: {loss: mse, epochs: " epochs "}\n"

#define OTHER_NAME                                                                                                     \
    "seqlstm: 1\nname: other\ndata: {type: generator, name: adding_problem, length: [5, 8], train: {size: 8}, "        \
    "batch_size: 4}\nmodel:\n  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"                      \
    "train: {loss: mse, epochs: 1}\n"
#define OWN_SEED                                                                                                       \
    "seqlstm: 1\nname: m\ndata: {type: generator, name: adding_problem, length: [5, 8], train: {size: 8, seed: 3}, "   \
    "batch_size: 4}\nmodel:\n  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"                      \
    "train: {loss: mse, epochs: 1}\n"
#define FILES                                                                                                          \
    "seqlstm: 1\nname: m\ndata: {type: csv, train: {file: a.csv}, inputs: [a], targets: [y]}\nmodel:\n"                \
    "  - {type: dense, units: from_target}\ntrain: {loss: mse, epochs: 1}\n"

static seqlstm_status review(const char *old, const char *new, enum sl_run_use use, size_t *changes,
                             struct seqlstm_error *err)
{
    struct loaded before = load_clean(old), after = load_clean(new);
    struct sl_session session = {.model = after.model, .options = {.use = use}};
    seqlstm_status status = sl_session_review_changes(&session, before.model, changes, err);
    unload(&before);
    unload(&after);
    return status;
}

static void changes_are_counted(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    size_t changes = 9;
    assert_int_equal(review(MODEL("3", "1"), MODEL("3", "1"), SL_RUN_USE_EVALUATE, &changes, &err), SEQLSTM_OK);
    assert_int_equal(changes, 0);
    assert_int_equal(review(MODEL("3", "1"), MODEL("4", "2"), SL_RUN_USE_ALL, &changes, &err), SEQLSTM_OK);
    assert_int_equal(changes, 2);
    assert_int_equal(review(MODEL("3", "1"), MODEL("3", "2"), SL_RUN_USE_PREDICT, &changes, &err),
                     SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "`train.epochs` belongs to the training"));
    assert_int_equal(review(MODEL("3", "1"), MODEL("4", "1"), SL_RUN_USE_EXPORT, &changes, &err), SEQLSTM_OK);
    assert_int_equal(review(MODEL("3", "1"), MODEL("3", "1") "device: cpu\n", SL_RUN_USE_EXPORT, &changes, &err),
                     SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "`device` has no effect on an export"));
}

static void write_model(struct sl_buf *text, int layers, const char *units)
{
    sl_buf_append_text(text, "seqlstm: 1\nname: m\ndata: {type: generator, name: adding_problem, length: [5, 8], "
                             "train: {size: 8}, batch_size: 4}\nmodel:\n  - {type: lstm, units: 3}\n");
    for (int k = 0; k < layers; k++)
        sl_buf_printf(text, "  - {type: dense, name: d%d, units: %s}\n", k, units);
    sl_buf_append_text(text, "  - {type: dense, units: from_target}\ntrain: {loss: mse, epochs: 1}\n");
}

struct told {
    int changes;
    char rest[64];
};

static void hear(void *context, enum sl_log_level level, const char *message)
{
    struct told *told = context;
    char expected[64];
    assert_int_equal(level, SL_LOG_INFO);
    snprintf(expected, sizeof expected, "changed model[%d].units: 2 -> 5", told->changes + 1);
    assert_string_equal(told->rest, ""); /* which ends the list */
    if (strncmp(message, "changed", 7) != 0)
        snprintf(told->rest, sizeof told->rest, "%s", message);
    else {
        assert_string_equal(message, expected);
        told->changes++;
    }
}

/* Twenty are listed; those that are not are counted. */
static void each_change_is_listed_or_counted(void **state)
{
    (void)state;
    static const int counts[] = {0, 1, 19, 20, 21, 22, 33};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct sl_buf old = {0}, new = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct told told = {0};
        const struct sl_log log = {.write = hear, .context = &told, .level = SL_LOG_INFO};
        const int listed = counts[i] < 20 ? counts[i] : 20;
        char rest[64] = "";
        size_t changes = 99;
        write_model(&old, counts[i], "2");
        write_model(&new, counts[i], "5");
        struct loaded before = load_clean(sl_buf_text(&old)), after = load_clean(sl_buf_text(&new));
        const struct sl_session session = {.model = after.model, .options = {.use = SL_RUN_USE_ALL, .log = &log}};
        assert_int_equal(sl_session_review_changes(&session, before.model, &changes, &err), SEQLSTM_OK);
        if (counts[i] > listed)
            snprintf(rest, sizeof rest, "and %d more change%s", counts[i] - listed, counts[i] - listed == 1 ? "" : "s");
        assert_int_equal(changes, counts[i]);
        assert_int_equal(told.changes, listed);
        assert_string_equal(told.rest, rest);
        unload(&before);
        unload(&after);
        sl_buf_deinit(&old);
        sl_buf_deinit(&new);
    }
}

/* Each use, with the keys that it reads. */
static void name_and_seed_are_refused_where_nothing_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *what; /* in the message */
        bool name, seed, seed_of_files;
    } uses[SL_RUN_USE_COUNT] = {
        [SL_RUN_USE_ALL] = {"", true, true, true},
        [SL_RUN_USE_BENCH] = {"", true, true, true},
        [SL_RUN_USE_PLAN] = {"a plan", false, true, true},
        [SL_RUN_USE_QUANTIZE] = {"a quantization", false, true, true},
        [SL_RUN_USE_EVALUATE] = {"an evaluation", false, true, false},
        [SL_RUN_USE_PREDICT] = {"predictions", false, false, false},
        [SL_RUN_USE_SERVE] = {"a server", true, false, false},
        [SL_RUN_USE_EXPORT] = {"an export", true, false, false},
    };
    for (int use = 0; use < SL_RUN_USE_COUNT; use++) {
        const struct {
            const char *old, *new, *key;
            bool reads;
        } rows[] = {{MODEL("3", "1"), MODEL("3", "1") "seed: 5\n", "seed", uses[use].seed},
                    {MODEL("3", "1"), OTHER_NAME, "name", uses[use].name},
                    {FILES, FILES "seed: 5\n", "seed", uses[use].seed_of_files},
                    {OWN_SEED, OWN_SEED "seed: 5\n", "seed", uses[use].seed_of_files}};
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            size_t changes = 9;
            char said[96];
            assert_int_equal(review(rows[r].old, rows[r].new, use, &changes, &err),
                             rows[r].reads ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
            assert_int_equal(changes, 1);
            snprintf(said, sizeof said, "`%s` has no effect on %s: leave it out", rows[r].key, uses[use].what);
            if (!rows[r].reads)
                assert_string_equal(err.message, said);
        }
    }
}

/* Each key, with the uses that read it: ALL, BENCH, EVALUATE, PLAN, QUANTIZE, PREDICT, SERVE, EXPORT, a letter each. */
static void each_use_reads_its_keys(void **state)
{
    (void)state;
    static const char letters[SL_RUN_USE_COUNT + 1] = {
        [SL_RUN_USE_ALL] = 'A',   [SL_RUN_USE_BENCH] = 'B',    [SL_RUN_USE_EVALUATE] = 'E',
        [SL_RUN_USE_PLAN] = 'P',  [SL_RUN_USE_QUANTIZE] = 'Q', [SL_RUN_USE_PREDICT] = 'R',
        [SL_RUN_USE_SERVE] = 'S', [SL_RUN_USE_EXPORT] = 'X'};
    static const char base[] = "seqlstm: 1\nname: m\ndata: {type: generator, name: adding_problem, length: [5, 8], "
                               "train: {size: 8}%s, batch_size: 4}\nmodel:\n  - {type: lstm, units: 3}\n"
                               "  - {type: dense, units: from_target}\ntrain: {loss: %s, epochs: 1}\n";
    static const struct {
        const char *assignment, *uses;
        bool has_valid;
        const char *loss; /* NULL: huber */
    } rows[] = {
        {"train.epochs=2", "A", false, NULL},
        {"train.optimizer={type: sgd, learning_rate: 0.5}", "A", false, NULL},
        {"train.clip_norm=1", "A", false, NULL},
        {"train.loss.type=mae", "ABEPQRS", false, "mse"},
        {"train.loss.delta=3", "ABEPQ", false, NULL},
        {"train.metrics=[mae]", "ABEPQ", false, NULL},
        {"train.metrics=[mae]", "A", true, NULL},
        {"train.validate.metrics=[mae]", "ABEPQ", true, NULL},
        {"train.validate.every=2e", "A", true, NULL},
        {"data.shuffle=false", "A", false, NULL},
        {"data.batch_size=2", "ABEPQRS", false, NULL},
        {"data.batching={bucketing: off}", "ABEPQRS", false, NULL}, /* another loss.reduction follows */
        {"train.loss.reduction=mean", "A", false, NULL},
        {"train.optimizer=sgd", "A", false, NULL},
        {"train.loss=mae", "ABEPQ", false, NULL},
        {"data.test={size: 9}", "ABEPQ", false, NULL},
        {"data.valid.size=9", "ABEPQ", true, NULL},
        {"data.train.size=9", "ABEPQRSX", false, NULL},
        {"dispatch.policy=order", "ABEPQRS", false, NULL},
        {"device=cpu", "ABEPQRS", false, NULL},
        {"output.dir=x", "A", false, NULL},
        {"log.every=7u", "A", false, NULL},
        {"parallel.data=1", "A", false, NULL},
        {"model[0].units=4", "ABEPQRSX", false, NULL},
        {"precision=bfloat16", "ABEPQRSX", false, NULL},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int use = 0; use < SL_RUN_USE_COUNT; use++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_override set = {.origin = "--set", .assignment = rows[r].assignment};
            const struct sl_model_request request = {.overrides = &set, .override_count = 1};
            char text[600];
            size_t changes = 0;
            snprintf(text, sizeof text, base, rows[r].has_valid ? ", valid: {size: 5}" : "",
                     rows[r].loss ? rows[r].loss : "{type: huber, delta: 2}");
            struct loaded before = load_clean(text), after = load_text("m.yaml", text, strlen(text), &request);
            if (after.model == NULL)
                fail_msg("%s: %s", rows[r].assignment, sl_buf_text(&after.text));
            const struct sl_session session = {.model = after.model, .options = {.use = use}};
            const seqlstm_status status = sl_session_review_changes(&session, before.model, &changes, &err);
            if (changes == 0 || (status == SEQLSTM_OK) != (strchr(rows[r].uses, letters[use]) != NULL))
                fail_msg("%s, %c: %d, %zu changes, %s", rows[r].assignment, letters[use], (int)status, changes,
                         status == SEQLSTM_OK ? "" : err.message);
            unload(&before);
            unload(&after);
        }
}

static void without_memory_nothing_counts_as_unchanged(void **state)
{
    (void)state;
    struct loaded before = load_clean(MODEL("3", "1")), after = load_clean(MODEL("4", "1"));
    struct sl_session session = {.model = after.model};
    int n = 1;
    for (;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        size_t changes = 0;
        oom_fail_at(n);
        seqlstm_status status = sl_session_review_changes(&session, before.model, &changes, &err);
        if (!oom_disarm()) {
            assert_int_equal(status, SEQLSTM_OK);
            assert_int_equal(changes, 1);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_int_equal(err.code, SEQLSTM_NO_MEMORY);
    }
    assert_true(n > 2);
    unload(&before);
    unload(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_counted),
        cmocka_unit_test(each_change_is_listed_or_counted),
        cmocka_unit_test(name_and_seed_are_refused_where_nothing_reads_them),
        cmocka_unit_test(each_use_reads_its_keys),
        cmocka_unit_test(without_memory_nothing_counts_as_unchanged),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
