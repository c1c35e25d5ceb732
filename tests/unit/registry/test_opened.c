/* SPDX-License-Identifier: Apache-2.0 */
/* Opened backends: which of several devices is used, what a request that cannot be met is told, which settings they
 * were opened with, what is logged until they are closed. */
#include "oom.h"
#include "plain_backend.h"

#include <sys/stat.h>

#include "base/memory/memory.h"
#include "registry/watch/watch.h"

static const struct sl_registry_request any;

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void expect_device(struct sl_registry_request request, int32_t number, uint32_t expected)
{
    struct sl_registry *registry = plain_load(request, (struct sl_registry_entry){.device = number});
    struct sl_backend *backend = sl_registry_get_backend(registry, 0);
    uint32_t device = 77;
    assert_non_null(backend);
    assert_true(sl_backend_find_device(backend, &device));
    assert_int_equal(device, expected);
    sl_registry_destroy(registry);
}

/* The one that is asked for, or the first in the host's memory, or the first. */
static void one_device_is_used(void **state)
{
    static const struct seqlstm_memory memory;
    static const struct seqlstm_streams streams;
    (void)state;
    plain_reset();
    for (int32_t number = 0; number <= PLAIN_DEVICES; number++)
        expect_device(any, number, number ? (uint32_t)number - 1 : 0);
    plain.table.memory = &memory;
    plain.table.streams = &streams;
    plain_describe(0, "card", "card:1", "card:1");
    expect_device(any, 0, 1);
    plain_describe(1, "card", "card:2", "card:2");
    expect_device(any, 0, 2);
    expect_device(any, 1, 0);
    plain_describe(2, "card", "card:3", "card:3");
    expect_device(any, 0, 0);
    expect_device(any, 2, 1);
}

/* `device: cuda:N` is about devices of that class only, and an entry's own device comes first. */
static void cuda_devices_have_numbers(void **state)
{
    (void)state;
    plain_reset();
    expect_device((struct sl_registry_request){.cuda = 2}, 0, 0);
    expect_device((struct sl_registry_request){.cuda = 9}, 3, 2);
    plain_describe(0, "card", "cuda:sm_90", "host");
    expect_device((struct sl_registry_request){.cuda = 2}, 0, 1);
    expect_device((struct sl_registry_request){.cuda = 2}, 3, 2);
    expect_device((struct sl_registry_request){.cuda = 9}, 1, 0);
    plain_expect((struct sl_registry_request){.cuda = 4}, (struct sl_registry_entry){.device = 0},
                 SL_BACKEND_UNAVAILABLE, "it has 3 devices, counted from 0, and no device 3");
}

static void devices_that_are_not_there(void **state)
{
    (void)state;
    plain_reset();
    plain_expect(any, (struct sl_registry_entry){.device = 3}, SL_BACKEND_OK, NULL);
    plain_expect(any, (struct sl_registry_entry){.device = 4}, SL_BACKEND_UNAVAILABLE,
                 "it has 3 devices, counted from 0, and no device 3");
    plain.device_count = 1;
    plain_expect(any, (struct sl_registry_entry){.device = 9}, SL_BACKEND_UNAVAILABLE,
                 "it has 1 device, counted from 0, and no device 8");
}

/* One device of the processor suffices, whichever it is. */
static void the_processor_is_asked_for(void **state)
{
    (void)state;
    const struct sl_registry_request request = {.cpu_only = true};
    plain_reset();
    plain_describe(0, "card", "card:1", "host");
    plain_describe(1, "card", "cp", "host");
    plain_expect(request, (struct sl_registry_entry){.device = 0}, SL_BACKEND_OK, NULL);
    plain_describe(2, "card", "xcpu", "host");
    plain_expect(request, (struct sl_registry_entry){.device = 0}, SL_BACKEND_UNAVAILABLE,
                 "it computes on card:1, and `device: cpu` asks for the processor");
    plain_expect(any, (struct sl_registry_entry){.device = 0}, SL_BACKEND_OK, NULL);
}

static void each_device_answers_for_itself(void **state)
{
    static const struct seqlstm_dense_desc desc = {.head = {.struct_size = sizeof desc, .op = SEQLSTM_OP_DENSE}};
    static const char *const classes[] = {"cpu:one", "cpu:two", "cpu:three"};
    struct seqlstm_answer answer;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    plain_reset();
    struct sl_registry *registry = plain_load(any, (struct sl_registry_entry){.device = 0});
    struct sl_backend *backend = sl_registry_get_backend(registry, 0);
    for (uint32_t device = 0; device < PLAIN_DEVICES; device++) {
        ok(sl_backend_supports(backend, device, &desc.head, &answer, &err), &err);
        assert_string_equal(answer.variants[0], classes[device]);
    }
    assert_int_equal(sl_backend_supports(backend, PLAIN_DEVICES, &desc.head, &answer, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "backend plain has no device 3");
    sl_registry_destroy(registry);
}

/* ---- open -------------------------------------------------------------------------------------------------------- */

/* Only a configuration that is refused where there are settings is a matter of these. */
static void a_backend_may_refuse_to_open(void **state)
{
    static const struct seqlstm_setting setting = {"tile", "9"};
    static const struct {
        seqlstm_status status;
        bool has_settings, misconfigured;
        enum sl_backend_status expected;
        const char *reason;
    } rows[] = {
        {SEQLSTM_UNAVAILABLE, false, false, SL_BACKEND_UNAVAILABLE, "no card"},
        {SEQLSTM_UNAVAILABLE, true, false, SL_BACKEND_UNAVAILABLE, "no card"},
        {SEQLSTM_INVALID_CONFIG, false, false, SL_BACKEND_REFUSED, "it did not open: no card"},
        {SEQLSTM_INVALID_CONFIG, true, true, SL_BACKEND_REFUSED, "it did not open: no card"},
        {SEQLSTM_DEVICE, true, false, SL_BACKEND_REFUSED, "it did not open: no card"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct sl_registry_entry entry = {.settings = &setting, .setting_count = rows[k].has_settings};
        plain_reset();
        plain.open_status = rows[k].status;
        plain.open_message = "no card";
        plain_expect(any, entry, rows[k].expected, rows[k].reason);
        struct sl_registry *registry = plain_load(any, entry);
        assert_int_equal(sl_registry_get_record(registry, 0)->misconfigured, rows[k].misconfigured);
        assert_int_equal(sl_registry_get_record(registry, 0)->wrong_setting, -1);
        sl_registry_destroy(registry);
    }
    plain.open_status = SEQLSTM_UNAVAILABLE;
    plain.open_message = "";
    plain_expect(any, (struct sl_registry_entry){.device = 0}, SL_BACKEND_UNAVAILABLE, "it gave no reason");
    plain.open_status = SEQLSTM_DEVICE;
    plain_expect(any, (struct sl_registry_entry){.device = 0}, SL_BACKEND_REFUSED,
                 "it did not open: it gave no reason");
}

static uint64_t hash(const struct seqlstm_setting *settings, uint32_t count)
{
    struct sl_registry *registry =
        plain_load(any, (struct sl_registry_entry){.settings = settings, .setting_count = count});
    const struct sl_backend_record *record = sl_registry_get_record(registry, 0);
    const uint64_t made = record->settings_hash;
    assert_int_equal(record->status, SL_BACKEND_OK);
    assert_int_equal(record->wrong_setting, -1);
    sl_registry_destroy(registry);
    return made;
}

/* Each key and each value counts. */
static void settings_are_told_apart(void **state)
{
    (void)state;
    static const struct seqlstm_setting lists[][2] = {
        {{"tile", "9"}, {"order", "row"}},  {{"tile", "9"}, {"order", "column"}}, {{"tile", "8"}, {"order", "row"}},
        {{"share", "9"}, {"order", "row"}}, {{"tile", "9"}, {"tile", "9"}},       {{"tile", "9"}, {"share", "9"}},
    };
    enum { COUNT = sizeof lists / sizeof *lists };
    uint64_t made[COUNT];
    plain_reset();
    assert_int_equal(hash(NULL, 0), 0);
    assert_true(hash(lists[0], 1) != 0);
    for (size_t k = 0; k < COUNT; k++) {
        made[k] = hash(lists[k], 2);
        assert_true(made[k] == hash(lists[k], 2) && made[k] != hash(lists[k], 1));
        for (size_t i = 0; i < k; i++)
            assert_true(made[i] != made[k]);
    }
}

/* The first setting that is wrong, by its place in the list. */
static void a_wrong_setting_is_pointed_out(void **state)
{
    (void)state;
    static const struct seqlstm_setting settings[] = {{"tile", "9"}, {"order", "diagonal"}, {"share", "much"}};
    static const struct seqlstm_setting unknown[] = {{"share", "1e-3"}, {"ordr", "row"}};
    plain_reset();
    const struct sl_registry_entry entry = {.settings = settings, .setting_count = 3};
    plain_expect(any, entry, SL_BACKEND_REFUSED,
                 "option 'order' of plain is 'diagonal', expected row|column (What comes first.)");
    struct sl_registry *registry = plain_load(any, entry);
    assert_int_equal(sl_registry_get_record(registry, 0)->wrong_setting, 1);
    assert_true(sl_registry_get_record(registry, 0)->misconfigured);
    sl_registry_destroy(registry);
    plain_expect(any, (struct sl_registry_entry){.settings = unknown, .setting_count = 2}, SL_BACKEND_REFUSED,
                 "plain has no option 'ordr'; did you mean 'order'? it has: tile, order, share");
    static const struct seqlstm_setting far = {"colour", "red"}, half = {"order", "ro"}, more = {"order", "rows"};
    plain_expect(any, (struct sl_registry_entry){.settings = &far, .setting_count = 1}, SL_BACKEND_REFUSED,
                 "plain has no option 'colour'; it has: tile, order, share");
    plain_expect(any, (struct sl_registry_entry){.settings = &half, .setting_count = 1}, SL_BACKEND_REFUSED,
                 "option 'order' of plain is 'ro', expected row|column (What comes first.)");
    plain_expect(any, (struct sl_registry_entry){.settings = &more, .setting_count = 1}, SL_BACKEND_REFUSED,
                 "option 'order' of plain is 'rows', expected row|column (What comes first.)");
    static const struct {
        const char *value;
        bool fits;
    } tiles[] = {{"1", true},   {"64", true},   {"0", false},  {"65", false},
                 {"-1", false}, {"8.5", false}, {"8x", false}, {"", false}};
    for (size_t k = 0; k < sizeof tiles / sizeof *tiles; k++) { /* both ends are in a range */
        const struct seqlstm_setting tile = {"tile", tiles[k].value};
        char reason[100];
        snprintf(reason, sizeof reason, "option 'tile' of plain is '%s', expected int 1..64 (Rows at a time.)",
                 tiles[k].value);
        plain_expect(any, (struct sl_registry_entry){.settings = &tile, .setting_count = 1},
                     tiles[k].fits ? SL_BACKEND_OK : SL_BACKEND_REFUSED, tiles[k].fits ? NULL : reason);
    }
    plain.table.option_count = 0;
    plain_expect(any, (struct sl_registry_entry){.settings = &far, .setting_count = 1}, SL_BACKEND_REFUSED,
                 "plain has no option 'colour'; it has no options");
}

/* ---- what is logged ---------------------------------------------------------------------------------------------- */

static char logged[2000];

static void keep(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    const size_t length = strlen(logged);
    snprintf(logged + length, sizeof logged - length, "%s: %s\n", sl_log_level_name(level), message);
}

static struct sl_log make_log(enum sl_log_level level)
{
    logged[0] = 0;
    return (struct sl_log){.write = keep, .level = level};
}

static void memory_that_is_kept_is_counted(void **state)
{
    (void)state;
    const struct sl_log log = make_log(SL_LOG_WARN);
    plain_reset();
    struct sl_registry *registry =
        plain_load((struct sl_registry_request){.log = &log}, (struct sl_registry_entry){.device = 0});
    assert_int_equal(plain.host->struct_size, sizeof *plain.host);
    void *first = plain.host->allocate(plain.host->context, 300), *last = plain.host->allocate(plain.host->context, 70);
    assert_true(first && last && first != last);
    assert_int_equal(sl_backend_get_live_bytes(sl_registry_get_backend(registry, 0)), 370);
    plain.host->release(plain.host->context, last);
    assert_int_equal(sl_backend_get_live_bytes(sl_registry_get_backend(registry, 0)), 300);
    sl_registry_destroy(registry);
    sl_memory_free(NULL, first);
    assert_string_equal(logged, "warning: the backend plain misbehaves: after its close it still holds 300 bytes of "
                                "the host's memory\n");
}

/* Levels that the host does not know are its lowest. */
static void levels_of_messages(void **state)
{
    (void)state;
    static const struct {
        int32_t level;
        const char *line;
    } rows[] = {{SEQLSTM_LOG_ERROR - 7, "error: plain: hot\n"}, {SEQLSTM_LOG_ERROR, "error: plain: hot\n"},
                {SEQLSTM_LOG_WARNING, "warning: plain: hot\n"}, {SEQLSTM_LOG_INFO, "info: plain: hot\n"},
                {SEQLSTM_LOG_DEBUG, "debug: plain: hot\n"},     {SEQLSTM_LOG_TRACE, "trace: plain: hot\n"},
                {SEQLSTM_LOG_TRACE + 1, "trace: plain: hot\n"}, {1000, "trace: plain: hot\n"}};
    const struct sl_log log = make_log(SL_LOG_TRACE);
    plain_reset();
    struct sl_registry *registry =
        plain_load((struct sl_registry_request){.log = &log}, (struct sl_registry_entry){.device = 0});
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        logged[0] = 0;
        plain.host->log(plain.host->context, rows[k].level, "hot");
        assert_string_equal(logged, rows[k].line);
    }
    logged[0] = 0;
    plain.host->trace_begin(plain.host->context, "pack");
    plain.host->trace_end(plain.host->context);
    assert_string_equal(logged, "trace: plain: begin pack\ntrace: plain: end\n");
    logged[0] = 0;
    plain.host->trace_begin(plain.host->context, NULL); /* a part without a name */
    plain.host->trace_end(plain.host->context);
    assert_string_equal(logged, "trace: plain: begin \ntrace: plain: end\n");
    sl_registry_destroy(registry);
}

/* A change in a call is told while the backend is open, with its log. */
static void nothing_is_told_after_the_end(void **state)
{
    (void)state;
    const struct sl_log log = make_log(SL_LOG_WARN);
    plain_reset();
    sl_watch_guard_all(true);
    for (int open = 1; open >= 0; open--) {
        struct sl_watched_call call;
        struct sl_registry *registry =
            plain_load((struct sl_registry_request){.log = &log}, (struct sl_registry_entry){.device = 0});
        if (!open)
            sl_registry_destroy(registry);
        logged[0] = 0;
        sl_watch_begin(&call, plain.table.id, SL_FUNCTION_FORWARD);
        umask(umask(0) ^ 011);
        sl_watch_end(&call);
        assert_int_equal(logged[0] != 0, open);
        if (open)
            sl_registry_destroy(registry);
    }
    sl_watch_guard_all(false);
}

/* ---- what its functions return ----------------------------------------------------------------------------------- */

static uint32_t counted;
static seqlstm_status count_status;

static seqlstm_status count_devices(struct seqlstm_instance *instance, uint32_t *out_count, struct seqlstm_error *err)
{
    (void)instance, (void)err;
    *out_count = counted;
    return count_status;
}

/* Each status is one, and the last too. */
static void numbers_that_are_no_status(void **state)
{
    static const struct {
        int status;
        const char *reason;
    } rows[] = {
        {-1, "its device_count failed: the backend plain is faulty: its device_count returned -1, which is no status"},
        {SEQLSTM_INTERNAL, "its device_count failed: the backend plain failed in device_count (status 13) and gave no "
                           "reason"},
        {SEQLSTM_INTERNAL + 1,
         "its device_count failed: the backend plain is faulty: its device_count returned 14, which is no status"},
    };
    (void)state;
    _Static_assert(SEQLSTM_INTERNAL == 13, "the number is in the rows");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        plain_reset();
        plain.table.device_count = count_devices;
        count_status = (seqlstm_status)rows[k].status;
        plain_expect(any, (struct sl_registry_entry){.device = 0}, SL_BACKEND_REFUSED, rows[k].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device_is_used),
        cmocka_unit_test(cuda_devices_have_numbers),
        cmocka_unit_test(devices_that_are_not_there),
        cmocka_unit_test(the_processor_is_asked_for),
        cmocka_unit_test(each_device_answers_for_itself),
        cmocka_unit_test(a_backend_may_refuse_to_open),
        cmocka_unit_test(settings_are_told_apart),
        cmocka_unit_test(a_wrong_setting_is_pointed_out),
        cmocka_unit_test(memory_that_is_kept_is_counted),
        cmocka_unit_test(levels_of_messages),
        cmocka_unit_test(nothing_is_told_after_the_end),
        cmocka_unit_test(numbers_that_are_no_status),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
