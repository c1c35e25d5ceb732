/* SPDX-License-Identifier: Apache-2.0 */
/* Can the calls of a training step be captured as one graph of the device, and if not, why? */
#ifndef SL_DISPATCH_PLAN_CAPTURE_H
#define SL_DISPATCH_PLAN_CAPTURE_H

#include "dispatch/plan/plan.h"

struct sl_capture {
    bool possible;
    bool with_update; /* of the parameters */
    bool on_device;   /* some call runs on a device with memory of its own; otherwise there is nothing to capture */
    char reason[192]; /* why not, or why not the update; "" if everything is captured */
};

/* Forward and backward of a plan in SL_PHASE_TRAIN can be captured if all calls work in one domain, not the host's,
 * whose backend has graphs, and every operation allows it. The update can be if the same holds for the operations on
 * flat vectors. */
struct sl_capture sl_plan_find_capture(const struct sl_plan *plan);

#endif
