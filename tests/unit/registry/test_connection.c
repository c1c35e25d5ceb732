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

#include "registry/collectives/connection.h"

static struct seqlstm_collectives table; /* what the query function returns; each test begins with a sound one */
static seqlstm_status run_status;
static int groups, closed;

static seqlstm_status describe(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)err;
    transport->groups = 2;
    transport->ranks_most = 3;
    snprintf(transport->name, sizeof transport->name, "nothing");
    snprintf(transport->domain, sizeof transport->domain, "host");
    return SEQLSTM_OK;
}

static seqlstm_status describe_nothing(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)transport, (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status open_it(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                              uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                              struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)rendezvous, (void)err;
    *out_connection = (struct seqlstm_connection *)&table;
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

static void close_it(struct seqlstm_connection *connection)
{
    (void)connection;
    closed++;
}

static seqlstm_status group_create(struct seqlstm_connection *connection, uint32_t number, const int32_t *ranks,
                                   int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    (void)connection, (void)number, (void)ranks, (void)count, (void)err;
    groups++;
    *out_group = (struct seqlstm_group *)&groups;
    return SEQLSTM_OK;
}

static void group_destroy(struct seqlstm_group *group)
{
    (void)group;
    groups--;
}

static seqlstm_status run(struct seqlstm_group *group, struct seqlstm_queue *queue,
                          const struct seqlstm_exchange *exchange, struct seqlstm_error *err)
{
    (void)group, (void)queue, (void)err;
    return exchange->timeout_ns > 0 ? run_status : SEQLSTM_INTERNAL;
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

static seqlstm_status poll_it(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    (void)connection, (void)err;
    return SEQLSTM_OK;
}

static void abort_it(struct seqlstm_connection *connection)
{
    (void)connection;
}

static const struct seqlstm_collectives *query(uint32_t host_minor)
{
    (void)host_minor;
    return &table;
}

static int make_sound(void **state)
{
    (void)state;
    table = (struct seqlstm_collectives){
        .struct_size = sizeof table,
        .magic = SEQLSTM_MAGIC,
        .abi_major = SEQLSTM_COLLECTIVES_MAJOR,
        .abi_minor_needed = SEQLSTM_COLLECTIVES_MINOR,
        .id = "comm-test",
        .version = "1",
        .vendor = "a test",
        .license = "none",
        .build = "none",
        .describe = describe,
        .open = open_it,
        .close = close_it,
        .group_create = group_create,
        .group_destroy = group_destroy,
        .run = run,
        .poll = poll_it,
        .abort = abort_it,
    };
    run_status = SEQLSTM_OK;
    groups = closed = 0;
    return 0;
}

static seqlstm_status open_as(int32_t rank, int32_t ranks, struct sl_connection **out, struct seqlstm_error *err)
{
    static const struct sl_collectives_builtin builtins[] = {{"comm-test", query}};
    const struct sl_connection_request request = {.name = "comm-test",
                                                  .builtins = builtins,
                                                  .builtin_count = 1,
                                                  .rank = rank,
                                                  .ranks = ranks,
                                                  .job = "a-job",
                                                  .timeout_ns = 1000};
    return sl_connection_open(&request, out, err);
}

static void expect_refusal(seqlstm_status expected, const char *reason)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    assert_int_equal(open_as(0, 2, &connection, &err), expected);
    if (!strstr(err.message, reason))
        fail_msg("the reason is '%s', expected '%s' in it", err.message, reason);
    assert_int_equal(groups, 0);
}

static void a_sound_plugin_is_used_and_closed(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    const int32_t ranks[] = {0, 1};
    assert_int_equal(open_as(1, 3, &connection, &err), SEQLSTM_OK);
    assert_int_equal(groups, 1);
    assert_int_equal(sl_connection_run(connection, 0, (struct seqlstm_exchange){.kind = 0}, &err), SEQLSTM_OK);
    assert_int_equal(sl_connection_run(connection, 1, (struct seqlstm_exchange){.kind = 0}, &err),
                     SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_connection_add_group(connection, 1, ranks, 2, &err), SEQLSTM_OK);
    assert_int_equal(sl_connection_add_group(connection, 1, ranks, 2, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_connection_add_group(connection, 2, ranks, 2, &err), SEQLSTM_UNSUPPORTED);
    assert_int_equal(sl_connection_poll(connection, &err), SEQLSTM_OK);
    run_status = 77;
    assert_int_equal(sl_connection_run(connection, 0, (struct seqlstm_exchange){.kind = 0}, &err), SEQLSTM_INTERNAL);
    assert_non_null(strstr(err.message, "returned 77"));
    sl_connection_close(connection);
    assert_int_equal(groups, 0);
    assert_int_equal(closed, 1);
}

static void memory_of_a_plugin_is_optional_and_aligned(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    void *got = memory;
    assert_int_equal(open_as(1, 3, &connection, &err), SEQLSTM_OK);
    assert_int_equal(sl_connection_allocate(connection, 40, &got, &err), SEQLSTM_OK);
    assert_null(got);
    sl_connection_close(connection);
    table.allocate = allocate;
    assert_int_equal(open_as(1, 3, &connection, &err), SEQLSTM_OK);
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
    assert_int_equal(open_as(2, 2, &connection, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(open_as(0, 4, &connection, &err), SEQLSTM_UNAVAILABLE); /* more than it connects */
    table.magic = 1;
    expect_refusal(SEQLSTM_UNAVAILABLE, "magic number");
    make_sound(NULL);
    table.abi_minor_needed++;
    expect_refusal(SEQLSTM_UNAVAILABLE, "a draft: both must be equal");
    make_sound(NULL);
    table.abort = NULL;
    expect_refusal(SEQLSTM_UNAVAILABLE, "'abort'");
    make_sound(NULL);
    table.struct_size = 64;
    expect_refusal(SEQLSTM_UNAVAILABLE, "claims a size of 64 bytes");
    make_sound(NULL);
    table.option_count = 1;
    expect_refusal(SEQLSTM_UNAVAILABLE, "options");
    make_sound(NULL);
    table.describe = describe_nothing;
    expect_refusal(SEQLSTM_INTERNAL, "gave no name");
    make_sound(NULL);
    table.open = open_nothing;
    expect_refusal(SEQLSTM_INTERNAL, "no connection");
    make_sound(NULL);
    table.open = open_fails;
    assert_int_equal(open_as(1, 3, &connection, &err), SEQLSTM_DEVICE);
    assert_int_equal(err.native_code, 3);
    assert_non_null(strstr(err.message, "rank 2 did not"));
    assert_int_equal(closed, 0);
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
