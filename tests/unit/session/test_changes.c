/* SPDX-License-Identifier: Apache-2.0 */
/* What --set changes in a saved run is counted, or the comparison fails: without memory nothing counts as unchanged. */
#include "model_fixture.h"
#include "oom.h"

#include "session/record/session_record.h"
#include "session/run_folder/changes.h"

#define MODEL(units, epochs)                                                                                           \
    "seqlstm: 1\nname: m\ndata: {type: generator, name: adding_problem, length: [5, 8], train: {size: 8}, "            \
    "batch_size: 4}\nmodel:\n  - {type: lstm, units: " units "}\n  - {type: dense, units: from_target}\n"              \
    "train: {loss: mse, epochs: " epochs "}\n"

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
    assert_int_equal(review(MODEL("3", "1"), MODEL("3", "1"), SL_RUN_USE_MEASURE, &changes, &err), SEQLSTM_OK);
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
    for (int use = SL_RUN_USE_ALL; use <= SL_RUN_USE_EXPORT; use++) {
        const bool reads = use == SL_RUN_USE_ALL || use == SL_RUN_USE_MEASURE;
        assert_int_equal(review(MODEL("3", "1"), MODEL("3", "1") "seed: 5\n", use, &changes, &err),
                         reads ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
        assert_true(reads || strstr(err.message, "`seed` has no effect on"));
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
        cmocka_unit_test(without_memory_nothing_counts_as_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
