/* SPDX-License-Identifier: Apache-2.0 */
/* See profile.h. */
#include "base/profile.h"

#include <stdlib.h>
#include <string.h>

static bool is_equal(const struct sl_profile *profile, int64_t sequences, const int32_t *lengths)
{
    if (profile->sequences != sequences || (profile->lengths == NULL) != (lengths == NULL))
        return false;
    return lengths == NULL || memcmp(profile->lengths, lengths, (size_t)sequences * sizeof *lengths) == 0;
}

seqlstm_status sl_profiles_add(struct sl_profiles *profiles, int64_t sequences, const int32_t *lengths,
                               double weight, struct seqlstm_error *err)
{
    for (int32_t p = 0; p < profiles->count; p++)
        if (is_equal(&profiles->items[p], sequences, lengths)) {
            profiles->items[p].weight += weight;
            return SEQLSTM_OK;
        }
    if (profiles->count == SL_PROFILES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "more than %d profiles", SL_PROFILES);
    struct sl_profile profile = {.sequences = sequences, .weight = weight};
    if (lengths) {
        profile.lengths = malloc((size_t)(sequences > 0 ? sequences : 1) * sizeof *lengths);
        if (profile.lengths == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the profile of a batch");
        memcpy(profile.lengths, lengths, (size_t)sequences * sizeof *lengths);
    }
    profiles->items[profiles->count++] = profile;
    return SEQLSTM_OK;
}

void sl_profiles_deinit(struct sl_profiles *profiles)
{
    for (int32_t p = 0; p < profiles->count; p++)
        free(profiles->items[p].lengths);
    memset(profiles, 0, sizeof *profiles);
}

int64_t sl_profile_get_rows(const struct sl_profile *profile)
{
    int64_t rows = profile->lengths ? 0 : profile->sequences;
    for (int64_t k = 0; profile->lengths && k < profile->sequences; k++)
        rows += profile->lengths[k];
    return rows;
}
