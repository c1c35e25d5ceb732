/* SPDX-License-Identifier: Apache-2.0 */
/* What functions of a backend return that is no result, and what is said of it: which function, which size, how much.
 */
#include "oom.h"
#include "plain_backend.h"

#include "registry/plugin.h"
#include "registry/watch/plugin_text.h"

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

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static seqlstm_status say(struct seqlstm_error *err)
{
    return seqlstm_error_set(err, SEQLSTM_NO_MEMORY, "p.c", 1, "a\x1b[31m\nb");
}

static seqlstm_status open_badly(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                 uint32_t setting_count, struct seqlstm_instance **out_instance,
                                 struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)out_instance;
    return say(err);
}

static seqlstm_status count_badly(struct seqlstm_instance *instance, uint32_t *out_count, struct seqlstm_error *err)
{
    (void)instance, (void)out_count;
    return say(err);
}

static seqlstm_status describe_badly(struct seqlstm_instance *instance, uint32_t device,
                                     struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)info;
    return say(err);
}

static seqlstm_status answer_badly(const char *device_class, const struct seqlstm_desc *desc,
                                   struct seqlstm_answer *out_answer, struct seqlstm_error *err)
{
    (void)device_class, (void)desc, (void)out_answer;
    return say(err);
}

static seqlstm_status size_badly(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    (void)op, (void)sizes;
    return say(err);
}

static seqlstm_status forward_badly(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    (void)binding, (void)queue, (void)args;
    return say(err);
}

static seqlstm_status backward_badly(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    (void)binding, (void)queue, (void)args;
    return say(err);
}

/* Whichever function fails: what it says is fit for a terminal, and its status is kept. */
static void texts_are_fit_for_a_terminal(void **state)
{
    (void)state;
    char clean[64] = "a\x1b[31m\nb";
    sl_plugin_text_clean(clean, sizeof clean);
    assert_string_not_equal(clean, "a\x1b[31m\nb");
    reset();
    plain.table.open = open_badly;
    plain.table.device_count = count_badly;
    plain.table.device_info = describe_badly;
    plain.table.supports = answer_badly;
    plain.table.op_sizes = size_badly;
    plain.table.forward = forward_badly;
    plain.table.backward = backward_badly;
    for (int k = 0; k < 8; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_instance *instance = NULL;
        struct seqlstm_device_info info = {.struct_size = sizeof info};
        struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
        uint32_t count = 0;
        const seqlstm_status got = k == 0   ? sl_plugin_open(&plain.table, NULL, NULL, 0, &instance, &err)
                                   : k == 1 ? sl_plugin_count_devices(&plain.table, NULL, &count, &err)
                                   : k == 2 ? sl_plugin_describe_device(&plain.table, NULL, 0, &info, &err)
                                   : k == 3 ? sl_plugin_supports(&plain.table, "cpu", NULL, NULL, &err)
                                   : k == 4 ? sl_plugin_get_sizes(&plain.table, NULL, &sizes, &err)
                                   : k == 5 ? sl_plugin_forward(&plain.table, NULL, NULL, NULL, &err)
                                   : k == 6 ? sl_plugin_forward_again(&plain.table, NULL, NULL, NULL, &err)
                                            : sl_plugin_backward(&plain.table, NULL, NULL, NULL, &err);
        assert_int_equal(got, SEQLSTM_NO_MEMORY);
        if (strcmp(err.message, clean) != 0)
            fail_msg("function %d: `%s`", k, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_with_ok),
        cmocka_unit_test(sizes_have_limits),
        cmocka_unit_test(texts_are_fit_for_a_terminal),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
