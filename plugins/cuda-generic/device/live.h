/* SPDX-License-Identifier: Apache-2.0 */
/* What changes from call to call, as kernels get it: read from the device's copy of the step block where the host keeps
 * one, so that a captured graph finds the present values, and otherwise as it was when the call was made. */
#ifndef CG_LIVE_H
#define CG_LIVE_H

#include <stdint.h>

#include <seqlstm/backend.h>
#include <seqlstm/philox.h>

#include "cuda-generic/device/element.h"

struct cg_live {
    const struct seqlstm_step *device; /* NULL: there is none */
    struct seqlstm_step step;
};

/* One value of the block. */
#define CG_LIVE(live, member) ((live)->device ? (live)->device->member : (live)->step.member)

/* The key of a mask stream. */
CG_HD uint64_t cg_live_key(const struct cg_live *live, uint64_t stream)
{
    return seqlstm_mix64(CG_LIVE(live, seed), stream, CG_LIVE(live, epoch));
}

/* What gradients of losses are multiplied with. */
CG_HD float cg_live_scale(const struct cg_live *live)
{
    return CG_LIVE(live, normaliser) * CG_LIVE(live, loss_scale);
}

#endif
