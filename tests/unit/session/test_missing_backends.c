/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of backends that are not there, from records that the test makes up: each with its name, its reason and
 * the place of the model file, as a note or as an error. */
#include "model_fixture.h"

#include "session/finding/missing.h"
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
    assert_int_equal(sl_session_find_missing_backends(&session, &err), status);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backends_that_are_not_required_are_notes),
        cmocka_unit_test(backends_that_are_required_are_errors),
        cmocka_unit_test(settings_are_told_where_they_stand),
        cmocka_unit_test(a_device_needs_a_backend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
