/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of functions that break a rule each, and those that just keep it: what is refused, and what is said. */
#include "oom.h"
#include "plain_backend.h"

static void expect(enum sl_backend_status status, const char *reason)
{
    plain_expect((struct sl_registry_request){.cuda = 0}, (struct sl_registry_entry){.device = 0}, status, reason);
    plain_reset();
}

static void refused(const char *reason)
{
    expect(SL_BACKEND_REFUSED, reason);
}

static void the_record_has_each_text(void **state)
{
    (void)state;
    plain_reset();
    plain.table.license = "MIT\033";
    struct sl_registry *registry =
        plain_load((struct sl_registry_request){.cuda = 0}, (struct sl_registry_entry){.device = 0});
    const struct sl_backend_record *record = sl_registry_get_record(registry, 0);
    assert_string_equal(record->version, "1.2");
    assert_string_equal(record->vendor, "a test");
    assert_string_equal(record->license, "MIT\\x1b"); /* escapes take more room than what they stand for */
    assert_string_equal(record->build, "by hand");
    assert_true(record->has_abi && record->abi_major == SEQLSTM_ABI_MAJOR &&
                record->abi_minor_needed == SEQLSTM_ABI_MINOR);
    assert_int_equal(record->option_count, PLAIN_OPTIONS);
    assert_string_equal(record->options[1].key, "order");
    assert_int_equal(record->device_count, PLAIN_DEVICES);
    for (uint32_t d = 0; d < PLAIN_DEVICES; d++)
        assert_memory_equal(&record->devices[d], &plain.devices[d], sizeof plain.devices[d]);
    sl_registry_destroy(registry);
}

static void every_text_must_be_there(void **state)
{
    static const char reason[] = "its version, vendor, license or build text is NULL";
    (void)state;
    plain_reset();
    expect(SL_BACKEND_OK, NULL);
    const char **const texts[] = {&plain.table.version, &plain.table.vendor, &plain.table.license, &plain.table.build};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        *texts[k] = NULL;
        refused(reason);
    }
}

static void every_function_must_be_there(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        const char *name;
    } slots[] = {
        {offsetof(struct seqlstm_backend, open), "open"},
        {offsetof(struct seqlstm_backend, close), "close"},
        {offsetof(struct seqlstm_backend, device_count), "device_count"},
        {offsetof(struct seqlstm_backend, device_info), "device_info"},
        {offsetof(struct seqlstm_backend, supports), "supports"},
        {offsetof(struct seqlstm_backend, op_create), "op_create"},
        {offsetof(struct seqlstm_backend, op_sizes), "op_sizes"},
        {offsetof(struct seqlstm_backend, op_bind), "op_bind"},
        {offsetof(struct seqlstm_backend, forward), "forward"},
        {offsetof(struct seqlstm_backend, binding_destroy), "binding_destroy"},
        {offsetof(struct seqlstm_backend, op_destroy), "op_destroy"},
    };
    plain_reset();
    for (size_t k = 0; k < sizeof slots / sizeof *slots; k++) {
        char reason[100];
        memset((char *)&plain.table + slots[k].offset, 0, sizeof plain.table.close);
        snprintf(reason, sizeof reason, "its table has no function for the required slot '%s'", slots[k].name);
        refused(reason);
    }
}

static void a_table_has_a_size_within_limits(void **state)
{
    (void)state;
    const uint32_t least = offsetof(struct seqlstm_backend, op_destroy) + sizeof plain.table.op_destroy;
    const uint32_t sizes[] = {least - 1, least, 64 * 1024, 64 * 1024 + 1};
    plain_reset();
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        char reason[100];
        plain.table.struct_size = sizes[k];
        snprintf(reason, sizeof reason, "its table claims a size of %u bytes, expected %u to 65536", sizes[k], least);
        if (k == 1 || k == 2)
            expect(SL_BACKEND_OK, NULL);
        else
            refused(reason);
    }
    plain.table.magic = 0x1234;
    char reason[100];
    snprintf(reason, sizeof reason, "its table has the magic number 0x1234, expected %#x", SEQLSTM_MAGIC);
    refused(reason);
    for (uint32_t wrong = 0; wrong < 3; wrong++) {
        char versions[250];
        plain.table.abi_major += wrong == 0;
        plain.table.abi_minor_needed += wrong == 1 ? 1 : wrong == 2 ? UINT32_MAX : 0; /* one less */
        snprintf(versions, sizeof versions,
                 "it is built for ABI %u.%u, this program has %d.%d (a draft: both must be equal); use a build with "
                 "the headers of this program",
                 plain.table.abi_major, plain.table.abi_minor_needed, SEQLSTM_ABI_MAJOR, SEQLSTM_ABI_MINOR);
        refused(versions);
    }
}

/* The id that was asked for stays that of the record. */
static void an_id_has_a_form(void **state)
{
    (void)state;
    static const char form[] = "its id is missing or not of the form [a-z][a-z0-9-]*, at most 47 characters";
    static const char *const bad[] = {
        NULL, "", "Plain", "1plain", "-plain", "pl ain", "a23456789-123456789-123456789-123456789-12345678"};
    plain_reset();
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        plain.table.id = bad[k];
        refused(form);
    }
    plain.table.id = "other"; /* is known only later */
    plain.table.forward = NULL;
    refused("its table has no function for the required slot 'forward'");
    plain.table.id = "a23456789-123456789-123456789-123456789-1234567";
    struct sl_registry *registry =
        plain_load((struct sl_registry_request){.cuda = 0}, (struct sl_registry_entry){.device = 0});
    assert_int_equal(sl_registry_get_record(registry, 0)->status, SL_BACKEND_OK);
    assert_non_null(sl_registry_find_backend(registry, plain.table.id));
    sl_registry_destroy(registry);
}

static void sizes_of_descriptors(void **state)
{
    static const char wrong[] = "an entry of desc_bytes cannot be the size of a descriptor";
    static const char list[] = "its list of operations (desc_bytes) is missing or too long";
    static const struct {
        uint32_t bytes;
        const char *reason;
    } rows[] = {{0, NULL},
                {1, wrong},
                {sizeof(struct seqlstm_desc) - 8, wrong},
                {sizeof(struct seqlstm_desc), NULL},
                {sizeof(struct seqlstm_desc) + 4, wrong},
                {sizeof(struct seqlstm_desc) + 8, NULL},
                {1 << 16, NULL},
                {(1 << 16) + 8, wrong}};
    (void)state;
    plain_reset();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        plain.desc_bytes[SEQLSTM_OP_DENSE - 1] = rows[k].bytes;
        expect(rows[k].reason ? SL_BACKEND_REFUSED : SL_BACKEND_OK, rows[k].reason);
    }
    plain.table.desc_bytes = NULL;
    refused(list);
    plain.table.desc_count = 4097;
    refused(list);
    plain.table.desc_count = 0;
    plain.table.desc_bytes = NULL;
    expect(SL_BACKEND_OK, NULL);
}

/* Any text of any option. */
static void options_have_clean_texts(void **state)
{
    static const char absent[] = "an option has no key, type or help";
    static const char unclean[] = "a text of an option has control characters or is no UTF-8";
    static const char list[] = "its list of options is missing or too long";
    (void)state;
    plain_reset();
    for (int option = 0; option < PLAIN_OPTIONS; option++) {
        const char **const texts[] = {&plain.options[option].key, &plain.options[option].type,
                                      &plain.options[option].help};
        for (int k = 0; k < 3; k++) {
            *texts[k] = NULL;
            refused(absent);
            *texts[k] = "a\033b";
            refused(unclean);
            *texts[k] = "\xff";
            refused(unclean);
        }
    }
    plain.table.options = NULL;
    refused(list);
    plain.table.option_count = 1025;
    refused(list);
}

static void devices_are_described(void **state)
{
    (void)state;
    plain_reset();
    plain.device_count = 0;
    expect(SL_BACKEND_UNAVAILABLE, "it found no device");
    plain.device_count = SL_BACKEND_DEVICES_MOST;
    expect(SL_BACKEND_OK, NULL);
    plain.device_count = SL_BACKEND_DEVICES_MOST + 1;
    refused("it reports 1025 devices");
    for (uint32_t device = 0; device < PLAIN_DEVICES; device++) {
        struct seqlstm_device_info *info = &plain.devices[device];
        char reason[160];
        snprintf(reason, sizeof reason, "it gives device %u no valid name, class or domain", device);
        info->name[0] = 0;
        refused(reason);
        memset(info->name, 'n', sizeof info->name);
        refused(reason);
        info->device_class[0] = 0;
        refused(reason);
        memset(info->device_class, 'c', sizeof info->device_class);
        refused(reason);
        info->domain[0] = 0;
        refused(reason);
        memset(info->domain, 'd', sizeof info->domain);
        refused(reason);
        snprintf(info->name, sizeof info->name, "a\tname");
        snprintf(info->domain, sizeof info->domain, "d\n%u", device);
        snprintf(reason, sizeof reason,
                 "its device %u works in the domain d\\n%u, but it has no tables for memory and streams", device,
                 device);
        refused(reason);
    }
}

static uint32_t broken_device;

static seqlstm_status describe_some(struct seqlstm_instance *instance, uint32_t device,
                                    struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    if (device == broken_device)
        return seqlstm_error_set(err, SEQLSTM_DEVICE, "p.c", 1, "it has gone\033");
    return plain_device_info(instance, device, info, err);
}

static seqlstm_status open_nothing(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                   uint32_t setting_count, struct seqlstm_instance **out_instance,
                                   struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)out_instance, (void)err;
    return SEQLSTM_OK;
}

/* The instance is closed again, if there is one. */
static void what_fails_at_opening_is_said(void **state)
{
    (void)state;
    plain_reset();
    for (broken_device = 0; broken_device < PLAIN_DEVICES; broken_device++) {
        char reason[100];
        plain.table.device_info = describe_some;
        snprintf(reason, sizeof reason, "its device_info failed for device %u: it has gone\\x1b", broken_device);
        refused(reason);
    }
    plain.table.open = open_nothing;
    refused("its open returned OK but no instance");
}

static const struct seqlstm_backend *query_two(uint32_t host_minor)
{
    static struct seqlstm_backend other;
    static int calls;
    (void)host_minor;
    other = plain.table;
    return calls++ % 2 ? &other : &plain.table;
}

static const struct seqlstm_backend *query_none(uint32_t host_minor)
{
    (void)host_minor;
    return NULL;
}

/* There is one table, however often it is asked for. */
static void a_query_gives_one_table(void **state)
{
    (void)state;
    static const struct {
        const struct seqlstm_backend *(*query)(uint32_t host_minor);
        const char *reason;
    } rows[] = {{query_none, "its query function returned NULL"},
                {query_two, "its query function returned another table when called again"}};
    plain_reset();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct sl_backend_builtin builtin = {"plain", rows[k].query};
        const struct sl_registry_entry entry = {.name = "plain"};
        const struct sl_registry_request request = {
            .entries = &entry, .entry_count = 1, .builtins = &builtin, .builtin_count = 1, .only_folders = true};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_registry *registry = NULL;
        ok(sl_registry_create(&request, &registry, &err), &err);
        const struct sl_backend_record *record = sl_registry_get_record(registry, 0);
        assert_int_equal(record->status, SL_BACKEND_REFUSED);
        assert_string_equal(record->reason, rows[k].reason);
        assert_int_equal(sl_registry_get_backend_count(registry), 0);
        sl_registry_destroy(registry);
    }
    assert_int_equal(plain.instances, 0);
}

/* Both tables are needed. */
static void memory_needs_streams(void **state)
{
    static const struct seqlstm_memory memory;
    static const struct seqlstm_streams streams;
    (void)state;
    plain_reset();
    for (int tables = 0; tables < 4; tables++) {
        plain_describe(1, "card", "card:1", "card");
        plain.table.memory = tables & 1 ? &memory : NULL;
        plain.table.streams = tables & 2 ? &streams : NULL;
        if (tables == 3)
            expect(SL_BACKEND_OK, NULL);
        else
            refused("its device 1 works in the domain card, but it has no tables for memory and streams");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_record_has_each_text),
        cmocka_unit_test(every_text_must_be_there),
        cmocka_unit_test(every_function_must_be_there),
        cmocka_unit_test(a_table_has_a_size_within_limits),
        cmocka_unit_test(an_id_has_a_form),
        cmocka_unit_test(sizes_of_descriptors),
        cmocka_unit_test(options_have_clean_texts),
        cmocka_unit_test(devices_are_described),
        cmocka_unit_test(what_fails_at_opening_is_said),
        cmocka_unit_test(a_query_gives_one_table),
        cmocka_unit_test(memory_needs_streams),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
