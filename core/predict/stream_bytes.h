/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a stream as bytes, all numbers little-endian:
 *
 *   "SLSTREAM" | version u32 = 1 | values u32 | identity u64 | position u64 | float32 [values] | crc64 of all before
 *
 * `identity` is a hash of the model's states and weights. */
#ifndef SL_PREDICT_STREAM_BYTES_H
#define SL_PREDICT_STREAM_BYTES_H

#include <stddef.h>

#include <seqlstm/status.h>

struct sl_predictor;
struct sl_stream;

/* 0: there are no streams. */
size_t sl_stream_count_bytes(const struct sl_predictor *predictor);
/* As the functions of <seqlstm/predictor.h>. */
seqlstm_status sl_stream_save(const struct sl_stream *stream, void *bytes, size_t *size, struct seqlstm_error *err);
seqlstm_status sl_stream_load(struct sl_stream *stream, const void *bytes, size_t size, struct seqlstm_error *err);

#endif
