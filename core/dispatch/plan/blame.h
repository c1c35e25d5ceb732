/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of backends name the operation and the backend. */
#ifndef SL_PLAN_BLAME_H
#define SL_PLAN_BLAME_H

#include "dispatch/plan/plan.h"
#include "registry/watch/running.h"

/* Puts "lstm_1 on cpu-blas (forward): " before the message. Returns `status`. */
seqlstm_status sl_plan_blame(const struct sl_call *call, enum sl_plugin_function function, seqlstm_status status,
                             struct seqlstm_error *err);

/* Likewise for an operation of the update: "optimizer on cpu-blas (forward): ". */
seqlstm_status sl_plan_blame_vector(const struct sl_vector_call *call, enum sl_plugin_function function,
                                    seqlstm_status status, struct seqlstm_error *err);

#endif
