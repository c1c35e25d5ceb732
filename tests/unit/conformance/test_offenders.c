/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for collectives, on three ranks, notice an offender against each rule: at each root, in each place, for each
 * member, in groups, with each number of shards; groups that must be refused; failures that blame the wrong rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "conformance/collectives/cases.h"
#include "oom.h"
#include "thread_ranks.h"

/* ---- among ranks that are threads -------------------------------------------------------------------------------- */

struct rank {
    struct sl_trial trial;
    void (*run)(struct sl_trial *trial);
    uint32_t calls[SEQLSTM_COLLECTIVE_COUNT], dtypes;
};

static void *work(void *context)
{
    struct rank *r = context;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status =
        thread_connect(thread_query, r->trial.rank, r->trial.ranks, &r->trial.connection, &err);
    if (!sl_trial_check(&r->trial, status == SEQLSTM_OK, "%s", err.message))
        return NULL;
    r->trial.transport = sl_connection_get_transport(r->trial.connection);
    r->run(&r->trial);
    r->dtypes = threads.connections[r->trial.rank].dtypes;
    memcpy(r->calls, threads.connections[r->trial.rank].calls, sizeof r->calls);
    sl_connection_close(r->trial.connection);
    return NULL;
}

static void run_ranks(void (*run)(struct sl_trial *trial), int32_t count, struct rank ranks[THREAD_RANKS])
{
    pthread_t ids[THREAD_RANKS];
    memset(threads.left, 0, sizeof threads.left);
    memset(threads.groups, 0, sizeof threads.groups);
    memset(threads.sent, 0, sizeof threads.sent);
    for (int32_t r = 0; r < count; r++) {
        ranks[r] = (struct rank){.trial = {.rank = r, .ranks = count, .seed = 5}, .run = run};
        assert_int_equal(pthread_create(&ids[r], NULL, work, &ranks[r]), 0);
    }
    for (int32_t r = 0; r < count; r++)
        pthread_join(ids[r], NULL);
}

/* Wrong is what rank `to` (-1: each) gets from rank `from`, from call `call` of the kind on. */
static void offend(int32_t kind, uint32_t group, int32_t from, int32_t to, uint32_t call)
{
    threads.kind = kind;
    threads.group = group;
    threads.from = from;
    threads.to = to;
    threads.call = call;
}

static void check_detail(const struct rank *r, const char *expected)
{
    if (!r->trial.failed || strcmp(r->trial.detail, expected) != 0)
        fail_msg("rank %d says '%s', expected '%s'", r->trial.rank, r->trial.detail, expected);
}

static void broadcasts_come_from_every_root(void **state)
{
    (void)state;
    struct rank ranks[THREAD_RANKS];
    char expected[100];
    for (int32_t root = 0; root < THREAD_RANKS; root++)
        for (int32_t to = 0; to < THREAD_RANKS; to++) {
            offend(SEQLSTM_COLLECTIVE_BROADCAST, 0, root, to, 0);
            run_ranks(sl_trial_broadcast, THREAD_RANKS, ranks);
            snprintf(expected, sizeof expected, "byte 0 of 1 that came from rank %d by broadcast is wrong", root);
            check_detail(&ranks[to], expected);
        }
}

/* The second call with one element of each rank is the one in place. */
static void every_part_that_is_gathered_counts(void **state)
{
    (void)state;
    struct rank ranks[THREAD_RANKS];
    char expected[100];
    for (int32_t from = 0; from < THREAD_RANKS; from++)
        for (uint32_t call = 3; call <= 4; call++) {
            const int32_t to = (from + 1) % THREAD_RANKS;
            offend(SEQLSTM_COLLECTIVE_ALL_GATHER, 0, from, to, call);
            run_ranks(sl_trial_all_gather, THREAD_RANKS, ranks);
            snprintf(expected, sizeof expected, "byte 0 of 1 that came from rank %d by all_gather is wrong", from);
            check_detail(&ranks[to], expected);
            assert_int_equal(ranks[to].calls[SEQLSTM_COLLECTIVE_ALL_GATHER], call);
        }
}

static void every_pair_is_tried_in_both_directions(void **state)
{
    (void)state;
    struct rank ranks[THREAD_RANKS];
    char expected[100];
    for (int32_t from = 0; from < THREAD_RANKS; from++)
        for (int32_t to = 0; to < THREAD_RANKS; to++) {
            if (from == to)
                continue;
            offend(SEQLSTM_COLLECTIVE_RECEIVE, 0, from, to, 0);
            run_ranks(sl_trial_send_receive, THREAD_RANKS, ranks);
            snprintf(expected, sizeof expected, "byte 0 of 1 that came from rank %d by send is wrong", from);
            check_detail(&ranks[to], expected);
        }
}

static void reductions_are_of_all_ranks(void **state)
{
    (void)state;
    struct rank ranks[THREAD_RANKS];
    char expected[100];
    offend(-1, 0, 0, 0, 0);
    run_ranks(sl_trial_reduce_scatter, THREAD_RANKS, ranks);
    for (int32_t r = 0; r < THREAD_RANKS; r++)
        assert_string_equal(ranks[r].trial.detail, "");
    for (int32_t r = 0; r < THREAD_RANKS; r++) {
        snprintf(expected, sizeof expected, "reduction 0 of 1 elements of dtype %d is wrong", SEQLSTM_DTYPE_INT32);
        offend(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, (r + 1) % THREAD_RANKS, r, 0);
        run_ranks(sl_trial_all_reduce, THREAD_RANKS, ranks);
        check_detail(&ranks[r], expected);
        offend(SEQLSTM_COLLECTIVE_REDUCE_SCATTER, 0, (r + 1) % THREAD_RANKS, r, 0);
        run_ranks(sl_trial_reduce_scatter, THREAD_RANKS, ranks);
        check_detail(&ranks[r], expected);
        snprintf(expected, sizeof expected, "reduction 0 of 1 elements of dtype %d in place is wrong",
                 SEQLSTM_DTYPE_INT32);
        offend(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, (r + 1) % THREAD_RANKS, r, 4);
        run_ranks(sl_trial_all_reduce, THREAD_RANKS, ranks);
        check_detail(&ranks[r], expected);
    }
}

/* The group of the even ranks, that of the odd one, and that of all, at the first sum and later. */
static void sums_of_each_group_are_checked(void **state)
{
    (void)state;
    static const struct {
        uint32_t group;
        int32_t from, to;
        uint32_t call;
        const char *detail;
    } cases[] = {{1, 2, 0, 0, "group 1 has the sum 1, expected 2 (status 0: )"},
                 {1, 0, 2, 9, "group 1 has the sum 1, expected 2 (status 0: )"},
                 {2, 1, 1, 0, "group 2 has the sum 0, expected 1 (status 0: )"},
                 {0, 0, 1, 0, "group 0 has the sum 2, expected 3 (status 0: )"},
                 {0, 2, 2, 50, "group 0 has the sum 2, expected 3 (status 0: )"}};
    struct rank ranks[THREAD_RANKS];
    offend(-1, 0, 0, 0, 0);
    for (int32_t count = 1; count <= THREAD_RANKS; count++) {
        run_ranks(sl_trial_groups, count, ranks);
        for (int32_t r = 0; r < count; r++) {
            assert_string_equal(ranks[r].trial.detail, "");
            assert_int_equal(ranks[r].calls[SEQLSTM_COLLECTIVE_ALL_REDUCE], count > 1 ? 39 + 20 : 0);
        }
    }
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        offend(SEQLSTM_COLLECTIVE_ALL_REDUCE, cases[k].group, cases[k].from, cases[k].to, cases[k].call);
        run_ranks(sl_trial_groups, THREAD_RANKS, ranks);
        check_detail(&ranks[cases[k].to], cases[k].detail);
    }
    threads.only_last = true; /* then it is the last element that is wrong */
    offend(SEQLSTM_COLLECTIVE_ALL_REDUCE, 1, 2, 0, 0);
    run_ranks(sl_trial_groups, THREAD_RANKS, ranks);
    threads.only_last = false;
    check_detail(&ranks[0], "group 1 has the sum 16777218, expected 2 (status 0: )");
}

/* From as many shards as ranks to eight more, in both widths: the last exchange of all, and the first. */
static void ordered_sums_have_several_shards_for_a_rank(void **state)
{
    (void)state;
    struct rank ranks[THREAD_RANKS];
    offend(-1, 0, 0, 0, 0);
    run_ranks(sl_trial_ordered_sum, 2, ranks);
    assert_string_equal(ranks[0].trial.detail, "");
    const uint32_t calls = ranks[0].calls[SEQLSTM_COLLECTIVE_ALL_GATHER];
    assert_true(calls >= 9);
    assert_int_equal(ranks[0].dtypes, 1u << SEQLSTM_DTYPE_FLOAT32 | 1u << SEQLSTM_DTYPE_FLOAT64);
    offend(SEQLSTM_COLLECTIVE_ALL_GATHER, 0, 0, 1, calls);
    run_ranks(sl_trial_ordered_sum, 2, ranks);
    check_detail(&ranks[1], "10 shards on 2 ranks have another sum than on one");
    offend(SEQLSTM_COLLECTIVE_ALL_GATHER, 0, 1, 0, 0);
    run_ranks(sl_trial_ordered_sum, 2, ranks);
    check_detail(&ranks[0], "2 shards on 2 ranks have another sum than on one");
}

/* Among thousands of exchanges, one kind from one rank is wrong. */
static void many_exchanges_are_checked_by_kind(void **state)
{
    (void)state;
    struct rank ranks[THREAD_RANKS];
    char ends[100];
    for (int32_t from = 0; from < THREAD_RANKS; from++) {
        const int32_t to = (from + 2) % THREAD_RANKS;
        offend(SEQLSTM_COLLECTIVE_BROADCAST, 0, from, to, 4);
        run_ranks(sl_trial_many, THREAD_RANKS, ranks);
        snprintf(ends, sizeof ends, "that came from rank %d by broadcast is wrong", from);
        assert_non_null(strstr(ranks[to].trial.detail, ends));
        offend(SEQLSTM_COLLECTIVE_ALL_GATHER, 0, from, to, 4);
        run_ranks(sl_trial_many, THREAD_RANKS, ranks);
        snprintf(ends, sizeof ends, "that came from rank %d by all_gather is wrong", from);
        assert_non_null(strstr(ranks[to].trial.detail, ends));
    }
    offend(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, 1, 2, 4);
    run_ranks(sl_trial_many, THREAD_RANKS, ranks);
    check_detail(&ranks[2], "the sum of ones is 2.25");
}

/* Every rank computes with the bits of every other. */
static void bits_of_all_ranks_are_compared(void **state)
{
    (void)state;
    struct rank ranks[THREAD_RANKS];
    char expected[100];
    for (int32_t from = 0; from < THREAD_RANKS; from++) {
        const int32_t to = (from + 1) % THREAD_RANKS;
        offend(SEQLSTM_COLLECTIVE_ALL_GATHER, 0, from, to, 0);
        run_ranks(sl_trial_rounding, THREAD_RANKS, ranks);
        snprintf(expected, sizeof expected, "ranks %d and %d have other bits of the same sum", to, from);
        check_detail(&ranks[to], expected);
    }
    threads.only_last = true; /* of the sums */
    offend(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, 1, 2, 0);
    run_ranks(sl_trial_rounding, THREAD_RANKS, ranks);
    threads.only_last = false;
    check_detail(&ranks[2], "ranks 2 and 0 have other bits of the same sum");
}

/* ---- one rank, whose plugin answers as told ---------------------------------------------------------------------- */

/* Makes groups of any ranks that a test lets pass: the number of the list in the order of the calls; -1: none. */
static int32_t accepted, group_calls;

static seqlstm_status accept_group(struct seqlstm_connection *connection, uint32_t number, const int32_t *ranks,
                                   int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    const int32_t call = number == 0 ? -1 : group_calls++;
    if (number > 0 && call != accepted)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "no");
    (void)ranks, (void)count;
    *out_group = &connection->groups[number];
    (*out_group)->rank = connection->rank;
    (*out_group)->number = number;
    return SEQLSTM_OK;
}

/* The answers to exchanges after the first `succeed`, in turn; the last one is that to all further ones. */
static struct {
    int succeed, runs;
    seqlstm_status status[2];
    int32_t blamed; /* native_code */
    seqlstm_status polls[2];
    int polled;
    struct seqlstm_exchange last; /* the first exchange that got an answer */
    uint32_t group;
} answer;

static seqlstm_status run_answer(struct seqlstm_group *group, struct seqlstm_queue *queue,
                                 const struct seqlstm_exchange *e, struct seqlstm_error *err)
{
    (void)queue;
    const int turn = answer.runs++ - answer.succeed;
    if (turn < 0)
        return SEQLSTM_OK;
    if (turn == 0) {
        answer.last = *e;
        answer.group = group->number;
    }
    const seqlstm_status status = answer.status[turn > 0];
    if (status != SEQLSTM_OK) {
        seqlstm_error_set(err, status, __FILE__, __LINE__, "the plugin's words");
        err->native_code = answer.blamed;
    }
    return status;
}

/* The clock of rank `late_rank` is far ahead in round `late_round`: it came only after the others had gone. */
static int32_t late_rank, late_round;

static seqlstm_status run_late(struct seqlstm_group *group, struct seqlstm_queue *queue,
                               const struct seqlstm_exchange *e, struct seqlstm_error *err)
{
    (void)queue, (void)err;
    int64_t *came = e->to;
    if (e->kind != SEQLSTM_COLLECTIVE_ALL_GATHER)
        return SEQLSTM_OK;
    for (int32_t r = 0; r < THREAD_RANKS; r++)
        came[r] = *(const int64_t *)e->from + (r == late_rank && answer.runs == late_round ? INT64_C(1) << 60 : 0);
    (void)group;
    answer.runs++;
    return SEQLSTM_OK;
}

static seqlstm_status poll_answer(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    (void)connection, (void)err;
    return answer.polls[answer.polled++ > 0];
}

static struct seqlstm_collectives told;

static const struct seqlstm_collectives *told_query(uint32_t host_minor)
{
    (void)host_minor;
    return &told;
}

/* The case as this rank of so many, by a plugin that answers with `run`. */
static struct sl_trial run_told(void (*run)(struct sl_trial *trial), int32_t rank, int32_t ranks,
                                seqlstm_status (*exchange)(struct seqlstm_group *, struct seqlstm_queue *,
                                                           const struct seqlstm_exchange *, struct seqlstm_error *))
{
    static struct seqlstm_transport transport;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_trial trial = {.rank = rank, .ranks = ranks, .seed = 5};
    told = *thread_query(SEQLSTM_COLLECTIVES_MINOR);
    told.group_create = accept_group;
    told.run = exchange;
    told.poll = poll_answer;
    answer.runs = answer.polled = group_calls = 0;
    if (thread_connect(told_query, rank, ranks, &trial.connection, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    transport = *sl_connection_get_transport(trial.connection);
    transport.one_host = 1;
    trial.transport = &transport;
    run(&trial);
    sl_connection_close(trial.connection);
    return trial;
}

static void each_wrong_group_must_be_refused(void **state)
{
    (void)state;
    static const struct {
        int32_t rank, list;
        const char *detail; /* the ranks */
    } cases[] = {{1, 0, "1 and 0"}, {1, 1, "1 and 1"},  {1, 2, "1 and 3"}, {1, 3, "-1 and 1"}, {1, 4, "0 and 0"},
                 {0, 0, "1 and 0"}, {0, 1, "0 and 0"},  {0, 2, "0 and 3"}, {0, 3, "-1 and 0"}, {0, 4, "1 and 1"},
                 {2, 0, "2 and 0"}, {2, 3, "-1 and 2"}, {2, 4, "0 and 0"}};
    char expected[120];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        accepted = cases[k].list;
        const struct sl_trial trial = run_told(sl_trial_groups, cases[k].rank, THREAD_RANKS, run_answer);
        snprintf(expected, sizeof expected, "group_create of the ranks %s returned 0, expected INVALID_ARGUMENT",
                 cases[k].detail);
        assert_string_equal(trial.detail, expected);
    }
    accepted = -1;
}

static void nobody_leaves_a_barrier_before_the_last_has_come(void **state)
{
    (void)state;
    char expected[100];
    for (late_rank = 0; late_rank < THREAD_RANKS; late_rank++) {
        late_round = late_rank;
        const struct sl_trial trial = run_told(sl_trial_barrier, 1, THREAD_RANKS, run_late);
        snprintf(expected, sizeof expected, "rank 1 left a barrier before rank %d had come", late_rank);
        assert_string_equal(trial.detail, expected);
    }
    late_round = THREAD_RANKS;
    assert_string_equal(run_told(sl_trial_barrier, 1, THREAD_RANKS, run_late).detail, "");
}

/* What `run` answers to the exchange that must fail, and to the next one. */
static void a_failure_has_its_status_and_blames_another_rank(void **state)
{
    (void)state;
    enum { LATE = SEQLSTM_DEVICE, GONE = SEQLSTM_CANCELLED };
    static const struct {
        const char *name;
        void (*run)(struct sl_trial *trial);
        int32_t rank, ranks;
        seqlstm_status status, next;
        int32_t blamed;
        const char *detail; /* "": it passes */
    } cases[] = {
        {"time_out", sl_trial_time_out, 1, 4, LATE, LATE, 4, ""},
        {"time_out", sl_trial_time_out, 1, 4, LATE, LATE, 3, ""},
        {"time_out", sl_trial_time_out, 1, 4, LATE, GONE, 1, ""},
        {"time_out", sl_trial_time_out, 1, 4, LATE, LATE, 2, "native_code is 2, expected 1 + -1: the plugin's words"},
        {"time_out", sl_trial_time_out, 0, 4, LATE, LATE, 1, "native_code is 1, expected 1 + -1: the plugin's words"},
        {"time_out", sl_trial_time_out, 1, 4, LATE, LATE, 0, "native_code is 0, expected 1 + -1: the plugin's words"},
        {"time_out", sl_trial_time_out, 1, 4, LATE, LATE, 5, "native_code is 5, expected 1 + -1: the plugin's words"},
        {"time_out", sl_trial_time_out, 1, 4, LATE, SEQLSTM_OK, 4, "after a failure the next exchange succeeds"},
        {"time_out", sl_trial_time_out, 1, 4, GONE, GONE, 4, "gave status"},
        {"time_out", sl_trial_time_out, 1, 4, SEQLSTM_OK, LATE, 4, "the exchange gave status 0, expected"},
        {"late_peer", sl_trial_late_peer, 1, 4, LATE, LATE, 4, ""},
        {"late_peer", sl_trial_late_peer, 0, 4, LATE, LATE, 4, ""},
        {"late_peer", sl_trial_late_peer, 0, 2, LATE, LATE, 2, ""},
        {"late_peer", sl_trial_late_peer, 0, 4, LATE, LATE, 2, "native_code is 2, expected 1 + 3: the plugin's words"},
        {"late_peer", sl_trial_late_peer, 0, 4, LATE, LATE, 3, "native_code is 3, expected 1 + 3: the plugin's words"},
        {"late_peer", sl_trial_late_peer, 1, 4, LATE, LATE, 1, "native_code is 1, expected 1 + 3: the plugin's words"},
        {"late_peer", sl_trial_late_peer, 1, 4, GONE, LATE, 4, "gave status"},
        {"late_peer", sl_trial_late_peer, 1, 4, LATE, SEQLSTM_OK, 4, "after a failure the next exchange succeeds"},
        {"death", sl_trial_death, 1, 4, GONE, GONE, 4, ""},
        {"death", sl_trial_death, 1, 4, GONE, GONE, 2, "native_code is 2, expected 1 + -1: the plugin's words"},
        {"death", sl_trial_death, 1, 4, LATE, GONE, 4, "gave status"},
        {"death", sl_trial_death, 1, 4, GONE, SEQLSTM_OK, 4, "after a failure the next exchange succeeds"},
        {"leaving", sl_trial_leaving, 2, 4, GONE, GONE, 4, ""},
        {"leaving", sl_trial_leaving, 2, 4, GONE, GONE, 3, "native_code is 3, expected 1 + -1: the plugin's words"},
        {"leaving", sl_trial_leaving, 2, 4, LATE, GONE, 4, "gave status"},
        {"abort", sl_trial_abort, 1, 4, GONE, GONE, 4, ""},
        {"abort", sl_trial_abort, 1, 4, GONE, GONE, 3, "native_code is 3, expected 1 + 3: the plugin's words"},
        {"abort", sl_trial_abort, 1, 4, LATE, GONE, 4, "gave status"},
        {"abort", sl_trial_abort, 1, 4, GONE, SEQLSTM_OK, 4, "after a failure the next exchange succeeds"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *name = cases[k].name, *detail = cases[k].detail;
        memset(&answer, 0, sizeof answer);
        accepted = 0;
        answer.succeed = strcmp(name, "death") == 0 ? 10 : strcmp(name, "leaving") == 0 || strcmp(name, "abort") == 0;
        answer.status[0] = cases[k].status;
        answer.status[1] = cases[k].next;
        answer.blamed = cases[k].blamed;
        const struct sl_trial trial = run_told(cases[k].run, cases[k].rank, cases[k].ranks, run_answer);
        if (trial.failed != (detail[0] != 0) || !strstr(trial.detail, detail))
            fail_msg("case %zu, %s: '%s', expected '%s'", k, name, trial.detail, detail);
        if (strcmp(name, "late_peer") == 0) { /* its place among the first and the last rank, or all */
            const bool grouped = cases[k].rank == 0 && cases[k].ranks > 2;
            assert_int_equal(answer.group, grouped);
            assert_int_equal(answer.last.peer, grouped ? 1 : cases[k].ranks - 1);
            assert_int_equal(answer.last.kind, SEQLSTM_COLLECTIVE_RECEIVE);
        } else {
            assert_int_equal(answer.last.kind, SEQLSTM_COLLECTIVE_BARRIER);
        }
    }
    accepted = -1;
}

/* The rank that aborts: all that it asks for afterwards is CANCELLED, and nothing was before. */
static void after_its_own_abort_a_rank_is_cancelled(void **state)
{
    (void)state;
    static const struct {
        seqlstm_status before, after, exchange;
        const char *detail;
    } cases[] = {{SEQLSTM_OK, SEQLSTM_CANCELLED, SEQLSTM_CANCELLED, ""},
                 {SEQLSTM_CANCELLED, SEQLSTM_CANCELLED, SEQLSTM_CANCELLED, "poll: "},
                 {SEQLSTM_OK, SEQLSTM_OK, SEQLSTM_CANCELLED, "poll after abort"},
                 {SEQLSTM_OK, SEQLSTM_CANCELLED, SEQLSTM_DEVICE, "an exchange after abort"},
                 {SEQLSTM_OK, SEQLSTM_CANCELLED, SEQLSTM_OK, "an exchange after abort"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        memset(&answer, 0, sizeof answer);
        answer.succeed = 1;
        answer.polls[0] = cases[k].before;
        answer.polls[1] = cases[k].after;
        answer.status[0] = answer.status[1] = cases[k].exchange;
        answer.blamed = 3;
        const struct sl_trial trial = run_told(sl_trial_abort, 2, 3, run_answer);
        if (strncmp(trial.detail, cases[k].detail, cases[k].detail[0] ? strlen(cases[k].detail) : 1) != 0)
            fail_msg("case %zu: '%s', expected '%s'", k, trial.detail, cases[k].detail);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broadcasts_come_from_every_root),
        cmocka_unit_test(every_part_that_is_gathered_counts),
        cmocka_unit_test(every_pair_is_tried_in_both_directions),
        cmocka_unit_test(reductions_are_of_all_ranks),
        cmocka_unit_test(sums_of_each_group_are_checked),
        cmocka_unit_test(ordered_sums_have_several_shards_for_a_rank),
        cmocka_unit_test(many_exchanges_are_checked_by_kind),
        cmocka_unit_test(bits_of_all_ranks_are_compared),
        cmocka_unit_test(each_wrong_group_must_be_refused),
        cmocka_unit_test(nobody_leaves_a_barrier_before_the_last_has_come),
        cmocka_unit_test(a_failure_has_its_status_and_blames_another_rank),
        cmocka_unit_test(after_its_own_abort_a_rank_is_cancelled),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
