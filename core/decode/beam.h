/* SPDX-License-Identifier: Apache-2.0 */
/* Beam search over a batch of sentences: only the bookkeeping; the caller computes the probabilities.
 *
 * Each sentence has `beam` places. Of all continuations of its live hypotheses, a step takes as many of the best as
 * there are places; one that ends keeps its place and leaves the batch (Sutskever et al. 2014). A sentence is done when
 * every place is taken by an ended hypothesis, when no live one can still overtake the n_best, or at its limit, where
 * live ones count as they are. Greedy search is a beam of 1. Ties go to the earlier row, then to the lower token.
 *
 * Score of y with log-probability s and n tokens, the end included:
 *   none      s
 *   average   s / n
 *   gnmt      s / ((5 + n) / 6)^alpha       (Wu et al. 2016, eq. 14)
 *
 * Invariant: the rows of one sentence are adjacent, and sentences are in order.
 */
#ifndef SL_DECODE_BEAM_H
#define SL_DECODE_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "decode/never.h"
#include "model/decode_config.h"

struct sl_beam_rule {
    int32_t beam;   /* at least 1 */
    int32_t n_best; /* 1 .. beam */
    struct sl_length_penalty penalty;
    int32_t begin, end; /* tokens */
    struct sl_never never;
};

/* A live hypothesis: the row of a batch of one step. */
struct sl_beam_row {
    int32_t sentence;
    int32_t token; /* the last one: what the decoder reads next */
    int32_t node;  /* the beam's own */
    double log_probability;
};

/* One result. `ids` without begin and end; valid until the next result is asked for, or until destroy. */
struct sl_hypothesis {
    const int32_t *ids;
    const int32_t *rows; /* [count, and the end] for step t: the row that token t continued */
    int64_t count;
    double score, log_probability;
    bool ended; /* false: cut at the limit */
};

struct sl_beam;

/* Starts with one row a sentence. `limits` [sentences]: the largest number of tokens, the end included, at least 1;
 * copied. Errors: NO_MEMORY. */
seqlstm_status sl_beam_create(const struct sl_beam_rule *rule, int32_t sentences, const int32_t *limits,
                              struct sl_beam **out_beam, struct seqlstm_error *err);
/* Bytes of a search over as many sentences with limits of at most `limit`. */
int64_t sl_beam_count_bytes(const struct sl_beam_rule *rule, int64_t sentences, int64_t limit);
void sl_beam_destroy(struct sl_beam *beam);

/* Rows that are still to be continued; 0: the search is over. */
const struct sl_beam_row *sl_beam_get_rows(const struct sl_beam *beam, int32_t *out_count);

/* One step: `probabilities` [rows, classes], finite; tokens of `never` are passed over. Afterwards row r continues the
 * former row sources[r], borrowed. Errors: NO_MEMORY. */
seqlstm_status sl_beam_advance(struct sl_beam *beam, const float *probabilities, int64_t classes,
                               const int32_t **out_sources, struct seqlstm_error *err);
/* The same with one token for each row, chosen by the caller; for beams of 1. */
seqlstm_status sl_beam_follow(struct sl_beam *beam, const int32_t *tokens, const double *log_probabilities,
                              const int32_t **out_sources, struct seqlstm_error *err);

/* Results of a sentence, best first; at most n_best. Only when the search is over. */
int32_t sl_beam_count_results(const struct sl_beam *beam, int32_t sentence);
struct sl_hypothesis sl_beam_get_result(struct sl_beam *beam, int32_t sentence, int32_t rank);

#endif
