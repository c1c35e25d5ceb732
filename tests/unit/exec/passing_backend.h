/* SPDX-License-Identifier: Apache-2.0 */
/* The reference, with a test between it and the executor: the test is told of each call with its operation before it is
 * passed on, and may refuse it, and again afterwards. */
#ifndef SL_TESTS_PASSING_BACKEND_H
#define SL_TESTS_PASSING_BACKEND_H

#include "exec_world.h"
#include "registry/watch/running.h"

/* One call; of a function that is none of those, `slots` and what follows is NULL. */
struct passed {
    enum sl_plugin_function function;
    const struct seqlstm_op *op;
    int64_t t0; /* the first step of the binding */
    uint32_t parts;
    void *const *slots, *const *grads;
    void *workspace, *reserve, *packed;
};

/* What the test does: all that is NULL is left out. Not OK from `before`: the reference is not called. */
static seqlstm_status (*passing_before)(const struct passed *call, struct seqlstm_error *err);
static void (*passing_after)(const struct passed *call);
static void (*passing_sizes)(struct seqlstm_sizes *sizes);

static int passing_live; /* bindings that are there */

enum { PASSING_MOST = 4096 };
static struct {
    const struct seqlstm_binding *binding;
    const struct seqlstm_op *op;
    int64_t t0;
} passing_bound[PASSING_MOST];
static int passing_count; /* set to 0 before other operations are bound */

static const struct seqlstm_backend *passing_get_right(void)
{
    return seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR);
}

static struct passed passing_describe(enum sl_plugin_function function, const struct seqlstm_binding *binding)
{
    int k = passing_count - 1; /* the newest: an address may have been used before */
    while (k > 0 && passing_bound[k].binding != binding)
        k--;
    assert_true(k >= 0);
    return (struct passed){.function = function, .op = passing_bound[k].op, .t0 = passing_bound[k].t0};
}

static seqlstm_status passing_ask(const struct passed *call, struct seqlstm_error *err)
{
    return passing_before ? passing_before(call, err) : SEQLSTM_OK;
}

static seqlstm_status passing_end(const struct passed *call, seqlstm_status status)
{
    if (passing_after)
        passing_after(call);
    return status;
}

static seqlstm_status passing_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                   const struct seqlstm_bind *args, struct seqlstm_binding **out_binding,
                                   struct seqlstm_error *err)
{
    const struct passed call = {.function = SL_FUNCTION_OP_BIND, .op = op, .t0 = args->t0};
    SEQLSTM_TRY(passing_ask(&call, err));
    SEQLSTM_TRY(passing_get_right()->op_bind(op, queue, args, out_binding, err));
    assert_true(passing_count < PASSING_MOST);
    passing_bound[passing_count].binding = *out_binding;
    passing_bound[passing_count].op = op;
    passing_bound[passing_count++].t0 = args->t0;
    passing_live++;
    return passing_end(&call, SEQLSTM_OK);
}

static void passing_destroy(struct seqlstm_binding *binding)
{
    passing_live--;
    passing_get_right()->binding_destroy(binding);
}

static seqlstm_status passing_size(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    const seqlstm_status status = passing_get_right()->op_sizes(op, sizes, err);
    sizes->packed_bytes = 64;
    if (passing_sizes)
        passing_sizes(sizes);
    return status;
}

static seqlstm_status passing_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                   void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    const struct passed call = {.function = SL_FUNCTION_WEIGHTS_PACK, .op = op, .slots = slots, .packed = packed};
    (void)queue, (void)step;
    SEQLSTM_TRY(passing_ask(&call, err));
    return passing_end(&call, SEQLSTM_OK);
}

static seqlstm_status passing_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    struct passed call = passing_describe(SL_FUNCTION_FORWARD, binding);
    call.slots = args->slots;
    call.workspace = args->workspace;
    call.reserve = args->reserve;
    call.packed = (void *)(uintptr_t)args->packed;
    SEQLSTM_TRY(passing_ask(&call, err));
    return passing_end(&call, passing_get_right()->forward(binding, queue, args, err));
}

static seqlstm_status passing_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                       const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    struct passed call = passing_describe(SL_FUNCTION_BACKWARD, binding);
    call.parts = args->parts;
    call.slots = args->slots;
    call.grads = args->grads;
    call.workspace = args->workspace;
    call.reserve = (void *)(uintptr_t)args->reserve;
    call.packed = (void *)(uintptr_t)args->packed;
    SEQLSTM_TRY(passing_ask(&call, err));
    return passing_end(&call, passing_get_right()->backward(binding, queue, args, err));
}

/* What `world_query` may be. */
static const struct seqlstm_backend *passing_query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    (void)host_minor;
    table = *passing_get_right();
    table.op_bind = passing_bind;
    table.binding_destroy = passing_destroy;
    table.op_sizes = passing_size;
    table.weights_pack = passing_pack;
    table.forward = passing_forward;
    table.backward = passing_backward;
    return &table;
}

#endif
