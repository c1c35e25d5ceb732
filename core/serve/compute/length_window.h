/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the sequences that wait are computed as one batch.
 *
 * A step costs the less for each sequence the more of them take it. Of models that need whole sequences, the last steps
 * of a batch of mixed lengths are taken by few. So a batch is made of the sequence that has waited longest, which is
 * always in it, and of those whose lengths are nearest to its length. */
#ifndef SL_SERVE_COMPUTE_LENGTH_WINDOW_H
#define SL_SERVE_COMPUTE_LENGTH_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* A zeroed one chooses nothing, and has all. */
struct sl_length_window {
    int64_t *counts;           /* [most + 1] sequences that wait, by length; NULL: lengths do not matter */
    int64_t most;              /* steps of a sequence */
    int64_t shortest, longest; /* of those that wait; longest -1: none does */
    int64_t oldest;            /* length of the one that has waited longest */
    int64_t low, high;         /* lengths that were chosen */
};

/* False: no memory. Deinit accepts a zeroed struct. */
bool sl_length_window_init(struct sl_length_window *window, int64_t most);
void sl_length_window_deinit(struct sl_length_window *window);

/* Forgets all that wait; then each is added in the order of arrival: `count` sequences of this length. */
void sl_length_window_clear(struct sl_length_window *window);
void sl_length_window_add(struct sl_length_window *window, int64_t length, int64_t count);
/* Chooses lengths of at least `count` sequences, or of all. */
void sl_length_window_choose(struct sl_length_window *window, int64_t count);
bool sl_length_window_has(const struct sl_length_window *window, int64_t length);

#endif
