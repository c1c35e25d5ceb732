/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of a model's texts against reference texts: BLEU, chrF, exact match. */
#ifndef SL_TRAIN_METRICS_TEXT_SCORE_H
#define SL_TRAIN_METRICS_TEXT_SCORE_H

#include "train/metrics/bleu.h"
#include "train/metrics/chrf.h"

/* Linear; zeroed at the start. */
struct sl_text_sums {
    struct sl_bleu_sums bleu;
    struct sl_chrf_sums chrf;
    double equal, segments;
};

/* Adds one hypothesis and its reference, both as text (UTF-8). They are equal when their words are, whatever the white
 * space between them. Errors: NO_MEMORY. [any thread] */
seqlstm_status sl_text_sums_add(struct sl_text_sums *sums, enum sl_bleu_tokenizer tokenizer, const char *hypothesis,
                                size_t hypothesis_bytes, const char *reference, size_t reference_bytes,
                                struct seqlstm_error *err);

/* Adds the sums of other segments. [any thread] */
void sl_text_sums_merge(struct sl_text_sums *sums, const struct sl_text_sums *other);

/* Share of equal texts, 0 to 1; NaN if there are none. [any thread] */
double sl_text_sums_get_exact_match(const struct sl_text_sums *sums);

#endif
