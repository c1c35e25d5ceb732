/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks, groups and exchanges of comm-nccl where all goes well, and what a rank answers that has no device.
 *
 *   test_nccl_ranks LIBNCCL.so.2 */
#include "nccl_fixture.h"

#include <dirent.h>
#include <signal.h>

static void a_group_names_the_member_that_does_not_come(void **state)
{
    static const int32_t members[] = {1, 2, 3};
    static const struct {
        int32_t rank, missing;
        bool left;
    } cases[] = {{1, 2, false}, {3, 1, false}, {3, 1, true}, {1, 3, true}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int32_t rank = cases[k].rank, native = 1 + cases[k].missing;
        const seqlstm_status status = cases[k].left ? SEQLSTM_CANCELLED : SEQLSTM_DEVICE;
        char message[64];
        snprintf(message, sizeof message, "rank %d %s", cases[k].missing,
                 cases[k].left ? "has left the job" : "did not come in time");
        leave_all(state);
        join_within(cases[k].left ? LONG_NS : INT64_C(500000000));
        if (cases[k].left)
            leave(&ranks[cases[k].missing]);
        task.group = 3;
        task.members = members;
        task.count = 3;
        each(&rank, 1, make_group);
        assert_null(ranks[rank].groups[3]);
        expect("group", ranks[rank].status, &ranks[rank].err, status, native, message);
        expect_poll(rank, status, native, message);
    }
}

/* Two wait for the third, neither for the other. */
static void those_that_have_come_to_a_group_are_not_to_blame(void **state)
{
    static const int32_t members[] = {1, 2, 3};
    leave_all(state);
    join_within(INT64_C(300000000));
    task.group = 3;
    task.members = members;
    task.count = 3;
    each(members, 2, make_group);
    for (int k = 0; k < 2; k++) {
        const struct rank *r = &ranks[members[k]];
        assert_null(r->groups[3]);
        expect("group", r->status, &r->err, SEQLSTM_DEVICE, 1 + 3, "rank 3 did not come in time");
    }
}

static void *add_up(void *context)
{
    struct rank *r = context;
    unsigned char bytes[] = {(unsigned char)(10 * r->number), 1};
    struct seqlstm_exchange e = exchange(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, LONG_NS);
    e.from = e.to = bytes;
    r->status = table->run(r->groups[2], NULL, &e, &r->err);
    if (r->status == SEQLSTM_OK && (bytes[0] != (r->number < 2 ? 10 : 50) || bytes[1] != 2))
        r->status = SEQLSTM_INTERNAL;
    return NULL;
}

static void *make_half(void *context)
{
    static const int32_t halves[2][2] = {{0, 1}, {2, 3}};
    struct rank *r = context;
    r->status = table->group_create(r->connection, 2, halves[r->number / 2], 2, &r->groups[2], &r->err);
    return r->status == SEQLSTM_OK ? add_up(r) : NULL;
}

static void *make_half_later(void *context)
{
    const struct timespec pause = {.tv_nsec = 30000000};
    nanosleep(&pause, NULL);
    return make_half(context);
}

/* Two groups without a common member may have the same number. Rank 3 waits for the first member of its own. */
static void groups_of_other_ranks_may_have_the_same_number(void **state)
{
    pthread_t ids[2];
    (void)state;
    task.group = 2;
    each(all, 2, make_half);
    assert_int_equal(pthread_create(&ids[0], NULL, make_half, &ranks[3]), 0);
    assert_int_equal(pthread_create(&ids[1], NULL, make_half_later, &ranks[2]), 0);
    for (int k = 0; k < 2; k++)
        pthread_join(ids[k], NULL);
    for (int r = 0; r < RANKS; r++)
        if (ranks[r].status != SEQLSTM_OK)
            fail_msg("rank %d: status %d, %s", r, (int)ranks[r].status, ranks[r].err.message);
}

static void a_number_stays_used_when_others_are(void **state)
{
    struct seqlstm_group *none = NULL;
    (void)state;
    for (uint32_t round = 0; round < 2; round++)
        make(3 - round, all, RANKS);
    for (uint32_t round = 0; round < 2; round++) {
        task.group = 3 - round;
        each(all, RANKS, end_group);
    }
    for (uint32_t k = 2; k < 10; k += k == 3 ? 5 : 1) { /* 2, 3, 8 and 9 */
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char message[64];
        snprintf(message, sizeof message, "no group %u: the number is used, or too large", k);
        const seqlstm_status status = table->group_create(ranks[2].connection, k, all, RANKS, &none, &err);
        expect("group", status, &err, SEQLSTM_INVALID_ARGUMENT, 0, message);
        assert_null(none);
    }
}

/* ---- exchanges -------------------------------------------------------------------------------------------------- */

/* Each call returns before any other rank has come; the oldest of them are still on their way when the group ends. */
static void queued_exchanges_wait_for_no_other_rank(void **state)
{
    enum { COUNT = 20, ELEMS = 3 };
    static const int32_t members[] = {0, 3};
    struct lane lanes[2];
    (void)state;
    make(4, members, 2);
    for (int m = 0; m < 2; m++)
        open_lane(&lanes[m], members[m], 4 * COUNT * ELEMS);
    for (int m = 0; m < 2; m++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        int32_t values[COUNT * ELEMS];
        for (int k = 0; k < COUNT * ELEMS; k++)
            values[k] = m == 0 ? k : 1000 * k;
        assert_int_equal(gpu_copy(device_of[members[m]], lanes[m].stream, SEQLSTM_COPY_TO_DEVICE, lanes[m].from, values,
                                  sizeof values, &err),
                         SEQLSTM_OK);
        for (int k = 0; k < COUNT; k++) {
            const struct seqlstm_exchange e = {.struct_size = sizeof e,
                                               .kind = SEQLSTM_COLLECTIVE_ALL_REDUCE,
                                               .dtype = SEQLSTM_DTYPE_INT32,
                                               .reduction = k % 2 ? SEQLSTM_REDUCE_MAX : SEQLSTM_REDUCE_SUM,
                                               .elems = ELEMS,
                                               .from = (int32_t *)lanes[m].from + k * ELEMS,
                                               .to = (int32_t *)lanes[m].to + k * ELEMS,
                                               .timeout_ns = LONG_NS};
            if (table->run(ranks[members[m]].groups[4], &lanes[m].queue, &e, &err) != SEQLSTM_OK)
                fail_msg("rank %d, exchange %d: %s", members[m], k, err.message);
        }
    }
    task.group = 4;
    each(members, 2, end_group);
    for (int m = 0; m < 2; m++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        int32_t values[COUNT * ELEMS];
        assert_int_equal(gpu_copy(device_of[members[m]], lanes[m].stream, SEQLSTM_COPY_TO_HOST, values, lanes[m].to,
                                  sizeof values, &err),
                         SEQLSTM_OK);
        for (int k = 0; k < COUNT * ELEMS; k++)
            assert_int_equal(values[k], k / ELEMS % 2 ? 1000 * k : 1001 * k);
        close_lane(&lanes[m], members[m]);
    }
}

static void *queue_many(void *context)
{
    enum { COUNT = 75 };
    struct rank *r = context;
    const struct timespec pause = {.tv_nsec = 30000000};
    struct lane lane;
    open_lane(&lane, r->number, 2 * COUNT);
    r->status = gpu_fill(device_of[r->number], lane.stream, lane.from, (uint32_t)r->number, 2 * COUNT, &r->err);
    if (r->number == 2)
        nanosleep(&pause, NULL);
    for (int k = 0; r->status == SEQLSTM_OK && k < COUNT; k++) {
        struct seqlstm_exchange e = exchange(SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, LONG_NS);
        e.from = (unsigned char *)lane.from + 2 * k;
        e.to = (unsigned char *)lane.to + 2 * k;
        r->status = table->run(r->groups[0], &lane.queue, &e, &r->err);
    }
    unsigned char sums[2 * COUNT] = {0};
    if (r->status == SEQLSTM_OK)
        r->status =
            gpu_copy(device_of[r->number], lane.stream, SEQLSTM_COPY_TO_HOST, sums, lane.to, sizeof sums, &r->err);
    for (size_t k = 0; k < sizeof sums; k++)
        r->status = r->status == SEQLSTM_OK && sums[k] != 6 ? SEQLSTM_INTERNAL : r->status;
    end_group(r); /* afterwards the watching thread asks for none of its events */
    close_lane(&lane, r->number);
    return NULL;
}

/* More than are watched at the same time; rank 2 comes when the others have queued as many as they can. */
static void more_exchanges_than_are_watched_at_once(void **state)
{
    (void)state;
    make(0, all, RANKS);
    each(all, RANKS, queue_many);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(ranks[r].status, SEQLSTM_OK);
}

enum { PARTS_MOST = 3 };

/* The value at place k of a vector of rank r: different for each, and small. */
static double value_of(int32_t r, int64_t k)
{
    return (double)(1000 * (r + 1)) + (double)(k % 251);
}

static int64_t large; /* elements: more than two stages, and a part of a third */

static void *exchange_large(void *context)
{
    struct rank *r = context;
    const int32_t place = r->number == 0 ? 0 : r->number - 1; /* members are 0, 2 and 3 */
    double *from = malloc(PARTS_MOST * (size_t)large * sizeof *from);
    double *to = calloc(PARTS_MOST * (size_t)large, sizeof *to);
    struct seqlstm_exchange e = {.struct_size = sizeof e,
                                 .dtype = SEQLSTM_DTYPE_FLOAT64,
                                 .elems = large,
                                 .from = from,
                                 .to = to,
                                 .timeout_ns = LONG_NS};
    for (int64_t k = 0; k < PARTS_MOST * large; k++)
        from[k] = value_of(r->number, k);
    e.kind = SEQLSTM_COLLECTIVE_REDUCE_SCATTER;
    r->status = table->run(r->groups[5], NULL, &e, &r->err);
    for (int64_t k = 0; k < large; k++) {
        const int64_t at = place * large + k;
        if (r->status == SEQLSTM_OK && to[k] != value_of(0, at) + value_of(2, at) + value_of(3, at))
            r->status = SEQLSTM_INTERNAL;
    }
    e.kind = SEQLSTM_COLLECTIVE_ALL_GATHER;
    if (r->status == SEQLSTM_OK)
        r->status = table->run(r->groups[5], NULL, &e, &r->err);
    for (int64_t k = 0; k < PARTS_MOST * large; k++)
        if (r->status == SEQLSTM_OK && to[k] != value_of(k < large ? 0 : k < 2 * large ? 2 : 3, k % large))
            r->status = SEQLSTM_INTERNAL;
    e.kind = SEQLSTM_COLLECTIVE_BROADCAST;
    e.to = from;
    e.peer = 1;
    if (r->status == SEQLSTM_OK)
        r->status = table->run(r->groups[5], NULL, &e, &r->err);
    for (int64_t k = 0; k < large; k++)
        if (r->status == SEQLSTM_OK && from[k] != value_of(2, k))
            r->status = SEQLSTM_INTERNAL;
    e.kind = place == 0 ? SEQLSTM_COLLECTIVE_SEND : SEQLSTM_COLLECTIVE_RECEIVE;
    e.peer = place == 0 ? 2 : 0;
    e.from = from + large;
    e.to = to;
    if (r->status == SEQLSTM_OK && place != 1)
        r->status = table->run(r->groups[5], NULL, &e, &r->err);
    for (int64_t k = 0; place == 2 && k < large; k++)
        if (r->status == SEQLSTM_OK && to[k] != value_of(0, large + k))
            r->status = SEQLSTM_INTERNAL;
    free(from);
    free(to);
    return NULL;
}

/* Three members, so that a stage is not filled to its end. */
static void large_exchanges_pass_the_stage_in_parts(void **state)
{
    static const int32_t members[] = {0, 2, 3};
    (void)state;
    large = 2 * (STAGE_BYTES / (int)sizeof(double) / 3) + 1001;
    make(5, members, 3);
    each(members, 3, exchange_large);
    for (int k = 0; k < 3; k++)
        if (ranks[members[k]].status != SEQLSTM_OK)
            fail_msg("rank %d: status %d, %s", members[k], (int)ranks[members[k]].status,
                     ranks[members[k]].err.message);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

/* Threads that take no SIGUSR1: those that watch exchanges, since signals are for the thread that computes. */
static int count_deaf_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300], line[128];
        unsigned long long blocked = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        while (file != NULL && fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
                break;
        if (file != NULL)
            fclose(file);
        count += (blocked >> (SIGUSR1 - 1)) & 1;
    }
    closedir(folder);
    return count;
}

static void each_rank_has_its_device_and_gives_it_back(void **state)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    uint64_t before, within, after;
    sigset_t mask;
    table = seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    assert_int_equal(gpu_memory_in_use(0, &before, NULL), SEQLSTM_OK);
    join_within(LONG_NS);
    for (int d = 0; d < DEVICES; d++)
        assert_int_equal(streams[d], d == 5 || d == 0 || d == 3 || d == 1);
    assert_int_equal(gpu_memory_in_use(0, &within, NULL), SEQLSTM_OK);
    assert_true(within >= before + RANKS * 2 * STAGE_BYTES);
    for (int turn = 0; turn < 2000 && count_deaf_threads() != RANKS; turn++) /* those that end are deaf, too */
        nanosleep(&pause, NULL);
    assert_int_equal(count_deaf_threads(), RANKS);
    leave_all(state);
    for (int d = 0; d < DEVICES; d++)
        assert_int_equal(streams[d], 0);
    assert_int_equal(gpu_memory_in_use(0, &after, NULL), SEQLSTM_OK);
    assert_int_equal(after, before);
    /* of a thread that has opened a connection */
    ranks[0] = (struct rank){.number = 0, .err = SEQLSTM_ERROR_INIT};
    const struct seqlstm_setting settings[] = {{"library", library}};
    const struct seqlstm_rendezvous alone = {.struct_size = (uint32_t)sizeof alone,
                                             .ranks = 1,
                                             .local_ranks = 1,
                                             .device = 2,
                                             .job = "nccl-alone",
                                             .timeout_ns = LONG_NS};
    assert_int_equal(table->open(&host, settings, 1, &alone, &ranks[0].connection, &ranks[0].err), SEQLSTM_OK);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGUSR1), 0);
    table->close(ranks[0].connection);
    ranks[0].connection = NULL;
}

/* Whichever call of the device fails while a rank comes, it keeps nothing. */
static void a_rank_whose_device_fails_keeps_nothing(void **state)
{
    const struct seqlstm_setting settings[] = {{"library", library}};
    uint64_t before, after;
    int last = 0;
    (void)state;
    assert_int_equal(gpu_memory_in_use(0, &before, NULL), SEQLSTM_OK);
    for (int n = 1; last == 0; n++) {
        struct seqlstm_connection *connection = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char job[40];
        snprintf(job, sizeof job, "nccl-lost-%d-%d", (int)getpid(), n);
        const struct seqlstm_rendezvous alone = {.struct_size = (uint32_t)sizeof alone,
                                                 .ranks = 1,
                                                 .local_ranks = 1,
                                                 .device = 2,
                                                 .job = job,
                                                 .timeout_ns = LONG_NS};
        atomic_store(&lost, n);
        const seqlstm_status status = table->open(&host, settings, 1, &alone, &connection, &err);
        last = atomic_exchange(&lost, 0);
        assert_int_equal(status, last ? SEQLSTM_OK : SEQLSTM_DEVICE);
        table->close(connection);
        assert_int_equal(blocks, 0);
        assert_int_equal(events, 0);
        assert_int_equal(streams[2], 0);
        assert_int_equal(gpu_memory_in_use(0, &after, NULL), SEQLSTM_OK);
        assert_int_equal(after, before);
    }
}

/* What a rank answers that has no device of its own; `shown`: CUDA_VISIBLE_DEVICES. */
static void a_rank_without_a_device_is_told_why(void **state)
{
    static const struct {
        const char *devices, *shown;
        int32_t rank, ranks, device;
        const char *message;
    } cases[] = {
        {"4", NULL, 1, 5, 1, "NCCL needs a CUDA device for each of the 5 ranks, and there are 4"},
        {"1", NULL, 1, 2, 0, "NCCL needs a CUDA device for each of the 2 ranks, and there is 1"},
        {"1", "", 1, 2, 0, "NCCL needs a CUDA device for each of the 2 ranks, and there is 1"},
        {"1", "2,3", 1, 2, 0, "NCCL needs a CUDA device for each of the 2 ranks, and there is 1"},
        {"1", "3", 1, 2, 1, "NCCL needs a CUDA device for each of the 2 ranks, and there is 1"},
        {"4", "3", 1, 5, 0, "NCCL needs a CUDA device for each of the 5 ranks, and there are 4"},
        {"3", NULL, 1, 2, -1, "rank 1 computes on the processor, and there are the CUDA devices 0 to 2"},
        {"3", NULL, 0, 2, 3, "rank 0 computes on a device with a higher number, and there are the CUDA devices 0 to 2"},
        {"1", "3", 1, 2, 0, "only 1 of the 2 ranks are on this host"}, /* one for each rank, as launchers do it */
        {"3", NULL, 2, 3, 2, "only 1 of the 3 ranks are on this host"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_connection *connection = NULL;
        const struct seqlstm_setting settings[] = {{"library", library}};
        const struct seqlstm_rendezvous r = {.struct_size = (uint32_t)sizeof r,
                                             .rank = cases[k].rank,
                                             .ranks = cases[k].ranks,
                                             .local_ranks = 1,
                                             .device = cases[k].device,
                                             .job = "nccl-without",
                                             .timeout_ns = SHORT_NS};
        setenv("SEQLSTM_EMULATED_DEVICES", cases[k].devices, 1);
        unsetenv("CUDA_VISIBLE_DEVICES");
        if (cases[k].shown != NULL)
            setenv("CUDA_VISIBLE_DEVICES", cases[k].shown, 1);
        const seqlstm_status status = table->open(&host, settings, 1, &r, &connection, &err);
        expect(cases[k].message, status, &err, SEQLSTM_UNAVAILABLE, 0, cases[k].message);
        assert_null(connection);
    }
    set_devices(DEVICES);
    assert_int_equal(blocks, 0);
}

static void it_says_what_it_connects(void **state)
{
    struct seqlstm_transport transport = {.struct_size = sizeof transport};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    assert_int_equal(table->describe(&transport, &err), SEQLSTM_OK);
    assert_string_equal(transport.name, "NCCL");
    assert_string_equal(transport.domain, "cuda:");
    assert_int_equal(transport.one_host, 1);
    assert_int_equal(transport.ranks_most, GPU_DEVICES_MAX);
    assert_int_equal(transport.groups, GROUPS);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_has_its_device_and_gives_it_back),
        cmocka_unit_test_setup_teardown(a_group_names_the_member_that_does_not_come, join_all, leave_all),
        cmocka_unit_test_setup_teardown(those_that_have_come_to_a_group_are_not_to_blame, join_all, leave_all),
        cmocka_unit_test_setup_teardown(groups_of_other_ranks_may_have_the_same_number, join_all, leave_all),
        cmocka_unit_test_setup_teardown(a_number_stays_used_when_others_are, join_all, leave_all),
        cmocka_unit_test_setup_teardown(queued_exchanges_wait_for_no_other_rank, join_all, leave_all),
        cmocka_unit_test_setup_teardown(more_exchanges_than_are_watched_at_once, join_all, leave_all),
        cmocka_unit_test_setup_teardown(large_exchanges_pass_the_stage_in_parts, join_all, leave_all),
        cmocka_unit_test(a_rank_whose_device_fails_keeps_nothing),
        cmocka_unit_test(a_rank_without_a_device_is_told_why),
        cmocka_unit_test(it_says_what_it_connects),
    };
    RUN_TESTS(tests);
}
