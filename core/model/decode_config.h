/* SPDX-License-Identifier: Apache-2.0 */
/* `decode:` of a model file: how a decoder writes. */
#ifndef SL_MODEL_DECODE_CONFIG_H
#define SL_MODEL_DECODE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

/* What the log-probability of a hypothesis of n tokens, the end included, is divided by: decode/beam.h. */
enum sl_length_penalty_kind {
    SL_LENGTH_PENALTY_NONE,
    SL_LENGTH_PENALTY_AVERAGE, /* n */
    SL_LENGTH_PENALTY_GNMT     /* ((5 + n) / 6)^alpha */
};

struct sl_length_penalty {
    enum sl_length_penalty_kind kind;
    double alpha;
};

struct sl_decode_config {
    int64_t beam; /* 1: greedy */
    struct sl_length_penalty length_penalty;
    int64_t max_length; /* tokens, the end included; 0: twice the source's and ten more */
    int64_t n_best;     /* 1 .. beam */
    double temperature; /* 0: the best; above: drawn, with a beam of 1 */
    int64_t top_k;      /* 0: all */
    double top_p;
};

#endif
