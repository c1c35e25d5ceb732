/* SPDX-License-Identifier: Apache-2.0 */
/* See profile.h. */
#include "base/batch/profile.h"

#include <stdlib.h>
#include <string.h>

static bool are_equal(const int32_t *a, const int32_t *b, int64_t count)
{
    if (a == NULL || b == NULL)
        return a == b;
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* NULL stays NULL; false: no memory. */
static bool copy_lengths(const int32_t *lengths, int64_t count, int32_t **out)
{
    *out = lengths ? malloc((size_t)(count > 0 ? count : 1) * sizeof *lengths) : NULL;
    if (*out)
        memcpy(*out, lengths, (size_t)count * sizeof *lengths);
    return *out || !lengths;
}

static seqlstm_status fill(struct sl_profile *out, int64_t sequences, const int32_t *lengths,
                           const int32_t *source_lengths, struct seqlstm_error *err)
{
    *out = (struct sl_profile){.sequences = sequences};
    if (copy_lengths(lengths, sequences, &out->lengths) &&
        copy_lengths(source_lengths, sequences, &out->source_lengths))
        return SEQLSTM_OK;
    free(out->lengths);
    out->lengths = NULL;
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the profile of a batch");
}

seqlstm_status sl_profiles_add(struct sl_profiles *profiles, int64_t sequences, const int32_t *lengths,
                               const int32_t *source_lengths, double weight, struct seqlstm_error *err)
{
    for (int32_t p = 0; p < profiles->count; p++) {
        struct sl_profile *known = &profiles->items[p];
        if (known->sequences == sequences && are_equal(known->lengths, lengths, sequences) &&
            are_equal(known->source_lengths, source_lengths, sequences)) {
            known->weight += weight;
            return SEQLSTM_OK;
        }
    }
    if (profiles->count == SL_PROFILES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "more than %d profiles", SL_PROFILES);
    SEQLSTM_TRY(fill(&profiles->items[profiles->count], sequences, lengths, source_lengths, err));
    profiles->items[profiles->count++].weight = weight;
    return SEQLSTM_OK;
}

seqlstm_status sl_profiles_add_epoch(struct sl_profiles *profiles, int64_t sequences, const int32_t *lengths,
                                     const int32_t *source_lengths, struct seqlstm_error *err)
{
    if (profiles->epoch == NULL)
        profiles->epoch = calloc(SL_PROFILES_EPOCH, sizeof *profiles->epoch);
    if (profiles->epoch == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the batches of an epoch");
    if (profiles->epoch_count == SL_PROFILES_EPOCH)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "more than %d batches of an epoch", SL_PROFILES_EPOCH);
    SEQLSTM_TRY(fill(&profiles->epoch[profiles->epoch_count], sequences, lengths, source_lengths, err));
    profiles->epoch_count++;
    return SEQLSTM_OK;
}

static void clear(struct sl_profile *profile)
{
    free(profile->lengths);
    free(profile->source_lengths);
}

void sl_profiles_deinit(struct sl_profiles *profiles)
{
    for (int32_t p = 0; p < profiles->count; p++)
        clear(&profiles->items[p]);
    for (int32_t p = 0; p < profiles->epoch_count; p++)
        clear(&profiles->epoch[p]);
    free(profiles->epoch);
    memset(profiles, 0, sizeof *profiles);
}

struct sl_profiles sl_profiles_get_source(const struct sl_profiles *profiles)
{
    struct sl_profiles source = *profiles;
    for (int32_t p = 0; p < source.count; p++)
        source.items[p].lengths = profiles->items[p].source_lengths;
    return source;
}

int64_t sl_profile_get_rows(const struct sl_profile *profile)
{
    int64_t rows = profile->lengths ? 0 : profile->sequences;
    for (int64_t k = 0; profile->lengths && k < profile->sequences; k++)
        rows += profile->lengths[k];
    return rows;
}
