/* SPDX-License-Identifier: Apache-2.0 */
/* comm-nccl when ranks are late, leave, fail or abort: each exchange names the rank that is to blame.
 *
 *   test_nccl_waits LIBNCCL.so.2 */
#include "nccl_fixture.h"

/* Rank 1 waits for rank 3, which does nothing, in a group of both; rank 3 then says that rank 1 has failed. */
static void each_exchange_names_the_rank_that_is_late(void **state)
{
    static const int32_t members[] = {1, 3};
    static const struct {
        uint32_t kind;
        int32_t peer; /* place in the group */
    } cases[] = {{SEQLSTM_COLLECTIVE_BARRIER, 0},    {SEQLSTM_COLLECTIVE_ALL_REDUCE, 0},
                 {SEQLSTM_COLLECTIVE_BROADCAST, 0},  {SEQLSTM_COLLECTIVE_BROADCAST, 1},
                 {SEQLSTM_COLLECTIVE_RECEIVE, 1},    {SEQLSTM_COLLECTIVE_SEND, 1},
                 {SEQLSTM_COLLECTIVE_ALL_GATHER, 0}, {SEQLSTM_COLLECTIVE_REDUCE_SCATTER, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct seqlstm_exchange e = exchange(cases[k].kind, cases[k].peer, SHORT_NS);
        const struct seqlstm_exchange back = exchange(SEQLSTM_COLLECTIVE_BARRIER, 0, LONG_NS);
        make(2, members, 2);
        expect_run(1, 2, &e, SEQLSTM_DEVICE, 4, "rank 3 did not come in time");
        expect_poll(1, SEQLSTM_DEVICE, 4, "rank 3 did not come in time");
        expect_run(1, 2, &back, SEQLSTM_DEVICE, 4, "rank 3 did not come in time");
        expect_poll(3, SEQLSTM_OK, 0, "");
        if (k == 0) /* it gives what is on its way a second */
            expect_run(3, 2, &back, SEQLSTM_CANCELLED, 2, "rank 1 has failed");
        leave_all(state);
        join_within(LONG_NS);
    }
}

static void *pass_on(void *context)
{
    struct rank *r = context;
    const struct seqlstm_exchange e = exchange(r->number == 2 ? SEQLSTM_COLLECTIVE_SEND : SEQLSTM_COLLECTIVE_RECEIVE,
                                               r->number == 2 ? 2 : 1, LONG_NS);
    r->status = table->run(r->groups[5], NULL, &e, &r->err);
    return NULL;
}

/* Ranks 0 and 2 wait for rank 3, and rank 0 has less patience. What ranks 2 and 3 exchange as a pair does not count. */
static void all_that_wait_name_the_rank_that_is_late(void **state)
{
    static const int32_t members[] = {0, 2, 3};
    const struct timespec pause = {.tv_nsec = 2000000};
    const struct seqlstm_exchange brief = exchange(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, SHORT_NS);
    struct seqlstm_exchange queued = exchange(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, LONG_NS);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct lane lane;
    (void)state;
    make(5, members, 3);
    each(members + 1, 2, pass_on);
    for (int m = 1; m < 3; m++)
        assert_int_equal(ranks[members[m]].status, SEQLSTM_OK);
    open_lane(&lane, 2, 64);
    queued.from = lane.from;
    queued.to = lane.to;
    assert_int_equal(table->run(ranks[2].groups[5], &lane.queue, &queued, &err), SEQLSTM_OK);
    expect_run(0, 5, &brief, SEQLSTM_DEVICE, 4, "rank 3 did not come in time");
    while (table->poll(ranks[2].connection, &err) == SEQLSTM_OK)
        nanosleep(&pause, NULL);
    expect_poll(2, SEQLSTM_DEVICE, 4, "rank 3 did not come in time");
    expect_run(3, 5, &brief, SEQLSTM_CANCELLED, 1, "rank 0 has failed");
    expect_poll(1, SEQLSTM_OK, 0, "");
    close_lane(&lane, 2);
}

/* Here ranks 2 and 3 are late, and rank 2 is the first of them. */
static void the_first_late_member_is_named(void **state)
{
    static const int32_t members[] = {0, 2, 3};
    const struct seqlstm_exchange brief = exchange(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, SHORT_NS);
    const struct seqlstm_exchange patient = exchange(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, LONG_NS);
    (void)state;
    make(5, members, 3);
    expect_run(0, 5, &brief, SEQLSTM_DEVICE, 3, "rank 2 did not come in time");
    expect_run(3, 5, &patient, SEQLSTM_DEVICE, 3, "rank 2 did not come in time");
    expect_run(2, 5, &patient, SEQLSTM_CANCELLED, 1, "rank 0 has failed");
}

/* Rank 0 is a rank like the others, in an exchange of all members and in one with a peer. */
static void rank_0_may_be_the_late_one(void **state)
{
    static const int32_t members[] = {0, 3};
    static const uint32_t kinds[] = {SEQLSTM_COLLECTIVE_ALL_REDUCE, SEQLSTM_COLLECTIVE_RECEIVE};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct seqlstm_exchange e = exchange(kinds[k], 0, SHORT_NS);
        make(5, members, 2);
        expect_run(3, 5, &e, SEQLSTM_DEVICE, 1, "rank 0 did not come in time");
        expect_poll(3, SEQLSTM_DEVICE, 1, "rank 0 did not come in time");
        leave_all(state);
        join_within(LONG_NS);
    }
}

/* A barrier has nothing to queue. */
static void a_barrier_waits_also_where_exchanges_are_queued(void **state)
{
    static const int32_t members[] = {1, 3};
    const struct seqlstm_exchange e = exchange(SEQLSTM_COLLECTIVE_BARRIER, 0, SHORT_NS);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct lane lane;
    (void)state;
    make(0, members, 2);
    open_lane(&lane, 1, 64);
    const seqlstm_status status = table->run(ranks[1].groups[0], &lane.queue, &e, &err);
    expect("barrier", status, &err, SEQLSTM_DEVICE, 4, "rank 3 did not come in time");
    close_lane(&lane, 1);
}

/* The late rank stays the first failure, whatever comes after it. */
static void the_first_failure_stays(void **state)
{
    static const int32_t members[] = {1, 2};
    const struct seqlstm_exchange e = exchange(SEQLSTM_COLLECTIVE_RECEIVE, 0, SHORT_NS);
    (void)state;
    make(0, members, 2);
    expect_run(2, 0, &e, SEQLSTM_DEVICE, 2, "rank 1 did not come in time");
    table->abort(ranks[3].connection);
    expect_poll(2, SEQLSTM_DEVICE, 2, "rank 1 did not come in time");
    expect_run(2, 0, &e, SEQLSTM_DEVICE, 2, "rank 1 did not come in time");
    for (int32_t r = 0; r < 2; r++)
        expect_poll(r, SEQLSTM_CANCELLED, 4, "rank 3 has ended the job");
    const struct seqlstm_exchange barrier = exchange(SEQLSTM_COLLECTIVE_BARRIER, 0, SHORT_NS);
    struct seqlstm_exchange queued = exchange(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, LONG_NS);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct lane lane;
    open_lane(&lane, 1, 64);
    queued.from = lane.from;
    queued.to = lane.to;
    const seqlstm_status status = table->run(ranks[1].groups[0], &lane.queue, &queued, &err);
    expect("queue", status, &err, SEQLSTM_CANCELLED, 4, "rank 3 has ended the job");
    close_lane(&lane, 1);
    expect_run(1, 0, &barrier, SEQLSTM_CANCELLED, 4, "rank 3 has ended the job");
}

/* One that has left will not come however long the time is. */
static void a_rank_that_has_left_is_not_waited_for(void **state)
{
    static const int32_t members[] = {0, 2, 3};
    static const struct {
        uint32_t kind;
        int32_t peer;
    } cases[] = {{SEQLSTM_COLLECTIVE_BROADCAST, 2}, {SEQLSTM_COLLECTIVE_RECEIVE, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct seqlstm_exchange e = exchange(cases[k].kind, cases[k].peer, LONG_NS);
        make(7, members, 3);
        leave(&ranks[2]);
        expect_run(0, 7, &e, SEQLSTM_CANCELLED, 3, "rank 2 has left the job");
        leave_all(state);
        join_within(LONG_NS);
    }
}

static void *come_late(void *context)
{
    struct rank *r = context;
    const struct timespec pause = {.tv_sec = 1, .tv_nsec = 300000000}; /* longer than any grace */
    const struct seqlstm_exchange e = exchange(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, LONG_NS);
    struct seqlstm_exchange own = e;
    unsigned char bytes[] = {(unsigned char)(1 + r->number), 7};
    own.from = own.to = bytes;
    if (r->number == 3)
        nanosleep(&pause, NULL);
    r->status = table->run(r->groups[6], NULL, &own, &r->err);
    if (r->status == SEQLSTM_OK && (bytes[0] != 6 || bytes[1] != 14))
        r->status = SEQLSTM_INTERNAL;
    return NULL;
}

static void a_rank_that_ends_one_of_its_groups_has_not_left(void **state)
{
    static const int32_t members[] = {1, 3};
    (void)state;
    make(1, members, 2);
    make(6, members, 2);
    task.group = 1;
    each(members, 2, end_group);
    each(members, 2, come_late);
    for (int k = 0; k < 2; k++)
        assert_int_equal(ranks[members[k]].status, SEQLSTM_OK);
}

static _Atomic bool has_gone;

static void *send_and_leave(void *context)
{
    struct rank *r = context;
    const struct seqlstm_exchange e = exchange(SEQLSTM_COLLECTIVE_SEND, 0, LONG_NS);
    r->status = table->run(r->groups[6], NULL, &e, &r->err);
    leave(r);
    queries = 300; /* from now on; ncc_wait looks after 200 */
    has_gone = true;
    return NULL;
}

static void *receive_slowly(void *context)
{
    struct rank *r = context;
    const struct timespec pause = {.tv_nsec = 2000000};
    const struct seqlstm_exchange e = exchange(SEQLSTM_COLLECTIVE_RECEIVE, 1, LONG_NS);
    struct seqlstm_exchange on_device = e;
    struct lane lane;
    open_lane(&lane, r->number, 64);
    on_device.to = lane.to;
    if (r->number == 0) /* the connection of rank 0 watches, that of rank 1 waits */
        r->status = table->run(r->groups[6], &lane.queue, &on_device, &r->err);
    else
        r->status = table->run(r->groups[6], NULL, &e, &r->err);
    while (!has_gone || queries > 0)
        nanosleep(&pause, NULL);
    if (r->status == SEQLSTM_OK)
        r->status = table->poll(r->connection, &r->err);
    end_group(r);
    close_lane(&lane, r->number);
    return NULL;
}

/* A rank may go when its own part is done, and the event of the other one happens a little later. */
static void a_rank_may_leave_when_its_part_is_done(void **state)
{
    for (int32_t receiver = 0; receiver < 2; receiver++) {
        const int32_t members[] = {receiver, 3};
        pthread_t ids[2];
        has_gone = false;
        queries = 1 << 30;
        slow = device_of[receiver];
        make(6, members, 2);
        task.group = 6;
        assert_int_equal(pthread_create(&ids[0], NULL, receive_slowly, &ranks[receiver]), 0);
        assert_int_equal(pthread_create(&ids[1], NULL, send_and_leave, &ranks[3]), 0);
        for (int k = 0; k < 2; k++)
            pthread_join(ids[k], NULL);
        if (ranks[receiver].status != SEQLSTM_OK)
            fail_msg("rank %d: %s", receiver, ranks[receiver].err.message);
        leave_all(state);
        join_within(LONG_NS);
    }
}

/* A queued exchange for which a rank does not come is found without a call; it ends what is queued in other groups. */
static void a_queued_exchange_that_cannot_end_is_ended(void **state)
{
    static const int32_t first[] = {1, 2}, second[] = {1, 3};
    const struct timespec pause = {.tv_nsec = 2000000};
    struct lane lanes[2];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    make(6, first, 2);
    make(1, second, 2);
    for (int k = 0; k < 2; k++) {
        open_lane(&lanes[k], 1, 64);
        struct seqlstm_exchange e = exchange(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, k == 0 ? 2 * SHORT_NS : LONG_NS);
        e.from = lanes[k].from;
        e.to = lanes[k].to;
        assert_int_equal(table->run(ranks[1].groups[k == 0 ? 6 : 1], &lanes[k].queue, &e, &err), SEQLSTM_OK);
    }
    while (table->poll(ranks[1].connection, &err) == SEQLSTM_OK)
        nanosleep(&pause, NULL);
    expect_poll(1, SEQLSTM_DEVICE, 3, "rank 2 did not come in time");
    for (int k = 0; k < 2; k++)
        close_lane(&lanes[k], 1);
}

/* A buffer of the host where the queue says that it lies on the device: NCCL refuses it, and no rank is to blame. It
 * may have no words, or none about this. */
static void what_nccl_refuses_is_told_with_its_words(void **state)
{
    static const char *const names[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Send", "Recv"};
    static const char *const words[] = {"said the fake", "", "none"};
    static const int32_t members[] = {0, 2, 3};
    for (uint32_t kind = 0; kind < 6; kind++) {
        struct lane lane;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const struct seqlstm_exchange e = exchange(kind, 2, LONG_NS);
        const struct seqlstm_exchange other = exchange(SEQLSTM_COLLECTIVE_BARRIER, 0, LONG_NS);
        char message[96];
        snprintf(message, sizeof message, "NCCL failed in %s: invalid argument (4)%s", names[kind],
                 kind % 3 == 0 ? ": said the fake" : "");
        setenv("FAKE_NCCL_LAST", words[kind % 3], 1);
        make(2, members, 3);
        open_lane(&lane, 2, 64);
        const seqlstm_status status = table->run(ranks[2].groups[2], &lane.queue, &e, &err);
        expect(names[kind], status, &err, SEQLSTM_DEVICE, 0, message);
        for (int32_t r = 0; kind == SEQLSTM_COLLECTIVE_BROADCAST && r < RANKS; r += 3) /* the other members */
            expect_run(r, 2, &other, SEQLSTM_CANCELLED, 3, "rank 2 has failed");
        unsetenv("FAKE_NCCL_LAST");
        close_lane(&lane, 2);
        leave_all(state);
        join_within(LONG_NS);
    }
}

static void a_lost_device_is_no_late_rank(void **state)
{
    static const int32_t members[] = {2, 3};
    const struct seqlstm_exchange e = exchange(SEQLSTM_COLLECTIVE_BARRIER, 0, LONG_NS);
    (void)state;
    make(0, members, 2);
    broken = device_of[3];
    expect_run(3, 0, &e, SEQLSTM_DEVICE, 0, "the device is lost");
    expect_run(2, 0, &e, SEQLSTM_CANCELLED, 4, "rank 3 has failed");
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_exchange_names_the_rank_that_is_late, join_all, leave_all),
        cmocka_unit_test_setup_teardown(all_that_wait_name_the_rank_that_is_late, join_all, leave_all),
        cmocka_unit_test_setup_teardown(the_first_late_member_is_named, join_all, leave_all),
        cmocka_unit_test_setup_teardown(rank_0_may_be_the_late_one, join_all, leave_all),
        cmocka_unit_test_setup_teardown(a_barrier_waits_also_where_exchanges_are_queued, join_all, leave_all),
        cmocka_unit_test_setup_teardown(the_first_failure_stays, join_all, leave_all),
        cmocka_unit_test_setup_teardown(a_rank_that_has_left_is_not_waited_for, join_all, leave_all),
        cmocka_unit_test_setup_teardown(a_rank_that_ends_one_of_its_groups_has_not_left, join_all, leave_all),
        cmocka_unit_test_setup_teardown(a_rank_may_leave_when_its_part_is_done, join_all, leave_all),
        cmocka_unit_test_setup_teardown(a_queued_exchange_that_cannot_end_is_ended, join_all, leave_all),
        cmocka_unit_test_setup_teardown(what_nccl_refuses_is_told_with_its_words, join_all, leave_all),
        cmocka_unit_test_setup_teardown(a_lost_device_is_no_late_rank, join_all, leave_all),
    };
    RUN_TESTS(tests);
}
