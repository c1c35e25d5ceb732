/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files, versions 1 to 3, C order, little-endian numbers. Private to core/data. */
#ifndef SL_DATA_READ_NPY_H
#define SL_DATA_READ_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/system/file.h"

enum sl_npy_type {
    SL_NPY_FLOAT32,
    SL_NPY_FLOAT64,
    SL_NPY_INT8,
    SL_NPY_INT16,
    SL_NPY_INT32,
    SL_NPY_INT64,
    SL_NPY_UINT8, /* bool too */
    SL_NPY_UINT16,
    SL_NPY_UINT32
};

#define SL_NPY_DIMENSIONS 4

struct sl_npy {
    enum sl_npy_type type;
    int dimensions;
    int64_t shape[SL_NPY_DIMENSIONS]; /* 1 beyond `dimensions` */
    int64_t elems;
    const void *data; /* into the map or the caller's bytes; any alignment */
    struct sl_file_map map;
    const char *name; /* borrowed */
};

/* Maps a file. Errors: NOT_FOUND, IO, CORRUPT_DATA (not this format, truncated, or a dtype or order that is not
 * supported; the message says how to save it instead). */
seqlstm_status sl_npy_open(const char *path, struct sl_npy *out, struct seqlstm_error *err);
/* The same for bytes in memory, which must outlive the array. */
seqlstm_status sl_npy_parse(const char *name, const void *data, size_t bytes, struct sl_npy *out,
                            struct seqlstm_error *err);
void sl_npy_close(struct sl_npy *npy);

bool sl_npy_is_integer(const struct sl_npy *npy);
double sl_npy_get(const struct sl_npy *npy, int64_t element);
int64_t sl_npy_get_integer(const struct sl_npy *npy, int64_t element); /* integer types */

#endif
