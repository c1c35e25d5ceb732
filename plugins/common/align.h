/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes rounded up to SEQLSTM_ALIGNMENT, so that what follows in the same buffer is aligned, too. */
#ifndef COMMON_ALIGN_H
#define COMMON_ALIGN_H

#include <seqlstm/backend.h>

static inline uint64_t align_bytes(uint64_t bytes)
{
    return (bytes + SEQLSTM_ALIGNMENT - 1) / SEQLSTM_ALIGNMENT * SEQLSTM_ALIGNMENT;
}

static inline int64_t align_floats(int64_t floats)
{
    return (int64_t)(align_bytes((uint64_t)floats * sizeof(float)) / sizeof(float));
}

#endif
