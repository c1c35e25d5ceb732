/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device of this process. */
#ifndef SL_SESSION_FINDING_CUDA_DEVICE_H
#define SL_SESSION_FINDING_CUDA_DEVICE_H

#include <stdint.h>

struct sl_session;

/* The number of the CUDA device on which this process computes, if it does on any: that of the model file; for ranks
 * plus the number of the rank on its host, unless the launcher shows it one device only. -1: any. */
int32_t sl_session_find_cuda(const struct sl_session *session);

#endif
