/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences in progress. */
#ifndef SL_PREDICT_STREAM_H
#define SL_PREDICT_STREAM_H

#include "predict/context.h"

struct sl_stream;

/* As the functions of <seqlstm/predictor.h>. */
seqlstm_status sl_stream_open(const struct sl_predictor *predictor, struct sl_stream **out_stream,
                              struct seqlstm_error *err);
void sl_stream_close(struct sl_stream *stream);
void sl_stream_reset(struct sl_stream *stream);
int64_t sl_stream_get_position(const struct sl_stream *stream);

seqlstm_status sl_stream_step(struct sl_context *context, struct sl_stream *stream, const void *x, int64_t steps,
                              float *y, struct seqlstm_error *err);
seqlstm_status sl_streams_step(struct sl_context *context, struct sl_stream *const *streams, int64_t count,
                               const void *x, float *y, struct seqlstm_error *err);

/* The next steps of one of several streams. */
struct sl_chunk {
    struct sl_stream *stream;
    const void *x; /* [steps, features] */
    int64_t steps; /* at most that of SL_USE_CHUNKS */
    float *y;      /* where its output goes: a row for each step or for the sequence; NULL: it is not wanted */
    bool last;     /* only the last row of an output on steps */
};

/* Advances all streams, at least one and at most as many as SL_USE_CHUNKS has, as one packed batch; a reproducible
 * predictor advances them one after the other. */
seqlstm_status sl_streams_advance(struct sl_context *context, const struct sl_chunk *chunks, int64_t count,
                                  struct seqlstm_error *err);

/* The last row of output of sl_stream_step, in the network's units; valid until the next step on the context. */
seqlstm_status sl_stream_find_last(struct sl_context *context, const float **out_row, struct seqlstm_error *err);

#endif
