/* SPDX-License-Identifier: Apache-2.0 */
/* What functions of a backend return that is no result, and what is said of it: which function, which size, how much.
 */
#include "oom.h"
#include "plain_backend.h"

#include "registry/plugin.h"

static struct {
    seqlstm_status status;
    bool gives;
    struct seqlstm_sizes sizes;
} answer;

static char thing;

static seqlstm_status create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                             const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)desc, (void)variant, (void)err;
    if (answer.gives)
        *out_op = (struct seqlstm_op *)(void *)&thing;
    return answer.status;
}

static seqlstm_status bind(const struct seqlstm_op *op, struct seqlstm_queue *queue, const struct seqlstm_bind *request,
                           struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    (void)op, (void)queue, (void)request, (void)err;
    if (answer.gives)
        *out_binding = (struct seqlstm_binding *)(void *)&thing;
    return answer.status;
}

static seqlstm_status give_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    (void)op, (void)err;
    *sizes = answer.sizes;
    return SEQLSTM_OK;
}

static void reset(void)
{
    plain_reset();
    memset(&answer, 0, sizeof answer);
    plain.table.op_create = create;
    plain.table.op_bind = bind;
    plain.table.op_sizes = give_sizes;
}

/* A result comes with OK, and with nothing else. */
static void results_come_with_ok(void **state)
{
    (void)state;
    static const struct {
        seqlstm_status status;
        bool gives;
        seqlstm_status expected;
        const char *message[2]; /* of op_create and op_bind */
    } rows[] = {
        {SEQLSTM_OK, true, SEQLSTM_OK, {"", ""}},
        {SEQLSTM_OK,
         false,
         SEQLSTM_INTERNAL,
         {"the backend plain is faulty: its op_create returned OK but no operation",
          "the backend plain is faulty: its op_bind returned OK but no binding"}},
        {SEQLSTM_NO_MEMORY,
         true,
         SEQLSTM_NO_MEMORY,
         {"the backend plain failed in op_create (status 6) and gave no reason",
          "the backend plain failed in op_bind (status 6) and gave no reason"}},
    };
    _Static_assert(SEQLSTM_NO_MEMORY == 6, "the number is in the rows");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int binds = 0; binds < 2; binds++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct seqlstm_op *op = (struct seqlstm_op *)(void *)&answer;
            struct seqlstm_binding *binding = (struct seqlstm_binding *)(void *)&answer;
            reset();
            answer.status = rows[k].status;
            answer.gives = rows[k].gives;
            const seqlstm_status got = binds ? sl_plugin_bind(&plain.table, NULL, NULL, NULL, &binding, &err)
                                             : sl_plugin_create_op(&plain.table, NULL, 0, NULL, "v", &op, &err);
            assert_int_equal(got, rows[k].expected);
            assert_ptr_equal(binds ? (void *)binding : (void *)op, got == SEQLSTM_OK ? (void *)&thing : NULL);
            if (got != SEQLSTM_OK)
                assert_string_equal(err.message, rows[k].message[binds]);
        }
}

static void expect_sizes(const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    const seqlstm_status got = sl_plugin_get_sizes(&plain.table, NULL, &sizes, &err);
    assert_int_equal(got, message ? SEQLSTM_INTERNAL : SEQLSTM_OK);
    if (message)
        assert_string_equal(err.message, message);
}

/* Each size has a limit. */
static void sizes_have_limits(void **state)
{
    (void)state;
    static const char *const names[] = {"workspace", "reserve", "packed weights"};
    reset();
    uint64_t *const sizes[] = {&answer.sizes.workspace_bytes, &answer.sizes.reserve_bytes, &answer.sizes.packed_bytes};
    for (int k = 0; k < 3; k++) {
        char message[200];
        *sizes[k] = SL_PLUGIN_BYTES_MOST;
        expect_sizes(NULL);
        *sizes[k] = SL_PLUGIN_BYTES_MOST + 1 + (uint64_t)k;
        snprintf(message, sizeof message,
                 "the backend plain is faulty: its op_sizes asks for %llu bytes of %s, more than any machine has",
                 (unsigned long long)*sizes[k], names[k]);
        expect_sizes(message);
        *sizes[k] = 7;
    }
    answer.sizes.capture = SEQLSTM_CAPTURE_ANY_SHAPE;
    expect_sizes(NULL);
    answer.sizes.capture = SEQLSTM_CAPTURE_ANY_SHAPE + 5;
    char message[100];
    snprintf(message, sizeof message, "the backend plain is faulty: its op_sizes sets capture to %u",
             answer.sizes.capture);
    expect_sizes(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_with_ok),
        cmocka_unit_test(sizes_have_limits),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
