/* SPDX-License-Identifier: Apache-2.0 */
/* What batches of one model take, and how many of the sequences that wait are computed at once.
 *
 * A batch takes a time A of its own, and a time B for each sequence. The fewer sequences it has, the sooner they are
 * answered; the more it has, the less of A falls on each of them. If n sequences wait and are computed in batches one
 * after the other, their mean latency is least where the first batch has sqrt(2 n A / B) of them (Santos and Magazine
 * 1985, Batching in single operation manufacturing systems, for items that are finished with their batch). Others
 * arrive meanwhile, for which a batch that is too small costs more than one too large: so it has 2.5 times as many.
 *
 * Thread class: any, one thread at a time. */
#ifndef SL_SERVE_COMPUTE_BATCH_COSTS_H
#define SL_SERVE_COMPUTE_BATCH_COSTS_H

#include <stdint.h>

enum sl_batch_cost { SL_COST_OF_BATCH, SL_COST_OF_STEP, SL_COST_OF_ROW, SL_BATCH_COSTS };

/* A zeroed one knows nothing. */
struct sl_batch_costs {
    double ns[SL_BATCH_COSTS]; /* of a batch, each step of its longest sequence, each step of all; 0 or more */
    /* Least squares of the batches' relative errors: sums of products, of which those of older batches count less. */
    double products[SL_BATCH_COSTS][SL_BATCH_COSTS], sums[SL_BATCH_COSTS];
};

/* A batch took `ns`: `rows` steps of sequences, and `steps` of the longest, all above 0. */
void sl_batch_costs_note(struct sl_batch_costs *costs, int64_t steps, int64_t rows, double ns);

/* How many of `count` sequences, of `rows` steps and `steps` of the longest, are computed in the next batch: at most
 * `count`, all of a few, and all until it is known what a row takes. */
int64_t sl_batch_costs_choose(const struct sl_batch_costs *costs, int64_t count, int64_t steps, int64_t rows);

#endif
