/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges that move data without changing them, and their order. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/clock.h"
#include "conformance/collectives/cases.h"

static const int64_t sizes[] = {0, 1, 7, 4096, 33000, 300007};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void fill(const struct sl_trial *trial, uint64_t number, int32_t rank, unsigned char *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)sl_trial_random(trial, number, rank, i);
}

/* Are these the bytes of that rank? */
static void check_bytes(struct sl_trial *trial, uint64_t number, int32_t rank, const unsigned char *bytes,
                        int64_t count, const char *what)
{
    for (int64_t i = 0; i < count && !trial->failed; i++)
        sl_trial_check(trial, bytes[i] == (unsigned char)sl_trial_random(trial, number, rank, i),
                       "byte %lld of %lld that came from rank %d by %s is wrong", (long long)i, (long long)count, rank,
                       what);
}

void sl_trial_all_gather(struct sl_trial *trial)
{
    for (int s = 0; s < SIZES && !trial->failed; s++) {
        const int64_t n = sizes[s];
        unsigned char *own = sl_trial_allocate(trial, n), *all = sl_trial_allocate(trial, n * trial->ranks);
        for (int in_place = 0; own && all && in_place < 2; in_place++) {
            unsigned char *from = in_place ? all + trial->rank * n : own;
            memset(all, 0, (size_t)(n * trial->ranks));
            fill(trial, (uint64_t)s, trial->rank, from, n);
            sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_ALL_GATHER, SEQLSTM_DTYPE_UINT8, 0, 0, from, all, n);
            for (int32_t r = 0; r < trial->ranks; r++)
                check_bytes(trial, (uint64_t)s, r, all + r * n, n, "all_gather");
        }
        free(own);
        free(all);
    }
}

void sl_trial_broadcast(struct sl_trial *trial)
{
    for (int s = 0; s < SIZES && !trial->failed; s++) {
        unsigned char *bytes = sl_trial_allocate(trial, sizes[s]);
        for (int32_t root = 0; bytes && root < trial->ranks; root++) {
            fill(trial, 99, trial->rank, bytes, sizes[s]);
            sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BROADCAST, SEQLSTM_DTYPE_UINT8, 0, root, NULL, bytes, sizes[s]);
            check_bytes(trial, 99, root, bytes, sizes[s], "broadcast");
        }
        free(bytes);
    }
}

/* Two ranks at a time; the lower one sends first. Messages of a pair come in order. */
static void exchange_with(struct sl_trial *trial, int32_t peer, unsigned char *bytes, int64_t n, uint64_t number)
{
    for (int turn = 0; turn < 2; turn++) {
        const bool sends = (turn == 0) == (trial->rank < peer);
        if (sends)
            fill(trial, number, trial->rank, bytes, n);
        sl_trial_exchange(trial, sends ? SEQLSTM_COLLECTIVE_SEND : SEQLSTM_COLLECTIVE_RECEIVE, SEQLSTM_DTYPE_UINT8, 0,
                          peer, bytes, bytes, n);
        if (!sends)
            check_bytes(trial, number, peer, bytes, n, "send");
    }
}

void sl_trial_send_receive(struct sl_trial *trial)
{
    for (int s = 0; s < SIZES && !trial->failed; s++) {
        unsigned char *bytes = sl_trial_allocate(trial, sizes[s]);
        /* Every pair meets once in each round; pairs of a round are disjoint. */
        for (int32_t round = 0; bytes && round < 2 * trial->ranks; round++) {
            const int32_t peer = ((round - trial->rank) % trial->ranks + trial->ranks) % trial->ranks;
            if (peer != trial->rank)
                exchange_with(trial, peer, bytes, sizes[s], (uint64_t)(round * SIZES + s));
        }
        free(bytes);
    }
}

/* No rank leaves the barrier before the last one has come: by the clock, which all processes of a host share. */
void sl_trial_barrier(struct sl_trial *trial)
{
    for (int32_t late = 0; late < trial->ranks && !trial->failed; late++) {
        const struct timespec pause = {.tv_nsec = trial->rank == late ? 20000000 : 0};
        int64_t *came = sl_trial_allocate(trial, trial->ranks * 8);
        nanosleep(&pause, NULL);
        const int64_t own = sl_clock_ns();
        sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BARRIER, SEQLSTM_DTYPE_UINT8, 0, 0, NULL, NULL, 0);
        const int64_t went = sl_clock_ns();
        if (came && sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_ALL_GATHER, SEQLSTM_DTYPE_UINT8, 0, 0, &own, came, 8))
            for (int32_t r = 0; trial->transport->one_host && r < trial->ranks; r++)
                sl_trial_check(trial, went >= came[r], "rank %d left a barrier before rank %d had come", trial->rank,
                               r);
        free(came);
    }
}

/* Adds 1 in a group: the result is the number of its members. */
static void count_members(struct sl_trial *trial, uint32_t group, int32_t members)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int32_t ones[3] = {1, 1, 1};
    const struct seqlstm_exchange sum = {
        .kind = SEQLSTM_COLLECTIVE_ALL_REDUCE, .dtype = SEQLSTM_DTYPE_INT32, .elems = 3, .from = ones, .to = ones};
    const seqlstm_status status = trial->failed ? SEQLSTM_OK : sl_connection_run(trial->connection, group, sum, &err);
    sl_trial_check(trial, status == SEQLSTM_OK && ones[0] == members && ones[2] == members,
                   "group %u has the sum %d, expected %d (status %d: %s)", group, ones[ones[0] == members ? 2 : 0],
                   members, (int)status, err.message);
}

/* Ranks that do not ascend, that do not exist, and others than this one. */
static void refuse_groups(struct sl_trial *trial)
{
    const int32_t own = trial->rank, other = own == 0 ? 1 : 0;
    const int32_t lists[][2] = {{own > other ? own : other, own > other ? other : own},
                                {own, own},
                                {own, trial->ranks},
                                {-1, own},
                                {other, other}};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = sl_connection_add_group(trial->connection, 1, lists[k], k == 4 ? 1 : 2, &err);
        sl_trial_check(trial, status == SEQLSTM_INVALID_ARGUMENT,
                       "group_create of the ranks %d and %d returned %d, expected INVALID_ARGUMENT", lists[k][0],
                       lists[k][1], (int)status);
    }
}

/* Even and odd ranks apart, between exchanges of all. */
void sl_trial_groups(struct sl_trial *trial)
{
    if (trial->transport->groups < 3 || trial->ranks < 2)
        return;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    refuse_groups(trial);
    int32_t members = 0, *ranks = sl_trial_allocate(trial, trial->ranks * 4);
    const uint32_t number = 1 + (uint32_t)(trial->rank % 2);
    for (int32_t r = trial->rank % 2; ranks && r < trial->ranks; r += 2)
        ranks[members++] = r;
    if (ranks)
        sl_trial_check(trial, sl_connection_add_group(trial->connection, number, ranks, members, &err) == SEQLSTM_OK,
                       "group %u: %s", number, err.message);
    for (int k = 0; k < 20; k++) {
        for (int j = 0; j <= k % 3; j++)
            count_members(trial, number, members);
        count_members(trial, 0, trial->ranks);
    }
    free(ranks);
}

/* Thousands of exchanges of all kinds in a random order. */
void sl_trial_many(struct sl_trial *trial)
{
    enum { EXCHANGES = 3000, MOST = 512 };
    unsigned char *bytes = sl_trial_allocate(trial, MOST), *all = sl_trial_allocate(trial, MOST * trial->ranks);
    for (uint64_t k = 0; bytes && all && k < EXCHANGES && !trial->failed; k++) {
        const uint64_t dice = sl_trial_random(trial, 1 << 20, 0, (int64_t)k);
        const int64_t n = (int64_t)(dice >> 8 & (MOST - 1));
        const int32_t root = (int32_t)((dice >> 32) % (uint64_t)trial->ranks);
        float one = 1;
        fill(trial, k, trial->rank, bytes, n);
        if (dice % 4 == 0) {
            sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_ALL_REDUCE, SEQLSTM_DTYPE_FLOAT32, SEQLSTM_REDUCE_SUM, 0, &one,
                              &one, 1);
            sl_trial_check(trial, one == (float)trial->ranks, "the sum of ones is %g", (double)one);
        } else if (dice % 4 == 1) {
            sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BROADCAST, SEQLSTM_DTYPE_UINT8, 0, root, NULL, bytes, n);
            check_bytes(trial, k, root, bytes, n, "broadcast");
        } else if (dice % 4 == 2) {
            sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_ALL_GATHER, SEQLSTM_DTYPE_UINT8, 0, 0, bytes, all, n);
            check_bytes(trial, k, root, all + root * n, n, "all_gather");
        } else {
            sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BARRIER, SEQLSTM_DTYPE_UINT8, 0, 0, NULL, NULL, 0);
        }
    }
    free(bytes);
    free(all);
}
