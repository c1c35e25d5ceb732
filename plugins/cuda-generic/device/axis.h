/* SPDX-License-Identifier: Apache-2.0 */
/* The axis of a binding on the device, and who owns a row. */
#ifndef CG_AXIS_H
#define CG_AXIS_H

#include <stdint.h>

/* All pointers are the device's. Shape arrays are those of [t0, t1), rows counted from the range's first. */
struct cg_axis {
    int64_t sequences; /* alive at t0 */
    int64_t steps;     /* t1 - t0 */
    int64_t rows;
    uint32_t t0;
    uint32_t stream;             /* 1: masks per sequence change with the segment */
    const int32_t *lengths;      /* [sequences] steps inside the range */
    const int32_t *batch_sizes;  /* [steps] */
    const int64_t *row_offsets;  /* [steps + 1] */
    const int32_t *row_sequence; /* [rows] */
    const int32_t *row_step;     /* [rows] from 0 */
    const uint64_t *sequence_id; /* [sequences] renewed at each call */
    const uint32_t *position0;   /* [sequences] likewise */
};

#endif
