/* SPDX-License-Identifier: Apache-2.0 */
/* The values that change from call to call, as kernels read them. If the host keeps a copy of the step block on the
 * device, kernels read it there, so that a capture finds the current values. Otherwise they have the values passed with
 * the call. */
#ifndef CG_LIVE_H
#define CG_LIVE_H

#include <stdint.h>

#include <seqlstm/backend.h>
#include <seqlstm/philox.h>

#include "cuda-generic/device/element.h"

struct cg_live {
    const struct seqlstm_step *device; /* NULL: no copy on the device */
    struct seqlstm_step step;
};

/* One value of the step block. */
#define CG_LIVE(live, member) ((live)->device ? (live)->device->member : (live)->step.member)

/* The key of a mask stream. */
CG_HD uint64_t cg_live_key(const struct cg_live *live, uint64_t stream)
{
    return seqlstm_mix64(CG_LIVE(live, seed), stream, CG_LIVE(live, epoch));
}

/* The factor of all gradients of losses. */
CG_HD float cg_live_scale(const struct cg_live *live)
{
    return CG_LIVE(live, normaliser) * CG_LIVE(live, loss_scale);
}

#endif
