/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest way: against all ways of small random graphs, and where ties, domains and dead ends decide. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dispatch/route/route.h"
#include "oom.h"

enum { NODES = 6, STEPS = 24 };

static struct sl_route find(const struct sl_route_problem *problem, bool by_order)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_route route;
    seqlstm_status status =
        by_order ? sl_route_find_first(problem, &route, &err) : sl_route_find_cheapest(problem, &route, &err);
    if (status != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return route;
}

static void expect(const struct sl_route_problem *problem, bool by_order, const int32_t *steps, int32_t count)
{
    struct sl_route route = find(problem, by_order);
    assert_int_equal(route.count, count);
    double cost_ns = 0;
    for (int32_t k = 0; k < count; k++) {
        assert_int_equal(route.steps[k], steps[k]);
        cost_ns += problem->steps[steps[k]].cost_ns;
    }
    /* copies come on top */
    assert_true(problem->read_count == 0 ? fabs(route.cost_ns - cost_ns) <= 1e-9 * cost_ns : route.cost_ns >= cost_ns);
    free(route.steps);
}

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* The cost of the cheapest of all ways from `node` on, the last step having been in `domain`: a chain. Not those that
 * have every step of `first`, unless `apart`: one of another way was taken. */
static double try_others(const struct sl_route_problem *problem, const struct sl_route *first, int32_t node,
                         int32_t domain, bool apart)
{
    double best = INFINITY;
    if (node == problem->node_count)
        return apart ? 0 : INFINITY;
    for (int32_t s = 0; s < problem->step_count; s++) {
        const struct sl_route_step *step = &problem->steps[s];
        if (step->first != node)
            continue;
        double copy = 0;
        for (int32_t r = 0; r < problem->read_count; r++)
            if (problem->reads[r].reader == node && domain != step->domain)
                copy += problem->reads[r].copy_ns;
        best = fmin(best, copy + step->cost_ns +
                              try_others(problem, first, node + step->count, step->domain,
                                         apart || !sl_route_has_step(first, s)));
    }
    return best;
}

static double try_all(const struct sl_route_problem *problem, int32_t node, int32_t domain)
{
    return try_others(problem, NULL, node, domain, true);
}

static void chains_are_solved(void **state)
{
    (void)state;
    uint32_t random = 7;
    int solved = 0;
    for (int round = 0; round < 500; round++) {
        struct sl_route_step steps[STEPS];
        struct sl_route_read reads[NODES];
        for (int32_t s = 0; s < STEPS; s++) {
            int32_t first = (int32_t)draw(&random, NODES), most = NODES - first;
            steps[s] = (struct sl_route_step){.first = first,
                                              .count = 1 + (int32_t)draw(&random, (uint32_t)most),
                                              .domain = (int32_t)draw(&random, 3),
                                              .rank = draw(&random, 3),
                                              .cost_ns = pow(1.5, draw(&random, 20))};
        }
        for (int32_t n = 0; n < NODES; n++)
            reads[n] = (struct sl_route_read){n, n - 1, (double)draw(&random, 100)};
        struct sl_route_problem problem = {.tie = SL_ROUTE_TIE,
                                           .node_count = NODES,
                                           .domain_count = 3,
                                           .steps = steps,
                                           .step_count = STEPS,
                                           .reads = reads,
                                           .read_count = NODES};
        double best = try_all(&problem, 0, 0);
        struct sl_route route;
        if (sl_route_find_cheapest(&problem, &route, NULL) == SEQLSTM_UNSUPPORTED) {
            assert_true(isinf(best));
            assert_true(route.stuck >= 0 && route.stuck < NODES);
            continue;
        }
        /* each of at most NODES choices may give away the tie's share of what it is about */
        assert_true(route.cost_ns >= best * (1 - 1e-9));
        assert_true(route.cost_ns <= best * pow(1 + SL_ROUTE_TIE, NODES));
        free(route.steps);
        solved++;
    }
    assert_true(solved > 100);
}

static void ties_follow_the_list(void **state)
{
    (void)state;
    struct sl_route_step steps[] = {{.first = 0, .count = 1, .rank = 1, .cost_ns = 100},
                                    {.first = 0, .count = 1, .rank = 0, .cost_ns = 102.9}};
    struct sl_route_problem problem = {
        .tie = SL_ROUTE_TIE, .node_count = 1, .domain_count = 1, .steps = steps, .step_count = 2};
    expect(&problem, false, (int32_t[]){1}, 1);
    steps[1].cost_ns = 103.1;
    expect(&problem, false, (int32_t[]){0}, 1);
    expect(&problem, true, (int32_t[]){1}, 1);
    /* what was measured is told apart more finely */
    problem.tie = SL_ROUTE_TIE_MEASURED;
    steps[1].cost_ns = 100.9;
    expect(&problem, false, (int32_t[]){1}, 1);
    steps[1].cost_ns = 101.1;
    expect(&problem, false, (int32_t[]){0}, 1);
    problem.tie = SL_ROUTE_TIE;
    /* variants of one backend: as it named them */
    steps[0] = (struct sl_route_step){.first = 0, .count = 1, .variant = 1, .cost_ns = 100};
    steps[1] = (struct sl_route_step){.first = 0, .count = 1, .variant = 0, .cost_ns = 102};
    expect(&problem, false, (int32_t[]){1}, 1);
}

/* A tie is about what differs, not about the whole way: a small layer is worth its own choice. */
static void ties_are_local(void **state)
{
    (void)state;
    const struct sl_route_step steps[] = {{.first = 0, .count = 1, .rank = 0, .cost_ns = 100000},
                                          {.first = 1, .count = 1, .rank = 0, .cost_ns = 30},
                                          {.first = 1, .count = 1, .rank = 1, .cost_ns = 10}};
    struct sl_route_problem problem = {
        .tie = SL_ROUTE_TIE, .node_count = 2, .domain_count = 1, .steps = steps, .step_count = 3};
    expect(&problem, false, (int32_t[]){0, 2}, 2);
}

static void segments_compete_with_layers(void **state)
{
    (void)state;
    struct sl_route_step steps[] = {{.first = 0, .count = 1, .rank = 0, .cost_ns = 100},
                                    {.first = 1, .count = 1, .rank = 0, .cost_ns = 100},
                                    {.first = 2, .count = 1, .rank = 0, .cost_ns = 100},
                                    {.first = 0, .count = 3, .rank = 1, .cost_ns = 290},
                                    {.first = 1, .count = 2, .rank = 1, .cost_ns = 150}};
    struct sl_route_problem problem = {
        .tie = SL_ROUTE_TIE, .node_count = 3, .domain_count = 1, .steps = steps, .step_count = 5};
    expect(&problem, false, (int32_t[]){0, 4}, 2);
    steps[3].cost_ns = 400;
    steps[4].cost_ns = 195; /* tied with two layers of the first backend */
    expect(&problem, false, (int32_t[]){0, 1, 2}, 3);
    expect(&problem, true, (int32_t[]){0, 1, 2}, 3);
    steps[3].rank = 0; /* by order, the longest of the first backend */
    expect(&problem, true, (int32_t[]){3}, 1);
}

static void copies_are_paid_for(void **state)
{
    (void)state;
    struct sl_route_step steps[] = {{.first = 0, .count = 1, .domain = 0, .cost_ns = 100},
                                    {.first = 0, .count = 1, .domain = 1, .cost_ns = 50},
                                    {.first = 1, .count = 1, .domain = 0, .cost_ns = 100},
                                    {.first = 1, .count = 1, .domain = 1, .cost_ns = 50}};
    struct sl_route_read reads[] = {{0, -1, 20}, {1, 0, 20}};
    struct sl_route_problem problem = {.tie = SL_ROUTE_TIE,
                                       .node_count = 2,
                                       .domain_count = 2,
                                       .steps = steps,
                                       .step_count = 4,
                                       .reads = reads,
                                       .read_count = 2};
    expect(&problem, false, (int32_t[]){1, 3}, 2); /* 20 + 50 + 50 */
    reads[0].copy_ns = 200;
    expect(&problem, false, (int32_t[]){0, 3}, 2); /* 100 + 20 + 50 */
    reads[1].copy_ns = 200;
    expect(&problem, false, (int32_t[]){0, 2}, 2);
    /* a branch: node 1 reads the batch again, on the host */
    reads[0].copy_ns = reads[1].copy_ns = 20;
    reads[1].holder = -1;
    expect(&problem, false, (int32_t[]){1, 3}, 2);
    reads[1].copy_ns = 60;
    expect(&problem, false, (int32_t[]){1, 2}, 2);
}

static void dead_ends_are_left(void **state)
{
    (void)state;
    const struct sl_route_step steps[] = {{.first = 0, .count = 1, .rank = 0, .cost_ns = 1},
                                          {.first = 0, .count = 2, .rank = 1, .cost_ns = 100}};
    struct sl_route_problem problem = {
        .tie = SL_ROUTE_TIE, .node_count = 2, .domain_count = 1, .steps = steps, .step_count = 2};
    expect(&problem, false, (int32_t[]){1}, 1);
    expect(&problem, true, (int32_t[]){1}, 1); /* the first choice leads nowhere */
    problem.node_count = 3;
    struct sl_route route;
    assert_int_equal(sl_route_find_cheapest(&problem, &route, NULL), SEQLSTM_UNSUPPORTED);
    assert_int_equal(route.stuck, 2);
    assert_int_equal(sl_route_find_first(&problem, &route, NULL), SEQLSTM_UNSUPPORTED);
    assert_int_equal(route.stuck, 2);
}

/* By order, where a backend that stands earlier has a part of every step: the longest, then the earlier backend, then
 * its first variant. */
static void without_a_first_choice_the_preferred_step_is_taken(void **state)
{
    (void)state;
    struct sl_route_step steps[] = {{.first = 0, .count = 1, .rank = 2, .cost_ns = 1},
                                    {.first = 0, .count = 2, .rank = 1, .cost_ns = 9},
                                    {.first = 0, .count = 3, .rank = 2, .variant = 1, .cost_ns = 3},
                                    {.first = 0, .count = 3, .rank = 1, .variant = 5, .cost_ns = 40},
                                    {.first = 0, .count = 3, .rank = 1, .variant = 4, .cost_ns = 50},
                                    {.first = 1, .count = 1, .rank = 0, .cost_ns = 1},
                                    {.first = 2, .count = 1, .rank = 0, .cost_ns = 1}};
    struct sl_route_problem problem = {
        .tie = SL_ROUTE_TIE, .node_count = 3, .domain_count = 1, .steps = steps, .step_count = 7};
    expect(&problem, true, (int32_t[]){0, 5, 6}, 3); /* the short one is a first choice: nothing lies within it */
    steps[0].first = 2;
    expect(&problem, true, (int32_t[]){4}, 1);
    steps[4].rank = 3;
    expect(&problem, true, (int32_t[]){3}, 1);
    steps[3].count = 2;
    steps[3].rank = 2;
    expect(&problem, true, (int32_t[]){2}, 1);
    steps[2].first = 1;
    steps[2].count = steps[4].count = 1;
    steps[4].first = 1;
    expect(&problem, true, (int32_t[]){1, 6}, 2); /* then the step of the earlier backend */
}

/* ---- the second ---- */

static struct sl_route find_second(const struct sl_route_problem *problem, const struct sl_route *first, double share)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_route second;
    if (sl_route_find_second(problem, first, share, &second, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return second;
}

static void seconds_are_the_next_best(void **state)
{
    (void)state;
    uint32_t random = 11;
    int found = 0, alone = 0;
    for (int round = 0; round < 300; round++) {
        struct sl_route_step steps[STEPS / 2];
        struct sl_route_read reads[NODES];
        for (int32_t s = 0; s < STEPS / 2; s++) {
            int32_t first = (int32_t)draw(&random, NODES), most = NODES - first;
            steps[s] = (struct sl_route_step){.first = first,
                                              .count = 1 + (int32_t)draw(&random, (uint32_t)most),
                                              .domain = (int32_t)draw(&random, 3),
                                              .cost_ns = pow(1.5, draw(&random, 20))};
        }
        for (int32_t n = 0; n < NODES; n++)
            reads[n] = (struct sl_route_read){n, n - 1, (double)draw(&random, 100)};
        struct sl_route_problem problem = {.node_count = NODES,
                                           .domain_count = 3,
                                           .steps = steps,
                                           .step_count = STEPS / 2,
                                           .reads = reads,
                                           .read_count = NODES};
        struct sl_route first, second;
        if (sl_route_find_cheapest(&problem, &first, NULL) == SEQLSTM_UNSUPPORTED)
            continue;
        second = find_second(&problem, &first, 0);
        double best = try_others(&problem, &first, 0, 0, false);
        if (second.count == 0)
            assert_true(isinf(best));
        else
            assert_true(fabs(second.cost_ns - best) <= 1e-9 * best && second.cost_ns >= first.cost_ns);
        found += second.count > 0;
        alone += second.count == 0;
        free(first.steps);
        free(second.steps);
    }
    assert_true(found > 50 && alone > 10);
}

static void seconds_differ_in_what_counts(void **state)
{
    (void)state;
    const struct sl_route_step steps[] = {{.first = 0, .count = 1, .rank = 0, .cost_ns = 1000},
                                          {.first = 0, .count = 1, .rank = 1, .cost_ns = 1100},
                                          {.first = 1, .count = 1, .rank = 0, .cost_ns = 5},
                                          {.first = 1, .count = 1, .rank = 1, .cost_ns = 6}};
    struct sl_route_problem problem = {
        .tie = SL_ROUTE_TIE_MEASURED, .node_count = 2, .domain_count = 1, .steps = steps, .step_count = 4};
    struct sl_route first = find(&problem, false), second = find_second(&problem, &first, 0.01);
    assert_int_equal(second.count, 2);
    assert_int_equal(second.steps[0], 1);
    assert_int_equal(second.steps[1], 2);
    assert_true(sl_route_has_step(&second, 2) && !sl_route_has_step(&second, 0));
    free(second.steps);
    second = find_second(&problem, &first, 0); /* anything counts */
    assert_int_equal(second.steps[1], 3);
    free(second.steps);
    problem.step_count = 3; /* no other way for the second node, so the first decides alone; then none at all */
    second = find_second(&problem, &first, 0.01);
    assert_int_equal(second.steps[0], 1);
    free(second.steps);
    second = find_second(&problem, &first, 2);
    assert_int_equal(second.count, 0);
    free(first.steps);
}

/* Only the last of three steps has another choice, which counts. */
static void seconds_that_differ_at_the_end(void **state)
{
    (void)state;
    const struct sl_route_step steps[] = {{.first = 0, .count = 1, .rank = 0, .cost_ns = 10},
                                          {.first = 1, .count = 1, .rank = 0, .cost_ns = 10},
                                          {.first = 2, .count = 1, .rank = 0, .cost_ns = 1000},
                                          {.first = 2, .count = 1, .rank = 1, .cost_ns = 1100}};
    struct sl_route_problem problem = {
        .tie = SL_ROUTE_TIE_MEASURED, .node_count = 3, .domain_count = 1, .steps = steps, .step_count = 4};
    struct sl_route first = find(&problem, false), second = find_second(&problem, &first, 0.5);
    assert_int_equal(second.count, 3);
    assert_int_equal(second.steps[2], 3);
    assert_true(second.cost_ns == 1120);
    free(first.steps);
    free(second.steps);
}

/* Two routes differ as much as the dearer of their own steps: what is cheap in the first may be dear in the second. */
static void what_the_second_pays_counts_too(void **state)
{
    (void)state;
    const struct sl_route_step steps[] = {{.first = 0, .count = 1, .rank = 0, .cost_ns = 1000},
                                          {.first = 1, .count = 1, .rank = 0, .cost_ns = 5},
                                          {.first = 1, .count = 1, .rank = 1, .cost_ns = 90}};
    struct sl_route_problem problem = {
        .tie = SL_ROUTE_TIE_MEASURED, .node_count = 2, .domain_count = 1, .steps = steps, .step_count = 3};
    struct sl_route first = find(&problem, false), second = find_second(&problem, &first, 0.05);
    assert_int_equal(second.count, 2);
    assert_int_equal(second.steps[1], 2);
    free(second.steps);
    second = find_second(&problem, &first, 0.1);
    assert_int_equal(second.count, 0);
    free(first.steps);
}

/* What an early node of a longer step holds, and what a node before the last one does, are copied from where they are.
 */
static void copies_come_from_the_domain_of_their_holder(void **state)
{
    (void)state;
    const struct sl_route_step steps[] = {{.first = 0, .count = 2, .domain = 1, .cost_ns = 100},
                                          {.first = 2, .count = 1, .domain = 0, .cost_ns = 50},
                                          {.first = 2, .count = 1, .domain = 1, .cost_ns = 60},
                                          {.first = 0, .count = 1, .domain = 1, .cost_ns = 10},
                                          {.first = 1, .count = 1, .domain = 0, .cost_ns = 10}};
    const struct sl_route_read reads[] = {{2, 0, 20}};
    struct sl_route_problem problem = {.tie = SL_ROUTE_TIE,
                                       .node_count = 3,
                                       .domain_count = 2,
                                       .steps = steps,
                                       .step_count = 3,
                                       .reads = reads,
                                       .read_count = 1};
    expect(&problem, false, (int32_t[]){0, 2}, 2); /* 100 + 60, not 100 + 50 + 20 */
    problem.step_count = 5;
    expect(&problem, false, (int32_t[]){3, 4, 2}, 3); /* 10 + 10 + 60, not 50 + 20 */
}

/* Of routes that tie: the last backend that they use decides, then the number of steps, then the sum of variants. */
static void ties_are_about_whole_routes(void **state)
{
    (void)state;
    static const struct {
        struct sl_route_step steps[4];
        int32_t nodes, count, route[3], route_count;
    } cases[] = {
        {{{0, 1, 0, 0, 0, 50}, {1, 1, 0, 2, 0, 50}, {0, 2, 0, 1, 0, 101}}, 2, 3, {2}, 1},
        {{{0, 1, 0, 2, 0, 50}, {1, 1, 0, 0, 0, 50}, {0, 2, 0, 1, 0, 101}}, 2, 3, {2}, 1},
        {{{0, 1, 0, 1, 0, 33}, {1, 1, 0, 1, 0, 33}, {2, 1, 0, 1, 0, 33}, {0, 3, 0, 1, 7, 100}}, 3, 4, {3}, 1},
        {{{0, 1, 0, 0, 0, 50}, {1, 2, 0, 0, 5, 50}, {0, 2, 0, 0, 1, 50}, {2, 1, 0, 0, 1, 51}}, 3, 4, {2, 3}, 2},
        {{{0, 1, 0, 0, 5, 50}, {1, 2, 0, 0, 0, 50}, {0, 2, 0, 0, 1, 50}, {2, 1, 0, 0, 1, 51}}, 3, 4, {2, 3}, 2},
        {{{0, 1, 0, 2, 0, 100}, {0, 1, 0, 0, 0, 101}, {0, 1, 0, 1, 0, 102}}, 1, 3, {1}, 1},
        {{{0, 1, 0, 0, 0, 100}, {0, 1, 1, 0, 0, 98}}, 1, 2, {0}, 1}, /* the domain that comes first */
        {{{0, 1, 0, 0, 0, 100}, {0, 1, 1, 0, 0, 96}}, 1, 2, {1}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sl_route_problem problem = {.tie = SL_ROUTE_TIE,
                                                 .node_count = cases[i].nodes,
                                                 .domain_count = 2,
                                                 .steps = cases[i].steps,
                                                 .step_count = cases[i].count};
        expect(&problem, false, cases[i].route, cases[i].route_count);
    }
}

/* Where nothing decides, the one that is listed first; and a tie reaches as far as it says, to the last nanosecond. */
static void equal_routes_and_the_edge_of_a_tie(void **state)
{
    (void)state;
    static const struct {
        struct sl_route_step steps[3];
        int32_t count, step;
    } cases[] = {
        {{{0, 1, 0, 0, 0, 100}, {0, 1, 0, 0, 0, 100}}, 2, 0}, /* alike in all */
        {{{0, 1, 1, 0, 0, 100}, {0, 1, 0, 0, 0, 100}}, 2, 1}, /* the first domain */
        {{{0, 1, 0, 1, 0, 100}, {0, 1, 0, 0, 9, 100}}, 2, 1}, /* two backends of one price: by the list */
        {{{0, 1, 0, 0, 2, 100}, {0, 1, 0, 0, 1, 100}, {0, 1, 0, 0, 1, 100}}, 3, 1},
        {{{0, 1, 0, 1, 0, 100}, {0, 1, 0, 0, 0, 125}}, 2, 1}, /* a quarter more is a tie */
        {{{0, 1, 0, 1, 0, 100}, {0, 1, 0, 0, 0, 126}}, 2, 0},
        {{{0, 1, 0, 0, 0, 100}, {0, 1, 1, 0, 0, 75}}, 2, 0}, /* another domain must be a quarter less, and more */
        {{{0, 1, 0, 0, 0, 100}, {0, 1, 1, 0, 0, 74}}, 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sl_route_problem problem = {
            .tie = 0.25, .node_count = 1, .domain_count = 2, .steps = cases[i].steps, .step_count = cases[i].count};
        struct sl_route route = find(&problem, false);
        if (route.count != 1 || route.steps[0] != cases[i].step)
            fail_msg("case %d: step %d, expected %d", (int)i, (int)route.steps[0], (int)cases[i].step);
        free(route.steps);
    }
    /* by the list: of steps that are alike the first, too */
    static const struct sl_route_step alike[] = {{0, 1, 0, 1, 0, 9}, {0, 1, 0, 0, 1, 9}, {0, 1, 0, 0, 1, 1}};
    const struct sl_route_problem problem = {
        .tie = 0.25, .node_count = 1, .domain_count = 1, .steps = alike, .step_count = 3};
    expect(&problem, true, (int32_t[]){1}, 1);
}

/* The copies of a route are no part of its steps: where the other one costs little but its copies, the first counts. */
static void seconds_differ_in_the_steps_of_either(void **state)
{
    (void)state;
    const struct sl_route_step steps[] = {{.first = 0, .count = 1, .domain = 0, .cost_ns = 100},
                                          {.first = 0, .count = 1, .domain = 1, .cost_ns = 0.5}};
    struct sl_route_read reads[] = {{0, -1, 102}};
    const struct sl_route_problem problem = {.tie = SL_ROUTE_TIE_MEASURED,
                                             .node_count = 1,
                                             .domain_count = 2,
                                             .steps = steps,
                                             .step_count = 2,
                                             .reads = reads,
                                             .read_count = 1};
    for (int cheaper = 0; cheaper < 2; cheaper++) {
        reads[0].copy_ns = cheaper ? 90 : 102;
        struct sl_route first = find(&problem, false), second = find_second(&problem, &first, 0.01);
        assert_int_equal(first.steps[0], cheaper);
        assert_int_equal(second.count, 1);
        assert_int_equal(second.steps[0], !cheaper);
        free(first.steps);
        free(second.steps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_are_solved),
        cmocka_unit_test(ties_follow_the_list),
        cmocka_unit_test(ties_are_local),
        cmocka_unit_test(segments_compete_with_layers),
        cmocka_unit_test(copies_are_paid_for),
        cmocka_unit_test(dead_ends_are_left),
        cmocka_unit_test(without_a_first_choice_the_preferred_step_is_taken),
        cmocka_unit_test(seconds_are_the_next_best),
        cmocka_unit_test(seconds_differ_in_what_counts),
        cmocka_unit_test(seconds_that_differ_at_the_end),
        cmocka_unit_test(what_the_second_pays_counts_too),
        cmocka_unit_test(copies_come_from_the_domain_of_their_holder),
        cmocka_unit_test(ties_are_about_whole_routes),
        cmocka_unit_test(seconds_differ_in_the_steps_of_either),
        cmocka_unit_test(equal_routes_and_the_edge_of_a_tie),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
