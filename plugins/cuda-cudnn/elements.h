/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between the host's elements, always float32, and cuDNN's: float32 too, or 16 bits if the products are to
 * use 16 bits. All of such a network is in 16 bits (edges, states, weights), except the sums of its products. */
#ifndef CDN_ELEMENTS_H
#define CDN_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "library.h"

struct seqlstm_op;

/* Do cuDNN's elements differ from the host's? */
static inline bool cdn_is_narrow(const struct seqlstm_recurrent_desc *d)
{
    return d->head.dtype_compute == SEQLSTM_DTYPE_FLOAT16 || d->head.dtype_compute == SEQLSTM_DTYPE_BFLOAT16;
}

static inline uint64_t cdn_element_bytes(const struct seqlstm_recurrent_desc *d)
{
    return cdn_is_narrow(d) ? sizeof(uint16_t) : sizeof(float);
}

static inline cudnnDataType_t cdn_data_type(const struct seqlstm_recurrent_desc *d)
{
    return d->head.dtype_compute == SEQLSTM_DTYPE_FLOAT16
               ? CUDNN_DATA_HALF
               : (d->head.dtype_compute == SEQLSTM_DTYPE_BFLOAT16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT);
}

/* Many ranges, collected and then copied in few launches; without nvcc, each by a copy of its own. Begin with {.op,
 * .stream, .direction}. */
enum cdn_direction { CDN_GIVE, CDN_TAKE, CDN_TAKE_ADD }; /* to cuDNN; back; back, added in float32 (16 bits only) */
enum { CDN_RANGES = 64 };
struct cdn_ranges {
    const struct seqlstm_op *op;
    void *stream;
    enum cdn_direction direction;
    int32_t count;
    struct cdn_range {
        const void *from;
        void *to;
        int64_t elems;
    } of[CDN_RANGES];
};
seqlstm_status cdn_ranges_put(struct cdn_ranges *ranges, void *to, const void *from, int64_t elems,
                              struct seqlstm_error *err);
/* Copies what has been put. [queue] */
seqlstm_status cdn_ranges_copy(struct cdn_ranges *ranges, struct seqlstm_error *err);

#endif
