/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder whose sources come and go: it writes the targets of all that are there, one token of each at a time.
 *
 * Each source has a beam of its own (beam.h). A batch of one step holds the live hypotheses of all sources, those of
 * one source next to each other. Sources that join are encoded as a batch; their states are put behind the others, and
 * the memories that attention reads are laid out anew. A source leaves when its search is over.
 *
 * What is written for a source does not depend on the others, up to the last bits of the kernels. Drawn tokens depend
 * on the seed and the position alone. */
#ifndef SL_DECODE_CONTINUOUS_H
#define SL_DECODE_CONTINUOUS_H

#include "decode/decoder.h"

struct sl_continuous;

/* `traces_attention` does not count. NO_MEMORY. */
seqlstm_status sl_continuous_create(const struct sl_decoder_request *request, struct sl_continuous **out_continuous,
                                    struct seqlstm_error *err);
/* From now on the rows of sources whose search is over are computed until all are over, as padded batches do. */
void sl_continuous_pad(struct sl_continuous *continuous);
void sl_continuous_destroy(struct sl_continuous *continuous); /* NULL is fine */

/* Sources whose targets are being written. */
int64_t sl_continuous_count(const struct sl_continuous *continuous);
/* Is there room for the sources of the batch? There is for any batch of the encoder's envelope when there are none. */
bool sl_continuous_has_room(const struct sl_continuous *continuous, const struct sl_batch *batch);

/* Encodes the batch. tags[k] names the source that is record k of its data (batch->sample), until it has left; none is
 * NULL. NO_MEMORY, errors of the executors: none has joined, and the others stay. [one thread at a time, as all below]
 */
seqlstm_status sl_continuous_join(struct sl_continuous *continuous, const struct sl_batch *batch, void *const *tags,
                                  struct seqlstm_error *err);

/* A source has left; `best` NULL: the model's probabilities are no numbers. Valid during the call. Any status but OK
 * ends the step with that status. */
typedef seqlstm_status sl_continuous_write_fn(void *context, void *tag, const struct sl_hypothesis *best,
                                              struct seqlstm_error *err);

/* One more token for each source. After an error all sources have left. */
seqlstm_status sl_continuous_step(struct sl_continuous *continuous, sl_continuous_write_fn *write, void *context,
                                  struct seqlstm_error *err);

/* The source leaves before its end; nothing happens if it is not there. The states of the others are moved when the
 * next source joins or the next step begins, which may fail. */
void sl_continuous_drop(struct sl_continuous *continuous, const void *tag);

#endif
