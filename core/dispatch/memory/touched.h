/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a plan's buffers is really touched. Their sizes are bounds for all possible batches, and pages that are
 * never touched take no memory. Private to core/dispatch. */
#ifndef SL_DISPATCH_MEMORY_TOUCHED_H
#define SL_DISPATCH_MEMORY_TOUCHED_H

#include "base/batch/profile.h"
#include "dispatch/plan/plan.h"

/* Subtracts from the memory of a plan the pages that batches like those of the profiles (NULL: of any data) never
 * touch, if all calls work in the host's memory. Errors: NO_MEMORY; the backends'; INTERNAL if a backend reports
 * idle parts that do not exist. */
seqlstm_status sl_touched_count(struct sl_plan *plan, const struct sl_profiles *profiles, struct seqlstm_error *err);

#endif
