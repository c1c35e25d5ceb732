/* SPDX-License-Identifier: Apache-2.0 */
/* See race.h.
 *
 * probe (few steps of one profile) -> how many profiles, and how long, the budget bears -> rounds until the leader is
 * sure, the budget is spent or ROUNDS_MOST are done.
 */
#include "dispatch/race.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { PROBE_STEPS = 4, ROUNDS_LEAST = 3, ROUNDS_MOST = 11, REPEATS_MOST = 20 };
static const double sample_ns = 100e3; /* a sample of less is repeated */
static const double beyond_hope = 30, beyond_hope_ns = 250e6, hopeless = 3, behind = 1.5, sure = 1.1;

/* One racer on the track. */
struct runner {
    struct sl_racer *racer;
    struct sl_stand *stand; /* in the domain of its device; those of one domain share it */
    struct seqlstm_binding *bindings[SL_PROFILES];
    bool rests; /* too far behind to be timed further */
    int32_t repeats;
    int32_t rounds;
    double forward[ROUNDS_MOST], backward[ROUNDS_MOST]; /* weighted sums over the profiles */
};

struct race {
    const struct sl_race_request *request;
    struct runner *runners;
    int32_t count;
    int32_t profile_first, profile_count;
    double scale; /* from what is run to a mean batch */
};

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

static void fail(struct runner *runner, const struct seqlstm_error *why)
{
    runner->racer->failed = runner->rests = true;
    snprintf(runner->racer->failure, sizeof runner->racer->failure, "it failed when it was timed: %.150s",
             why->message[0] ? why->message : "without a message");
}

/* Runs once and says how long; a failure puts the runner to rest. False: it did not run. */
static bool run(struct runner *runner, int32_t profile, double *out_forward, double *out_backward)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct sl_racer *racer = runner->racer;
    if (runner->rests)
        return false;
    seqlstm_status status = SEQLSTM_OK;
    if (runner->bindings[profile] == NULL)
        status = sl_stand_bind(runner->stand, racer->backend, racer->op, profile, &runner->bindings[profile], &why);
    if (status == SEQLSTM_OK)
        status = sl_stand_run(runner->stand, racer->backend, racer->op, racer->sizes, runner->bindings[profile],
                              out_forward, out_backward, &why);
    if (status != SEQLSTM_OK)
        fail(runner, &why);
    return status == SEQLSTM_OK;
}

static void leave(struct race *race)
{
    for (int32_t r = 0; r < race->count; r++)
        for (int32_t p = 0; p < SL_PROFILES; p++)
            if (race->runners[r].bindings[p]) {
                sl_backend_get_table(race->runners[r].racer->backend)
                    ->binding_destroy(race->runners[r].bindings[p]);
                race->runners[r].bindings[p] = NULL;
            }
    for (int32_t r = 0; r < race->count; r++) {
        struct sl_stand *stand = race->runners[r].stand;
        for (int32_t k = r; k < race->count; k++)
            if (race->runners[k].stand == stand)
                race->runners[k].stand = NULL;
        sl_stand_destroy(stand);
    }
}

static const char *get_domain(const struct runner *runner)
{
    return sl_backend_get_device(runner->racer->backend, runner->racer->device)->domain;
}

/* One stand for each domain. */
static seqlstm_status set_up(struct race *race, struct sl_stand_request *request, struct seqlstm_error *err)
{
    for (int32_t r = 0; r < race->count; r++) {
        struct runner *runner = &race->runners[r];
        for (int32_t k = 0; k < r && !runner->stand; k++)
            if (strcmp(get_domain(&race->runners[k]), get_domain(runner)) == 0)
                runner->stand = race->runners[k].stand;
        request->backend = runner->racer->backend;
        request->device = runner->racer->device;
        if (runner->stand == NULL)
            SEQLSTM_TRY(sl_stand_create(request, &runner->stand, err));
    }
    return SEQLSTM_OK;
}

static double get_rows(const struct sl_race_request *request, int32_t profile)
{
    const struct sl_profile *item = &request->profiles->items[profile];
    return (double)(request->on_steps ? sl_profile_get_rows(item) : item->sequences);
}

static seqlstm_status enter(struct race *race, int32_t first, int32_t count, int64_t steps_most,
                            struct seqlstm_error *err)
{
    const struct sl_race_request *request = race->request;
    struct seqlstm_sizes sizes = {0};
    for (int32_t r = 0; r < race->count; r++) {
        const struct seqlstm_sizes *own = race->runners[r].racer->sizes;
        sizes.workspace_bytes =
            own->workspace_bytes > sizes.workspace_bytes ? own->workspace_bytes : sizes.workspace_bytes;
        sizes.reserve_bytes = own->reserve_bytes > sizes.reserve_bytes ? own->reserve_bytes : sizes.reserve_bytes;
        sizes.packed_bytes = own->packed_bytes > sizes.packed_bytes ? own->packed_bytes : sizes.packed_bytes;
    }
    struct sl_stand_request stand = {.desc = request->desc, .on_steps = request->on_steps,
                                     .backward = request->backward, .input_grad = request->input_grad,
                                     .param_grad = request->param_grad, .profiles = request->profiles,
                                     .profile_first = first, .profile_count = count, .steps_most = steps_most,
                                     .sizes = &sizes, .pool = request->pool};
    race->profile_first = first;
    race->profile_count = count;
    SEQLSTM_TRY(set_up(race, &stand, err));
    double all = 0, here = 0;
    for (int32_t p = 0; p < request->profiles->count; p++)
        all += request->profiles->items[p].weight * get_rows(request, p);
    for (int32_t p = 0; p < count; p++)
        here += request->profiles->items[first + p].weight * (double)sl_stand_get_rows(race->runners[0].stand, p);
    race->scale = all / here;
    return SEQLSTM_OK;
}

static seqlstm_status check_interrupt(const struct race *race, struct seqlstm_error *err)
{
    if (sl_interrupt_get_stop(race->request->interrupt))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "interrupted while backends were timed");
    return SEQLSTM_OK;
}

/* ---- the probe ---- */

/* Takes what a probe says as the result until rounds say more. */
static void note_probe(const struct race *race, struct runner *runner, double forward, double backward)
{
    double weight = race->request->profiles->items[race->profile_first].weight, ns = forward + backward;
    runner->racer->forward_ns = forward * weight * race->scale;
    runner->racer->backward_ns = backward * weight * race->scale;
    double repeats = sample_ns / (ns > 1 ? ns : 1);
    runner->repeats = repeats < 1 ? 1 : repeats > REPEATS_MOST ? REPEATS_MOST : (int32_t)repeats;
}

/* Runs all once; who took more than `limit` times the best, and than `limit_ns`, rests. Returns the best. */
static seqlstm_status probe_once(struct race *race, double limit, double limit_ns, double *out_best,
                                 struct seqlstm_error *err)
{
    double best = 0, weight = race->request->profiles->items[race->profile_first].weight;
    for (int32_t r = 0; r < race->count; r++) {
        double forward, backward;
        SEQLSTM_TRY(check_interrupt(race, err));
        if (!run(&race->runners[r], 0, &forward, &backward))
            continue;
        note_probe(race, &race->runners[r], forward, backward);
        best = best == 0 || forward + backward < best ? forward + backward : best;
    }
    for (int32_t r = 0; r < race->count; r++) {
        const struct sl_racer *racer = race->runners[r].racer;
        double ns = (racer->forward_ns + racer->backward_ns) / (weight * race->scale);
        if (ns > limit * best && ns > limit_ns)
            race->runners[r].rests = true;
    }
    *out_best = best;
    return SEQLSTM_OK;
}

/* Nanoseconds of the best for one row. The first time is for memory, caches and code that is generated when it is first
 * needed; it tells only who is beyond all hope. */
static seqlstm_status probe(struct race *race, double *out_row_ns, struct seqlstm_error *err)
{
    double best;
    SEQLSTM_TRY(enter(race, race->request->profiles->count / 2, 1, PROBE_STEPS, err));
    SEQLSTM_TRY(probe_once(race, beyond_hope, beyond_hope_ns, &best, err));
    SEQLSTM_TRY(probe_once(race, hopeless, 0, &best, err));
    *out_row_ns = best / (double)sl_stand_get_rows(race->runners[0].stand, 0);
    leave(race);
    return SEQLSTM_OK;
}

/* ---- rounds ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double find_median(const double *values, int32_t count)
{
    double sorted[ROUNDS_MOST];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static void run_round(const struct race *race, struct runner *runner)
{
    double forward = 0, backward = 0;
    for (int32_t p = 0; p < race->profile_count; p++) {
        double f, b, weight = race->request->profiles->items[race->profile_first + p].weight;
        for (int32_t k = 0; k < runner->repeats; k++) {
            if (!run(runner, p, &f, &b))
                return;
            forward += weight * f / runner->repeats;
            backward += weight * b / runner->repeats;
        }
    }
    runner->forward[runner->rounds] = forward;
    runner->backward[runner->rounds++] = backward;
}

static double get_total(const struct runner *runner)
{
    return find_median(runner->forward, runner->rounds) + find_median(runner->backward, runner->rounds);
}

static double get_least(const struct runner *runner)
{
    double least = runner->forward[0] + runner->backward[0];
    for (int32_t i = 1; i < runner->rounds; i++)
        least = min_double(least, runner->forward[i] + runner->backward[i]);
    return least;
}

/* Sends those home who are far behind; true when nothing is left to find out. */
static bool settle(struct race *race, int32_t rounds)
{
    double best = 0;
    int32_t close = 0, running = 0;
    for (int32_t r = 0; r < race->count; r++)
        if (!race->runners[r].rests && race->runners[r].rounds > 0) {
            double total = get_total(&race->runners[r]);
            best = best == 0 || total < best ? total : best;
        }
    for (int32_t r = 0; r < race->count; r++) {
        struct runner *runner = &race->runners[r];
        if (runner->rests || runner->rounds == 0)
            continue;
        running++;
        close += get_least(runner) <= sure * best;
        if (rounds >= 2 && get_least(runner) > behind * best)
            runner->rests = true;
    }
    return running == 0 || (rounds >= ROUNDS_LEAST && close <= 1);
}

static void write_results(struct race *race)
{
    for (int32_t r = 0; r < race->count; r++) {
        struct runner *runner = &race->runners[r];
        if (runner->rounds == 0)
            continue; /* the probe's */
        runner->racer->forward_ns = find_median(runner->forward, runner->rounds) * race->scale;
        runner->racer->backward_ns = find_median(runner->backward, runner->rounds) * race->scale;
    }
}

/* How many profiles and steps the budget bears, for ROUNDS_LEAST rounds and one to warm up. */
static void fit_budget(const struct race *race, double row_ns, int64_t budget_ns, int32_t *out_count,
                       int64_t *out_steps)
{
    const struct sl_profiles *profiles = race->request->profiles;
    int32_t runners = 0, count = profiles->count;
    double need = 0;
    for (int32_t r = 0; r < race->count; r++)
        runners += !race->runners[r].rests;
    for (;; count = (count + 1) / 2) {
        need = 0;
        for (int32_t p = 0; p < count; p++)
            need += get_rows(race->request, (profiles->count - count) / 2 + p) * row_ns * runners * (ROUNDS_LEAST + 1);
        if (count == 1 || need <= (double)budget_ns)
            break;
    }
    const int32_t *lengths = profiles->items[(profiles->count - count) / 2].lengths;
    *out_count = count;
    *out_steps = INT64_MAX;
    if (need > (double)budget_ns && lengths && race->request->on_steps) {
        double steps = (double)lengths[0] * (double)budget_ns / need;
        *out_steps = steps < PROBE_STEPS ? PROBE_STEPS : (int64_t)steps;
    }
}

static seqlstm_status race_rounds(struct race *race, int64_t end_ns, struct seqlstm_error *err)
{
    for (int32_t r = 0; r < race->count; r++) { /* warm up */
        double forward, backward;
        for (int32_t p = 0; p < race->profile_count; p++)
            run(&race->runners[r], p, &forward, &backward);
    }
    for (int32_t round = 0; round < ROUNDS_MOST; round++) {
        for (int32_t r = 0; r < race->count; r++) {
            SEQLSTM_TRY(check_interrupt(race, err));
            run_round(race, &race->runners[(r + round) % race->count]);
        }
        if (settle(race, round + 1) || (round + 1 >= ROUNDS_LEAST && sl_clock_ns() > end_ns))
            break;
    }
    return SEQLSTM_OK;
}

static seqlstm_status race_all(struct race *race, struct seqlstm_error *err)
{
    int64_t start = sl_clock_ns(), end = start + race->request->budget_ns, steps_most;
    double row_ns;
    int32_t profiles;
    SEQLSTM_TRY(probe(race, &row_ns, err));
    int64_t left = end - sl_clock_ns();
    fit_budget(race, row_ns, left > 0 ? left : 0, &profiles, &steps_most);
    SEQLSTM_TRY(enter(race, (race->request->profiles->count - profiles) / 2, profiles, steps_most, err));
    SEQLSTM_TRY(race_rounds(race, end, err));
    write_results(race);
    return SEQLSTM_OK;
}

seqlstm_status sl_race_run(const struct sl_race_request *request, struct sl_racer *racers, int32_t count,
                           struct seqlstm_error *err)
{
    struct race race = {.request = request, .count = count};
    race.runners = calloc((size_t)count + 1, sizeof *race.runners);
    if (race.runners == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to time backends");
    for (int32_t r = 0; r < count; r++) {
        racers[r].failed = false;
        race.runners[r].racer = &racers[r];
    }
    seqlstm_status status = race_all(&race, err);
    leave(&race);
    free(race.runners);
    return status;
}
