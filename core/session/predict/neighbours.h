/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest neighbours of each row of a matrix by cosine: they show whether an embedding puts similar things
 * together. Exact, every pair once: n^2 F / 2 products. */
#ifndef SL_SESSION_NEIGHBOURS_H
#define SL_SESSION_NEIGHBOURS_H

#include <stdint.h>

#include <seqlstm/status.h>

struct sl_neighbour {
    int64_t row;  /* -1: there are fewer rows than asked for */
    float cosine; /* rows of zeros: 0 to everything */
};

/* Fills out[rows, count], nearest first, ties by lower row, never the row itself. `values` [rows, features] are scaled
 * to length 1 in place. Cannot fail. [any thread] */
void sl_neighbours_find(float *values, int64_t rows, int64_t features, int64_t count, struct sl_neighbour *out);

#endif
