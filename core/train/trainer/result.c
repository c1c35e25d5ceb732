/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer/result.h"

const char *sl_train_end_get_name(enum sl_train_end end)
{
    static const char *const NAMES[] = {
        [SL_END_EPOCHS] = "epochs",     [SL_END_UPDATES] = "updates",
        [SL_END_TIME] = "max_time",     [SL_END_EARLY_STOPPING] = "early_stopping",
        [SL_END_DIVERGED] = "diverged", [SL_END_INTERRUPTED] = "interrupted",
    };
    return NAMES[end];
}
