/* SPDX-License-Identifier: Apache-2.0 */
/* chrF2 of a corpus, one reference for each hypothesis (Popović 2015), as sacreBLEU 2 computes it: characters up to
 * order 6 without white space, no words, beta 2, mean over the orders that both sides have. */
#ifndef SL_TRAIN_METRICS_CHRF_H
#define SL_TRAIN_METRICS_CHRF_H

#include <stddef.h>

#include <seqlstm/status.h>

enum { SL_CHRF_ORDER = 6 };

/* N-grams of each order; linear, as those of BLEU. */
struct sl_chrf_sums {
    double hypothesis[SL_CHRF_ORDER], reference[SL_CHRF_ORDER], matches[SL_CHRF_ORDER];
};

/* Adds a segment; both texts are valid UTF-8. Errors: NO_MEMORY; the sums are then unchanged. [any thread] */
seqlstm_status sl_chrf_add(struct sl_chrf_sums *sums, const char *hypothesis, size_t hypothesis_bytes,
                           const char *reference, size_t reference_bytes, struct seqlstm_error *err);

/* 0 to 100. [any thread] */
double sl_chrf_compute(const struct sl_chrf_sums *sums);

/* sacreBLEU's signature without its version. Static. */
const char *sl_chrf_get_signature(void);

#endif
