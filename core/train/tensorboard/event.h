/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard's event files: records (TFRecord) that hold protocol buffers of the message Event.
 *
 *   record   length (8 bytes), its checksum (4), the message, its checksum (4); little endian
 *   Event    wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5, session_log = 7
 *   Summary  value = 1 (repeated): tag = 1 (string), simple_value = 2 (float), histo = 5
 *
 * Numbers of the fields: tensorflow/core/util/event.proto and framework/summary.proto. Checksums are CRC-32C, masked as
 * in tensorflow/core/lib/hash/crc32c.h. A buffer that has failed (base/value/buf.h) takes no more. [any thread]
 */
#ifndef SL_TRAIN_TENSORBOARD_EVENT_H
#define SL_TRAIN_TENSORBOARD_EVENT_H

#include <stdint.h>

#include "base/value/buf.h"

/* Begins a file: its version. */
void sl_event_append_version(struct sl_buf *out, double wall_time);

/* What the run wrote for this step and later ones before is void: it begins anew there. */
void sl_event_append_restart(struct sl_buf *out, double wall_time, int64_t step);

/* One number with its tag. */
void sl_event_append_scalar(struct sl_buf *out, double wall_time, int64_t step, const char *tag, float value);

/* The histogram of `elems` numbers, in buckets whose bounds grow by a tenth; those that are not finite are left out. */
void sl_event_append_histogram(struct sl_buf *out, double wall_time, int64_t step, const char *tag, const float *values,
                               int64_t elems);

#endif
