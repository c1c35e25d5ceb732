/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that break a rule each: they are refused, or their call fails, with a reason that names what they did. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/memory/memory.h"
#include "base/system/trace.h"
#include "fake_collectives.h"
#include "oom.h"
#include "registry/watch/watch.h"

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

static seqlstm_status describe_fails(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)transport;
    SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "there is no card");
}

static seqlstm_status open_without_memory(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                          uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                                          struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)rendezvous, (void)out_connection;
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no room for 7 rings");
}

static seqlstm_status make_no_group(struct seqlstm_connection *connection, uint32_t number, const int32_t *ranks,
                                    int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    (void)connection, (void)number, (void)ranks, (void)count, (void)out_group, (void)err;
    return SEQLSTM_OK;
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
    for (size_t apart = 4; apart < SEQLSTM_ALIGNMENT; apart *= 2) {
        given = memory + apart;
        assert_int_equal(sl_connection_allocate(connection, 40, &got, &err), SEQLSTM_INTERNAL);
        assert_non_null(strstr(err.message, "no aligned memory"));
    }
    given = NULL;
    assert_int_equal(sl_connection_allocate(connection, 40, &got, &err), SEQLSTM_INTERNAL);
    sl_connection_close(connection);
}

/* ---- what the plugin is given ------------------------------------------------------------------------------------ */

static struct {
    struct seqlstm_rendezvous rendezvous;
    struct seqlstm_exchange exchange;
    struct seqlstm_group *group;
    struct seqlstm_queue *queue;
    uint32_t number;
    int32_t ranks[3], count;
    int64_t timeout_ns; /* of allocate */
    char destroyed[8];  /* the numbers of groups, and `c` for close */
} seen;

static char groups[3]; /* their addresses are the groups */

static seqlstm_status seen_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                                struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)err;
    seen.rendezvous = *rendezvous;
    *out_connection = (struct seqlstm_connection *)&fake;
    return SEQLSTM_OK;
}

static seqlstm_status seen_group_create(struct seqlstm_connection *connection, uint32_t number, const int32_t *ranks,
                                        int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    (void)connection, (void)err;
    seen.number = number;
    seen.count = count;
    memcpy(seen.ranks, ranks, (size_t)count * sizeof *ranks);
    *out_group = (struct seqlstm_group *)(void *)&groups[number];
    return SEQLSTM_OK;
}

static void seen_group_destroy(struct seqlstm_group *group)
{
    seen.destroyed[strlen(seen.destroyed)] = (char)('0' + ((char *)group - groups));
}

static void seen_close(struct seqlstm_connection *connection)
{
    (void)connection;
    seen.destroyed[strlen(seen.destroyed)] = 'c';
}

static seqlstm_status seen_run(struct seqlstm_group *group, struct seqlstm_queue *queue,
                               const struct seqlstm_exchange *exchange, struct seqlstm_error *err)
{
    (void)err;
    seen.group = group;
    seen.queue = queue;
    seen.exchange = *exchange;
    return SEQLSTM_OK;
}

static seqlstm_status seen_allocate(struct seqlstm_connection *connection, uint64_t bytes, int64_t timeout_ns,
                                    void **out_memory, struct seqlstm_error *err)
{
    (void)connection, (void)bytes, (void)err;
    seen.timeout_ns = timeout_ns;
    *out_memory = memory;
    return SEQLSTM_OK;
}

static seqlstm_status blaming_poll(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    (void)connection;
    seqlstm_error_set(err, SEQLSTM_CANCELLED, __FILE__, __LINE__, "rank 2 has died");
    err->native_code = 3;
    return SEQLSTM_CANCELLED;
}

static const struct seqlstm_collectives *query(uint32_t host_minor)
{
    (void)host_minor;
    return &fake.table;
}

static void each_value_reaches_the_plugin_as_it_is(void **state)
{
    (void)state;
    static const struct sl_collectives_builtin builtins[] = {{"other", NULL}, {"comm-test", query}};
    const struct sl_connection_request request = {.name = "comm-test",
                                                  .builtins = builtins,
                                                  .builtin_count = 2,
                                                  .rank = 1,
                                                  .ranks = 3,
                                                  .local_ranks = 2,
                                                  .device = 5,
                                                  .job = "a-job",
                                                  .folder = "/a/folder",
                                                  .timeout_ns = 7000};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    void *got = NULL;
    memset(&seen, 0, sizeof seen);
    fake.table.open = seen_open;
    fake.table.group_create = seen_group_create;
    fake.table.group_destroy = seen_group_destroy;
    fake.table.close = seen_close;
    fake.table.run = seen_run;
    fake.table.allocate = seen_allocate;
    fake.table.poll = blaming_poll;
    assert_int_equal(sl_connection_open(&request, &connection, &err), SEQLSTM_OK);
    const struct seqlstm_rendezvous *r = &seen.rendezvous;
    assert_true(r->struct_size == sizeof *r && r->rank == 1 && r->ranks == 3 && r->local_ranks == 2 && r->device == 5);
    assert_string_equal(r->job, "a-job");
    assert_string_equal(r->folder, "/a/folder");
    assert_int_equal(r->timeout_ns, 7000);
    assert_true(sl_connection_get_rank(connection) == 1 && sl_connection_get_ranks(connection) == 3);
    assert_true(seen.number == 0 && seen.count == 3 && seen.ranks[0] == 0 && seen.ranks[1] == 1 && seen.ranks[2] == 2);
    const int32_t pair[] = {1, 2};
    assert_int_equal(sl_connection_add_group(connection, 1, pair, 2, &err), SEQLSTM_OK);
    assert_true(seen.number == 1 && seen.count == 2 && seen.ranks[0] == 1 && seen.ranks[1] == 2);

    float from, to;
    struct seqlstm_exchange exchange = {.kind = SEQLSTM_COLLECTIVE_BROADCAST,
                                        .dtype = SEQLSTM_DTYPE_INT8,
                                        .reduction = SEQLSTM_REDUCE_MIN,
                                        .peer = 2,
                                        .elems = 11,
                                        .from = &from,
                                        .to = &to,
                                        .timeout_ns = 13};
    struct seqlstm_queue *queue = (struct seqlstm_queue *)(void *)&to;
    for (uint32_t group = 0; group < 2; group++) {
        assert_int_equal(sl_connection_run_on(connection, group, queue, exchange, &err), SEQLSTM_OK);
        assert_ptr_equal(seen.group, &groups[group]);
        assert_ptr_equal(seen.queue, queue);
    }
    exchange.struct_size = sizeof exchange;
    assert_memory_equal(&seen.exchange, &exchange, sizeof exchange);
    exchange.timeout_ns = 0;
    assert_int_equal(sl_connection_run(connection, 1, exchange, &err), SEQLSTM_OK);
    assert_null(seen.queue);
    assert_int_equal(seen.exchange.timeout_ns, 7000);
    assert_int_equal(sl_connection_allocate(connection, 40, &got, &err), SEQLSTM_OK);
    assert_int_equal(seen.timeout_ns, 7000);
    assert_int_equal(sl_connection_poll(connection, &err), SEQLSTM_CANCELLED);
    assert_string_equal(err.message, "rank 2 has died");
    assert_int_equal(err.native_code, 3);
    sl_connection_close(connection);
    assert_string_equal(seen.destroyed, "10c");
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
    fake.table.describe = describe_fails;
    expect_refusal(SEQLSTM_DEVICE, "there is no card");
    make_sound(NULL);
    fake.table.open = open_without_memory;
    expect_refusal(SEQLSTM_NO_MEMORY, "out of memory while opening comm-test: no room for 7 rings");
    make_sound(NULL);
    fake.table.group_create = make_no_group;
    expect_refusal(SEQLSTM_INTERNAL, "its group_create returned OK but no group");
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

/* ---- what is logged ---------------------------------------------------------------------------------------------- */

static char logged[1000];

static void keep(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    const size_t length = strlen(logged);
    snprintf(logged + length, sizeof logged - length, "%s: %s\n", sl_log_level_name(level), message);
}

static const struct seqlstm_host *given_host;
static bool prints;

static seqlstm_status open_careless(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                    uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                                    struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    umask(umask(0) ^ 011);
    if (prints) {
        printf("hello");
        fflush(stdout);
    }
    given_host = host;
    return fake_open(host, settings, setting_count, rendezvous, out_connection, err);
}

static seqlstm_status connect_logged(const struct sl_log *log, int64_t timeout_ns,
                                     struct sl_connection **out_connection, struct seqlstm_error *err)
{
    static const struct sl_collectives_builtin builtins[] = {{"comm-test", query}};
    const struct sl_connection_request request = {.name = "comm-test",
                                                  .builtins = builtins,
                                                  .builtin_count = 1,
                                                  .rank = 1,
                                                  .ranks = 3,
                                                  .job = "a-job",
                                                  .log = log,
                                                  .timeout_ns = timeout_ns};
    return sl_connection_open(&request, out_connection, err);
}

/* What opening changed, and what was not given back. */
static void carelessness_is_logged(void **state)
{
    (void)state;
    const struct sl_log log = {.write = keep, .level = SL_LOG_WARN};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    char expected[400];
    const mode_t mask = umask(0);
    umask(mask);
    logged[0] = 0;
    assert_int_equal(connect_logged(&log, 1000, &connection, &err), SEQLSTM_OK);
    sl_connection_close(connection);
    assert_string_equal(logged, "");
    fake.table.open = open_careless;
    assert_int_equal(connect_logged(&log, 1000, &connection, &err), SEQLSTM_OK);
    snprintf(expected, sizeof expected,
             "warning: comm-test misbehaves: its open changed the mask of file permissions (umask %03o to %03o); "
             "seqlstm undid it\n",
             (unsigned)mask, (unsigned)mask ^ 011);
    assert_string_equal(logged, expected);
    sl_connection_close(connection);
    logged[0] = 0;
    prints = true; /* and both are said */
    fflush(stdout);
    sl_watch_capture_output(true);
    assert_int_equal(connect_logged(&log, 1000, &connection, &err), SEQLSTM_OK);
    sl_watch_capture_output(false);
    prints = false;
    snprintf(expected, sizeof expected,
             "warning: comm-test misbehaves: its open wrote 5 bytes to stdout or stderr, and may use the host's log "
             "only: hello; "
             "its open changed the mask of file permissions (umask %03o to %03o); seqlstm undid it\n",
             (unsigned)mask, (unsigned)mask ^ 011);
    assert_string_equal(logged, expected);
    logged[0] = 0;
    void *kept[] = {given_host->allocate(given_host->context, 30), given_host->allocate(given_host->context, 12)};
    assert_true(kept[0] && kept[1]);
    sl_connection_close(connection);
    sl_memory_free(NULL, kept[0]);
    sl_memory_free(NULL, kept[1]);
    assert_string_equal(logged, "warning: comm-test misbehaves: after its close it still holds 42 bytes of the host's "
                                "memory\n");
}

/* The log is the caller's, and may be gone afterwards. */
static void nothing_is_logged_after_the_end(void **state)
{
    (void)state;
    const struct sl_log log = {.write = keep, .level = SL_LOG_INFO};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    struct sl_watched_call call;
    const mode_t mask = umask(022);
    for (int open = 1; open >= 0; open--) {
        logged[0] = 0;
        if (open)
            assert_int_equal(connect_logged(&log, 1000, &connection, &err), SEQLSTM_OK);
        sl_watch_begin(&call, fake.table.id, open ? SL_FUNCTION_ESTIMATE : SL_FUNCTION_SUPPORTS);
        umask(umask(0) ^ 011);
        sl_watch_end(&call);
        assert_int_equal(strlen(logged) > 0, open);
        if (open)
            sl_connection_close(connection);
    }
    umask(mask);
}

/* An exchange is an activity of its plugin. */
static void exchanges_are_recorded(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    struct sl_trace trace;
    assert_int_equal(fake_connect(1, 3, &connection, &err), SEQLSTM_OK);
    assert_int_equal(sl_trace_start(SL_TRACE_PHASES, 100, &err), SEQLSTM_OK);
    for (int k = 0; k < 3; k++)
        assert_int_equal(sl_connection_run(connection, 0, (struct seqlstm_exchange){.kind = 0}, &err), SEQLSTM_OK);
    sl_trace_stop(&trace);
    int found = 0;
    for (int64_t a = 0; trace.track_count == 1 && a < trace.tracks[0].count; a++)
        found += trace.tracks[0].activities[a].kind == SL_ACTIVITY_EXCHANGE &&
                 strcmp(trace.tracks[0].activities[a].name, "comm-test") == 0;
    assert_int_equal(found, 3);
    sl_trace_deinit(&trace);
    sl_connection_close(connection);
}

static struct seqlstm_transport transport;

static seqlstm_status describe_given(struct seqlstm_transport *out, struct seqlstm_error *err)
{
    (void)err;
    *out = transport;
    return SEQLSTM_OK;
}

/* A transport has a name, a domain and groups; a connection waits for some time. */
static void each_part_of_a_description_is_needed(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    for (int missing = 0; missing < 4; missing++) {
        make_sound(NULL);
        fake_describe(&transport, NULL);
        fake.table.describe = describe_given;
        if (missing == 0)
            transport.name[0] = 0;
        else if (missing == 1)
            transport.domain[0] = 0;
        else if (missing == 2)
            transport.groups = 0;
        else
            transport.ranks_most = 0; /* any number */
        if (missing < 3) {
            expect_refusal(SEQLSTM_INTERNAL, "comm-test is faulty: its describe gave no name, domain or groups");
            continue;
        }
        assert_int_equal(connect_logged(NULL, 1000, &connection, &err), SEQLSTM_OK);
        sl_connection_close(connection);
    }
    for (int64_t timeout = -1; timeout < 2; timeout++) {
        assert_int_equal(connect_logged(NULL, timeout, &connection, &err),
                         timeout > 0 ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
        if (timeout > 0)
            sl_connection_close(connection);
    }
}

/* A group that exists is not made again, and there are no more than the transport has. */
static void groups_have_numbers(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    const int32_t ranks[] = {1, 2};
    assert_int_equal(fake_connect(1, 3, &connection, &err), SEQLSTM_OK);
    assert_int_equal(sl_connection_add_group(connection, 0, ranks, 2, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "group 0 exists already");
    assert_int_equal(sl_connection_add_group(connection, 2, ranks, 2, &err), SEQLSTM_UNSUPPORTED);
    assert_string_equal(err.message, "comm-test has at most 2 groups");
    assert_int_equal(sl_connection_run(connection, 1, (struct seqlstm_exchange){.kind = 0}, &err),
                     SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "there is no group 1");
    for (uint32_t none = 2; none < 200; none++) { /* of any number, as many as there may ever be and more */
        char expected[40];
        snprintf(expected, sizeof expected, "there is no group %u", none);
        assert_int_equal(sl_connection_run(connection, none, (struct seqlstm_exchange){.kind = 0}, &err),
                         SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, expected);
        assert_int_equal(sl_connection_add_group(connection, none, ranks, 2, &err), SEQLSTM_UNSUPPORTED);
    }
    assert_int_equal(fake.groups, 1);
    sl_connection_close(connection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_sound_plugin_is_used_and_closed, make_sound),
        cmocka_unit_test_setup(memory_of_a_plugin_is_optional_and_aligned, make_sound),
        cmocka_unit_test_setup(each_value_reaches_the_plugin_as_it_is, make_sound),
        cmocka_unit_test_setup(what_is_wrong_is_said, make_sound),
        cmocka_unit_test_setup(carelessness_is_logged, make_sound),
        cmocka_unit_test_setup(nothing_is_logged_after_the_end, make_sound),
        cmocka_unit_test_setup(exchanges_are_recorded, make_sound),
        cmocka_unit_test_setup(each_part_of_a_description_is_needed, make_sound),
        cmocka_unit_test_setup(groups_have_numbers, make_sound),
    };
    sl_watch_capture_output(true); /* opens its file, which stays */
    sl_watch_capture_output(false);
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
