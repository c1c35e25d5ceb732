/* SPDX-License-Identifier: Apache-2.0 */
/* Each function of a plugin: that it is the one which runs and gets what the caller passes; and what is said where it
 * fails without a reason, returns what is no status, or returns nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "registry/plugin.h"
#include "registry/watch/running.h"
#include "oom.h"

/* What the plugin does next. */
static seqlstm_status next;
static const char *reason; /* NULL: none */
static bool gives_nothing; /* a call that makes something succeeds without it */
static struct seqlstm_sizes sizes_next;
static const char *ran; /* the function that ran last */

static char things[8]; /* of which the addresses are passed */
static struct seqlstm_instance *const instance = (void *)&things[0];
static struct seqlstm_op *const op = (void *)&things[1];
static struct seqlstm_queue *const queue = (void *)&things[2];
static struct seqlstm_binding *const binding = (void *)&things[3];
static void *const packed = &things[4];
static void *const slots[2] = {NULL, NULL};
static const struct seqlstm_desc desc = {.struct_size = sizeof desc};
static const struct seqlstm_bind bind = {.struct_size = sizeof bind};
static const struct seqlstm_step step = {.struct_size = sizeof step};
static const struct seqlstm_forward forward_args = {.struct_size = sizeof forward_args};
static const struct seqlstm_backward backward_args = {.struct_size = sizeof backward_args};
static struct seqlstm_cost cost;

static seqlstm_status answer(struct seqlstm_error *err)
{
    bool here;
    const struct sl_running *running = sl_running_find(&here);
    ran = running ? sl_plugin_function_name(running->function) : "nothing";
    assert_string_equal(running ? running->plugin : "", "fake");
    if (next != SEQLSTM_OK && reason)
        seqlstm_error_set(err, next, "fake.c", 3, "%s", reason);
    return next;
}

static seqlstm_status device_count(struct seqlstm_instance *i, uint32_t *out_count, struct seqlstm_error *err)
{
    assert_ptr_equal(i, instance);
    *out_count = 3;
    return answer(err);
}

static seqlstm_status device_info(struct seqlstm_instance *i, uint32_t device, struct seqlstm_device_info *info,
                                  struct seqlstm_error *err)
{
    assert_ptr_equal(i, instance);
    assert_int_equal(device, 2);
    strcpy(info->name, "\033one");
    strcpy(info->device_class, "\033two");
    strcpy(info->domain, "\033three");
    return answer(err);
}

static seqlstm_status supports(const char *device_class, const struct seqlstm_desc *d, struct seqlstm_answer *said,
                               struct seqlstm_error *err)
{
    assert_string_equal(device_class, "cpu");
    assert_ptr_equal(d, &desc);
    said->accepted = 7;
    return answer(err);
}

static seqlstm_status op_create(struct seqlstm_instance *i, uint32_t device, const struct seqlstm_desc *d,
                                const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    assert_ptr_equal(i, instance);
    assert_int_equal(device, 2);
    assert_ptr_equal(d, &desc);
    assert_string_equal(variant, "fast");
    assert_null(*out_op);
    *out_op = gives_nothing ? NULL : op;
    return answer(err);
}

static seqlstm_status op_sizes(const struct seqlstm_op *o, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    assert_ptr_equal(o, op);
    *sizes = sizes_next;
    return answer(err);
}

static seqlstm_status op_bind(const struct seqlstm_op *o, struct seqlstm_queue *q, const struct seqlstm_bind *b,
                              struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    assert_ptr_equal(o, op);
    assert_ptr_equal(q, queue);
    assert_ptr_equal(b, &bind);
    assert_null(*out_binding);
    *out_binding = gives_nothing ? NULL : binding;
    return answer(err);
}

static seqlstm_status rebind(struct seqlstm_binding *b, struct seqlstm_queue *q, const struct seqlstm_bind *to,
                             struct seqlstm_error *err)
{
    assert_ptr_equal(b, binding);
    assert_ptr_equal(q, queue);
    assert_ptr_equal(to, &bind);
    return answer(err);
}

static seqlstm_status weights_pack(const struct seqlstm_op *o, struct seqlstm_queue *q, void *const *s, void *to,
                                   const struct seqlstm_step *of, struct seqlstm_error *err)
{
    assert_ptr_equal(o, op);
    assert_ptr_equal(q, queue);
    assert_ptr_equal(s, slots);
    assert_ptr_equal(to, packed);
    assert_ptr_equal(of, &step);
    return answer(err);
}

static seqlstm_status forward(struct seqlstm_binding *b, struct seqlstm_queue *q, const struct seqlstm_forward *args,
                              struct seqlstm_error *err)
{
    assert_ptr_equal(b, binding);
    assert_ptr_equal(q, queue);
    assert_ptr_equal(args, &forward_args);
    return answer(err);
}

static seqlstm_status backward(struct seqlstm_binding *b, struct seqlstm_queue *q, const struct seqlstm_backward *args,
                               struct seqlstm_error *err)
{
    assert_ptr_equal(b, binding);
    assert_ptr_equal(q, queue);
    assert_ptr_equal(args, &backward_args);
    return answer(err);
}

static seqlstm_status estimate(const struct seqlstm_op *o, const struct seqlstm_bind *b, struct seqlstm_cost *c,
                               struct seqlstm_error *err)
{
    assert_ptr_equal(o, op);
    assert_ptr_equal(b, &bind);
    assert_ptr_equal(c, &cost);
    return answer(err);
}

static void plugin_close(struct seqlstm_instance *i)
{
    assert_ptr_equal(i, instance);
    answer(NULL);
}

static void binding_destroy(struct seqlstm_binding *b)
{
    assert_ptr_equal(b, binding);
    answer(NULL);
}

static void op_destroy(struct seqlstm_op *o)
{
    assert_ptr_equal(o, op);
    answer(NULL);
}

static const struct seqlstm_rebind extension = {.struct_size = sizeof extension, .rebind = rebind};

static const void *get_extension(struct seqlstm_instance *i, const char *id)
{
    assert_ptr_equal(i, instance);
    answer(NULL);
    return strcmp(id, SEQLSTM_REBIND_EXTENSION) == 0 ? &extension : NULL;
}

static const struct seqlstm_backend table = {.struct_size = sizeof table,
                                             .id = "fake",
                                             .close = plugin_close,
                                             .device_count = device_count,
                                             .device_info = device_info,
                                             .supports = supports,
                                             .op_create = op_create,
                                             .op_sizes = op_sizes,
                                             .op_bind = op_bind,
                                             .forward = forward,
                                             .binding_destroy = binding_destroy,
                                             .op_destroy = op_destroy,
                                             .backward = backward,
                                             .weights_pack = weights_pack,
                                             .estimate = estimate,
                                             .get_extension = get_extension};

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static const char *const names[] = {"device_count", "device_info", "op_create", "op_sizes", "op_bind", "rebind",
                                    "weights_pack", "forward",     "forward",   "backward", "estimate"};
enum { CALLS = sizeof names / sizeof *names };

static struct seqlstm_op *op_made;
static struct seqlstm_binding *binding_made;
static struct seqlstm_device_info info;

static seqlstm_status call(int which, struct seqlstm_error *err)
{
    struct seqlstm_sizes sizes;
    uint32_t count = 0;
    switch (which) {
    case 0:
        return sl_plugin_count_devices(&table, instance, &count, err);
    case 1:
        return sl_plugin_describe_device(&table, instance, 2, &info, err);
    case 2:
        return sl_plugin_create_op(&table, instance, 2, &desc, "fast", &op_made, err);
    case 3:
        return sl_plugin_get_sizes(&table, op, &sizes, err);
    case 4:
        return sl_plugin_bind(&table, op, queue, &bind, &binding_made, err);
    case 5:
        return sl_plugin_rebind(&table, &extension, binding, queue, &bind, err);
    case 6:
        return sl_plugin_pack(&table, op, queue, slots, packed, &step, err);
    case 7:
        return sl_plugin_forward(&table, binding, queue, &forward_args, err);
    case 8:
        return sl_plugin_forward_again(&table, binding, queue, &forward_args, err);
    case 9:
        return sl_plugin_backward(&table, binding, queue, &backward_args, err);
    default:
        return sl_plugin_estimate(&table, op, &bind, &cost, err);
    }
}

static void expect(int which, seqlstm_status status, const char *format, ...)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char message[200];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    assert_int_equal(call(which, &err), status);
    assert_string_equal(err.message, message);
    assert_string_equal(ran, names[which]);
    if (next != SEQLSTM_OK && which == 2)
        assert_null(op_made);
    if (next != SEQLSTM_OK && which == 4)
        assert_null(binding_made);
}

static void begin(seqlstm_status status, const char *why)
{
    next = status;
    reason = why;
    gives_nothing = false;
    sizes_next = (struct seqlstm_sizes){.struct_size = sizeof sizes_next};
}

static void each_call_runs_its_function(void **state)
{
    (void)state;
    begin(SEQLSTM_OK, NULL);
    for (int k = 0; k < CALLS; k++)
        expect(k, SEQLSTM_OK, "");
    assert_ptr_equal(op_made, op);
    assert_ptr_equal(binding_made, binding);
    assert_string_equal(info.name, "\\x1bone");
    assert_string_equal(info.device_class, "\\x1btwo");
    assert_string_equal(info.domain, "\\x1bthree");
    sl_plugin_close(&table, instance);
    assert_string_equal(ran, "close");
    sl_plugin_destroy_binding(&table, binding);
    assert_string_equal(ran, "binding_destroy");
    sl_plugin_destroy_op(&table, op);
    assert_string_equal(ran, "op_destroy");
    assert_ptr_equal(sl_plugin_find_rebind(&table, instance), &extension);
    assert_string_equal(ran, "get_extension");
    assert_null(sl_plugin_get_extension(&table, instance, "other"));
    struct seqlstm_answer said = {.struct_size = sizeof said};
    assert_int_equal(sl_plugin_supports(&table, "cpu", &desc, &said, NULL), SEQLSTM_OK);
    assert_string_equal(ran, "supports");
    assert_int_equal(said.accepted, 7);
}

static void a_reason_is_passed_on(void **state)
{
    (void)state;
    begin(SEQLSTM_NO_MEMORY, "the \033 is full");
    for (int k = 0; k < CALLS; k++)
        expect(k, SEQLSTM_NO_MEMORY, "the \\x1b is full");
}

static void a_failure_without_a_reason_names_the_function(void **state)
{
    (void)state;
    begin(SEQLSTM_DEVICE, NULL);
    for (int k = 0; k < CALLS; k++)
        expect(k, SEQLSTM_DEVICE, "the backend fake failed in %s (status %d) and gave no reason", names[k],
               (int)SEQLSTM_DEVICE);
}

static void what_is_no_status_names_the_function(void **state)
{
    (void)state;
    static const int wrong[] = {-1, SEQLSTM_INTERNAL + 1};
    for (int w = 0; w < 2; w++) {
        begin((seqlstm_status)wrong[w], "unheard");
        for (int k = 0; k < CALLS; k++)
            expect(k, SEQLSTM_INTERNAL, "the backend fake is faulty: its %s returned %d, which is no status", names[k],
                   wrong[w]);
    }
}

static void success_without_a_result_names_what_is_missing(void **state)
{
    (void)state;
    begin(SEQLSTM_OK, NULL);
    gives_nothing = true;
    expect(2, SEQLSTM_INTERNAL, "the backend fake is faulty: its op_create returned OK but no operation");
    expect(4, SEQLSTM_INTERNAL, "the backend fake is faulty: its op_bind returned OK but no binding");
}

/* Each alone, so that the message tells which. */
static void sizes_that_no_machine_has_are_refused(void **state)
{
    (void)state;
    const uint64_t most = SL_PLUGIN_BYTES_MOST;
    static const char *const what[] = {"workspace", "reserve", "packed weights"};
    begin(SEQLSTM_OK, NULL);
    for (int k = 0; k < 3; k++) {
        sizes_next.workspace_bytes = most + (k == 0);
        sizes_next.reserve_bytes = most + 2 * (k == 1);
        sizes_next.packed_bytes = most + 3 * (k == 2);
        expect(3, SEQLSTM_INTERNAL,
               "the backend fake is faulty: its op_sizes asks for %llu bytes of %s, more than any machine has",
               (unsigned long long)most + 1 + (unsigned)k, what[k]);
    }
    sizes_next.packed_bytes = most;
    sizes_next.capture = SEQLSTM_CAPTURE_ANY_SHAPE;
    expect(3, SEQLSTM_OK, "");
    sizes_next.capture = SEQLSTM_CAPTURE_ANY_SHAPE + 1;
    expect(3, SEQLSTM_INTERNAL, "the backend fake is faulty: its op_sizes sets capture to %u", sizes_next.capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_runs_its_function),
        cmocka_unit_test(a_reason_is_passed_on),
        cmocka_unit_test(a_failure_without_a_reason_names_the_function),
        cmocka_unit_test(what_is_no_status_names_the_function),
        cmocka_unit_test(success_without_a_result_names_what_is_missing),
        cmocka_unit_test(sizes_that_no_machine_has_are_refused),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
