/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy format, written: a header, then float32 in C order, little endian. */
#ifndef SL_INTEROP_NPY_WRITE_H
#define SL_INTEROP_NPY_WRITE_H

#include <stdint.h>

#include "base/value/buf.h"

/* Appends the header (version 1.0, a multiple of 64 bytes) of a float32 array of 1 to 4 dimensions. The product of
 * `shape` values follows it. */
void sl_npy_append_header(struct sl_buf *out, int dimensions, const int64_t *shape);

#endif
