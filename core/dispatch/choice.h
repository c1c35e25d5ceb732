/* SPDX-License-Identifier: Apache-2.0 */
/* Small questions about the choice of a backend that several layers ask. */
#ifndef SL_DISPATCH_CHOICE_H
#define SL_DISPATCH_CHOICE_H

#include "base/value/buf.h"
#include "dispatch/plan.h"

/* Index of the device that was asked for with the backend, or of its first in the host's memory, otherwise of its
 * first; false: it has none. */
bool sl_choice_find_device(const struct sl_backend *backend, uint32_t *out_device);

/* "cpu-onednn: recurrent_dropout 0.25 (m.yaml:22:18): reason; …" */
void sl_choice_write_refusals(struct sl_buf *buf, const struct sl_refusal *refusals, int32_t count);

#endif
