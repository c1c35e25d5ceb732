/* SPDX-License-Identifier: Apache-2.0 */
/* See profile.h. */
#include "base/profile.h"

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
    struct sl_profile profile = {.sequences = sequences, .weight = weight};
    if (!copy_lengths(lengths, sequences, &profile.lengths) ||
        !copy_lengths(source_lengths, sequences, &profile.source_lengths)) {
        free(profile.lengths);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the profile of a batch");
    }
    profiles->items[profiles->count++] = profile;
    return SEQLSTM_OK;
}

void sl_profiles_deinit(struct sl_profiles *profiles)
{
    for (int32_t p = 0; p < profiles->count; p++) {
        free(profiles->items[p].lengths);
        free(profiles->items[p].source_lengths);
    }
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
