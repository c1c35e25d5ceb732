/* SPDX-License-Identifier: Apache-2.0 */
/* What of a plan's buffers is ever touched: they are bounds over all batches that may be. Private to core/dispatch. */
#ifndef SL_DISPATCH_MEMORY_TOUCHED_H
#define SL_DISPATCH_MEMORY_TOUCHED_H

#include "base/batch/profile.h"
#include "dispatch/plan/plan.h"

/* Takes out of the memory of a plan that is laid out what batches like those of the profiles (NULL: of any data) leave
 * untouched, where it runs on the host's memory alone. Errors: NO_MEMORY; the backends'; INTERNAL where a backend
 * says that more is idle than there is. */
seqlstm_status sl_touched_count(struct sl_plan *plan, const struct sl_profiles *profiles, struct seqlstm_error *err);

#endif
