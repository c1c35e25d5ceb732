/* SPDX-License-Identifier: Apache-2.0 */
/* Where a value was given in the user's text. A model and each of its layers have a list of such places, so that a
 * later refusal of an option can point at it.
 *
 * `file` is what the user typed ("ptb.yaml"), or the origin of a value that is not in a file: "--set", "--seed",
 * "SEQLSTM_SEED". A default value has no place (`line` is 0).
 */
#ifndef SL_MODEL_PLACE_H
#define SL_MODEL_PLACE_H

#include <stddef.h>

struct sl_place {
    const char *file; /* as typed, or the flag or variable that set it; NULL with line 0 */
    int line;         /* from 1; 0: not given */
    int column;       /* from 1, in characters (code points), not bytes */
    int length;       /* characters to underline; at least 1 if line is not 0 */
};

/* One key that was given. `path` is relative to the owner of the list: "learning_rate" in an optimizer,
 * "train.optimizer.learning_rate" in a model, "activation.alpha" in a layer, "from[1]" in a list. */
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
