/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that break a rule each: they are refused, or their call fails, with a reason that names what they did. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_collectives.h"

static seqlstm_status describe_nothing(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)transport, (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status open_nothing(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                   uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                                   struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)rendezvous, (void)out_connection, (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status open_fails(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                 uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                                 struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)out_connection;
    seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "rank 2 did not\tcome, says %d", rendezvous->rank);
    err->native_code = 3;
    return SEQLSTM_DEVICE;
}

static alignas(SEQLSTM_ALIGNMENT) char memory[2 * SEQLSTM_ALIGNMENT];
static void *given; /* by `allocate` */

static seqlstm_status allocate(struct seqlstm_connection *connection, uint64_t bytes, int64_t timeout_ns,
                               void **out_memory, struct seqlstm_error *err)
{
    (void)connection, (void)err;
    *out_memory = given;
    return bytes == 40 && timeout_ns > 0 ? SEQLSTM_OK : SEQLSTM_NO_MEMORY;
}

static int make_sound(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

static void expect_refusal(seqlstm_status expected, const char *reason)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    assert_int_equal(fake_connect(0, 2, &connection, &err), expected);
    if (!strstr(err.message, reason))
        fail_msg("the reason is '%s', expected '%s' in it", err.message, reason);
    assert_int_equal(fake.groups, 0);
}

static void a_sound_plugin_is_used_and_closed(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    const int32_t ranks[] = {0, 1};
    assert_int_equal(fake_connect(1, 3, &connection, &err), SEQLSTM_OK);
    assert_int_equal(fake.groups, 1);
    assert_int_equal(sl_connection_run(connection, 0, (struct seqlstm_exchange){.kind = 0}, &err), SEQLSTM_OK);
    assert_int_equal(sl_connection_run(connection, 1, (struct seqlstm_exchange){.kind = 0}, &err),
                     SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_connection_add_group(connection, 1, ranks, 2, &err), SEQLSTM_OK);
    assert_int_equal(sl_connection_add_group(connection, 1, ranks, 2, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_connection_add_group(connection, 2, ranks, 2, &err), SEQLSTM_UNSUPPORTED);
    assert_int_equal(sl_connection_poll(connection, &err), SEQLSTM_OK);
    fake.run_status = 77;
    assert_int_equal(sl_connection_run(connection, 0, (struct seqlstm_exchange){.kind = 0}, &err), SEQLSTM_INTERNAL);
    assert_non_null(strstr(err.message, "returned 77"));
    sl_connection_close(connection);
    assert_int_equal(fake.groups, 0);
    assert_int_equal(fake.closed, 1);
}

static void memory_of_a_plugin_is_optional_and_aligned(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    void *got = memory;
    assert_int_equal(fake_connect(1, 3, &connection, &err), SEQLSTM_OK);
    assert_int_equal(sl_connection_allocate(connection, 40, &got, &err), SEQLSTM_OK);
    assert_null(got);
    sl_connection_close(connection);
    fake.table.allocate = allocate;
    assert_int_equal(fake_connect(1, 3, &connection, &err), SEQLSTM_OK);
    given = memory;
    assert_int_equal(sl_connection_allocate(connection, 40, &got, &err), SEQLSTM_OK);
    assert_ptr_equal(got, memory);
    assert_int_equal(sl_connection_allocate(connection, 41, &got, &err), SEQLSTM_NO_MEMORY);
    given = memory + 4;
    assert_int_equal(sl_connection_allocate(connection, 40, &got, &err), SEQLSTM_INTERNAL);
    assert_non_null(strstr(err.message, "no aligned memory"));
    given = NULL;
    assert_int_equal(sl_connection_allocate(connection, 40, &got, &err), SEQLSTM_INTERNAL);
    sl_connection_close(connection);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    assert_int_equal(fake_connect(2, 2, &connection, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(fake_connect(0, 4, &connection, &err), SEQLSTM_UNAVAILABLE); /* more than it connects */
    fake.table.magic = 1;
    expect_refusal(SEQLSTM_UNAVAILABLE, "magic number");
    make_sound(NULL);
    fake.table.abi_minor_needed++;
    expect_refusal(SEQLSTM_UNAVAILABLE, "a draft: both must be equal");
    make_sound(NULL);
    fake.table.abort = NULL;
    expect_refusal(SEQLSTM_UNAVAILABLE, "'abort'");
    make_sound(NULL);
    fake.table.struct_size = 64;
    expect_refusal(SEQLSTM_UNAVAILABLE, "claims a size of 64 bytes");
    make_sound(NULL);
    fake.table.option_count = 1;
    expect_refusal(SEQLSTM_UNAVAILABLE, "options");
    make_sound(NULL);
    fake.table.describe = describe_nothing;
    expect_refusal(SEQLSTM_INTERNAL, "gave no name");
    make_sound(NULL);
    fake.table.open = open_nothing;
    expect_refusal(SEQLSTM_INTERNAL, "no connection");
    make_sound(NULL);
    fake.table.open = open_fails;
    assert_int_equal(fake_connect(1, 3, &connection, &err), SEQLSTM_DEVICE);
    assert_int_equal(err.native_code, 3);
    assert_non_null(strstr(err.message, "rank 2 did not"));
    assert_int_equal(fake.closed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_sound_plugin_is_used_and_closed, make_sound),
        cmocka_unit_test_setup(memory_of_a_plugin_is_optional_and_aligned, make_sound),
        cmocka_unit_test_setup(what_is_wrong_is_said, make_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
