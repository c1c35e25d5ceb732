/* SPDX-License-Identifier: Apache-2.0 */
/* Where a value was said: a span of the user's text, and the list of such spans that a model and
 * each of its layers carry, so that whoever refuses an option later can point at it.
 *
 * `file` is what the user typed ("ptb.yaml"), or the origin of a value that stands in no file:
 * "--set", "--seed", "SEQLSTM_SEED". A value that nobody said has no place (`line` is 0): it is a
 * default.
 */
#ifndef SL_MODEL_PLACE_H
#define SL_MODEL_PLACE_H

#include <stddef.h>

struct sl_place {
    const char *file; /* as typed, or the flag or variable that said it; NULL with line 0 */
    int line;         /* from 1; 0: said nowhere */
    int column;       /* from 1, in characters (code points), not bytes */
    int length;       /* characters to underline; at least 1 where line is not 0 */
};

/* One key that was said. `path` is relative to what carries the list: "learning_rate" in an
 * optimizer, "train.optimizer.learning_rate" in a model, "activation.alpha" in a layer, "from[1]"
 * in a list. */
struct sl_place_entry {
    const char *path;
    struct sl_place key;
    struct sl_place value;
};

/* Sorted by path. */
struct sl_place_list {
    const struct sl_place_entry *items;
    size_t count;
};

#endif
