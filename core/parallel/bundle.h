/* SPDX-License-Identifier: Apache-2.0 */
/* How the gradients of a bundle are added: as they are, as the used rows of an embedding, or as factors of low rank.
 *
 * Where matrices are compressed, few bytes are left, and each exchange costs a latency. Few ranks then gather what each
 * has, and add it in their order. They do so for groups of bundles: the factors P of all of them at once, with vectors
 * and rows between them, and then all factors Q. Many ranks would receive too much, and make one sum after the other.
 */
#ifndef SL_PARALLEL_BUNDLE_H
#define SL_PARALLEL_BUNDLE_H

#include "parallel/low_rank.h"
#include "parallel/ranks.h"

/* Elements [offset, offset + rows * columns) of the gradients, which are not exchanged as they are. */
struct sl_bundle_matrix {
    int64_t offset, rows, columns;
    bool compressed; /* exchanged as two factors (low_rank.h); otherwise it is an embedding */
};

/* Elements that are added at once. */
struct sl_bundle {
    int64_t begin, end;
    const struct sl_bundle_matrix *rows; /* of an embedding; NULL: all elements are exchanged */
    uint8_t *flags;                      /* [rows] of the embedding: which this rank has used */
    uint8_t *used;                       /* [rows] which some rank has used */
    uint8_t *gathered;                   /* [ranks * rows] which each has used; NULL: they are not gathered */
    struct sl_low_rank *factors;         /* NULL: not compressed */
};

struct sl_adder {
    const struct sl_ranks *ranks;
    float *grads;
    int64_t elems;
    float *errors;  /* [elems] of compressed matrices */
    float *scratch; /* [elems] */
    bool marks;     /* flags are set by others; otherwise used rows are those that are not zero */
    bool gathers;
};

/* Is a row of an embedding exchanged? A row of zeros is not, unless one of them is -0. */
bool sl_bundle_uses_row(const float *row, int64_t columns);

/* Do so few ranks gather? */
bool sl_adder_may_gather(const struct sl_ranks *ranks);

/* Exchanges the flags of an embedding; `flags` are clear afterwards. Does nothing for other bundles. */
seqlstm_status sl_adder_find_used(const struct sl_adder *adder, const struct sl_bundle *bundle,
                                  struct seqlstm_error *err);

/* Adds the gradients of so many bundles; several only if they are gathered. Used rows have been found. Compressed ones
 * still need `finish`, which exchanges nothing. */
seqlstm_status sl_adder_add(const struct sl_adder *adder, const struct sl_bundle *bundles, int32_t count,
                            struct seqlstm_error *err);
void sl_adder_finish(const struct sl_adder *adder, const struct sl_bundle *bundles, int32_t count);

#endif
