/* SPDX-License-Identifier: Apache-2.0 */
/* See experience.h. */
#include "dispatch/cost/experience.h"

#include <stdlib.h>
#include <string.h>

struct sl_observation {
    const struct sl_backend *backend;
    uint32_t device, variant, op;
    double work_ns;
    struct sl_cost cost;
};

static bool is_about(const struct sl_observation *observation, const struct sl_candidate *candidate, uint32_t op)
{
    return observation->backend == candidate->backend && observation->device == candidate->device &&
           observation->variant == candidate->variant_index && observation->op == op;
}

seqlstm_status sl_experience_add(struct sl_experience *experience, const struct sl_candidate *candidate, uint32_t op,
                                 double work_ns, const struct sl_cost *cost, struct seqlstm_error *err)
{
    if (experience->count == experience->capacity) {
        int32_t capacity = experience->capacity ? 2 * experience->capacity : 32;
        struct sl_observation *observations =
            realloc(experience->observations, (size_t)capacity * sizeof *observations);
        if (observations == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for measured costs");
        experience->observations = observations;
        experience->capacity = capacity;
    }
    experience->observations[experience->count++] =
        (struct sl_observation){candidate->backend, candidate->device, candidate->variant_index, op, work_ns, *cost};
    return SEQLSTM_OK;
}

bool sl_experience_predict(const struct sl_experience *experience, const struct sl_candidate *candidate, uint32_t op,
                           double work_ns, struct sl_cost *out_cost)
{
    double nearest = 0; /* as a factor of work, >= 1 */
    for (int32_t i = 0; i < experience->count; i++) {
        const struct sl_observation *observation = &experience->observations[i];
        double factor = work_ns / observation->work_ns, distance = factor < 1 ? 1 / factor : factor;
        if (!is_about(observation, candidate, op) || (nearest > 0 && distance >= nearest))
            continue;
        nearest = distance;
        *out_cost = (struct sl_cost){SL_COST_ESTIMATE, factor * observation->cost.forward_ns,
                                     factor * observation->cost.backward_ns};
    }
    return nearest > 0;
}

double sl_experience_get_bound(const struct sl_experience *experience, const struct sl_candidate *candidate,
                               uint32_t op, double work_ns)
{
    double bound = 0;
    for (int32_t i = 0; i < experience->count; i++) {
        const struct sl_observation *observation = &experience->observations[i];
        double ns = observation->cost.forward_ns + observation->cost.backward_ns;
        if (is_about(observation, candidate, op) && observation->work_ns <= work_ns && ns > bound)
            bound = ns;
    }
    return bound;
}

void sl_experience_deinit(struct sl_experience *experience)
{
    free(experience->observations);
    memset(experience, 0, sizeof *experience);
}
