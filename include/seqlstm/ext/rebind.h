/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "rebind/1": gives a binding another shape without an allocation.
 *
 * get_extension(instance, SEQLSTM_REBIND_EXTENSION) returns this table. The host uses it where the shapes of batches
 * change from call to call, as in a server. Without it the host destroys the binding and makes another one.
 */
#ifndef SEQLSTM_EXT_REBIND_H
#define SEQLSTM_EXT_REBIND_H

#include <seqlstm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEQLSTM_REBIND_EXTENSION "rebind/1"

struct seqlstm_rebind {
    uint32_t struct_size;
    uint32_t reserved0;
    /* Afterwards the binding is as if op_bind had made it for `bind`: the same calls give the same bits. `bind` is
     * within the bounds of the operation; `queue` is the queue of the binding. Allocates nothing. The axis of the
     * binding's old shape is no longer there: do not read it, also not in binding_destroy. `bind->axis` may have the
     * same address; the host keeps it as op_bind says, until the next rebind or binding_destroy.
     *
     * UNSUPPORTED: this binding cannot have this shape, for example because it has no room for so many steps.
     * INVALID_ARGUMENT: the shape does not fit the operation. After an error the host only destroys the binding.
     * [queue] */
    seqlstm_status (*rebind)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                             const struct seqlstm_bind *bind, struct seqlstm_error *err);
};

#ifdef __cplusplus
}
#endif

#endif
