/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of backends that are not there, from records that the test makes up: each with its name, its reason and
 * the place of the model file, as a note or as an error. And which are asked for. */
#include "model_fixture.h"

#define OOM_ARENAS
#include "oom.h"
#include "session/finding/missing.h"
#include "session/prepare/backends.h"
#include "session/record/session_record.h"

static struct sl_backend_record records[8];
static uint32_t record_count;
static struct sl_buf logged;

uint32_t __wrap_sl_registry_get_record_count(const struct sl_registry *registry);
const struct sl_backend_record *__wrap_sl_registry_get_record(const struct sl_registry *registry, uint32_t index);

uint32_t __wrap_sl_registry_get_record_count(const struct sl_registry *registry)
{
    (void)registry;
    return record_count;
}

const struct sl_backend_record *__wrap_sl_registry_get_record(const struct sl_registry *registry, uint32_t index)
{
    (void)registry;
    assert_true(index < record_count);
    return &records[index];
}

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    sl_buf_printf(&logged, "%s: %s\n", sl_log_level_name(level), message);
}

static const struct sl_log log_all = {.write = write_log, .level = SL_LOG_TRACE};

#define MODEL(more)                                                                                                    \
    "seqlstm: 1\ndata: {type: generator, name: adding_problem, length: 5, train: {size: 8}, batch_size: 4}\n"          \
    "model:\n  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"                                      \
    "train: {loss: mse, epochs: 1}\n" more

/* The status, the error, the findings and the log. */
static void expect(const char *model, seqlstm_status status, const char *message, const char *findings, const char *log)
{
    struct loaded l = load_clean(model);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf found = {0};
    struct sl_session session = {.model = l.model, .diagnostics = l.diagnostics, .options = {.log = &log_all}};
    assert_int_equal(sl_session_find_missing_backends(&session, NULL, &err), status);
    assert_string_equal(err.message, message);
    assert_int_equal(sl_diagnostics_render(l.diagnostics, false, &found, NULL), SEQLSTM_OK);
    assert_string_equal(sl_buf_text(&found), findings);
    assert_string_equal(sl_buf_text(&logged), log);
    sl_buf_deinit(&found);
    sl_buf_deinit(&logged);
    unload(&l);
}

static void set_records(const struct sl_backend_record *set, uint32_t count)
{
    memcpy(records, set, count * sizeof *set);
    record_count = count;
}

static const struct seqlstm_device_info processor = {.device_class = "cpu:x"}, gpu = {.device_class = "cuda:90"};

#define RECORD(name, what, ...)                                                                                        \
    {                                                                                                                  \
        .id = name, .status = SL_BACKEND_##what, .devices = &processor, __VA_ARGS__                                    \
    }
#define LOADED(name)                                                                                                   \
    {                                                                                                                  \
        .id = name, .status = SL_BACKEND_OK, .devices = &processor                                                     \
    }

/* What the model names is a note; what was found in a folder only helps with looking for a fault. */
static void backends_that_are_not_required_are_notes(void **state)
{
    (void)state;
    static const struct sl_backend_record set[] = {
        LOADED("one"), RECORD("two", SHADOWED, .origin = "m.yaml:2:1", .reason = "another comes first"),
        RECORD("three", UNAVAILABLE, .origin = "m.yaml:3:1", .reason = "no such device"),
        RECORD("", REFUSED, .file = "/x/libfour.so", .reason = "it is too old"),
        RECORD("five", NOT_FOUND, .origin = "m.yaml:5:1")};
    set_records(set, 5);
    expect(MODEL(""), SEQLSTM_OK, "", "",
           "info: note: the backend `three` does not work on this machine: no such device\n"
           "debug: note: the backend `/x/libfour.so` was refused: it is too old\n"
           "info: note: the backend `five` was not found: no reason was given\n");
}

/* All that are missing are found; the error is the last one. */
static void backends_that_are_required_are_errors(void **state)
{
    (void)state;
    static const struct sl_backend_record set[] = {
        RECORD("two", REFUSED, .required = true, .origin = "m.yaml:8:4", .reason = "it is too old"),
        RECORD("three", OK, .required = true),
        RECORD("four", SHADOWED, .required = true, .origin = "m.yaml:2:1", .reason = "another comes first"),
        RECORD("five", NOT_FOUND, .required = true, .reason = "no folder has it")};
    set_records(set, 4);
    expect(MODEL("backends:\n  - {plugin: two, require: true}\n"), SEQLSTM_UNAVAILABLE,
           "the required backend `five` was not found: no folder has it",
           "error[E0504]: the required backend `five` was not found: no folder has it\n"
           " --> m.yaml:8:3\n  |\n8 |   - {plugin: two, require: true}\n  |   ^\n\n"
           "error[E0504]: the required backend `two` was refused: it is too old\n"
           " --> m.yaml:8:4\n  |\n8 |   - {plugin: two, require: true}\n  |    ^\n\n",
           "");
}

/* A setting that no backend knows is underlined itself, and of one that is known its value, of the entry that is meant.
 */
static void settings_are_told_where_they_stand(void **state)
{
    (void)state;
    static const struct seqlstm_option known[] = {{.key = "tile"}, {.key = "mode"}};
    static const struct sl_backend_record set[] = {
        RECORD("zero", REFUSED, .entry = 0, .reason = "of another reason"),
        RECORD("one", REFUSED, .misconfigured = true, .entry = 0, .wrong_setting = 1, .reason = "`fast` is no number",
               .options = known, .option_count = 2),
        RECORD("two", REFUSED, .misconfigured = true, .entry = 1, .wrong_setting = 0, .reason = "there is no `tlie`",
               .options = known, .option_count = 2),
        RECORD("found", REFUSED, .misconfigured = true, .entry = -1, .reason = "in a folder"),
        RECORD("three", REFUSED, .misconfigured = true, .entry = 2, .wrong_setting = -1,
               .reason = "both do not go together", .options = known, .option_count = 2)};
    set_records(set, 5);
    expect(MODEL("backends:\n"
                 "  - {plugin: one, options: {tile: 1, mode: fast}}\n"
                 "  - {plugin: two, options: {tlie: 2, mode: 3}}\n"
                 "  - {plugin: three, options: {tile: 4}}\n"),
           SEQLSTM_INVALID_CONFIG, "both do not go together",
           "error[E0506]: `fast` is no number\n --> m.yaml:8:44\n  |\n"
           "8 |   - {plugin: one, options: {tile: 1, mode: fast}}\n"
           "  |                                            ^^^^\n\n"
           "error[E0506]: there is no `tlie`\n --> m.yaml:9:29\n  |\n"
           "9 |   - {plugin: two, options: {tlie: 2, mode: 3}}\n"
           "  |                             ^^^^\n\n"
           "error[E0506]: both do not go together\n  --> m.yaml:10:5\n   |\n"
           "10 |   - {plugin: three, options: {tile: 4}}\n   |     ^\n\n",
           "");
}

/* Only a backend that works, and has a device of CUDA, will do; the reason is that of one for CUDA. */
static void a_device_needs_a_backend(void **state)
{
    (void)state;
    static const struct sl_backend_record none[] = {LOADED("cpu")};
    static const struct sl_backend_record set[] = {LOADED("cpu"),
                                                   RECORD("cuda-old", SHADOWED, .reason = "another comes first"),
                                                   RECORD("cuda-new", UNAVAILABLE, .reason = "the driver is too old"),
                                                   RECORD("other", UNAVAILABLE, .reason = "of no interest")};
    static const struct sl_backend_record there[] = {LOADED("cpu"),
                                                     {.id = "a-gpu", .status = SL_BACKEND_OK, .devices = &gpu}};
    set_records(there, 2);
    expect(MODEL("device: cuda:1\n"), SEQLSTM_OK, "", "", "");
    set_records(none, 1);
    expect(MODEL("device: cpu\n"), SEQLSTM_OK, "", "", "");
#define FOUND(message) "error[E0504]: " message "\n --> m.yaml:7:9\n  |\n7 | device: cuda:1\n  |         ^^^^^^\n\n"
    expect(MODEL("device: cuda:1\n"), SEQLSTM_UNAVAILABLE,
           "there is no CUDA device 1: no backend for CUDA devices is listed or found",
           FOUND("there is no CUDA device 1: no backend for CUDA devices is listed or found"), "");
    set_records(set, 4);
    expect(MODEL("device: cuda:1\n"), SEQLSTM_UNAVAILABLE, "there is no CUDA device 1: cuda-new: the driver is too old",
           FOUND("there is no CUDA device 1: cuda-new: the driver is too old"), "");
}

/* ---- which are asked for ---------------------------------------------------------------------------------------- */

static struct sl_buf asked;

seqlstm_status __wrap_sl_registry_create(const struct sl_registry_request *request, struct sl_registry **out_registry,
                                         struct seqlstm_error *err);

seqlstm_status __wrap_sl_registry_create(const struct sl_registry_request *request, struct sl_registry **out_registry,
                                         struct seqlstm_error *err)
{
    (void)err;
    for (uint32_t e = 0; e < request->entry_count; e++) {
        const struct sl_registry_entry *entry = &request->entries[e];
        sl_buf_printf(&asked, "%s%s", e ? ", " : "", entry->name);
        for (uint32_t s = 0; s < entry->setting_count; s++)
            sl_buf_printf(&asked, " %s=%s", entry->settings[s].key, entry->settings[s].value);
        sl_buf_printf(&asked, "%s%s", entry->origin ? " of " : "", entry->origin ? entry->origin : "");
        sl_buf_append_text(&asked, entry->require ? " required" : "");
    }
    sl_buf_append_text(&asked, request->all_backends ? ", all" : "");
    *out_registry = NULL;
    return SEQLSTM_OK;
}

/* First those that a command names, each with its own settings or else those of the model file; then those of the model
 * file and the reference, each once. */
static void each_backend_is_asked_for_once(void **state)
{
    static const char listing[] = "backends:\n  - {plugin: one, options: {a: 1, b: x}}\n  - two\n"
                                  "  - {plugin: three, require: true, options: {c: 3}}\n";
    static const struct seqlstm_setting own[] = {{"a", "7"}};
    static const struct sl_registry_entry one = {.name = "one"},
                                          set = {.name = "one", .settings = own, .setting_count = 1};
    static const struct {
        const char *more; /* of the model */
        const struct sl_registry_entry *first;
        bool listed;
        const char *expected;
    } rows[] = {
        {listing, NULL, true,
         "one a=1 b=x of m.yaml:8:5, two of m.yaml:9:5, three c=3 of m.yaml:10:5 required, reference"},
        {listing, NULL, false, "reference"},
        {listing, &one, true, "one a=1 b=x, two of m.yaml:9:5, three c=3 of m.yaml:10:5 required, reference"},
        {listing, &one, false, "one, reference"},
        {listing, &set, true, "one a=7, two of m.yaml:9:5, three c=3 of m.yaml:10:5 required, reference"},
        {"backends: [reference, two]\n", NULL, true, "reference of m.yaml:7:12, two of m.yaml:7:23"},
        {"", &set, true, "one a=7, reference, all"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[512];
        snprintf(text, sizeof text, MODEL("%s"), rows[k].more);
        struct loaded l = load_clean(text);
        const struct sl_session session = {.model = l.model};
        for (int n = 0;; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_registry *registry;
            asked = (struct sl_buf){0};
            if (n > 0)
                arena_fail_at(n);
            const seqlstm_status status = sl_session_open_registry(&session, rows[k].first, rows[k].first != NULL,
                                                                   rows[k].listed, &registry, &err);
            const bool failed = arena_disarm();
            assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
            if (!failed)
                assert_string_equal(sl_buf_text(&asked), rows[k].expected);
            sl_buf_deinit(&asked);
            if (n > 0 && !failed)
                break;
        }
        unload(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backends_that_are_not_required_are_notes),
        cmocka_unit_test(backends_that_are_required_are_errors),
        cmocka_unit_test(settings_are_told_where_they_stand),
        cmocka_unit_test(a_device_needs_a_backend),
        cmocka_unit_test(each_backend_is_asked_for_once),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
