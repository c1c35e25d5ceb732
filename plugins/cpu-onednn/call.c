/* SPDX-License-Identifier: Apache-2.0 */
/* Primitives with their arguments. */
#include "cpu-onednn/call.h"

#include <string.h>

/* Every argument that a primitive of this backend may have. */
static const int argument_ids[] = {
    DNNL_ARG_SRC_LAYER,
    DNNL_ARG_SRC_ITER,
    DNNL_ARG_SRC_ITER_C,
    DNNL_ARG_WEIGHTS_LAYER,
    DNNL_ARG_WEIGHTS_ITER,
    DNNL_ARG_WEIGHTS_PEEPHOLE,
    DNNL_ARG_WEIGHTS_PROJECTION,
    DNNL_ARG_BIAS,
    DNNL_ARG_DST_LAYER,
    DNNL_ARG_DST_ITER,
    DNNL_ARG_DST_ITER_C,
    DNNL_ARG_MEAN,
    DNNL_ARG_VARIANCE,
    DNNL_ARG_SCALE,
    DNNL_ARG_SHIFT,
    DNNL_ARG_WORKSPACE,
    DNNL_ARG_SCRATCHPAD,
    DNNL_ARG_DIFF_SRC_LAYER,
    DNNL_ARG_DIFF_SRC_ITER,
    DNNL_ARG_DIFF_SRC_ITER_C,
    DNNL_ARG_DIFF_WEIGHTS_LAYER,
    DNNL_ARG_DIFF_WEIGHTS_ITER,
    DNNL_ARG_DIFF_WEIGHTS_PEEPHOLE,
    DNNL_ARG_DIFF_WEIGHTS_PROJECTION,
    DNNL_ARG_DIFF_BIAS,
    DNNL_ARG_DIFF_DST_LAYER,
    DNNL_ARG_DIFF_DST_ITER,
    DNNL_ARG_DIFF_DST_ITER_C,
    DNNL_ARG_DIFF_SCALE,
    DNNL_ARG_DIFF_SHIFT,
};

seqlstm_status odn_check(dnnl_status_t status, const char *what, struct seqlstm_error *err)
{
    if (status == dnnl_success)
        return SEQLSTM_OK;
    if (status == dnnl_out_of_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "oneDNN had no memory for %s", what);
    seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "oneDNN refused %s with status %d", what, (int)status);
    if (err != NULL && err->struct_size >= sizeof *err)
        err->native_code = (int32_t)status;
    return SEQLSTM_DEVICE;
}

uint64_t odn_argument_bytes(const_dnnl_primitive_desc_t pd, int argument)
{
    odn_md md = odn.primitive_desc_query_md(pd, dnnl_query_exec_arg_md, argument);
    return md != NULL ? odn.memory_desc_get_size(md) : 0;
}

static bool is_argument(odn_md md)
{
    return md != NULL && odn.memory_desc_get_size(md) > 0;
}

int32_t odn_arguments_count(const_dnnl_primitive_desc_t pd)
{
    int32_t count = 0;
    for (size_t i = 0; i < sizeof argument_ids / sizeof *argument_ids; i++)
        count += is_argument(odn.primitive_desc_query_md(pd, dnnl_query_exec_arg_md, argument_ids[i]));
    return count;
}

seqlstm_status odn_call_init(struct odn_call *call, dnnl_engine_t engine, const_dnnl_primitive_desc_t pd,
                             dnnl_primitive_t primitive, struct seqlstm_error *err)
{
    memset(call, 0, sizeof *call);
    call->primitive = primitive;
    for (size_t i = 0; i < sizeof argument_ids / sizeof *argument_ids; i++) {
        odn_md md = odn.primitive_desc_query_md(pd, dnnl_query_exec_arg_md, argument_ids[i]);
        if (!is_argument(md))
            continue;
        dnnl_exec_arg_t *argument = &call->arguments[call->count];
        argument->arg = argument_ids[i];
        dnnl_status_t status = odn.memory_create(&argument->memory, md, engine, DNNL_MEMORY_NONE);
        if (status != dnnl_success) {
            odn_call_deinit(call);
            return odn_check(status, "an argument of a primitive", err);
        }
        call->count++;
    }
    return SEQLSTM_OK;
}

void odn_call_deinit(struct odn_call *call)
{
    for (int i = 0; i < call->count; i++)
        odn.memory_destroy(call->arguments[i].memory);
    call->count = 0;
}

void odn_call_forget(struct odn_call *call)
{
    memset(call->addresses, 0, sizeof call->addresses);
}

void odn_call_set(struct odn_call *call, int argument, const void *address)
{
    int i = 0;
    while (i < call->count && call->arguments[i].arg != argument)
        i++;
    if (i == call->count)
        return;
    call->unset &= ~(UINT32_C(1) << i);
    /* Setting an address may write zeros into the padding of a blocked layout, so only new addresses are set. */
    if (call->addresses[i] == address)
        return;
    void *pointer;
    memcpy(&pointer, &address, sizeof pointer);
    const dnnl_status_t status = odn.memory_set_data_handle(call->arguments[i].memory, pointer);
    if (status == dnnl_success) {
        call->addresses[i] = pointer;
        return;
    }
    call->unset |= UINT32_C(1) << i;
    call->reason = status;
}

dnnl_status_t odn_call_run(struct odn_call *call, dnnl_stream_t stream)
{
    if (call->unset != 0)
        return call->reason;
    return odn.primitive_execute(call->primitive, stream, call->count, call->arguments);
}
