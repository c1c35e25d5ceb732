/* SPDX-License-Identifier: Apache-2.0 */
/* The `decode:` section of a model file: how a decoder generates text. */
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
    int64_t max_length; /* tokens, including the end; 0: twice the tokens of the source plus ten */
    int64_t n_best;     /* 1 .. beam */
    double temperature; /* 0: takes the best; above 0: samples, with a beam of 1 */
    int64_t top_k;      /* 0: all */
    double top_p;
};

#endif
