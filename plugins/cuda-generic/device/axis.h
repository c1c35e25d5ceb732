/* SPDX-License-Identifier: Apache-2.0 */
/* The axis of a binding on the device, and which sequence and step each row belongs to. */
#ifndef CG_AXIS_H
#define CG_AXIS_H

#include <stdint.h>

/* All pointers are device pointers. The arrays describe the segment [t0, t1); rows count from its first. */
struct cg_axis {
    int64_t sequences; /* which have a step at t0 */
    int64_t steps;     /* t1 - t0 */
    int64_t rows;
    uint32_t t0;
    uint32_t stream;             /* 1: masks drawn per sequence change with the segment */
    const int32_t *lengths;      /* [sequences] steps inside the segment */
    const int32_t *batch_sizes;  /* [steps] */
    const int64_t *row_offsets;  /* [steps + 1] */
    const int32_t *row_sequence; /* [rows] */
    const int32_t *row_step;     /* [rows] from 0 */
    const uint64_t *sequence_id; /* [sequences] renewed at each call */
    const uint32_t *position0;   /* [sequences] renewed at each call */
};

#endif
