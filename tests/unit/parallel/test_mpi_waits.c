/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks of comm-mpi tell each other what they do, whom they blame, and how they watch processes of their host, on
 * an MPI that delivers a message only when the test does. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm-mpi/connection.h"

enum { RANKS = 5, SENT_MOST = 16 };

/* ---- MPI -------------------------------------------------------------------------------------------------------- */

enum request { LISTENING = 0x11, SENDING = 0x22 };

/* A pointer or a number, as MPI likes. */
static MPI_Request make_request(enum request which)
{
    MPI_Request request;
    memset(&request, which, sizeof request);
    return request;
}

static struct {
    struct {
        int to;
        struct mpi_notice notice;
    } sent[SENT_MOST];
    int count;
    bool holds;                        /* what is sent stays on its way */
    void *into;                        /* of MPI_Irecv */
    const struct mpi_notice *delivers; /* the next one that MPI_Test finds; NULL: none */
    bool releases;                     /* when it delivers, what is sent arrives */
    int code;                          /* what MPI_Test returns for what is sent */
    int socket;                        /* of MPI_Iallgather: to the process that is rank 1 */
    int rank;
} mpi;

int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)type, (void)tag, (void)comm;
    assert_int_equal(count, sizeof(struct mpi_notice));
    assert_true(mpi.count < SENT_MOST);
    mpi.sent[mpi.count].to = to;
    memcpy(&mpi.sent[mpi.count++].notice, from, sizeof(struct mpi_notice));
    *request = make_request(SENDING);
    return MPI_SUCCESS;
}

int MPI_Irecv(void *into, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)type, (void)tag, (void)comm;
    assert_int_equal(count, sizeof(struct mpi_notice));
    assert_int_equal(from, MPI_ANY_SOURCE);
    mpi.into = into;
    *request = make_request(LISTENING);
    return MPI_SUCCESS;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
    (void)status;
    *done = 1;
    if (*request == make_request(SENDING)) {
        *done = !mpi.holds;
        if (mpi.code != MPI_SUCCESS)
            return mpi.code;
    } else if (*request == make_request(LISTENING)) {
        *done = mpi.delivers != NULL;
        if (mpi.delivers)
            memcpy(mpi.into, mpi.delivers, sizeof *mpi.delivers);
        if (mpi.delivers && mpi.releases)
            mpi.holds = false;
        mpi.delivers = NULL;
    }
    if (*done)
        *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int MPI_Error_string(int code, char *text, int *length)
{
    *length = sprintf(text, "code %d", code);
    return MPI_SUCCESS;
}

/* Ranks 0 and 1 are processes of this host. Rank 2 is as rank 0 but for a byte of the id of the kernel, and rank 3 but
 * for a byte of the name space; rank 4 says nothing. */
int MPI_Iallgather(const void *from, int from_count, MPI_Datatype from_type, void *to, int count, MPI_Datatype type,
                   MPI_Comm comm, MPI_Request *request)
{
    enum { BOOT = 0, SPACE = 40 };
    char *all = to;
    (void)from_count, (void)from_type, (void)type, (void)comm;
    assert_ptr_equal(from, MPI_IN_PLACE);
    assert_int_equal(write(mpi.socket, all + mpi.rank * count, (size_t)count), count);
    assert_int_equal(read(mpi.socket, all + (1 - mpi.rank) * count, (size_t)count), count);
    for (int r = 2; r < RANKS; r++)
        memcpy(all + r * count, all, (size_t)count);
    all[2 * count + BOOT + 3] ^= 1;
    all[3 * count + SPACE] ^= 1;
    memset(all + 4 * count, 0, (size_t)count);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

/* ---- a rank ----------------------------------------------------------------------------------------------------- */

static void *allocate(void *context, uint64_t bytes)
{
    (void)context;
    return calloc(1, bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static bool cancelled;

static int is_cancelled(void *context)
{
    (void)context;
    return cancelled;
}

static const struct seqlstm_host host = {
    .struct_size = sizeof host, .allocate = allocate, .release = release, .cancelled = is_cancelled};

static struct mpi_peer peers[2][RANKS];

static void init_rank(struct seqlstm_connection *c, int k, int32_t rank)
{
    memset(c, 0, sizeof *c);
    memset(peers[k], 0, sizeof peers[k]);
    c->host = &host;
    c->rank = rank;
    c->ranks = RANKS;
    c->peers = peers[k];
    c->listening = MPI_REQUEST_NULL;
    pthread_mutex_init(&c->lock, NULL);
    for (int r = 0; r < RANKS; r++) {
        peers[k][r].process = -1;
        peers[k][r].sending[0] = peers[k][r].sending[1] = MPI_REQUEST_NULL;
    }
}

static struct seqlstm_connection one, other;
static int32_t members[] = {1, 2, 4}; /* of a group of the rank 2 */
static struct seqlstm_group group = {
    .connection = &other, .number = 3, .calls = 9, .members = 3, .place = 1, .ranks = members};

/* Rank 0 and rank 2 of five. */
static int make_ranks(void **state)
{
    (void)state;
    memset(&mpi, 0, sizeof mpi);
    cancelled = false;
    init_rank(&one, 0, 0);
    init_rank(&other, 1, 2);
    return 0;
}

static void hear(struct seqlstm_connection *c, const struct mpi_notice *notice)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    mpi.delivers = notice;
    if (mpi_listen(c, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
}

/* What rank 2 finds when it looks in an exchange of its group, or of the pair with `peer`. */
static void expect_look(int32_t peer, bool receives, seqlstm_status status, int32_t code, const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct mpi_wait wait = {
        .connection = &other, .group = peer < 0 ? &group : NULL, .peer = peer, .receives = receives, .err = &err};
    assert_int_equal(mpi_look(&wait), status);
    assert_string_equal(err.message, message);
    assert_int_equal(err.native_code, code);
    if (status != SEQLSTM_OK && code > 0)
        assert_true(other.fault == code && other.late == (status == SEQLSTM_DEVICE ? code : 0));
}

/* ---- notices ---------------------------------------------------------------------------------------------------- */

static void a_notice_says_all_about_its_rank(void **state)
{
    (void)state;
    struct seqlstm_group own = {.connection = &one, .number = 5, .calls = 77, .members = 2, .place = 0};
    one.late = 4;
    for (uint32_t g = 0; g < MPI_GROUPS; g++)
        one.made[g] = 100 + g;
    for (uint32_t r = 0; r < RANKS; r++) {
        peers[0][r].sent = 10 + r;
        peers[0][r].received = 20 + r;
    }
    mpi_tell_all(&one, MPI_NOTICE_FAILED);
    mpi_tell(&one, 3, MPI_NOTICE_WAITING, &own);
    assert_int_equal(mpi.count, RANKS);
    for (int k = 0; k < RANKS; k++) {
        const struct mpi_notice *n = &mpi.sent[k].notice;
        const int to = k == RANKS - 1 ? 3 : k + 1;
        assert_int_equal(mpi.sent[k].to, to);
        assert_true(n->kind == (k == RANKS - 1 ? MPI_NOTICE_WAITING : MPI_NOTICE_FAILED) && n->rank == 0);
        assert_true(n->sent == 10 + (uint32_t)to && n->received == 20 + (uint32_t)to && n->late == 4);
        assert_true(n->group == (k == RANKS - 1 ? 5 : 0) && n->call == (k == RANKS - 1 ? 77 : 0));
        for (uint32_t g = 0; g < MPI_GROUPS; g++)
            assert_int_equal(n->made[g], 100 + g);
    }
}

/* One that is still on its way is not overwritten; the other kind has a place of its own. */
static void a_notice_waits_for_none(void **state)
{
    (void)state;
    mpi_tell(&one, 3, MPI_NOTICE_WAITING, NULL);
    mpi.holds = true;
    mpi_tell(&one, 3, MPI_NOTICE_WAITING, NULL);
    assert_int_equal(mpi.count, 1);
    mpi_tell(&one, 4, MPI_NOTICE_WAITING, NULL);
    mpi_tell(&one, 3, MPI_NOTICE_LEFT, NULL);
    assert_int_equal(mpi.count, 3);
    mpi_tell(&one, 3, MPI_NOTICE_ABORT, NULL);
    assert_int_equal(mpi.count, 3);
    mpi.holds = false;
    mpi_tell(&one, 3, MPI_NOTICE_WAITING, NULL);
    mpi_tell(&one, 3, MPI_NOTICE_ABORT, NULL);
    assert_int_equal(mpi.count, 5);
}

static void each_notice_is_kept_where_it_belongs(void **state)
{
    (void)state;
    const struct mpi_notice waiting = {.kind = MPI_NOTICE_WAITING, .rank = 1, .group = 3, .call = 9},
                            left = {.kind = MPI_NOTICE_LEFT, .rank = 3},
                            failed = {.kind = MPI_NOTICE_FAILED, .rank = 4, .late = 2},
                            beyond = {.kind = MPI_NOTICE_LEFT, .rank = RANKS},
                            below = {.kind = MPI_NOTICE_ABORT, .rank = -1}, end = {.kind = MPI_NOTICE_ABORT, .rank = 3},
                            again = {.kind = MPI_NOTICE_ABORT, .rank = 1};
    hear(&other, &waiting);
    hear(&other, &left);
    hear(&other, &failed);
    hear(&other, &beyond);
    hear(&other, &below);
    assert_memory_equal(&peers[1][1].waiting, &waiting, sizeof waiting);
    assert_memory_equal(&peers[1][3].last, &left, sizeof left);
    assert_memory_equal(&peers[1][4].last, &failed, sizeof failed);
    assert_int_equal(atomic_load(&other.aborted), 0);
    static const bool gone[] = {false, false, false, true, true};
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(mpi_is_gone(&peers[1][r]), gone[r]);
    hear(&other, &end);
    hear(&other, &again);
    assert_int_equal(atomic_load(&other.aborted), 1 + 3); /* the first one */
}

/* ---- which rank is to blame ------------------------------------------------------------------------------------- */

/* The rank that gave up names the one for which it had waited; a rank that gave up this one has just left. */
static void who_gave_up_says_for_whom(void **state)
{
    (void)state;
    one.late = 1 + 3;
    mpi_tell_all(&one, MPI_NOTICE_FAILED);
    assert_int_equal(mpi.sent[1].to, 2);
    members[0] = 0; /* a group of the rank 0, too */
    hear(&other, &mpi.sent[1].notice);
    expect_look(-1, false, SEQLSTM_DEVICE, 1 + 3, "rank 3 did not come in time");
    expect_look(0, true, SEQLSTM_DEVICE, 1 + 3, "rank 3 did not come in time");
    struct mpi_notice notice = mpi.sent[1].notice;
    notice.late = 1 + 2;
    hear(&other, &notice);
    expect_look(-1, false, SEQLSTM_CANCELLED, 1 + 0, "rank 0 has left the job");
    notice.late = 0;
    hear(&other, &notice);
    expect_look(-1, false, SEQLSTM_CANCELLED, 1 + 0, "rank 0 has left the job");
    expect_look(1, true, SEQLSTM_OK, 0, "");
    members[0] = 1;
    expect_look(-1, false, SEQLSTM_OK, 0, ""); /* it is in no group with it */
}

/* A rank that left after its part of the exchange is not missed. */
static void who_left_is_missed_by_those_that_wait_for_it(void **state)
{
    (void)state;
    struct mpi_notice left = {.kind = MPI_NOTICE_LEFT, .rank = 4, .sent = 6, .received = 8};
    left.made[3] = 9;
    left.made[2] = 1;
    hear(&other, &left);
    expect_look(-1, false, SEQLSTM_OK, 0, "");
    left.made[3] = 8;
    left.made[2] = 50;
    hear(&other, &left);
    expect_look(-1, false, SEQLSTM_CANCELLED, 1 + 4, "rank 4 has left the job");
    peers[1][4].received = 5; /* the sixth message is on its way */
    peers[1][4].sent = 7;     /* it has received the eighth */
    expect_look(4, true, SEQLSTM_OK, 0, "");
    expect_look(4, false, SEQLSTM_OK, 0, "");
    peers[1][4].received = 6;
    expect_look(4, true, SEQLSTM_CANCELLED, 1 + 4, "rank 4 has left the job");
    expect_look(4, false, SEQLSTM_OK, 0, "");
    peers[1][4].received = 5;
    peers[1][4].sent = 8;
    expect_look(4, true, SEQLSTM_OK, 0, "");
    expect_look(4, false, SEQLSTM_CANCELLED, 1 + 4, "rank 4 has left the job");
    expect_look(3, true, SEQLSTM_OK, 0, "");
    const struct mpi_notice end = {.kind = MPI_NOTICE_ABORT, .rank = 3};
    hear(&other, &end);
    expect_look(3, true, SEQLSTM_CANCELLED, 1 + 3, "rank 3 has ended the job");
    expect_look(-1, false, SEQLSTM_CANCELLED, 1 + 3, "rank 3 has ended the job");
}

static void a_user_stops_what_nobody_is_to_blame_for(void **state)
{
    (void)state;
    cancelled = true;
    expect_look(-1, false, SEQLSTM_CANCELLED, 0, "the user stopped it");
    const struct mpi_notice left = {.kind = MPI_NOTICE_LEFT, .rank = 4};
    hear(&other, &left);
    expect_look(-1, false, SEQLSTM_CANCELLED, 1 + 4, "rank 4 has left the job");
}

/* When the time is over: the first member that has not said that it waits in this call of this group. */
static void the_late_one_is_the_one_that_does_not_wait(void **state)
{
    (void)state;
    static const struct {
        uint32_t group, call; /* of what rank 1 said; rank 4 always waits for the right one, or for nothing */
        bool waits;
        int32_t peer, blamed;
    } cases[] = {{3, 9, false, -1, 4}, {3, 8, true, -1, 1}, {2, 9, true, -1, 1}, {3, 8, false, -1, 1},
                 {3, 9, true, -1, -1}, {3, 9, true, 3, 3},  {3, 9, true, 0, 0}};
    MPI_Request never = make_request(SENDING);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char expected[60];
        struct mpi_wait wait = {.connection = &other,
                                .group = cases[k].peer < 0 ? &group : NULL,
                                .peer = cases[k].peer,
                                .told = true,
                                .look_ns = INT64_MAX / 2,
                                .err = &err};
        const struct mpi_notice first = {.kind = MPI_NOTICE_WAITING,
                                         .rank = 1,
                                         .group = cases[k].group,
                                         .call = cases[k].call},
                                last = {
                                    .kind = MPI_NOTICE_WAITING, .rank = 4, .group = 3, .call = cases[k].waits ? 9 : 1};
        hear(&other, &first);
        hear(&other, &last);
        mpi.holds = true;
        assert_int_equal(mpi_finish(&wait, &never), SEQLSTM_DEVICE);
        snprintf(expected, sizeof expected, "rank %d did not come in time", cases[k].blamed);
        assert_string_equal(err.message, cases[k].blamed < 0 ? "MPI has not finished the exchange in time" : expected);
        assert_int_equal(err.native_code, 1 + cases[k].blamed);
    }
    assert_int_equal(mpi.count, 0);
}

/* A wait that lasts tells the other members, once, in which call of which group it is. */
static void a_long_wait_is_told_to_the_group(void **state)
{
    (void)state;
    MPI_Request never = make_request(SENDING);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct mpi_wait wait = {.connection = &other,
                            .group = &group,
                            .peer = -1,
                            .look_ns = INT64_MAX / 2,
                            .deadline_ns = mpi_now_ns() + 1000000,
                            .err = &err};
    mpi.holds = true;
    const int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 77777, 0, 0, 0);
    assert_int_equal(mpi_finish(&wait, &never), SEQLSTM_DEVICE);
    assert_int_equal(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 77777); /* of the thread of the host */
    prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
    assert_true(wait.told);
    assert_int_equal(mpi.count, 2);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(mpi.sent[k].to, k == 0 ? 1 : 4);
        const struct mpi_notice *n = &mpi.sent[k].notice;
        assert_true(n->kind == MPI_NOTICE_WAITING && n->rank == 2 && n->group == 3 && n->call == 9);
    }
}

/* What arrives while a rank finds that another has left is received; after the end of the job nothing is. */
static void what_arrives_at_last_counts_unless_the_job_has_ended(void **state)
{
    for (int ended = 0; ended < 2; ended++) {
        make_ranks(state);
        MPI_Request request = make_request(SENDING);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct mpi_wait wait = {
            .connection = &other, .group = &group, .peer = -1, .told = true, .deadline_ns = INT64_MAX, .err = &err};
        const struct mpi_notice notice = {.kind = ended ? MPI_NOTICE_ABORT : MPI_NOTICE_LEFT, .rank = 4};
        mpi.holds = mpi.releases = true;
        mpi.delivers = &notice;
        assert_int_equal(mpi_finish(&wait, &request), ended ? SEQLSTM_CANCELLED : SEQLSTM_OK);
        assert_false(mpi.holds);
        if (ended)
            assert_string_equal(err.message, "rank 4 has ended the job");
    }
}

static void an_mpi_that_fails_is_named(void **state)
{
    MPI_Request request = make_request(SENDING);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct mpi_wait wait = {.connection = &other, .group = &group, .peer = -1, .told = true, .err = &err};
    (void)state;
    mpi.holds = true;
    mpi.code = 19;
    assert_int_equal(mpi_finish(&wait, &request), SEQLSTM_DEVICE);
    assert_string_equal(err.message, "MPI failed in an exchange: code 19");
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

static seqlstm_status find_processes(struct seqlstm_connection *c, int32_t rank, int socket)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    init_rank(c, 0, rank);
    mpi.socket = socket;
    mpi.rank = rank;
    return mpi_watch_processes(c, INT64_MAX, &err);
}

static void the_processes_of_this_host_are_watched(void **state)
{
    (void)state;
    int sockets[2];
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    const pid_t child = fork();
    if (child == 0) { /* rank 1, until it is killed */
        close(sockets[0]);
        const seqlstm_status status = find_processes(&one, 1, sockets[1]);
        while (status == SEQLSTM_OK && read(sockets[1], &byte, 1) > 0)
            ;
        _exit(0);
    }
    close(sockets[1]);
    assert_int_equal(find_processes(&one, 0, sockets[0]), SEQLSTM_OK);
    for (int r = 0; r < RANKS; r++)
        if (r != 1)
            assert_int_equal(peers[0][r].process, -1);
    const int process = peers[0][1].process;
    assert_false(mpi_has_died(&one, 1));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    if (process >= 0) { /* Linux 5.3 */
        assert_true(mpi_has_died(&one, 1));
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct mpi_wait wait = {.connection = &one, .peer = -1, .err = &err};
        assert_int_equal(mpi_look(&wait), SEQLSTM_CANCELLED);
        assert_string_equal(err.message, "rank 1 has died");
        assert_int_equal(err.native_code, 1 + 1);
        const struct mpi_notice left = {.kind = MPI_NOTICE_LEFT, .rank = 1};
        hear(&one, &left); /* it had said so before */
        assert_int_equal(mpi_look(&wait), SEQLSTM_OK);
        close(process);
    }
    close(sockets[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_notice_says_all_about_its_rank, make_ranks),
        cmocka_unit_test_setup(a_notice_waits_for_none, make_ranks),
        cmocka_unit_test_setup(each_notice_is_kept_where_it_belongs, make_ranks),
        cmocka_unit_test_setup(who_gave_up_says_for_whom, make_ranks),
        cmocka_unit_test_setup(who_left_is_missed_by_those_that_wait_for_it, make_ranks),
        cmocka_unit_test_setup(a_user_stops_what_nobody_is_to_blame_for, make_ranks),
        cmocka_unit_test_setup(the_late_one_is_the_one_that_does_not_wait, make_ranks),
        cmocka_unit_test_setup(a_long_wait_is_told_to_the_group, make_ranks),
        cmocka_unit_test_setup(what_arrives_at_last_counts_unless_the_job_has_ended, make_ranks),
        cmocka_unit_test_setup(an_mpi_that_fails_is_named, make_ranks),
        cmocka_unit_test_setup(the_processes_of_this_host_are_watched, make_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
