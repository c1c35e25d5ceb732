/* SPDX-License-Identifier: Apache-2.0 */
/* The largest batch is bounded by the longest records taken together, whatever the order. */
#include "data/dataset/envelope.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset_private.h"
#include "data/dataset/lengths.h"
#include "data/no_memory.h"

void sl_stream_cut(int64_t positions, int64_t batch_size, int64_t *out_streams, int64_t *out_steps)
{
    int64_t streams = batch_size < positions ? batch_size : positions;
    *out_streams = streams > 0 ? streams : 0;
    *out_steps = streams > 0 ? positions / streams : 0;
}

/* Steps of each record, ascending: its own, those that the encoder reads, or both. */
static seqlstm_status sort_lengths(const struct sl_dataset *d, bool own, bool source, int32_t *out,
                                   struct seqlstm_error *err)
{
    for (int64_t r = 0; r < d->records; r++)
        out[r] = (own ? d->length[r] : 0) + (source && d->source.present ? d->source.length[r] : 0);
    return sl_lengths_sort(out, d->records, err);
}

/* As many of the shortest as max_tokens lets in; zero-length ones cost nothing. `lengths` ascend. */
static int64_t count_fitting(const int32_t *lengths, int64_t count, int64_t max_tokens)
{
    int64_t fitting = 0, rows = 0;
    while (fitting < count && rows + lengths[fitting] <= max_tokens)
        rows += lengths[fitting++];
    return fitting > 0 ? fitting : 1;
}

/* The largest batch of sequences with steps, of which there are e->sequences at most. `lengths` ascend. */
static void bound(const int32_t *lengths, int64_t count, const struct sl_envelope_rule *rule, struct sl_envelope *e)
{
    int64_t longest = lengths[count - 1];
    e->uniform = rule->padding == SL_PADDING_NONE && lengths[0] == longest && longest > 0;
    e->steps = rule->bptt > 0 && rule->bptt < longest ? rule->bptt : longest;
    for (int64_t i = count - e->sequences; i < count; i++)
        e->rows += lengths[i] < e->steps ? lengths[i] : e->steps;
    if (rule->padding != SL_PADDING_NONE)
        e->rows = e->sequences * e->steps;
    if (rule->max_tokens > 0) {
        int64_t most = rule->max_tokens > longest ? rule->max_tokens : longest;
        e->rows = e->rows < most ? e->rows : most;
    }
}

/* Of records with steps; `lengths` is room for one number each. */
static seqlstm_status bound_sides(const struct sl_dataset *d, const struct sl_envelope_rule *rule, int32_t *lengths,
                                  struct sl_envelope *e, struct seqlstm_error *err)
{
    if (rule->max_tokens > 0) {
        SEQLSTM_TRY(sort_lengths(d, true, true, lengths, err));
        int64_t fitting = count_fitting(lengths, d->records, rule->max_tokens);
        e->sequences = e->sequences < fitting ? e->sequences : fitting;
    }
    SEQLSTM_TRY(sort_lengths(d, true, false, lengths, err));
    bound(lengths, d->records, rule, e);
    if (d->source.present) {
        struct sl_envelope source = {.sequences = e->sequences};
        SEQLSTM_TRY(sort_lengths(d, false, true, lengths, err));
        bound(lengths, d->records, rule, &source);
        e->source_steps = source.steps;
        e->source_rows = source.rows;
        e->uniform = e->uniform && source.uniform;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_envelope_compute(const struct sl_dataset *dataset, const struct sl_envelope_rule *rule,
                                   struct sl_envelope *out, struct seqlstm_error *err)
{
    int64_t size = rule->batch_size > 0 ? rule->batch_size : dataset->records;
    struct sl_envelope e = {.sequences = size < dataset->records ? size : dataset->records};
    if (dataset->stream) {
        int64_t steps;
        sl_stream_cut(dataset->length[0], size, &e.sequences, &steps);
        e.steps = rule->bptt > 0 && rule->bptt < steps ? rule->bptt : steps;
        e.rows = e.sequences * e.steps;
        e.uniform = e.stream = true;
        *out = e;
        return SEQLSTM_OK;
    }
    if (!dataset->facts.has_steps || dataset->records == 0) {
        *out = e;
        return SEQLSTM_OK;
    }
    int32_t *lengths = malloc((size_t)dataset->records * sizeof *lengths);
    if (!lengths)
        return SL_DATA_NO_MEMORY(err);
    seqlstm_status status = bound_sides(dataset, rule, lengths, &e, err);
    free(lengths);
    /* Descriptors need a row of what is read, even if every sequence is empty. */
    if (dataset->source.present && e.source_rows == 0)
        e.source_rows = e.source_steps = 1;
    else if (!dataset->source.present && e.rows == 0)
        e.rows = e.steps = 1;
    *out = e;
    return status;
}
