/* SPDX-License-Identifier: Apache-2.0 */
/* What a model answered on a split, for the report: which classes it confuses, predicted beside actual values, and the
 * rows where it was most wrong. */
#ifndef SL_SESSION_REPORT_EXAMPLES_H
#define SL_SESSION_REPORT_EXAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "data/dataset/dataset.h"
#include "data/read/conll_line.h"
#include "train/evaluate.h"

enum {
    SL_EXAMPLE_CLASSES = 64, /* more are not counted */
    SL_EXAMPLE_POINTS = 800, /* pairs of values kept for a plot */
    SL_EXAMPLE_WORST = 10,
    SL_EXAMPLE_TEXT_BYTES = 200
};

/* A row and how wrong the answer was: -log of the probability of the class, or the absolute error. */
struct sl_example {
    double error;
    int64_t record, step; /* of the split, from 0 */
    int32_t target, answer;
    float actual, predicted; /* in the units of the file; of classes: the probability of the answer */
    /* of the record; of a tagger: the words around that of the step, which is in [] */
    char text[SL_EXAMPLE_TEXT_BYTES];
};

struct sl_examples {
    enum { SL_EXAMPLES_NONE, SL_EXAMPLES_CLASSES, SL_EXAMPLES_VALUES } kind;
    enum sl_split split;
    int64_t rows;
    int32_t classes;
    const struct sl_vocabulary *names;                          /* of the classes; borrowed from the data's state */
    int64_t counts[SL_EXAMPLE_CLASSES + 1][SL_EXAMPLE_CLASSES]; /* [target][answer]; the last target: unknown ones */
    float points[SL_EXAMPLE_POINTS][2];                         /* actual, predicted: every `stride`-th value */
    int32_t point_count;
    int64_t stride, values;
    struct sl_example worst[SL_EXAMPLE_WORST]; /* the worst first */
    int32_t worst_count;
    const struct sl_data_state *state;
    const struct sl_source *source; /* of the split; borrowed from the model */
    bool has_words;                 /* the file has a line for each token, and it is in `columns` */
    struct sl_conll_columns columns;
};

/* NONE for language models, decoders, several labels for a row, and more than SL_EXAMPLE_CLASSES classes. */
void sl_examples_init(struct sl_examples *examples, const struct sl_model *model, const struct sl_data_state *state,
                      enum sl_split split);

/* Adds the answers for a batch. `context` is the struct sl_examples. An sl_evaluation_batch_fn. */
void sl_examples_add(void *context, const struct sl_metric_rule *rule, const struct sl_dataset *dataset,
                     const struct sl_batch *batch, const struct sl_field *output);

#endif
