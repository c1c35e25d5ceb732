/* SPDX-License-Identifier: Apache-2.0 */
/* Which choices the plan of an encoder and a decoder follows: those stored for it, those stored for training, or those
 * that training has just made. And the memory of all plans of a training. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "ok.h"
#include "oom.h"
#include "session/prepare/pair.h"
#include "session/record/session_record.h"
#include "session/run_folder/plan_json.h"

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend);

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend)
{
    return (uintptr_t)backend == 1 ? "first" : "second";
}

static void each_source_has_its_turn(void **state)
{
#define OWN(phase) "d:own:v@" phase
#define STORED     "x:kept:w@evaluate"
#define MADE       "a:first:p@train b:second:q@train"
    static const struct {
        bool forced, stored, own, bound;
        const char *expected;
    } rows[] = {
        {false, false, false, false, MADE},
        {false, false, false, true, MADE},
        {false, false, true, false, OWN("train") " " MADE},
        {false, false, true, true, OWN("predict")},
        {false, true, false, false, STORED},
        {false, true, false, true, STORED},
        {false, true, true, false, OWN("train") " " STORED},
        {false, true, true, true, OWN("predict")},
        {true, false, false, false, ""},
        {true, false, false, true, ""},
        {true, false, true, false, OWN("train")},
        {true, false, true, true, OWN("predict")},
        {true, true, false, false, STORED},
        {true, true, false, true, STORED},
        {true, true, true, false, OWN("train") " " STORED},
        {true, true, true, true, OWN("predict")},
    };
    static const char *const phases[] = {
        [SL_PHASE_TRAIN] = "train", [SL_PHASE_EVALUATE] = "evaluate", [SL_PHASE_PREDICT] = "predict"};
    struct sl_node nodes[] = {{.name = "a"}, {.name = "b"}};
    struct sl_call calls[] = {{.node = &nodes[0], .backend = (struct sl_backend *)(uintptr_t)1, .variant = "p"},
                              {.node = &nodes[1], .backend = (struct sl_backend *)(uintptr_t)2, .variant = "q"}};
    struct sl_plan plan = {.calls = calls, .call_count = 2};
    struct sl_plan_choice own = {"d", "own", "v", SL_PHASE_EVALUATE}, kept = {"x", "kept", "w", SL_PHASE_EVALUATE};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const struct sl_choices given = {&own, rows[r].own};
        const struct sl_session session = {.train = {.plan = &plan},
                                           .stored = {.phases = {&kept, rows[r].stored}},
                                           .options = {.forced_backend = rows[r].forced ? "first" : NULL}};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_choices listed = {0};
        struct sl_buf got = {0};
        ok(sl_session_list_choices(&session, &given, rows[r].bound, &listed, &err), &err);
        for (int32_t i = 0; i < listed.count; i++)
            sl_buf_printf(&got, "%s%s:%s:%s@%s", i ? " " : "", listed.items[i].node, listed.items[i].backend,
                          listed.items[i].variant, phases[listed.items[i].phase]);
        if (strcmp(sl_buf_text(&got), rows[r].expected) != 0)
            fail_msg("row %d: `%s`, expected `%s`", (int)r, sl_buf_text(&got), rows[r].expected);
        sl_buf_deinit(&got);
        free(listed.items);
    }
}

static struct sl_plan make_plan(int64_t bytes)
{
    return (struct sl_plan){.memory = {.activations_bytes = bytes}};
}

/* What a training needs at its end, of plans that each take another power of two. */
static void memory_of_all_plans_is_summed(void **state)
{
    enum { EVALUATE = 1, DECODING = 2, SAMPLING = 4, TEST = 8, TEST_DECODING = 16, ALL = 32 };
    struct sl_model model = {.name = "m"};
    const struct sl_graph graph = {.model = &model, .phase = SL_PHASE_TRAIN};
    struct sl_plan train = {.graph = &graph, .memory = {.peak_bytes = 1 << 20}};
    struct sl_plan evaluate = make_plan(1), encoder = make_plan(2), step = make_plan(4), sampler = make_plan(16),
                   sampled = make_plan(32), test = make_plan(128), reader = make_plan(256), writer = make_plan(512);
    (void)state;
    for (int bits = 0; bits < ALL; bits++) {
        struct sl_session session = {.model = &model, .train.plan = &train, .evaluate.plan = &train};
        int64_t expected = 1 << 20;
        if (bits & EVALUATE)
            session.evaluate.plan = &evaluate;
        if (bits & DECODING)
            session.decoding.pair =
                (struct sl_stage_pair){.encoder.plan = &encoder, .step.plan = &step, .own_bytes = 8};
        if (bits & SAMPLING)
            session.sampling.pair =
                (struct sl_stage_pair){.encoder.plan = &sampler, .step.plan = &sampled, .own_bytes = 64};
        if (bits & TEST)
            session.test.plan = &test;
        if (bits & TEST_DECODING)
            session.test_decoding.pair =
                (struct sl_stage_pair){.encoder.plan = &reader, .step.plan = &writer, .own_bytes = 1024};
        expected +=
            (bits & EVALUATE ? 1 : 0) + (bits & DECODING ? 2 + 4 + 8 : 0) + (bits & SAMPLING ? 16 + 32 + 64 : 0);
        if (bits & TEST)
            expected += 128 + (bits & TEST_DECODING ? 256 + 512 + 1024 : 0);
        const int64_t got = sl_session_sum_memory(&session, &train);
        if (got != expected)
            fail_msg("%#x: %#llx, not %#llx", (unsigned)bits, (unsigned long long)got, (unsigned long long)expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_source_has_its_turn),
                                       cmocka_unit_test(memory_of_all_plans_is_summed)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
