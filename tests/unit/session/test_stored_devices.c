/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are others than those of the stored plan: each is told with its backend, unless the plan is not followed
 * or the backend is not there. And the phases of other plans in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "ok.h"
#include "oom.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_plan.h"

/* The devices of now, by the names of their backends. */
static const struct {
    const char *backend;
    int device; /* -1: it has none */
    struct seqlstm_device_info infos[2];
} now[] = {
    {"one", 1, {{.device_class = "cpu:x", .name = "Zero"}, {.device_class = "cpu:y", .name = "First"}}},
    {"two", 0, {{.device_class = "cuda:90", .name = "Second"}, {.device_class = "cuda:80", .name = "Other"}}},
    {"none", -1, {{.device_class = "cpu:x", .name = "Zero"}}},
};

enum { BACKENDS = sizeof now / sizeof *now };

static struct sl_buf logged;

const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t index);
bool __wrap_sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device);
struct sl_backend *__wrap_sl_registry_find_backend(const struct sl_registry *registry, const char *id);

struct sl_backend *__wrap_sl_registry_find_backend(const struct sl_registry *registry, const char *id)
{
    (void)registry;
    for (int b = 0; b < BACKENDS; b++)
        if (strcmp(now[b].backend, id) == 0)
            return (struct sl_backend *)(uintptr_t)(b + 1);
    return NULL;
}

bool __wrap_sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device)
{
    const int device = now[(uintptr_t)backend - 1].device;
    *out_device = (uint32_t)device;
    return device >= 0;
}

const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t index)
{
    return &now[(uintptr_t)backend - 1].infos[index];
}

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    sl_buf_printf(&logged, "%s: %s\n", sl_log_level_name(level), message);
}

static void expect_told(bool replay, struct sl_plan_device *devices, int32_t count, const char *expected)
{
    const struct sl_log log = {.write = write_log, .level = SL_LOG_INFO};
    const struct sl_session session = {
        .replay = replay, .stored = {.devices = devices, .device_count = count}, .options = {.log = &log}};
    sl_stored_plan_compare_devices(&session);
    assert_string_equal(sl_buf_text(&logged), expected);
    sl_buf_deinit(&logged);
}

#define ONE_OTHER(was, of)                                                                                             \
    "warning: one computes on First (cpu:y); the stored plan is of " was " (" of "): not the same bits\n"
#define TWO_OTHER(was, of)                                                                                             \
    "warning: two computes on Second (cuda:90); the stored plan is of " was " (" of "): not the same bits\n"

static void other_devices_are_told(void **state)
{
    (void)state;
    struct sl_plan_device same[] = {{"one", "cpu:y", "First"}, {"two", "cuda:90", "Second"}},
                          old[] = {{"two", "cuda:90", ""}, {"one", "cpu:y", ""}},
                          classes[] = {{"one", "cpu:x", "First"}, {"two", "cuda:80", ""}},
                          names[] = {{"two", "cuda:90", "Other"}, {"one", "cpu:y", "Zero"}},
                          gone[] = {{"three", "cpu:z", "Third"}, {"none", "cpu:z", "Third"}, {"two", "cuda:1", "Old"}};
    expect_told(true, same, 2, "");
    expect_told(true, old, 2, ""); /* of an earlier version, which stored no names */
    expect_told(true, classes, 2, ONE_OTHER("First", "cpu:x") TWO_OTHER("another device", "cuda:80"));
    expect_told(true, classes, 1, ONE_OTHER("First", "cpu:x"));
    expect_told(true, names, 2, TWO_OTHER("Other", "cuda:90") ONE_OTHER("Zero", "cpu:y"));
    expect_told(true, gone, 3, TWO_OTHER("Old", "cuda:1"));
    expect_told(false, classes, 2, ""); /* a new plan is made */
    expect_told(true, classes, 0, "");
}

/* The operations of a plan that was slower as a whole are of the phase for which both were timed. */
static void other_plans_have_their_phase(void **state)
{
#define STEPS(layers)                                                                                                  \
    "\"whole_steps\": {\"step_ns\": 7, \"other_step_ns\": 9, \"overturned\": true, \"other\": [" layers "]}"
#define LAYER "{\"name\": \"n\", \"backend\": \"b\", \"variant\": \"v\"}"
    static const char text[] = "{\"layers\": [], " STEPS(LAYER) ", \"evaluate\": {" STEPS(LAYER ", " LAYER) "}}";
    struct sl_stored_plan plan = {.threads = 0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    sl_arena_init(&plan.arena);
    ok(sl_stored_plan_parse("p", text, sizeof text - 1, &plan, &err), &err);
    for (int phase = SL_PHASE_TRAIN; phase <= SL_PHASE_EVALUATE; phase++) {
        const struct sl_whole_steps *steps = sl_stored_plan_find_whole_steps(&plan, (enum sl_phase)phase);
        assert_true(steps && steps->other_count == 1 + (phase == SL_PHASE_EVALUATE));
        for (int32_t k = 0; k < steps->other_count; k++)
            assert_int_equal(steps->other[k].phase, phase);
    }
    sl_arena_deinit(&plan.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(other_devices_are_told),
                                       cmocka_unit_test(other_plans_have_their_phase)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
