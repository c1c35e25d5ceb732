/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of measured costs and refusals, in the user's cache folder.
 *
 * The folder is $SEQLSTM_CACHE, $XDG_CACHE_HOME/seqlstm or ~/.cache/seqlstm; without any of them (or with an empty
 * SEQLSTM_CACHE) costs are kept in memory only. The file `costs` has one line per record:
 *
 *   KEY (32 hex digits)  FORWARD_NS  BACKWARD_NS  LABEL  CHECKSUM (CRC-64 of the text before it, 16 hex digits)
 *   ">" before FORWARD_NS: a lower bound, not a measurement
 *   "!" before FORWARD_NS: a refusal; LABEL is the reason, and may contain blanks
 *
 * Invariants:
 *  1. Opening succeeds whatever the file contains. A damaged line is ignored, and removed by the next save.
 *  2. Writers hold a lock on the file `costs.lock` and append whole lines, or replace the file in one step, so that
 *     concurrent runs lose nothing. Readers need no lock: an unfinished line fails its checksum.
 *  3. Of several records with one key the last counts.
 */
#ifndef SL_DISPATCH_COST_COST_CACHE_H
#define SL_DISPATCH_COST_COST_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

struct sl_cost_cache;

struct sl_cost_key {
    uint64_t words[2];
};

struct sl_cost_record {
    struct sl_cost_key key;
    double forward_ns, backward_ns; /* finite, >= 0 */
    bool bound;                     /* not timed: the costs are a lower bound */
    bool refused;                   /* the backend refused; the costs are 0 */
    char label[256];                /* for people: "cpu-blas:packed/recurrent"; or the reason of the refusal */
};

/* Opens the user's cache, or the one in `folder` unless NULL. Errors: NO_MEMORY. */
seqlstm_status sl_cost_cache_open(const char *folder, struct sl_cost_cache **out_cache, struct seqlstm_error *err);
void sl_cost_cache_close(struct sl_cost_cache *cache); /* NULL is fine */

/* The folder; NULL: the cache is in memory only. */
const char *sl_cost_cache_find_folder(const struct sl_cost_cache *cache);

/* Borrowed until the next add; NULL: none. */
const struct sl_cost_record *sl_cost_cache_find(const struct sl_cost_cache *cache, const struct sl_cost_key *key);

/* Remembers a record; written by the next save. Errors: NO_MEMORY. */
seqlstm_status sl_cost_cache_add(struct sl_cost_cache *cache, const struct sl_cost_record *record,
                                 struct seqlstm_error *err);

/* Writes added records, and removes damaged lines. Errors: IO, UNAVAILABLE (another run holds the lock for long),
 * NO_MEMORY; then later runs only have to measure again. */
seqlstm_status sl_cost_cache_save(struct sl_cost_cache *cache, struct seqlstm_error *err);

#endif
