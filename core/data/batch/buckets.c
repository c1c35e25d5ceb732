/* SPDX-License-Identifier: Apache-2.0 */
/* Edges of buckets: greedy, listed, or the best ones by dynamic programming. */
#include "data/batch/buckets.h"

#include <stdlib.h>
#include <string.h>

#define MOST_AUTO 64

static int ascending(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    return seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the buckets");
}

/* Different lengths, ascending, and how many records have each. */
static seqlstm_status count_lengths(const int32_t *lengths, int64_t records, int64_t *out_count, int32_t **out_length,
                                    int64_t **out_records, struct seqlstm_error *err)
{
    int64_t count = 0;
    int32_t *sorted = malloc(((size_t)records + 1) * sizeof *sorted);
    if (!sorted)
        return no_memory(err);
    if (records > 0)
        memcpy(sorted, lengths, (size_t)records * sizeof *sorted);
    qsort(sorted, (size_t)records, sizeof *sorted, ascending);
    for (int64_t r = 0; r < records; r++)
        count += r == 0 || sorted[r] != sorted[r - 1];
    *out_length = calloc((size_t)count + 1, sizeof **out_length);
    *out_records = calloc((size_t)count + 1, sizeof **out_records);
    for (int64_t r = 0, at = -1; r < records && *out_length && *out_records; r++) {
        at += r == 0 || sorted[r] != sorted[r - 1];
        (*out_length)[at] = sorted[r];
        (*out_records)[at]++;
    }
    free(sorted);
    *out_count = count;
    return *out_length && *out_records ? SEQLSTM_OK : no_memory(err);
}

/* Joins lengths to groups of about equal count, each with the length of its longest; returns how many groups there are.
 * out_group[i] is that of length i. */
static int64_t group_lengths(const int64_t *records, int64_t count, int32_t *out_group)
{
    int64_t most = count < SL_BUCKET_LENGTHS_MOST ? count : SL_BUCKET_LENGTHS_MOST, total = 0, seen = 0, group = 0;
    for (int64_t i = 0; i < count; i++)
        total += records[i];
    for (int64_t i = 0; i < count; i++) {
        int64_t lengths_left = count - 1 - i, groups_left = most - 1 - group;
        seen += records[i];
        out_group[i] = (int32_t)group;
        bool full = count == most || (double)seen * (double)most >= (double)total * (double)(group + 1);
        group += lengths_left == 0 || lengths_left == groups_left || (full && groups_left > 0);
    }
    return group;
}

static int64_t find_length(const int32_t *length, int64_t count, int32_t wanted)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (length[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static seqlstm_status add_sources(struct sl_histogram *h, const int32_t *lengths, const int32_t *sources,
                                  int64_t records, struct seqlstm_error *err)
{
    int64_t count, *held = NULL;
    int32_t *group = NULL;
    seqlstm_status status = count_lengths(sources, records, &count, &h->source_length, &held, err);
    group = status == SEQLSTM_OK ? calloc((size_t)count + 1, sizeof *group) : NULL;
    int64_t groups = group ? group_lengths(held, count, group) : 0;
    h->below = calloc(((size_t)h->count + 1) * ((size_t)groups + 1), sizeof *h->below);
    if (status == SEQLSTM_OK && (!group || !h->below))
        status = no_memory(err);
    for (int64_t r = 0; r < records && status == SEQLSTM_OK; r++) {
        int64_t row = find_length(h->length, h->count, lengths[r]) + 1;
        h->below[row * groups + group[find_length(h->source_length, count, sources[r])]]++;
    }
    for (int64_t i = groups; i < (h->count + 1) * groups && status == SEQLSTM_OK; i++)
        h->below[i] += h->below[i - groups];
    for (int64_t i = 0; i < count && status == SEQLSTM_OK; i++)
        h->source_length[group[i]] = h->source_length[i];
    h->source_count = groups;
    free(held);
    free(group);
    return status;
}

seqlstm_status sl_histogram_make(const int32_t *lengths, const int32_t *sources, int64_t records,
                                 struct sl_histogram *out, struct seqlstm_error *err)
{
    struct sl_histogram h = {0};
    seqlstm_status status = count_lengths(lengths, records, &h.count, &h.length, &h.records, err);
    if (status == SEQLSTM_OK && sources)
        status = add_sources(&h, lengths, sources, records, err);
    if (status == SEQLSTM_OK)
        *out = h;
    else
        sl_histogram_deinit(&h);
    return status;
}

void sl_histogram_deinit(struct sl_histogram *histogram)
{
    free(histogram->length);
    free(histogram->records);
    free(histogram->source_length);
    free(histogram->below);
    memset(histogram, 0, sizeof *histogram);
}

void sl_edges_deinit(struct sl_edges *edges)
{
    free(edges->lengths);
    memset(edges, 0, sizeof *edges);
}

/* Sequences in a full batch of a bucket. */
static int64_t batch_of(const struct sl_bucket_rule *rule, int64_t edge)
{
    int64_t size = rule->batch_size > 0 ? rule->batch_size : INT64_MAX;
    if (rule->max_tokens > 0 && edge > 0 && rule->max_tokens / edge < size)
        size = rule->max_tokens / edge;
    return size > 0 ? size : 1;
}

/* Cost of one batch of `width` sequences of a bucket that holds `held`. */
static double price_batch(const struct sl_bucket_rule *rule, const struct sl_histogram *h, int64_t first, int64_t last,
                          int64_t width, int64_t held)
{
    const struct sl_step_cost *cost = rule->cost;
    double price = cost ? cost->batch_ns : 0;
    if (!cost || rule->padded)
        return price + (double)h->length[last - 1] * sl_step_cost_at(cost, (double)width);
    double share = (double)width / (double)held;
    int64_t alive = held, before = 0;
    for (int64_t i = first; i < last; i++) {
        price += (double)(h->length[i] - before) * sl_step_cost_at(cost, share * (double)alive);
        before = h->length[i];
        alive -= h->records[i];
    }
    return price;
}

/* Of the sources of a bucket, longest first in batches of `size`: each as long as its first. The batch of the remaining
 * ones is narrower. */
static double price_sources(const struct sl_bucket_rule *rule, const struct sl_histogram *h, int64_t first,
                            int64_t last, int64_t size, int64_t held)
{
    const int64_t n = h->source_count, *low = h->below + first * n, *high = h->below + last * n;
    int64_t before = 0, narrow = held / size * size; /* where the batch of the remaining ones begins, if any */
    double price = 0;
    for (int64_t s = n - 1; s >= 0; s--) {
        int64_t end = before + high[s] - low[s];
        int64_t begins = (end + size - 1) / size - (before + size - 1) / size;
        bool has_narrow = before <= narrow && narrow < end;
        price += (double)h->source_length[s] *
                 ((double)(begins - has_narrow) * sl_step_cost_source_at(rule->cost, (double)size) +
                  (has_narrow ? sl_step_cost_source_at(rule->cost, (double)(held - narrow)) : 0));
        before = end;
    }
    return price;
}

/* Steps of the sources of a bucket. */
static int64_t count_source_rows(const struct sl_histogram *h, int64_t first, int64_t last)
{
    const int64_t n = h->source_count, *low = h->below + first * n, *high = h->below + last * n;
    int64_t rows = 0;
    for (int64_t s = 0; s < n; s++)
        rows += h->source_length[s] * (high[s] - low[s]);
    return rows;
}

double sl_bucket_price(const struct sl_bucket_rule *rule, const struct sl_histogram *h, int64_t first, int64_t last)
{
    int64_t held = 0;
    for (int64_t i = first; i < last; i++)
        held += h->records[i];
    int64_t edge = h->length[last - 1];
    if (h->source_count > 0 && held > 0)
        edge += count_source_rows(h, first, last) / held;
    int64_t size = batch_of(rule, edge), whole = held / size, rest = held % size;
    double price = h->source_count > 0 ? price_sources(rule, h, first, last, size, held) : 0;
    if (whole > 0)
        price += (double)whole * price_batch(rule, h, first, last, size, held);
    if (rest > 0)
        price += price_batch(rule, h, first, last, rest, held);
    return price;
}

/* The table of the dynamic program: the price of k buckets over the first j lengths, and where the last one begins. */
struct table {
    struct sl_histogram lengths; /* at most SL_BUCKET_LENGTHS_MOST */
    int64_t most, row;           /* buckets; entries for one k */
    double *price;               /* [most + 1, row] */
    int32_t *begin;              /* [most + 1, row] */
};

static void table_deinit(struct table *t)
{
    sl_histogram_deinit(&t->lengths);
    free(t->price);
    free(t->begin);
}

/* The number of lengths that are looked at one by one. */
static seqlstm_status join_lengths(const struct sl_histogram *h, struct sl_histogram *out, struct seqlstm_error *err)
{
    size_t sources = (size_t)h->source_count;
    int32_t *group = calloc((size_t)h->count + 1, sizeof *group);
    int64_t groups = group ? group_lengths(h->records, h->count, group) : 0;
    out->length = calloc((size_t)groups + 1, sizeof *out->length);
    out->records = calloc((size_t)groups + 1, sizeof *out->records);
    out->source_length = calloc(sources + 1, sizeof *out->source_length);
    out->below = calloc(((size_t)groups + 1) * sources + 1, sizeof *out->below);
    if (!group || !out->length || !out->records || !out->source_length || !out->below) {
        free(group);
        return no_memory(err);
    }
    for (int64_t i = 0; i < h->count; i++) {
        out->length[group[i]] = h->length[i];
        out->records[group[i]] += h->records[i];
        if (sources > 0)
            memcpy(out->below + ((size_t)group[i] + 1) * sources, h->below + ((size_t)i + 1) * sources,
                   sources * sizeof *out->below);
    }
    if (sources > 0)
        memcpy(out->source_length, h->source_length, sources * sizeof *out->source_length);
    out->count = groups;
    out->source_count = h->source_count;
    free(group);
    return SEQLSTM_OK;
}

static void fill_row(struct table *t, const double *one, int64_t k)
{
    int64_t n = t->lengths.count;
    for (int64_t j = k; j <= n; j++) {
        double best = -1;
        for (int64_t i = k - 1; i < (k == 1 ? 1 : j); i++) {
            double price = t->price[(k - 1) * t->row + i] + one[i * t->row + j];
            if (best < 0 || price < best) {
                best = price;
                t->begin[k * t->row + j] = (int32_t)i;
            }
        }
        t->price[k * t->row + j] = best;
    }
}

static seqlstm_status table_fill(const struct sl_histogram *h, const struct sl_bucket_rule *rule, int64_t most,
                                 struct table *t, struct seqlstm_error *err)
{
    memset(t, 0, sizeof *t);
    SEQLSTM_TRY(join_lengths(h, &t->lengths, err));
    int64_t n = t->lengths.count;
    t->row = n + 1;
    t->most = most < n ? most : n;
    size_t cells = ((size_t)t->most + 1) * (size_t)t->row;
    double *one = calloc((size_t)t->row * (size_t)t->row, sizeof *one); /* price of one bucket i .. j */
    t->price = calloc(cells, sizeof *t->price);
    t->begin = calloc(cells, sizeof *t->begin);
    if (!one || !t->price || !t->begin) {
        free(one);
        return no_memory(err);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j <= n; j++)
            one[i * t->row + j] = sl_bucket_price(rule, &t->lengths, i, j);
    for (int64_t k = 1; k <= t->most; k++)
        fill_row(t, one, k);
    free(one);
    return SEQLSTM_OK;
}

static seqlstm_status table_read(const struct table *t, int64_t k, struct sl_edges *out, struct seqlstm_error *err)
{
    *out = (struct sl_edges){.count = k, .cost = t->price[k * t->row + t->lengths.count]};
    out->lengths = calloc((size_t)k + 1, sizeof *out->lengths);
    if (!out->lengths)
        return no_memory(err);
    for (int64_t j = t->lengths.count; k > 0; k--) {
        out->lengths[k - 1] = t->lengths.length[j - 1];
        j = t->begin[k * t->row + j];
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_edges_best(const struct sl_histogram *histogram, const struct sl_bucket_rule *rule, int64_t count,
                             struct sl_edges *out, struct seqlstm_error *err)
{
    struct table t;
    seqlstm_status status = table_fill(histogram, rule, count, &t, err);
    if (status == SEQLSTM_OK)
        status = table_read(&t, t.most, out, err);
    table_deinit(&t);
    return status;
}

seqlstm_status sl_edges_auto(const struct sl_histogram *histogram, const struct sl_bucket_rule *rule,
                             struct sl_edges *out, struct seqlstm_error *err)
{
    struct table t;
    seqlstm_status status = table_fill(histogram, rule, MOST_AUTO, &t, err);
    double shape = rule->cost ? rule->cost->shape_ns : 0, best = -1;
    int64_t chosen = 0;
    for (int64_t k = 1; status == SEQLSTM_OK && k <= t.most; k++) {
        double price = t.price[k * t.row + t.lengths.count] + (double)k * shape;
        if (best < 0 || price < best) {
            best = price;
            chosen = k;
        }
    }
    if (status == SEQLSTM_OK)
        status = table_read(&t, chosen, out, err);
    table_deinit(&t);
    return status;
}

seqlstm_status sl_edges_greedy(const struct sl_histogram *histogram, const struct sl_bucket_rule *rule,
                               struct sl_edges *out, struct seqlstm_error *err)
{
    struct sl_edges edges = {0};
    edges.lengths = calloc((size_t)histogram->count + 1, sizeof *edges.lengths);
    if (!edges.lengths)
        return no_memory(err);
    int64_t held = 0, first = 0;
    for (int64_t i = 0; i < histogram->count; i++) {
        held += histogram->records[i];
        if (held < batch_of(rule, histogram->length[i]) && i + 1 < histogram->count)
            continue;
        edges.lengths[edges.count++] = histogram->length[i];
        edges.cost += sl_bucket_price(rule, histogram, first, i + 1);
        held = 0;
        first = i + 1;
    }
    *out = edges;
    return SEQLSTM_OK;
}

/* The list, without edges below all lengths or above the first that reaches the longest. */
static seqlstm_status copy_edges(const struct sl_bucketing *bucketing, const struct sl_histogram *h,
                                 const struct sl_bucket_rule *rule, struct sl_edges *out, struct seqlstm_error *err)
{
    int64_t longest = h->count > 0 ? h->length[h->count - 1] : 0, at = 0;
    struct sl_edges edges = {0};
    edges.lengths = calloc(bucketing->edge_count + 2, sizeof *edges.lengths);
    if (!edges.lengths)
        return no_memory(err);
    for (size_t i = 0; i <= bucketing->edge_count && at < h->count; i++) {
        int64_t edge = i < bucketing->edge_count ? bucketing->edges[i] : longest, first = at;
        while (at < h->count && h->length[at] <= edge)
            at++;
        if (at == first)
            continue;
        edges.lengths[edges.count++] = edge;
        edges.cost += sl_bucket_price(rule, h, first, at);
    }
    *out = edges;
    return SEQLSTM_OK;
}

seqlstm_status sl_edges_make(const struct sl_bucketing *bucketing, const struct sl_histogram *histogram,
                             const struct sl_bucket_rule *rule, struct sl_edges *out, struct seqlstm_error *err)
{
    memset(out, 0, sizeof *out);
    switch (bucketing->kind) {
    case SL_BUCKETING_OFF:
    case SL_BUCKETING_POOLS:
        return SEQLSTM_OK;
    case SL_BUCKETING_AUTO:
        return sl_edges_auto(histogram, rule, out, err);
    case SL_BUCKETING_COUNT: {
        struct sl_bucket_rule steps = *rule;
        steps.cost = NULL; /* the same edges on every machine */
        return sl_edges_best(histogram, &steps, bucketing->count, out, err);
    }
    case SL_BUCKETING_LENGTHS:
        return copy_edges(bucketing, histogram, rule, out, err);
    case SL_BUCKETING_GREEDY:
        return sl_edges_greedy(histogram, rule, out, err);
    }
    return SEQLSTM_OK;
}

int64_t sl_edges_find(const int64_t *edges, int64_t count, int64_t length)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (edges[middle] < length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
