/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of SentencePiece tokenizers, one per side of pairs. Private to core/data. */
#ifndef SL_DATA_DATASET_SIDE_PIECES_H
#define SL_DATA_DATASET_SIDE_PIECES_H

#include "data/text/pieces.h"
#include "model/model.h"

/* NULL where a side has another tokenizer. Without pairs, and where both sides share a tokenizer, `source` is NULL. */
struct sl_side_pieces {
    struct sl_pieces *target, *source;
};

/* Loads the pieces that the model file names, and learns the others from the training split. Errors: those of reading
 * the split and of sl_pieces_load and sl_pieces_train. */
seqlstm_status sl_side_pieces_open(const struct sl_model *model, struct sl_side_pieces *out, struct seqlstm_error *err);
void sl_side_pieces_close(struct sl_side_pieces *pieces);

#endif
