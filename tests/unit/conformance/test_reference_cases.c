/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend is compared with: the reference takes every case of the quick suite, in float64, whatever types the
 * case has. A case that it refuses, such as a random one, fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/cases/catalogue.h"
#include "conformance/checks/checks.h"
#include "judge/runner_private.h"
#include "registry/instance.h"
#include "registry/plugin.h"
#include "oom.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

struct counts {
    struct sl_subject reference;
    int all, narrow, int8;
};

static void create(void *context, enum sl_level level, const char *text)
{
    struct counts *counts = context;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_runner *runner = NULL;
    struct sl_data *data = NULL;
    struct sl_arena arena;
    struct sl_case c;
    (void)level;
    sl_arena_init(&arena);
    if (sl_case_parse(text, &c, &err) != SEQLSTM_OK || sl_data_create(&arena, &c, 2, 3, &data, &err) != SEQLSTM_OK ||
        sl_runner_create(&counts->reference, data, NULL, NULL, &runner, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", text, err.message);
    const struct seqlstm_desc *given = &c.desc.head, *taken = &runner->desc.head;
    const uint32_t dtypes[] = {taken->dtype_activation, taken->dtype_activation_grad, taken->dtype_state,
                               taken->dtype_compute,    taken->dtype_weight,          taken->dtype_weight_grad};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        assert_int_equal(dtypes[k], SEQLSTM_DTYPE_FLOAT32);
    for (int32_t k = 0; k < runner->count; k++)
        if (data->slots[k].role != SL_SLOT_ABSENT && sl_slot_is_float(&data->slots[k]) && given->op != SEQLSTM_OP_CAST)
            assert_int_equal(runner->dtypes[k], SEQLSTM_DTYPE_FLOAT64);
    counts->all++;
    counts->narrow += given->dtype_compute != SEQLSTM_DTYPE_FLOAT32;
    counts->int8 += given->dtype_compute == SEQLSTM_DTYPE_INT8;
    sl_runner_destroy(runner);
    sl_arena_deinit(&arena);
}

static struct {
    struct sl_arena arena;
    struct sl_host host;
    struct sl_queue queue;
    struct sl_backend_record record;
    struct sl_subject reference;
} opened;

static int open_reference(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_instance *instance = NULL;
    const struct seqlstm_backend *table = seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR);
    (void)state;
    opened.record = (struct sl_backend_record){.status = SL_BACKEND_OK};
    sl_arena_init(&opened.arena);
    sl_host_init(&opened.host, "reference", NULL, NULL);
    sl_queue_init(&opened.queue, NULL);
    if (sl_instance_open(&opened.arena, table, &opened.host.services, NULL, 0, &opened.record, &instance, &err))
        return -1;
    opened.reference =
        (struct sl_subject){.table = table,
                            .instance = instance,
                            .device_class = opened.record.devices[0].device_class,
                            .queue = &opened.queue.queue,
                            .float64 = sl_plugin_get_extension(table, instance, SEQLSTM_FLOAT64_EXTENSION)};
    return 0;
}

static int close_reference(void **state)
{
    (void)state;
    sl_plugin_close(opened.reference.table, opened.reference.instance);
    sl_arena_deinit(&opened.arena);
    return opened.host.memory.live_blocks != 0;
}

static void the_reference_takes_every_case(void **state)
{
    (void)state;
    struct counts counts = {.reference = opened.reference};
    for (int level = SL_LEVEL_FORWARD; level < SL_LEVEL_COUNT; level++)
        sl_catalogue_each((enum sl_level)level, false, create, &counts);
    create(&counts, SL_LEVEL_FORWARD, "dense:bwd:R3I2O2:bf16:flat"); /* what a backend may hold in 16 bits, too */
    create(&counts, SL_LEVEL_FORWARD, "lstm:bwd:T3B2I3H4:f16:ragged");
    assert_true(counts.all > counts.narrow && counts.narrow > counts.int8 && counts.int8 > 0);
}

static seqlstm_status refuse_op(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                                const char *variant, struct seqlstm_op **out, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)desc, (void)variant, (void)out;
    SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "not this one");
}

static void a_case_that_the_reference_refuses_fails(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_backend refusing = *opened.reference.table;
    struct sl_bench bench = {.subject = opened.reference, .reference = opened.reference, .host = &opened.host};
    struct sl_check_result result;
    struct sl_case c;
    (void)state;
    assert_int_equal(sl_case_parse("dense:inf:R9I5O7:f32:flat", &c, &err), SEQLSTM_OK);
    sl_check_case(&bench, &c, &result);
    assert_int_equal(result.verdict, SL_VERDICT_PASS);
    refusing.op_create = refuse_op;
    bench.reference.table = &refusing;
    sl_check_case(&bench, &c, &result);
    assert_int_equal(result.verdict, SL_VERDICT_FAIL);
    assert_string_equal(result.detail, "the reference cannot run it: not this one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_reference_takes_every_case, open_reference, close_reference),
        cmocka_unit_test_setup_teardown(a_case_that_the_reference_refuses_fails, open_reference, close_reference),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
