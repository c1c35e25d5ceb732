/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of batching strategies, counted on the lengths alone with the batcher's own ordering. */
#include "data/batch/stats.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "data/batch/buckets.h"
#include "data/batch/order.h"
#include "data/dataset/dataset_private.h"
#include "data/dataset/envelope.h"
#include "data/no_memory.h"

#define MOST_COSTS 13
#define MOST_TENS  64

struct sl_data_stats {
    int64_t vocabulary, source_vocabulary, classes, split, parts;
    struct sl_lengths lengths, source; /* without pairs the second is empty */
    bool has_source;
    struct sl_batching_cost costs[MOST_COSTS];
    int cost_count;
    struct sl_edges edges[MOST_COSTS]; /* of each cost */
    int64_t least_steps;               /* of the lower bound */
    double least_seconds;
};

/* The shape of one batch; each different one counts once. */
struct shape {
    int64_t sequences, steps, source_steps;
};

static int compare_shape(const void *left, const void *right)
{
    const struct shape *a = left, *b = right;
    if (a->sequences != b->sequences)
        return (a->sequences > b->sequences) - (a->sequences < b->sequences);
    if (a->steps != b->steps)
        return (a->steps > b->steps) - (a->steps < b->steps);
    return (a->source_steps > b->source_steps) - (a->source_steps < b->source_steps);
}

/* A strategy to be counted. */
struct strategy {
    const char *name, *description;
    struct sl_bucketing bucketing;
    enum sl_padding padding;
};

/* Steps, rows and time of one batch, whose longest comes first. */
static void add_batch(const struct sl_order *order, const int32_t *lengths, int64_t batch,
                      const struct sl_step_cost *price, struct sl_batching_cost *cost, struct shape *out_shape)
{
    const uint32_t *record = order->records + order->first[batch];
    int64_t count = order->first[batch + 1] - order->first[batch], alive = count;
    int64_t steps = order->padded ? order->padded[batch] : lengths[record[0]];
    double ns = price ? price->batch_ns : 0;
    if (order->padded)
        cost->rows_computed += count * steps;
    for (int64_t k = 0; !order->padded && k < count; k++)
        cost->rows_computed += lengths[record[k]];
    if (price && order->padded)
        ns += (double)steps * sl_step_cost_at(price, (double)count);
    for (int64_t t = 0; price && !order->padded && t < steps; t++) {
        while (alive > 0 && lengths[record[alive - 1]] <= t)
            alive--;
        ns += sl_step_cost_at(price, (double)alive);
    }
    cost->steps += steps;
    cost->seconds += ns * 1e-9;
    *out_shape = (struct shape){count, steps, 0};
}

/* What the encoder reads of a batch; in a rectangle every sequence is as long as the longest of the batch, or of the
 * data. */
static void add_source(const struct sl_dataset *d, const struct sl_order *order, enum sl_padding padding, int64_t batch,
                       const struct sl_step_cost *price, struct sl_batching_cost *cost, struct shape *shape)
{
    const uint32_t *record = order->records + order->first[batch];
    int64_t count = order->first[batch + 1] - order->first[batch], rows = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t length = d->source.length[record[k]];
        rows += length;
        shape->source_steps = length > shape->source_steps ? length : shape->source_steps;
    }
    if (padding == SL_PADDING_LONGEST)
        shape->source_steps = d->facts.source_longest;
    rows = padding == SL_PADDING_NONE ? rows : count * shape->source_steps;
    for (int64_t t = 0; price && t < shape->source_steps; t++) {
        int64_t alive = 0;
        for (int64_t k = 0; k < count; k++)
            alive += padding != SL_PADDING_NONE || d->source.length[record[k]] > t;
        cost->seconds += 1e-9 * sl_step_cost_source_at(price, (double)alive);
    }
    cost->source_rows += rows;
    cost->rows_computed += rows;
    cost->source_steps += shape->source_steps;
    cost->steps += shape->source_steps;
}

static seqlstm_status count_order(const struct sl_dataset *d, const struct sl_order_rule *rule,
                                  const struct sl_step_cost *price, struct sl_batching_cost *cost,
                                  struct seqlstm_error *err)
{
    struct sl_order order = {0};
    SEQLSTM_TRY(sl_order_make(rule, &order, err));
    struct shape *shapes = calloc((size_t)order.batches + 1, sizeof *shapes);
    if (!shapes) {
        sl_order_deinit(&order);
        return SL_DATA_NO_MEMORY(err);
    }
    cost->batches = order.batches;
    for (int64_t b = 0; b < order.batches; b++) {
        add_batch(&order, rule->lengths, b, price, cost, &shapes[b]);
        if (rule->source)
            add_source(d, &order, rule->padding, b, price, cost, &shapes[b]);
    }
    qsort(shapes, (size_t)order.batches, sizeof *shapes, compare_shape);
    for (int64_t b = 0; b < order.batches; b++)
        cost->shapes += b == 0 || compare_shape(&shapes[b], &shapes[b - 1]) != 0;
    free(shapes);
    sl_order_deinit(&order);
    return SEQLSTM_OK;
}

static struct sl_order_rule rule_of(const struct sl_dataset *d, enum sl_padding padding)
{
    const struct sl_data_config *config = &d->model->data;
    bool limited = config->batch_size > 0 || config->batching.max_tokens > 0;
    return (struct sl_order_rule){.records = d->records,
                                  .lengths = d->length,
                                  .source = d->source.length,
                                  .shuffle = config->shuffle,
                                  .pool = config->batching.pool,
                                  .batch_size = limited ? config->batch_size : 1,
                                  .max_tokens = d->facts.has_steps ? config->batching.max_tokens : 0,
                                  .padding = padding,
                                  .longest = d->facts.longest,
                                  .key = seqlstm_mix64(d->model->seed, 0x7374617473, 0)};
}

static bool is_chosen(const struct sl_batching *batching, const struct strategy *s)
{
    return batching->bucketing.kind == s->bucketing.kind && batching->padding == s->padding &&
           (s->bucketing.kind != SL_BUCKETING_COUNT || batching->bucketing.count == s->bucketing.count);
}

static seqlstm_status add_strategy(struct sl_data_stats *stats, const struct sl_dataset *d,
                                   const struct sl_histogram *histogram, const struct strategy *s,
                                   const struct sl_step_cost *price, struct seqlstm_error *err)
{
    struct sl_edges edges;
    struct sl_order_rule rule = rule_of(d, s->padding);
    struct sl_bucket_rule buckets = {.batch_size = rule.batch_size,
                                     .max_tokens = rule.max_tokens,
                                     .padded = s->padding != SL_PADDING_NONE,
                                     .cost = price};
    struct sl_batching_cost cost = {.name = s->name, .description = s->description};
    SEQLSTM_TRY(sl_edges_make(&s->bucketing, histogram, &buckets, &edges, err));
    rule.pools = s->bucketing.kind == SL_BUCKETING_POOLS;
    rule.pool = rule.pool > 0 ? rule.pool : 100; /* where the model file has none: its default */
    rule.edges = edges.lengths;
    rule.edge_count = edges.count;
    seqlstm_status status = count_order(d, &rule, price, &cost, err);
    if (status != SEQLSTM_OK) {
        sl_edges_deinit(&edges);
        return status;
    }
    cost.chosen = is_chosen(&d->model->data.batching, s);
    cost.edges = edges.lengths;
    cost.edge_count = edges.count;
    stats->edges[stats->cost_count] = edges;
    stats->costs[stats->cost_count++] = cost;
    return SEQLSTM_OK;
}

/* Ten, twenty, … up to the longest, in steps of a power of ten; at most MOST_TENS - 1 of them. */
static struct sl_bucketing list_tens(int64_t longest, int64_t *edges)
{
    int64_t step = 10, count = 0;
    while (longest / step >= MOST_TENS - 1)
        step *= 10;
    for (int64_t edge = step; edge < longest + step; edge += step)
        edges[count++] = edge;
    return (struct sl_bucketing){.kind = SL_BUCKETING_LENGTHS, .edges = edges, .edge_count = (size_t)count};
}

static seqlstm_status find_bound(struct sl_data_stats *stats, const struct sl_dataset *d,
                                 const struct sl_step_cost *price, struct seqlstm_error *err)
{
    struct sl_batching_cost least = {0};
    struct sl_order_rule rule = rule_of(d, SL_PADDING_NONE);
    rule.source = NULL;
    rule.shuffle = false;
    rule.pools = true;
    rule.pool = d->records;
    SEQLSTM_TRY(count_order(d, &rule, NULL, &least, err));
    rule.lengths = d->source.length;
    if (stats->has_source)
        SEQLSTM_TRY(count_order(d, &rule, NULL, &least, err));
    stats->least_steps = least.steps;
    if (price && price->count > 0) {
        const struct sl_step_cost_point *widest = &price->points[price->count - 1];
        stats->least_seconds = 1e-9 * ((double)stats->lengths.rows * widest->step_ns / (double)widest->width +
                                       (double)least.batches * price->batch_ns);
    }
    if (price && price->source_count > 0) {
        const struct sl_step_cost_point *widest = &price->source_points[price->source_count - 1];
        stats->least_seconds += 1e-9 * (double)stats->source.rows * widest->step_ns / (double)widest->width;
    }
    return SEQLSTM_OK;
}

static seqlstm_status add_strategies(struct sl_data_stats *stats, const struct sl_dataset *d,
                                     const struct sl_step_cost *price, struct seqlstm_error *err)
{
    const struct sl_batching *batching = &d->model->data.batching;
    const struct sl_bucketing off = {.kind = SL_BUCKETING_OFF}, pools = {.kind = SL_BUCKETING_POOLS};
    const struct sl_bucketing best = {.kind = SL_BUCKETING_AUTO}, greedy = {.kind = SL_BUCKETING_GREEDY};
    int64_t tens[MOST_TENS];
    struct sl_bucketing lengths = list_tens(d->facts.longest, tens), count = {.kind = SL_BUCKETING_COUNT, .count = 16};
    if (batching->bucketing.kind == SL_BUCKETING_LENGTHS)
        lengths = batching->bucketing;
    if (batching->bucketing.kind == SL_BUCKETING_COUNT)
        count = batching->bucketing;
    const struct strategy list[] = {
        {"pools", "packed rows, sorted inside pools", pools, SL_PADDING_NONE},
        {"auto", "packed rows, best buckets for the cost of a step", best, SL_PADDING_NONE},
        {"count", "packed rows, best buckets, 16 or as many as the model file says", count, SL_PADDING_NONE},
        {"greedy", "packed rows, a bucket ends where it holds a batch", greedy, SL_PADDING_NONE},
        {"lengths", "packed rows, buckets at the lengths of the model file, or tens", lengths, SL_PADDING_NONE},
        {"packed", "packed rows, shuffled order", off, SL_PADDING_NONE},
        {"pools_padded", "pools, padded to the batch's longest", pools, SL_PADDING_BATCH},
        {"count_padded", "best buckets, padded to the edge", count, SL_PADDING_BUCKET},
        {"greedy_padded", "greedy buckets, padded to the edge", greedy, SL_PADDING_BUCKET},
        {"lengths_padded", "buckets at lengths, padded to the edge", lengths, SL_PADDING_BUCKET},
        {"padded_to_batch", "shuffled order, padded to the batch's longest", off, SL_PADDING_BATCH},
        {"padded_to_longest", "everything padded to the longest", off, SL_PADDING_LONGEST},
        {"chosen", "what the model file asks for", batching->bucketing, batching->padding},
    };
    struct sl_histogram histogram;
    bool found = false;
    SEQLSTM_TRY(sl_histogram_make(d->length, d->source.length, d->records, &histogram, err));
    seqlstm_status status = SEQLSTM_OK;
    for (size_t i = 0; status == SEQLSTM_OK && i < sizeof list / sizeof *list; i++) {
        if (list[i].bucketing.kind != SL_BUCKETING_POOLS && list[i].bucketing.kind != SL_BUCKETING_OFF &&
            !d->facts.has_steps)
            continue;
        if (i + 1 < sizeof list / sizeof *list || !found)
            status = add_strategy(stats, d, &histogram, &list[i], price, err);
        found = found || is_chosen(batching, &list[i]);
    }
    sl_histogram_deinit(&histogram);
    return status == SEQLSTM_OK ? find_bound(stats, d, price, err) : status;
}

static void add_stream(struct sl_data_stats *stats, const struct sl_dataset *d, const struct sl_step_cost *price)
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
    if (price)
        cost.seconds =
            1e-9 * ((double)steps * sl_step_cost_at(price, (double)parts) + (double)cost.batches * price->batch_ns);
    stats->costs[stats->cost_count++] = cost;
    stats->least_steps = cost.steps;
    stats->least_seconds = cost.seconds;
}

seqlstm_status sl_data_stats_create(const struct sl_dataset *dataset, const struct sl_step_cost *cost,
                                    struct sl_data_stats **out_stats, struct seqlstm_error *err)
{
    struct sl_data_stats *stats = calloc(1, sizeof *stats);
    seqlstm_status status = SEQLSTM_OK;
    if (!stats)
        return SL_DATA_NO_MEMORY(err);
    const struct sl_vocabulary *tokens = sl_data_state_find_vocabulary(dataset->state);
    const struct sl_vocabulary *source = sl_data_state_find_source_vocabulary(dataset->state);
    stats->has_source = dataset->source.present;
    stats->source_vocabulary = source ? sl_vocabulary_get_size(source) : 0;
    stats->vocabulary = tokens ? sl_vocabulary_get_size(tokens) : 0;
    stats->classes = dataset->facts.target.kind == SL_FIELD_IDS ? dataset->facts.target.classes : 0;
    stats->split = dataset->counts.split_records;
    stats->parts = dataset->counts.parts;
    status = sl_lengths_init(&stats->lengths, dataset->length, dataset->records, err);
    if (status == SEQLSTM_OK && stats->has_source)
        status = sl_lengths_init(&stats->source, dataset->source.length, dataset->records, err);
    if (status != SEQLSTM_OK)
        goto out;
    if (dataset->stream) {
        add_stream(stats, dataset, cost);
        goto out;
    }
    status = add_strategies(stats, dataset, cost, err);
out:
    for (int i = 0; i < stats->cost_count; i++) {
        struct sl_batching_cost *c = &stats->costs[i];
        c->sequences_lost = dataset->counts.dropped_records;
        c->rows_lost += dataset->counts.dropped_rows + dataset->counts.truncated_rows;
        double mine = cost ? c->seconds : (double)c->steps;
        double least = cost ? stats->least_seconds : (double)stats->least_steps;
        c->above_bound = least > 0 ? mine / least - 1 : 0;
    }
    if (status != SEQLSTM_OK) {
        sl_data_stats_destroy(stats);
        return status;
    }
    *out_stats = stats;
    return SEQLSTM_OK;
}

void sl_data_stats_destroy(struct sl_data_stats *stats)
{
    if (!stats)
        return;
    sl_lengths_deinit(&stats->lengths);
    sl_lengths_deinit(&stats->source);
    for (int i = 0; i < MOST_COSTS; i++)
        sl_edges_deinit(&stats->edges[i]);
    free(stats);
}

const struct sl_lengths *sl_data_stats_get_lengths(const struct sl_data_stats *stats)
{
    return &stats->lengths;
}

const struct sl_lengths *sl_data_stats_find_source_lengths(const struct sl_data_stats *stats)
{
    return stats->has_source ? &stats->source : NULL;
}

int64_t sl_data_stats_get_vocabulary(const struct sl_data_stats *stats)
{
    return stats->vocabulary;
}

int64_t sl_data_stats_get_source_vocabulary(const struct sl_data_stats *stats)
{
    return stats->source_vocabulary;
}

int64_t sl_data_stats_get_classes(const struct sl_data_stats *stats)
{
    return stats->classes;
}

int64_t sl_data_stats_get_split(const struct sl_data_stats *stats, int64_t *out_parts)
{
    *out_parts = stats->parts;
    return stats->split;
}

const struct sl_batching_cost *sl_data_stats_get_costs(const struct sl_data_stats *stats, int *out_count)
{
    *out_count = stats->cost_count;
    return stats->costs;
}

int64_t sl_data_stats_get_least_steps(const struct sl_data_stats *stats)
{
    return stats->least_steps;
}

double sl_data_stats_get_least_seconds(const struct sl_data_stats *stats)
{
    return stats->least_seconds;
}
