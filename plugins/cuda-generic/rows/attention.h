/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION: the functions that host code calls. Weights and their gradients are [queries, longest]; a row uses only
 * its first elements. */
#ifndef CG_ATTENTION_H
#define CG_ATTENTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cg_attention {
    int64_t queries, rows, memories, longest;
    int64_t key, value;
    float scale;
    int32_t reserved0;
    const float *query, *keys, *values;
    const float *score; /* [key] for additive scores; NULL: dot products */
    const int32_t *offsets, *memory_of;
};

/* a, the weights. `report` gets them too, padded with zeros; NULL: not wanted. */
int cg_attend(void *stream, const struct cg_attention *attention, float *a, float *report, float *context);

/* From a and the gradient of the contexts: de, the gradient of the scores; dquery (NULL: not wanted); for additive
 * scores also dscores [queries, key], the part of each query in the gradient of `score`. */
int cg_attend_back_queries(void *stream, const struct cg_attention *attention, const float *a, const float *dcontext,
                           float *de, float *dquery, float *dscores);

/* From a, de and the gradient of the contexts: dkeys and dvalues (NULL: not wanted; they may be the same buffer). */
int cg_attend_back_rows(void *stream, const struct cg_attention *attention, const float *a, const float *de,
                        const float *dcontext, float *dkeys, float *dvalues);

#ifdef __cplusplus
}
#endif

#endif
