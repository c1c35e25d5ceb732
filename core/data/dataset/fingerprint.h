/* SPDX-License-Identifier: Apache-2.0 */
/* What a data file looked like when a run read it: size, time of change, checksum. Stored with the run, so that resume
 * and eval can say that a file has changed. [any thread] */
#ifndef SL_DATA_DATASET_FINGERPRINT_H
#define SL_DATA_DATASET_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

struct sl_fingerprint {
    int64_t size_bytes;
    int64_t mtime_ns; /* since 1970; not compared: a copy is the same data */
    uint64_t crc64;   /* of the whole file */
};

/* Reads the file to its end. Errors: NOT_FOUND, IO. */
seqlstm_status sl_fingerprint_compute(const char *path, struct sl_fingerprint *out, struct seqlstm_error *err);

/* Size and time alone, without reading; crc64 is 0. */
seqlstm_status sl_fingerprint_peek(const char *path, struct sl_fingerprint *out, struct seqlstm_error *err);

#endif
