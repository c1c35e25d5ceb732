/* SPDX-License-Identifier: Apache-2.0 */
/* Can a model run step by step on sequences whose end is not known? */
#ifndef SL_PREDICT_STREAMABLE_H
#define SL_PREDICT_STREAMABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/model.h"

/* True if every step follows from the steps before it. Otherwise `reason` says which layer needs the whole sequence,
 * and where it stands. Layers behind `output` (NULL: none) do not count. */
bool sl_model_is_streamable(const struct sl_model *model, const struct sl_layer *output, char *reason,
                            size_t capacity_bytes);

#endif
