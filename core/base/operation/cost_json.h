/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a step as JSON, the same in a stored plan and in what commands write:
 *
 *   {"points": [{"width", "step_ns"}], "batch_ns", "shape_ns"}   and "source_points" of pairs
 */
#ifndef SL_BASE_OPERATION_COST_JSON_H
#define SL_BASE_OPERATION_COST_JSON_H

#include <seqlstm/backend.h>

#include "base/operation/cost.h"

struct json_t;

/* A new value, the caller's; NULL: no memory. [any thread] */
struct json_t *sl_step_cost_to_json(const struct sl_step_cost *cost);

/* Reads one back. Points that do not ascend or cost nothing are SEQLSTM_CORRUPT_DATA; `path` is the file that the
 * message names. [any thread] */
seqlstm_status sl_step_cost_from_json(const char *path, const struct json_t *json, struct sl_step_cost *out,
                                      struct seqlstm_error *err);

#endif
