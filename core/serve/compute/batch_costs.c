/* SPDX-License-Identifier: Apache-2.0 */
/* See batch_costs.h. */
#include "serve/compute/batch_costs.h"

#include <math.h>

/* About the last 1000 batches count. */
static const double KEPT = 0.999;
static const double FACTOR = 2.5;
/* Kernels compute a few sequences in about the time of one. */
enum { FEW = 4, ROUNDS = 4 };

/* Least squares of values that are not below 0, one after the other from where they are (Gauss and Seidel). Where the
 * batches do not tell them apart, the first has all: so rows take nothing until batches of several widths were seen. */
static void fit(struct sl_batch_costs *costs)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < SL_BATCH_COSTS; i++) {
            double left = costs->sums[i];
            for (int j = 0; j < SL_BATCH_COSTS; j++)
                left -= j == i ? 0 : costs->products[i][j] * costs->ns[j];
            costs->ns[i] = fmax(left / costs->products[i][i], 0);
        }
}

void sl_batch_costs_note(struct sl_batch_costs *costs, int64_t steps, int64_t rows, double ns)
{
    const double counts[SL_BATCH_COSTS] = {1 / ns, (double)steps / ns, (double)rows / ns};
    for (int i = 0; i < SL_BATCH_COSTS; i++) {
        costs->sums[i] = KEPT * costs->sums[i] + counts[i];
        for (int j = 0; j < SL_BATCH_COSTS; j++)
            costs->products[i][j] = KEPT * costs->products[i][j] + counts[i] * counts[j];
    }
    fit(costs);
}

int64_t sl_batch_costs_choose(const struct sl_batch_costs *costs, int64_t count, int64_t steps, int64_t rows)
{
    const double batch = costs->ns[SL_COST_OF_BATCH] + costs->ns[SL_COST_OF_STEP] * (double)steps;
    const double each = costs->ns[SL_COST_OF_ROW] * (double)rows / (double)(count > 0 ? count : 1);
    if (count <= FEW || each <= 0)
        return count;
    const double chosen = ceil(FACTOR * sqrt(2 * (double)count * batch / each));
    return chosen <= FEW ? FEW : chosen < (double)count ? (int64_t)chosen : count;
}
