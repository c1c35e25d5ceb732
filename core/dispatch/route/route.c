/* SPDX-License-Identifier: Apache-2.0 */
/* See route.h. */
#include "dispatch/route/route.h"

#include <stdlib.h>
#include <string.h>

/* The best route through nodes [0, node) whose last step runs in one domain. */
struct state {
    bool reached;
    double cost;
    int32_t step;   /* the last one; -1: no step yet */
    int32_t domain; /* of the step before the last */
};

/* A possible last step into a state. */
struct arrival {
    double cost;
    int32_t step, domain; /* domain of the state that it comes from */
};

/* What decides a tie: sums over the steps since two routes parted. */
struct standing {
    uint32_t last_rank, variants;
    int32_t steps;
};

struct search {
    const struct sl_route_problem *problem;
    int32_t barred;           /* a step that is left out; -1: none */
    struct state *states;     /* [(node_count + 1) * domain_count] */
    struct arrival *arrivals; /* [step_count * domain_count] */
    int32_t *domains;         /* [node_count] of the nodes of a route */
};

static struct state *get_state(const struct search *s, int32_t node, int32_t domain)
{
    return &s->states[node * s->problem->domain_count + domain];
}

/* Fills domains[0 .. node) of the best route to a state. */
static void trace(const struct search *s, int32_t node, int32_t domain)
{
    while (node > 0) {
        const struct state *state = get_state(s, node, domain);
        const struct sl_route_step *step = &s->problem->steps[state->step];
        for (int32_t n = step->first; n < node; n++)
            s->domains[n] = step->domain;
        node = step->first;
        domain = state->domain;
    }
}

static double sum_copies(const struct search *s, const struct sl_route_step *step)
{
    double cost = 0;
    for (int32_t r = 0; r < s->problem->read_count; r++) {
        const struct sl_route_read *read = &s->problem->reads[r];
        bool enters =
            read->reader >= step->first && read->reader < step->first + step->count && read->holder < step->first;
        if (enters && (read->holder < 0 ? 0 : s->domains[read->holder]) != step->domain)
            cost += read->copy_ns;
    }
    return cost;
}

static void count_step(const struct search *s, int32_t step, struct standing *standing)
{
    const struct sl_route_step *taken = &s->problem->steps[step];
    standing->steps++;
    standing->variants += taken->variant;
    if (taken->rank > standing->last_rank)
        standing->last_rank = taken->rank;
}

/* Follows two routes to the same state back to where they part. Returns the cost there. */
static double part(const struct search *s, const struct arrival pair[2], struct standing standings[2])
{
    int32_t node[2], domain[2];
    memset(standings, 0, 2 * sizeof *standings);
    for (int w = 0; w < 2; w++) {
        count_step(s, pair[w].step, &standings[w]);
        node[w] = s->problem->steps[pair[w].step].first;
        domain[w] = pair[w].domain;
    }
    while (node[0] != node[1] || domain[0] != domain[1]) {
        bool both = node[0] == node[1];
        for (int w = 0; w < 2; w++) {
            if (!both && node[w] < node[1 - w])
                continue;
            const struct state *state = get_state(s, node[w], domain[w]);
            count_step(s, state->step, &standings[w]);
            node[w] = s->problem->steps[state->step].first;
            domain[w] = state->domain;
            if (!both)
                break;
        }
    }
    return get_state(s, node[0], domain[0])->cost;
}

/* Both tie with the cheapest: is `a` preferred to `b`? */
static bool is_earlier(const struct search *s, const struct arrival *a, const struct arrival *b)
{
    struct standing standings[2];
    part(s, (struct arrival[]){*a, *b}, standings);
    if (standings[0].last_rank != standings[1].last_rank)
        return standings[0].last_rank < standings[1].last_rank;
    if (standings[0].steps != standings[1].steps)
        return standings[0].steps < standings[1].steps;
    return standings[0].variants < standings[1].variants;
}

static bool is_tied(const struct search *s, const struct arrival *cheapest, const struct arrival *other)
{
    struct standing standings[2];
    double common = part(s, (struct arrival[]){*cheapest, *other}, standings);
    return other->cost - common <= (1 + s->problem->tie) * (cheapest->cost - common);
}

static const struct arrival *choose(const struct search *s, const struct arrival *arrivals, int32_t count)
{
    const struct arrival *cheapest = &arrivals[0], *best;
    for (int32_t a = 1; a < count; a++)
        if (arrivals[a].cost < cheapest->cost)
            cheapest = &arrivals[a];
    best = cheapest;
    for (int32_t a = 0; a < count; a++)
        if (&arrivals[a] != cheapest && is_tied(s, cheapest, &arrivals[a]) && is_earlier(s, &arrivals[a], best))
            best = &arrivals[a];
    return best;
}

/* Finds the best route through nodes [0, node) whose last step runs in `domain`. */
static void arrive(struct search *s, int32_t node, int32_t domain)
{
    int32_t count = 0;
    for (int32_t i = 0; i < s->problem->step_count; i++) {
        const struct sl_route_step *step = &s->problem->steps[i];
        if (i == s->barred || step->first + step->count != node || step->domain != domain)
            continue;
        for (int32_t from = 0; from < s->problem->domain_count; from++) {
            const struct state *state = get_state(s, step->first, from);
            if (!state->reached)
                continue;
            trace(s, step->first, from);
            s->arrivals[count++] = (struct arrival){state->cost + step->cost_ns + sum_copies(s, step), i, from};
        }
    }
    if (count == 0)
        return;
    const struct arrival *best = choose(s, s->arrivals, count);
    *get_state(s, node, domain) =
        (struct state){.reached = true, .cost = best->cost, .step = best->step, .domain = best->domain};
}

static seqlstm_status write_route(const struct search *s, int32_t domain, struct sl_route *out,
                                  struct seqlstm_error *err)
{
    int32_t node = s->problem->node_count, at = node;
    out->steps = calloc((size_t)node + 1, sizeof *out->steps);
    if (out->steps == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    out->cost_ns = get_state(s, node, domain)->cost;
    while (node > 0) { /* from the last step to the first */
        const struct state *state = get_state(s, node, domain);
        out->steps[--at] = state->step;
        node = s->problem->steps[state->step].first;
        domain = state->domain;
    }
    out->count = s->problem->node_count - at;
    memmove(out->steps, out->steps + at, (size_t)out->count * sizeof *out->steps);
    return SEQLSTM_OK;
}

/* `node`: the first node that no route gets past. */
static seqlstm_status fail_stuck(int32_t node, struct sl_route *out, struct seqlstm_error *err)
{
    out->stuck = node;
    SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "no route gets past operation %d", node);
}

static seqlstm_status search(struct search *s, struct sl_route *out, struct seqlstm_error *err)
{
    int32_t nodes = s->problem->node_count, reached = 0, end = -1;
    *get_state(s, 0, 0) = (struct state){.reached = true, .step = -1};
    for (int32_t node = 1; node <= nodes; node++)
        for (int32_t domain = 0; domain < s->problem->domain_count; domain++) {
            arrive(s, node, domain);
            if (get_state(s, node, domain)->reached)
                reached = node;
        }
    if (reached < nodes)
        return fail_stuck(reached, out, err);
    for (int32_t domain = 0; domain < s->problem->domain_count; domain++)
        if (get_state(s, nodes, domain)->reached &&
            (end < 0 || get_state(s, nodes, domain)->cost < (1 - s->problem->tie) * get_state(s, nodes, end)->cost))
            end = domain;
    return write_route(s, end, out, err);
}

static seqlstm_status find_without(const struct sl_route_problem *problem, int32_t barred, struct sl_route *out_route,
                                   struct seqlstm_error *err)
{
    *out_route = (struct sl_route){.stuck = -1};
    size_t domains = (size_t)problem->domain_count;
    struct search s = {.problem = problem, .barred = barred};
    s.states = calloc(((size_t)problem->node_count + 1) * domains, sizeof *s.states);
    s.arrivals = calloc((size_t)problem->step_count * domains + 1, sizeof *s.arrivals);
    s.domains = calloc((size_t)problem->node_count + 1, sizeof *s.domains);
    seqlstm_status status = s.states && s.arrivals && s.domains ? search(&s, out_route, err)
                                                                : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__,
                                                                                    __LINE__, "no memory for the plan");
    free(s.states);
    free(s.arrivals);
    free(s.domains);
    return status;
}

seqlstm_status sl_route_find_cheapest(const struct sl_route_problem *problem, struct sl_route *out_route,
                                      struct seqlstm_error *err)
{
    return find_without(problem, -1, out_route, err);
}

/* ---- the second-best ---- */

bool sl_route_has_step(const struct sl_route *route, int32_t step)
{
    for (int32_t k = 0; k < route->count; k++)
        if (route->steps[k] == step)
            return true;
    return false;
}

/* The cost of the steps of `a` that are not in `b`. */
static double sum_apart(const struct sl_route_problem *problem, const struct sl_route *a, const struct sl_route *b)
{
    double cost = 0;
    for (int32_t k = 0; k < a->count; k++)
        if (!sl_route_has_step(b, a->steps[k]))
            cost += problem->steps[a->steps[k]].cost_ns;
    return cost;
}

seqlstm_status sl_route_find_second(const struct sl_route_problem *problem, const struct sl_route *first, double share,
                                    struct sl_route *out_route, struct seqlstm_error *err)
{
    struct sl_route second = {.stuck = -1}, other;
    for (int32_t k = 0; k < first->count; k++) {
        seqlstm_status status = find_without(problem, first->steps[k], &other, err);
        if (status == SEQLSTM_UNSUPPORTED)
            continue;
        if (status != SEQLSTM_OK) {
            free(second.steps);
            return status;
        }
        const double least = share * first->cost_ns;
        if ((second.count == 0 || other.cost_ns < second.cost_ns) &&
            (sum_apart(problem, first, &other) >= least || sum_apart(problem, &other, first) >= least)) {
            struct sl_route worse = second;
            second = other;
            other = worse;
        }
        free(other.steps);
    }
    *out_route = second;
    return SEQLSTM_OK;
}

/* ---- by order ---- */

static bool is_within(const struct sl_route_step *inner, const struct sl_route_step *outer)
{
    return inner->first >= outer->first && inner->first + inner->count <= outer->first + outer->count;
}

/* Nothing within the step comes from a backend that stands earlier in the list. */
static bool is_first_choice(const struct sl_route_problem *problem, const struct sl_route_step *step)
{
    for (int32_t i = 0; i < problem->step_count; i++)
        if (is_within(&problem->steps[i], step) && problem->steps[i].rank < step->rank)
            return false;
    return true;
}

static bool is_preferred(const struct sl_route_step *a, const struct sl_route_step *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->rank != b->rank ? a->rank < b->rank : a->variant < b->variant;
}

seqlstm_status sl_route_find_first(const struct sl_route_problem *problem, struct sl_route *out_route,
                                   struct seqlstm_error *err)
{
    *out_route = (struct sl_route){.stuck = -1};
    out_route->steps = calloc((size_t)problem->node_count + 1, sizeof *out_route->steps);
    if (out_route->steps == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    for (int32_t node = 0; node < problem->node_count;) {
        int32_t best = -1, any = -1;
        for (int32_t i = 0; i < problem->step_count; i++) {
            const struct sl_route_step *step = &problem->steps[i];
            if (step->first != node)
                continue;
            if (any < 0 || is_preferred(step, &problem->steps[any]))
                any = i;
            if (is_first_choice(problem, step) && (best < 0 || is_preferred(step, &problem->steps[best])))
                best = i;
        }
        best = best < 0 ? any : best;
        if (best < 0) { /* a dead end after an earlier choice */
            free(out_route->steps);
            return sl_route_find_cheapest(problem, out_route, err);
        }
        out_route->steps[out_route->count++] = best;
        out_route->cost_ns += problem->steps[best].cost_ns;
        node += problem->steps[best].count;
    }
    return SEQLSTM_OK;
}
