/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of batching strategies, counted on the lengths alone with the batcher's own ordering. */
#include "data/stats.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "data/dataset_private.h"
#include "data/envelope.h"
#include "data/order.h"

#define MOST_BINS  20
#define MOST_COSTS 5

struct sl_data_stats {
    int64_t rows, sequences, vocabulary, classes;
    int32_t *sorted; /* lengths, ascending */
    struct sl_length_bin bins[MOST_BINS];
    int bin_count;
    struct sl_batching_cost costs[MOST_COSTS];
    int cost_count;
};

/* The shape of one batch, to be counted once. */
struct shape {
    int64_t sequences, steps;
};

static int
compare_length(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static int
compare_shape(const void *left, const void *right)
{
    const struct shape *a = left, *b = right;
    if (a->sequences != b->sequences)
        return (a->sequences > b->sequences) - (a->sequences < b->sequences);
    return (a->steps > b->steps) - (a->steps < b->steps);
}

enum padding { PADDING_NONE, PADDING_BATCH, PADDING_LONGEST };

/* Adds the cost of one order of the records. */
static seqlstm_status
add_cost(struct sl_data_stats *stats, const struct sl_dataset *d, const char *name, const char *description,
         bool pools, enum padding padding, struct seqlstm_error *err)
{
    const struct sl_data_config *config = &d->model->data;
    int64_t longest = stats->sequences > 0 ? stats->sorted[stats->sequences - 1] : 0;
    struct sl_order order = {0};
    struct sl_order_rule rule = {.records = d->records,
                                 .lengths = d->length,
                                 .shuffle = config->shuffle,
                                 .pools = pools,
                                 .pool = config->batching.pool,
                                 .batch_size = config->batch_size > 0 ? config->batch_size : 1,
                                 .key = seqlstm_mix64(d->model->seed, 0x7374617473, 0)};
    SEQLSTM_TRY(sl_order_make(&rule, &order, err));
    struct shape *shapes = calloc((size_t)order.batches + 1, sizeof *shapes);
    if (!shapes) {
        sl_order_deinit(&order);
        return SL_DATA_NO_MEMORY(err);
    }
    struct sl_batching_cost cost = {.name = name, .description = description, .batches = order.batches};
    for (int64_t b = 0; b < order.batches; b++) {
        int64_t count = order.first[b + 1] - order.first[b], own = 0, real = 0;
        for (int64_t i = order.first[b]; i < order.first[b + 1]; i++) {
            int64_t length = d->length[order.records[i]];
            real += length;
            own = length > own ? length : own;
        }
        int64_t steps = padding == PADDING_LONGEST ? longest : own;
        cost.rows_computed += padding == PADDING_NONE ? real : count * steps;
        cost.steps += steps;
        shapes[b] = (struct shape){count, steps};
    }
    qsort(shapes, (size_t)order.batches, sizeof *shapes, compare_shape);
    for (int64_t b = 0; b < order.batches; b++)
        cost.shapes += b == 0 || compare_shape(&shapes[b], &shapes[b - 1]) != 0;
    cost.chosen = padding == PADDING_NONE && pools == (config->batching.bucketing == SL_BUCKETING_POOLS);
    stats->costs[stats->cost_count++] = cost;
    free(shapes);
    sl_order_deinit(&order);
    return SEQLSTM_OK;
}

static void
add_stream(struct sl_data_stats *stats, const struct sl_dataset *d)
{
    int64_t positions = d->length[0], parts, steps, bptt = d->model->data.batching.bptt;
    sl_stream_cut(positions, d->model->data.batch_size > 0 ? d->model->data.batch_size : 1, &parts, &steps);
    bptt = bptt > 0 && bptt < steps ? bptt : steps;
    struct sl_batching_cost cost = {.name = "stream",
                                    .description = "one text in parallel streams, state carried",
                                    .chosen = true,
                                    .rows_computed = parts * steps,
                                    .steps = steps,
                                    .rows_lost = positions - parts * steps};
    cost.batches = bptt > 0 ? (steps + bptt - 1) / bptt : 0;
    cost.shapes = bptt > 0 && steps % bptt != 0 && cost.batches > 1 ? 2 : 1;
    stats->costs[stats->cost_count++] = cost;
}

static void
fill_bins(struct sl_data_stats *stats)
{
    if (stats->sequences == 0)
        return;
    int64_t low = stats->sorted[0], high = stats->sorted[stats->sequences - 1];
    int64_t width = (high - low + MOST_BINS) / MOST_BINS;
    stats->bin_count = (int)((high - low) / width) + 1;
    for (int i = 0; i < stats->bin_count; i++) {
        stats->bins[i].first = low + i * width;
        stats->bins[i].last = stats->bins[i].first + width - 1;
    }
    for (int64_t r = 0; r < stats->sequences; r++)
        stats->bins[(stats->sorted[r] - low) / width].records++;
}

seqlstm_status
sl_data_stats_create(const struct sl_dataset *dataset, struct sl_data_stats **out_stats, struct seqlstm_error *err)
{
    struct sl_data_stats *stats = calloc(1, sizeof *stats);
    seqlstm_status status = SEQLSTM_OK;
    if (!stats)
        return SL_DATA_NO_MEMORY(err);
    const struct sl_vocabulary *tokens = sl_data_state_find_vocabulary(dataset->state);
    stats->rows = dataset->facts.rows;
    stats->sequences = dataset->records;
    stats->vocabulary = tokens ? sl_vocabulary_get_size(tokens) : 0;
    stats->classes = dataset->facts.target.kind == SL_FIELD_IDS ? dataset->facts.target.classes : 0;
    stats->sorted = calloc((size_t)dataset->records + 1, sizeof *stats->sorted);
    if (!stats->sorted) {
        status = SL_DATA_NO_MEMORY(err);
        goto out;
    }
    for (int64_t r = 0; r < dataset->records; r++)
        stats->sorted[r] = dataset->length[r];
    qsort(stats->sorted, (size_t)dataset->records, sizeof *stats->sorted, compare_length);
    fill_bins(stats);
    if (dataset->stream) {
        add_stream(stats, dataset);
        goto out;
    }
    status = add_cost(stats, dataset, "pools", "packed rows, sorted inside pools", true, PADDING_NONE, err);
    if (status == SEQLSTM_OK)
        status = add_cost(stats, dataset, "packed", "packed rows, shuffled order", false, PADDING_NONE, err);
    if (status == SEQLSTM_OK)
        status = add_cost(stats, dataset, "pools_padded", "pools, padded to the batch's longest", true, PADDING_BATCH,
                          err);
    if (status == SEQLSTM_OK)
        status = add_cost(stats, dataset, "padded_to_batch", "shuffled order, padded to the batch's longest", false,
                          PADDING_BATCH, err);
    if (status == SEQLSTM_OK)
        status = add_cost(stats, dataset, "padded_to_longest", "everything padded to the longest", false,
                          PADDING_LONGEST, err);
out:
    for (int i = 0; i < stats->cost_count; i++) {
        stats->costs[i].sequences_lost = dataset->counts.dropped_records;
        stats->costs[i].rows_lost += dataset->counts.dropped_rows + dataset->counts.truncated_rows;
    }
    if (status != SEQLSTM_OK) {
        sl_data_stats_destroy(stats);
        return status;
    }
    *out_stats = stats;
    return SEQLSTM_OK;
}

void
sl_data_stats_destroy(struct sl_data_stats *stats)
{
    if (!stats)
        return;
    free(stats->sorted);
    free(stats);
}

int64_t
sl_data_stats_get_rows(const struct sl_data_stats *stats)
{
    return stats->rows;
}

int64_t
sl_data_stats_get_sequences(const struct sl_data_stats *stats)
{
    return stats->sequences;
}

int64_t
sl_data_stats_get_longest(const struct sl_data_stats *stats)
{
    return stats->sequences > 0 ? stats->sorted[stats->sequences - 1] : 0;
}

int64_t
sl_data_stats_get_shortest(const struct sl_data_stats *stats)
{
    return stats->sequences > 0 ? stats->sorted[0] : 0;
}

double
sl_data_stats_get_mean(const struct sl_data_stats *stats)
{
    return stats->sequences > 0 ? (double)stats->rows / (double)stats->sequences : 0;
}

int64_t
sl_data_stats_get_quantile(const struct sl_data_stats *stats, double share)
{
    if (stats->sequences == 0)
        return 0;
    double place = share * (double)stats->sequences;
    int64_t index = (int64_t)place;
    index -= (double)index == place && index > 0; /* the smallest length with enough records up to it */
    if (index >= stats->sequences)
        index = stats->sequences - 1;
    return stats->sorted[index < 0 ? 0 : index];
}

int64_t
sl_data_stats_get_vocabulary(const struct sl_data_stats *stats)
{
    return stats->vocabulary;
}

int64_t
sl_data_stats_get_classes(const struct sl_data_stats *stats)
{
    return stats->classes;
}

const struct sl_length_bin *
sl_data_stats_get_bins(const struct sl_data_stats *stats, int *out_count)
{
    *out_count = stats->bin_count;
    return stats->bins;
}

const struct sl_batching_cost *
sl_data_stats_get_costs(const struct sl_data_stats *stats, int *out_count)
{
    *out_count = stats->cost_count;
    return stats->costs;
}
