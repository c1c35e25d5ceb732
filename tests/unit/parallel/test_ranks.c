/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks do together, on ranks that are processes: who shares layers and who shares batches, what all agree on, and
 * sums of gradients in every way, against those of one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "base/system/clock.h"
#include "parallel/bundle.h"
#include "parallel/ranks.h"
#include "parallel/shards.h"
#include "parallel/tree_sum.h"
#include "registry/collectives/connection.h"
#include "oom.h"

const struct seqlstm_collectives *seqlstm_comm_shm_query_v0(uint32_t host_minor);

enum { RANKS_MOST = 6, ELEMS = 257 };

/* A check of a rank: says what is wrong and ends the process. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "rank %d of %d, %d stages: %s (line %d)\n", rank, count, stages, #condition, __LINE__);    \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static float get_grad(int rank, int64_t i)
{
    return (float)(seqlstm_mix64(7, (uint64_t)rank, (uint64_t)i) % 20001) / 64 - 150;
}

/* Rounded to bfloat16, to nearest even, by way of double: the neighbours of a float with the last 16 bits cut. */
static float to_bfloat16(float value)
{
    int exponent;
    const double fraction = frexp((double)value, &exponent);
    return (float)ldexp(nearbyint(ldexp(fraction, 8)), exponent - 8);
}

static void check_layout(const struct sl_ranks *r, int rank, int count, int stages)
{
    const int replicas = count / stages;
    CHECK(r->rank == rank && r->ranks == count && r->stages == stages);
    CHECK(r->stage == rank % stages);
    CHECK(r->replicas.ranks == replicas && r->replicas.rank == rank / stages);
    CHECK(r->pipeline.ranks == stages && r->pipeline.rank == rank % stages);
    CHECK((r->replicas.connection != NULL) == (replicas > 1));
    CHECK((r->pipeline.connection != NULL) == (stages > 1));
    CHECK(r->shards == replicas && !r->ordered);
}

/* The stop of the lowest rank that asks for one, any save, and the time of rank 0. */
static void check_agreement(struct sl_ranks *r, int rank, int count, int stages)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int asking = -1; asking < count; asking++) {
        atomic_store(&r->own->stop, asking >= 0 && rank >= asking ? 10 + rank : 0);
        atomic_store(&r->own->save, rank == asking);
        atomic_store(&r->agreed.save, 0);
        const int64_t before = sl_clock_ns();
        CHECK(sl_ranks_agree(r, &err) == SEQLSTM_OK);
        CHECK(atomic_load(&r->agreed.stop) == (asking >= 0 ? 10 + asking : 0));
        CHECK(atomic_load(&r->agreed.save) == (asking >= 0));
        CHECK(atomic_load(&r->own->save) == 0);
        int64_t times[RANKS_MOST];
        CHECK(sl_ranks_gather(r, &r->now_ns, (int64_t)sizeof r->now_ns, times, &err) == SEQLSTM_OK);
        for (int other = 0; other < count; other++)
            CHECK(times[other] == r->now_ns);
        CHECK(sl_ranks_read_clock(r) == r->now_ns);
        CHECK(rank > 0 || (r->now_ns >= before && r->now_ns <= sl_clock_ns()));
    }
    /* what was agreed stays until the trainer takes it */
    atomic_store(&r->own->stop, 0);
    atomic_store(&r->agreed.save, 1);
    CHECK(sl_ranks_agree(r, &err) == SEQLSTM_OK);
    CHECK(atomic_load(&r->agreed.save) == 1);
    atomic_store(&r->agreed.save, 0);
}

static void check_bytes(const struct sl_ranks *r, int rank, int count, int stages)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char all[RANKS_MOST * 3], own[3] = {(char)('a' + rank), (char)('A' + rank), '!'};
    CHECK(sl_ranks_gather(r, own, sizeof own, all, &err) == SEQLSTM_OK);
    for (int other = 0; other < count; other++)
        CHECK(all[3 * other] == 'a' + other && all[3 * other + 1] == 'A' + other && all[3 * other + 2] == '!');
    for (int from = 0; from < count; from++) {
        char bytes[5] = {(char)rank, 2, 3, 4, (char)(rank * rank)};
        CHECK(sl_ranks_broadcast(r, from, bytes, sizeof bytes, &err) == SEQLSTM_OK);
        CHECK(bytes[0] == from && bytes[3] == 4 && bytes[4] == from * from);
    }
}

/* Down the stages of each pipeline and up again: each gets what its neighbour of the same pipeline has sent. */
static void check_exchanges(struct sl_ranks *r, int rank, int count, int stages)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float values[4] = {(float)rank, 0.5f, 0, -1}, got[4];
    for (int up = 0; up < 2; up++) {
        const int before = up ? rank + 1 : rank - 1;
        const bool receives = up ? r->stage + 1 < stages : r->stage > 0,
                   sends = up ? r->stage > 0 : r->stage + 1 < stages;
        if (receives) {
            CHECK(sl_ranks_exchange(r, up, false, got, 4, &err) == SEQLSTM_OK);
            CHECK(got[0] == (float)before && got[1] == 0.5f && got[3] == -1);
        }
        if (sends)
            CHECK(sl_ranks_exchange(r, !up, true, values, 4, &err) == SEQLSTM_OK);
    }
}

static void check_sums(struct sl_ranks *r, const struct sl_reduce_config *reduce, int rank, int count, int stages)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float grads[ELEMS], scratch[ELEMS];
    const int replicas = count / stages;
    for (int64_t i = 0; i < ELEMS; i++)
        grads[i] = get_grad(rank, i);
    CHECK(sl_ranks_add(r, grads, ELEMS, scratch, &err) == SEQLSTM_OK);
    if (reduce->how == SL_REDUCE_CENTRAL && r->replicas.rank > 0)
        return;
    for (int64_t i = 0; i < ELEMS; i++) {
        const bool narrow = reduce->dtype == SL_REDUCE_BFLOAT16 && replicas > 1;
        double sum = 0, size = 0;
        for (int k = 0; k < replicas; k++) {
            const float value = get_grad(r->stage + k * stages, i);
            sum += (double)(narrow ? to_bfloat16(value) : value);
            size += fabs((double)value);
        }
        CHECK(fabs((double)grads[i] - sum) <= (narrow ? 0x1p-8 * replicas : 0x1p-23 * replicas) * size);
        CHECK(!narrow || to_bfloat16(grads[i]) == grads[i]);
    }
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A narrow sum of one value and zeros is that value: rounded to nearest, half to even, and NaN whichever bits it has.
 */
static void check_rounding(struct sl_ranks *r, int rank, int count, int stages)
{
    static const uint32_t bits[] = {0x3F808000, 0x3F818000, 0x3F808001, 0x3F817FFF, 0xBF808000, 0xBF818000, 0x3F80FFFF,
                                    0x7F7F7FFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000, 0xFF800001, 0x7FFFFFFF};
    enum { COUNT = sizeof bits / sizeof *bits };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float values[COUNT], scratch[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = i % r->replicas.ranks == r->replicas.rank ? from_bits(bits[i]) : 0;
    CHECK(sl_ranks_add(r, values, COUNT, scratch, &err) == SEQLSTM_OK);
    for (int i = 0; i < COUNT; i++) {
        const float value = from_bits(bits[i]);
        if (isnan(value))
            CHECK(isnan(values[i]));
        else
            CHECK(values[i] == (isinf(value) ? value : to_bfloat16(value)));
    }
}

enum { TREE_ELEMS = 20011, TREE_SHARDS = 7 }; /* more than one exchange of float and of double */

static void fill_shard(void *values, bool wide, int shard, int turn)
{
    for (int64_t i = 0; i < TREE_ELEMS; i++) {
        const double value = (double)get_grad(10 * turn + shard, i) / 3;
        if (wide)
            ((double *)values)[i] = value;
        else
            ((float *)values)[i] = (float)value;
    }
}

/* The sum of all shards in the order of the tree: of a group, or of one rank that has them all. */
static seqlstm_status add_shards(const struct sl_rank_group *group, int shards, bool wide, double *values, double *out,
                                 struct seqlstm_error *err)
{
    struct sl_tree_sum *sum = NULL;
    seqlstm_status status = sl_tree_sum_create(group, shards, TREE_ELEMS, wide, NULL, &sum, err);
    for (int turn = 0; turn < 2 && status == SEQLSTM_OK; turn++) {
        const int end = sl_shards_get_first(shards, group->ranks, group->rank + 1);
        for (int s = sl_shards_get_first(shards, group->ranks, group->rank); s < end && status == SEQLSTM_OK; s++) {
            fill_shard(values, wide, s, turn);
            status = sl_tree_sum_add(sum, values, err);
        }
        if (status == SEQLSTM_OK)
            status = sl_tree_sum_finish(sum, out, err);
    }
    sl_tree_sum_destroy(sum);
    return status;
}

/* The same bits on however many ranks: with as many shards as ranks, and with some that do not divide. */
static void check_trees(struct sl_ranks *r, int rank, int count, int stages)
{
    static const struct sl_rank_group alone = {.ranks = 1};
    static double values[TREE_ELEMS], sum[TREE_ELEMS], expected[TREE_ELEMS];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int shards = r->replicas.ranks; shards <= TREE_SHARDS; shards++)
        for (int wide = 0; wide < 2; wide++) {
            const size_t bytes = TREE_ELEMS * (wide ? sizeof(double) : sizeof(float));
            CHECK(add_shards(&r->replicas, shards, wide, values, sum, &err) == SEQLSTM_OK);
            CHECK(add_shards(&alone, shards, wide, values, expected, &err) == SEQLSTM_OK);
            CHECK(memcmp(sum, expected, bytes) == 0);
        }
}

enum { ROWS = 11, COLUMNS = 3, FIRST = 5, LAST = FIRST + ROWS * COLUMNS + 4, ROOM = 1000 };

/* Some rows of the matrix, of each rank in other numbers, and all of what lies on both sides of it. */
static float get_row_grad(int place, int replicas, int64_t i, int turn)
{
    const int64_t row = (i - FIRST) / COLUMNS;
    const bool in_matrix = i >= FIRST && row < ROWS;
    const bool used = (row + turn) % replicas == place || row < place;
    return in_matrix && !used ? 0 : (float)(1 + 100 * place + i + turn);
}

/* Neighbouring bundles in one exchange: each rank sends the rows that it uses, among vectors. */
static void check_rows(struct sl_ranks *r, int rank, int count, int stages)
{
    static const struct sl_bundle_matrix matrix = {FIRST, ROWS, COLUMNS, false};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    uint8_t flags[ROWS] = {0}, used[ROWS] = {0}, gathered[RANKS_MOST * ROWS] = {0};
    float grads[ROOM] = {0}, scratch[ROOM + 1] = {0};
    const int replicas = r->replicas.ranks;
    const struct sl_bundle bundles[] = {{.begin = FIRST + ROWS * COLUMNS, .end = LAST},
                                        {.begin = FIRST,
                                         .end = FIRST + ROWS * COLUMNS,
                                         .rows = &matrix,
                                         .flags = flags,
                                         .used = used,
                                         .gathered = gathered},
                                        {.begin = 0, .end = FIRST}};
    const struct sl_adder adder = {.ranks = r, .grads = grads, .elems = ROOM, .scratch = scratch, .gathers = true};
    for (int turn = 0; turn < 2; turn++) {
        for (int64_t i = 0; i < LAST; i++)
            grads[i] = get_row_grad(r->replicas.rank, replicas, i, turn);
        CHECK(sl_adder_find_used(&adder, &bundles[1], &err) == SEQLSTM_OK);
        CHECK(sl_adder_add(&adder, bundles, 3, &err) == SEQLSTM_OK);
        for (int64_t i = 0; i < LAST; i++) {
            float sum = 0;
            for (int k = 0; k < replicas; k++)
                sum += get_row_grad(k, replicas, i, turn);
            CHECK(grads[i] == sum);
        }
    }
}

/* Ends the process: 0 if all is well, and nothing is left in memory. */
static _Noreturn void be_rank(int rank, int count, int stages, const char *job, const struct sl_reduce_config *reduce)
{
    static const struct sl_collectives_builtin builtin = {"comm-shm", seqlstm_comm_shm_query_v0};
    const struct sl_connection_request joining = {.name = "comm-shm",
                                                  .builtins = &builtin,
                                                  .builtin_count = 1,
                                                  .rank = rank,
                                                  .ranks = count,
                                                  .job = job,
                                                  .timeout_ns = INT64_C(60000000000)};
    const struct sl_parallel_config config = {.data = count / stages, .pipeline = stages, .reduce = *reduce};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    struct sl_interrupt own = {0};
    struct sl_ranks ranks;
    oom_watch();
    if (count > 1)
        CHECK(sl_connection_open(&joining, &connection, &err) == SEQLSTM_OK);
    CHECK(sl_ranks_init(&ranks, connection, &config, &own, &err) == SEQLSTM_OK);
    check_layout(&ranks, rank, count, stages);
    check_agreement(&ranks, rank, count, stages);
    check_bytes(&ranks, rank, count, stages);
    check_exchanges(&ranks, rank, count, stages);
    check_sums(&ranks, reduce, rank, count, stages);
    if (reduce->dtype == SL_REDUCE_BFLOAT16 && ranks.replicas.ranks > 1)
        check_rounding(&ranks, rank, count, stages);
    check_trees(&ranks, rank, count, stages);
    if (reduce->how == SL_REDUCE_ALL && ranks.replicas.ranks > 1)
        check_rows(&ranks, rank, count, stages);
    sl_connection_close(connection);
    CHECK(oom_end() == 0);
    _exit(0);
}

static void run(int count, int stages, struct sl_reduce_config reduce)
{
    static int number;
    char job[64];
    pid_t pids[RANKS_MOST];
    snprintf(job, sizeof job, "test-ranks-%d-%d", (int)getpid(), number++);
    for (int r = 0; r < count; r++) {
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (pids[r] == 0)
            be_rank(r, count, stages, job, &reduce);
    }
    int failed = 0;
    for (int r = 0; r < count; r++) {
        int status = 1;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        failed += status != 0;
    }
    if (failed)
        fail_msg("%d of %d ranks in %d stages failed", failed, count, stages);
}

static void test_ranks_of_every_division(void **state)
{
    static const int divisions[][2] = {{1, 1}, {2, 1}, {2, 2}, {3, 1}, {3, 3}, {4, 2}, {6, 2}, {6, 3}};
    (void)state;
    for (size_t k = 0; k < sizeof divisions / sizeof *divisions; k++)
        run(divisions[k][0], divisions[k][1], (struct sl_reduce_config){.how = SL_REDUCE_ALL});
}

static void test_other_sums(void **state)
{
    (void)state;
    run(3, 1, (struct sl_reduce_config){.how = SL_REDUCE_CENTRAL});
    run(4, 2, (struct sl_reduce_config){.how = SL_REDUCE_CENTRAL});
    run(3, 1, (struct sl_reduce_config){.how = SL_REDUCE_ALL, .dtype = SL_REDUCE_BFLOAT16});
    run(4, 2, (struct sl_reduce_config){.how = SL_REDUCE_ALL, .dtype = SL_REDUCE_BFLOAT16});
}

/* With shards a rank has its number of them, and the order of sums is that of the tree. */
static void test_shards_of_one_rank(void **state)
{
    struct sl_ranks ranks;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_parallel_config config = {.data = 2, .pipeline = 1, .shards = 5};
    (void)state;
    assert_int_equal(sl_ranks_init(&ranks, NULL, &config, NULL, &err), SEQLSTM_OK);
    assert_true(ranks.shards == 5 && ranks.ordered && ranks.ranks == 1 && ranks.replicas.ranks == 1);
    float grads[2] = {1, 2};
    assert_int_equal(sl_ranks_add(&ranks, grads, 2, NULL, &err), SEQLSTM_OK);
    assert_true(grads[0] == 1 && grads[1] == 2);
    assert_int_equal(sl_ranks_agree(&ranks, &err), SEQLSTM_OK);
    assert_int_equal(ranks.agreed.stop, 0);
    char byte = 7;
    assert_int_equal(sl_ranks_broadcast(&ranks, 0, &byte, 1, &err), SEQLSTM_OK);
    assert_int_equal(byte, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_of_every_division),
        cmocka_unit_test(test_other_sums),
        cmocka_unit_test(test_shards_of_one_rank),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
