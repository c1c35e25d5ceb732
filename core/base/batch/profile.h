/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of a few batches that represent a data set: measurements run on them.
 *
 * The weights of all profiles add up to 1, so that a weighted sum of costs is the cost of a mean batch.
 */
#ifndef SL_BASE_BATCH_PROFILE_H
#define SL_BASE_BATCH_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

enum { SL_PROFILES = 8, SL_PROFILES_EPOCH = 256 };

struct sl_profile {
    int64_t sequences;       /* B, with zero-length ones */
    int32_t *lengths;        /* [sequences], not increasing; NULL: data without a steps axis */
    int32_t *source_lengths; /* [sequences] of the encoder's side, not increasing too; NULL: no such side */
    double weight;           /* share of the batches that it represents; 0 in `epoch` */
};

struct sl_profiles {
    struct sl_profile items[SL_PROFILES]; /* most rows first */
    int32_t count;
    bool stream;              /* segments of long streams */
    struct sl_profile *epoch; /* batches of the first epoch in its order, evenly picked where it has more; NULL: none */
    int32_t epoch_count;      /* at most SL_PROFILES_EPOCH */
};

/* Appends a profile, or adds its weight to an equal one. `lengths` and `source_lengths` (each may be NULL) are copied.
 * Errors: NO_MEMORY; INVALID_ARGUMENT when there are SL_PROFILES already. */
seqlstm_status sl_profiles_add(struct sl_profiles *profiles, int64_t sequences, const int32_t *lengths,
                               const int32_t *source_lengths, double weight, struct seqlstm_error *err);

/* Appends to the batches of the epoch. Lengths as above. Errors: NO_MEMORY; INVALID_ARGUMENT when there are
 * SL_PROFILES_EPOCH already. */
seqlstm_status sl_profiles_add_epoch(struct sl_profiles *profiles, int64_t sequences, const int32_t *lengths,
                                     const int32_t *source_lengths, struct seqlstm_error *err);

/* The items as the encoder sees them: its lengths in `lengths`. Borrowed from `profiles`; not to be deinited. */
struct sl_profiles sl_profiles_get_source(const struct sl_profiles *profiles);

/* A zeroed struct is allowed, and the struct is zeroed afterwards. */
void sl_profiles_deinit(struct sl_profiles *profiles);

/* Real steps; sequences where there is no steps axis. */
int64_t sl_profile_get_rows(const struct sl_profile *profile);

#endif
