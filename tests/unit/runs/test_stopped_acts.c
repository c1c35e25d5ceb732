/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions do where the user has stopped them before they begin, or where the writer of their results fails: they
 * end at once and say so, and all that was opened is closed. */
#include "session_acts.h"

static void stop(int n)
{
    (void)n;
    atomic_store(&performing->interrupt.stop, 2);
}

static bool disarm(void)
{
    return true;
}

/* What takes as long as its data. A training that is stopped ends like any other, and the rest is done at once. */
static bool is_long(const char *name)
{
    static const char *const names[] = {
        "evaluation of ",      "prediction of classes", "prediction of pairs",   "prediction of lines",
        "prediction of steps", "text vectors",          "training that is over", "generation"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (strncmp(name, names[n], strlen(names[n])) == 0)
            return true;
    return false;
}

static void long_acts_are_cancelled(void **state)
{
    static const struct failing kind = {stop, disarm, NULL};
    (void)state;
    failing = &kind;
    for (int a = 0; a < ACTS; a++) {
        const seqlstm_status expected = is_long(acts[a].name) ? SEQLSTM_CANCELLED : SEQLSTM_OK;
        struct seqlstm_error err;
        seqlstm_status status;
        double result;
        perform(&acts[a], &status, &result, &err);
        if (status != expected || (status != SEQLSTM_OK && (err.code != status || err.message[0] == '\0')))
            fail_msg("%s: status %d, code %d: %s", acts[a].name, (int)status, (int)err.code, err.message);
    }
}

static void let_writers_fail(int n)
{
    writes_left = n;
}

static bool disarm_writers(void)
{
    const bool failed = writes_left == 0;
    writes_left = 0;
    return failed;
}

static bool is_of_the_writer(const struct seqlstm_error *err)
{
    return err->code == SEQLSTM_DEVICE &&
           (strcmp(err->message, "no place for a result") == 0 || strcmp(err->message, "the caller ended it") == 0);
}

/* Each result of each act. */
static void what_a_writer_says_ends_the_act(void **state)
{
    static const struct failing kind = {let_writers_fail, disarm_writers, is_of_the_writer};
    (void)state;
    for (int a = 0; a < ACTS; a++)
        if (is_long(acts[a].name) || strncmp(acts[a].name, "prediction", 10) == 0 ||
            strncmp(acts[a].name, "plan", 4) == 0)
            expect_failures(&acts[a], &kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_acts_are_cancelled),
        cmocka_unit_test(what_a_writer_says_ends_the_act),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
