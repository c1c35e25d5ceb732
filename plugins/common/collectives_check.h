/* SPDX-License-Identifier: Apache-2.0 */
/* What all collectives of this repository can do, and what they check before an exchange and before they make a group.
 */
#ifndef COMMON_COLLECTIVES_CHECK_H
#define COMMON_COLLECTIVES_CHECK_H

#include <stdbool.h>

#include <seqlstm/collectives.h>

/* Bytes of an element; 0: no such dtype. */
static inline int64_t collectives_elem_bytes(uint32_t dtype)
{
    static const int8_t bytes[] = {
        [SEQLSTM_DTYPE_FLOAT32] = 4, [SEQLSTM_DTYPE_BFLOAT16] = 2, [SEQLSTM_DTYPE_FLOAT16] = 2,
        [SEQLSTM_DTYPE_FLOAT64] = 8, [SEQLSTM_DTYPE_INT32] = 4,    [SEQLSTM_DTYPE_INT8] = 1,
        [SEQLSTM_DTYPE_UINT8] = 1,
    };
    return dtype < sizeof bytes ? bytes[dtype] : 0;
}

/* Fills the kinds, reductions and dtypes: all that there are. */
static inline void collectives_describe(struct seqlstm_transport *transport)
{
    transport->collectives = (1u << SEQLSTM_COLLECTIVE_COUNT) - 1;
    transport->reductions = (1u << SEQLSTM_REDUCE_COUNT) - 1;
    for (uint32_t dtype = 0; dtype < 32; dtype++)
        transport->dtypes |= collectives_elem_bytes(dtype) > 0 ? 1u << dtype : 0;
}

static inline bool collectives_is_pair(const struct seqlstm_exchange *e)
{
    return e->kind == SEQLSTM_COLLECTIVE_SEND || e->kind == SEQLSTM_COLLECTIVE_RECEIVE;
}

/* Can member `place` of a group of `members` make the exchange? UNSUPPORTED, INVALID_ARGUMENT. */
static inline seqlstm_status collectives_check(const struct seqlstm_exchange *e, int32_t place, int32_t members,
                                               struct seqlstm_error *err)
{
    if (e->kind >= SEQLSTM_COLLECTIVE_COUNT || e->reduction >= SEQLSTM_REDUCE_COUNT ||
        collectives_elem_bytes(e->dtype) == 0 || e->elems < 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "no exchange of kind %u, dtype %u and reduction %u", e->kind, e->dtype,
                     e->reduction);
    if ((collectives_is_pair(e) || e->kind == SEQLSTM_COLLECTIVE_BROADCAST) && (e->peer < 0 || e->peer >= members))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a group of %d has no member %d", members, e->peer);
    if (collectives_is_pair(e) && e->peer == place)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a rank does not send to itself");
    return SEQLSTM_OK;
}

/* The place of rank `own` of `all` among ranks[count] of a group; -1: it is not there, or they are not ascending. */
static inline int32_t collectives_find_place(int32_t own, int32_t all, const int32_t *ranks, int32_t count)
{
    int32_t place = -1;
    for (int32_t m = 0; m < count; m++) {
        if (ranks[m] < 0 || ranks[m] >= all || (m > 0 && ranks[m] <= ranks[m - 1]))
            return -1;
        place = ranks[m] == own ? m : place;
    }
    return place;
}

/* Can a rank with that place make group `number`, one of `groups`? `used`: the bit of each number that was used.
 * INVALID_ARGUMENT. */
static inline seqlstm_status collectives_check_group(int32_t place, uint32_t number, uint32_t groups, uint32_t used,
                                                     struct seqlstm_error *err)
{
    if (place < 0 || number >= groups || used >> number & 1)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "no group %u: %s", number,
                     place < 0 ? "its ranks are not ascending, or this one is not among them"
                               : "the number is used, or too large");
    return SEQLSTM_OK;
}

#endif
