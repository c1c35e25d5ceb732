/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the cache: everything that a measured cost depends on. Private to core/dispatch. */
#ifndef SL_DISPATCH_COST_COST_KEY_H
#define SL_DISPATCH_COST_COST_KEY_H

#include "base/batch/profile.h"
#include "dispatch/cost/cost_cache.h"
#include "registry/registry.h"

/* Of this process: processor, affinity, quota, threads, environment variables that steer numeric libraries, the
 * batches, and the way of measuring. Reads /proc. */
struct sl_cost_key sl_cost_key_begin(int32_t threads, const struct sl_profiles *profiles);

/* Of one candidate: Build-IDs of the plugin and of all that it loads, its settings, device and variant, and the
 * operation. Mask streams of the descriptor are left out, since they do not affect the time. `parts`: what the
 * call has to compute. */
struct sl_cost_key sl_cost_key_get(const struct sl_cost_key *process, const struct sl_backend *backend, uint32_t device,
                                   const char *variant, const union seqlstm_any_desc *desc, uint32_t parts);

/* Mixes another key into `key`. */
void sl_cost_key_join(struct sl_cost_key *key, const struct sl_cost_key *part);

#endif
