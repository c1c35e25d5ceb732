/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions do where an allocation or a write fails. */
#include "session_acts.h"

static void let_memory_fail(int n)
{
    (void)n;
    oom_fail_anew(6);
}

static bool is_of_memory(const struct seqlstm_error *err)
{
    return err->code == SEQLSTM_NO_MEMORY;
}

static void let_writes_fail(int n)
{
    io_fail_at(n, ENOSPC, 3);
}

static bool is_of_writes(const struct seqlstm_error *err)
{
    return err->code == SEQLSTM_IO;
}

static void test_without_memory(void **state)
{
    static const struct failing memory = {let_memory_fail, oom_disarm, is_of_memory};
    (void)state;
    for (int a = 0; a < ACTS; a++)
        expect_failures(&acts[a], &memory);
}

static void test_on_a_full_disk(void **state)
{
    static const struct failing writes = {let_writes_fail, io_disarm, is_of_writes};
    (void)state;
    for (int a = 0; a < ACTS; a++)
        if (acts[a].writes)
            expect_failures(&acts[a], &writes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_on_a_full_disk),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
