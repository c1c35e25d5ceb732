/* SPDX-License-Identifier: Apache-2.0 */
/* May the calls of a training step be captured into one graph of the device, and if not, who is in the way? */
#ifndef SL_DISPATCH_PLAN_CAPTURE_H
#define SL_DISPATCH_PLAN_CAPTURE_H

#include "dispatch/plan/plan.h"

struct sl_capture {
    bool possible;
    bool with_update; /* of the parameters */
    bool on_device;   /* some call runs outside of the host: the question makes sense */
    char reason[192]; /* why not, or why without the update; "" if all is */
};

/* Forward and backward of a plan in SL_PHASE_TRAIN: all calls in one domain other than the host's, whose backend has
 * graphs, and every operation says that it may be captured. The update: likewise all operations on flat vectors. */
struct sl_capture sl_plan_find_capture(const struct sl_plan *plan);

#endif
