/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that BIO tags mark, and how many of them were found: F1 of named entities and the like.
 *
 * A tag is O, or B- or I- and a type. A span begins at B- and continues over I- of its type. If an I- continues no
 * span, the rules differ:
 *
 *   conlleval   it begins one (the script of CoNLL-2000; seqeval's default)
 *   strict      it is outside (seqeval's mode strict with the scheme IOB2)
 */
#ifndef SL_TRAIN_METRICS_SPAN_H
#define SL_TRAIN_METRICS_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sl_span_rule { SL_SPAN_CONLLEVAL, SL_SPAN_STRICT, SL_SPAN_RULES };

enum sl_span_part { SL_SPAN_OUTSIDE, SL_SPAN_BEGIN, SL_SPAN_INSIDE };

struct sl_span_tag {
    int16_t part; /* enum sl_span_part */
    int16_t type; /* number of its type; meaningless outside */
};

/* The tag of one class of `names`: its type is the number of the first name of that type. False if it is no BIO tag.
 * [any thread] */
bool sl_span_tag_parse(const char *const *names, int32_t index, struct sl_span_tag *out);

enum { SL_SPAN_TAGS = 256 }; /* most that a metric looks up */

struct sl_span_sums {
    double found; /* spans of both, with the same ends and type */
    double said, meant;
};

/* One of the two taggings, up to here. */
struct sl_span_side {
    bool open;
    int16_t type;
    int64_t start;
};

/* A sequence in progress; zeroed at its start. */
struct sl_span_walk {
    struct sl_span_side said, meant;
    int64_t step;
};

/* The next step of a sequence: the predicted tag and the true one. */
void sl_span_walk_step(struct sl_span_walk *walk, enum sl_span_rule rule, struct sl_span_tag said,
                       struct sl_span_tag meant, struct sl_span_sums *sums);
/* After the last step. */
void sl_span_walk_end(struct sl_span_walk *walk, enum sl_span_rule rule, struct sl_span_sums *sums);

/* 0 to 1; 0 if there is no span at all, as in seqeval. */
double sl_span_compute_f1(const struct sl_span_sums *sums);

#endif
