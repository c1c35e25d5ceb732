/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch/plan/blame.h"

#include <stdio.h>
#include <string.h>

#include "base/operation/op_signature.h"

static seqlstm_status blame(const char *what, const struct sl_backend *backend, enum sl_plugin_function function,
                            seqlstm_status status, struct seqlstm_error *err)
{
    if (err) {
        char text[sizeof err->message];
        snprintf(text, sizeof text, "%s on %s (%s): %.800s", what, sl_backend_get_id(backend),
                 sl_plugin_function_name(function), err->message);
        memcpy(err->message, text, sizeof text);
    }
    return status;
}

seqlstm_status sl_plan_blame(const struct sl_call *call, enum sl_plugin_function function, seqlstm_status status,
                             struct seqlstm_error *err)
{
    return blame(call->node->name, call->backend, function, status, err);
}

seqlstm_status sl_plan_blame_vector(const struct sl_vector_call *call, enum sl_plugin_function function,
                                    seqlstm_status status, struct seqlstm_error *err)
{
    return blame(sl_op_name(call->desc->head.op), call->backend, function, status, err);
}
