/* SPDX-License-Identifier: Apache-2.0 */
/* The axes of a batch whose lengths are those of a profile. Private to core/dispatch. */
#ifndef SL_DISPATCH_COST_AXES_H
#define SL_DISPATCH_COST_AXES_H

#include <seqlstm/backend.h>

#include "base/batch/profile.h"

struct sl_axes {
    struct seqlstm_axis steps; /* of the sequences that have steps; no rows if the data have no steps */
    struct seqlstm_axis rows;  /* every sequence as one step: for operations on the sequences axis */
    void *storage;             /* of both */
};

/* Sequences longer than `steps_most` are cut. Errors: NO_MEMORY. */
seqlstm_status sl_axes_init(struct sl_axes *axes, const struct sl_profile *profile, int64_t steps_most, bool stream,
                            struct seqlstm_error *err);
void sl_axes_deinit(struct sl_axes *axes); /* a zeroed struct is fine */

#endif
