/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/blame.h"

#include <stdio.h>
#include <string.h>

seqlstm_status sl_exec_blame(const struct sl_call *call, seqlstm_status status, struct seqlstm_error *err)
{
    if (err) {
        char text[sizeof err->message];
        snprintf(text, sizeof text, "%s on %s: %.800s", call->node->name, sl_backend_get_id(call->backend),
                 err->message);
        memcpy(err->message, text, sizeof text);
    }
    return status;
}
