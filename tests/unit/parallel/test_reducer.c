/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that adds the gradients of all ranks, on ranks that are processes. */
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

#include "parallel/reducer.h"
#include "oom.h"

const struct seqlstm_collectives *seqlstm_comm_shm_query_v0(uint32_t host_minor);

enum { RANKS = 3, ELEMS = 100003, UPDATES = 3 };

static const struct sl_bundle_matrix embeddings[] = {
    {64, 500, 16, false}, {20000, 100, 8, false}, {90000, 1, 3, false}};
enum { EMBEDDINGS = sizeof embeddings / sizeof *embeddings };

/* Each rank has another number of rows. */
static bool is_row_of(int rank, int64_t row)
{
    return row % 50 == rank || (rank == 1 && row % 50 == 17) || (rank == 2 && row % 100 == 71);
}

/* Few rows of the first embedding are used, all of the second. Whole numbers: sums are exact in every order. */
static float get_grad(int update, int rank, int64_t i)
{
    const uint64_t dice = seqlstm_mix64((uint64_t)update, (uint64_t)rank, (uint64_t)i);
    const struct sl_bundle_matrix *e = &embeddings[0];
    const int64_t row = (i - e->offset) / e->columns;
    if (i >= e->offset && row < e->rows && !is_row_of(rank, row))
        return 0;
    return (float)(dice % 41) - 20;
}

static bool compare(const float *grads, int update, bool has_nan)
{
    bool same = true;
    for (int64_t i = 0; i < ELEMS && same; i++) {
        float sum = 0;
        for (int r = 0; r < RANKS; r++)
            sum += get_grad(update, r, i);
        same = has_nan && i == embeddings[0].offset + 3 ? isnan(grads[i]) : grads[i] == sum;
    }
    return same;
}

/* Names the rows that are not zero; some that are no rows, too. */
static void mark(struct sl_reducer *reducer, int rank)
{
    int32_t ids[500];
    for (int e = 0; e < EMBEDDINGS; e++) {
        for (int32_t k = 0; k < embeddings[e].rows; k++)
            ids[k] = e > 0 || is_row_of(rank, k) ? k : -1;
        sl_reducer_mark(reducer, embeddings[e].offset, ids, embeddings[e].rows);
    }
}

static bool add(const struct sl_ranks *ranks, struct sl_reducer *reducer, float *grads, int update, bool marks)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const bool has_nan = update == UPDATES - 1;
    for (int64_t i = 0; i < ELEMS; i++)
        grads[i] = get_grad(update, ranks->rank, i);
    if (has_nan && ranks->rank == 1)
        grads[embeddings[0].offset + 3] = NAN;
    if (marks)
        mark(reducer, ranks->rank);
    for (int64_t from = ELEMS; from > 0 && update > 0; from -= 7000 + 1000 * ranks->rank)
        sl_reducer_note(reducer, from);
    if (sl_reducer_finish(reducer, &err) != SEQLSTM_OK)
        return false;
    const bool knows = ranks->reduce->how == SL_REDUCE_ALL || ranks->rank == 0;
    return !knows || compare(grads, update, has_nan);
}

/* Compressed matrices beside vectors and embeddings, which are added exactly. */
static const struct sl_bundle_matrix compressed[] = {
    {64, 500, 16, false}, {20000, 100, 8, false}, {30000, 100, 50, true}, {35016, 60, 90, true}, {90000, 1, 3, false}};
enum { COMPRESSED = sizeof compressed / sizeof *compressed };

static bool is_compressed(int64_t i)
{
    for (int m = 0; m < COMPRESSED; m++)
        if (compressed[m].compressed && i >= compressed[m].offset &&
            i < compressed[m].offset + compressed[m].rows * compressed[m].columns)
            return true;
    return false;
}

/* All ranks have the same bits; what the factors miss is in the errors of some rank. */
static bool add_compressed(const struct sl_ranks *ranks, struct sl_reducer *reducer, float *grads, const float *errors,
                           float *all)
{
    bool fine = true;
    for (int u = 0; u < UPDATES && fine; u++) {
        for (int64_t i = 0; i < ELEMS; i++)
            grads[i] = get_grad(u, ranks->rank, i);
        fine = sl_ranks_gather(ranks, errors, ELEMS * 4, all, NULL) == SEQLSTM_OK;
        for (int64_t i = 0; i < ELEMS; i++) /* the sum of the errors before */
            all[i] += all[ELEMS + i] + all[2 * ELEMS + i];
        memcpy(all + RANKS * ELEMS, all, ELEMS * sizeof *all);
        mark(reducer, ranks->rank);
        for (int64_t from = ELEMS; from > 0 && u > 0; from -= 7000 + 1000 * ranks->rank)
            sl_reducer_note(reducer, from);
        fine = fine && sl_reducer_finish(reducer, NULL) == SEQLSTM_OK &&
               sl_ranks_gather(ranks, grads, ELEMS * 4, all, NULL) == SEQLSTM_OK;
        for (int r = 0; r < RANKS && fine; r++)
            fine = memcmp(all + r * ELEMS, grads, ELEMS * sizeof *grads) == 0;
        fine = fine && sl_ranks_gather(ranks, errors, ELEMS * 4, all, NULL) == SEQLSTM_OK;
        for (int64_t i = 0; i < ELEMS && fine; i++) {
            double missed = (double)grads[i] - (double)all[RANKS * ELEMS + i];
            for (int r = 0; r < RANKS; r++)
                missed += (double)all[r * ELEMS + i] - (double)get_grad(u, r, i);
            fine = is_compressed(i) ? fabs(missed) <= 1e-3 : missed == 0;
        }
        const uint8_t *used = sl_reducer_get_used(reducer, compressed[0].offset);
        for (int64_t row = 0; row < compressed[0].rows && fine; row++)
            fine = used && used[row] == (is_row_of(0, row) || is_row_of(1, row) || is_row_of(2, row));
    }
    return fine;
}

/* All ranks round alike, which fractions show. */
static bool add_fractions(const struct sl_ranks *ranks, struct sl_reducer *reducer, float *grads, float *all)
{
    for (int64_t i = 0; i < ELEMS; i++)
        grads[i] = get_grad(UPDATES, ranks->rank, i) * (0.1f + 0.03f * (float)ranks->rank);
    mark(reducer, ranks->rank);
    bool fine = sl_reducer_finish(reducer, NULL) == SEQLSTM_OK &&
                sl_ranks_gather(ranks, grads, ELEMS * 4, all, NULL) == SEQLSTM_OK;
    for (int r = 0; r < RANKS && fine; r++)
        fine = memcmp(all + r * ELEMS, grads, ELEMS * sizeof *grads) == 0;
    return fine;
}

static bool be_rank(int rank, const char *job, const struct sl_reduce_config *reduce, bool marks, int compress_rank,
                    bool spares_core)
{
    static const struct sl_collectives_builtin builtin = {"comm-shm", seqlstm_comm_shm_query_v0};
    const struct sl_connection_request joining = {.name = "comm-shm",
                                                  .builtins = &builtin,
                                                  .builtin_count = 1,
                                                  .rank = rank,
                                                  .ranks = RANKS,
                                                  .job = job,
                                                  .timeout_ns = INT64_C(60000000000)};
    const struct sl_parallel_config config = {
        .data = RANKS,
        .reduce = *reduce,
        .compress = {compress_rank > 0 ? SL_COMPRESS_POWERSGD : SL_COMPRESS_NONE, compress_rank}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    struct sl_reducer *reducer = NULL;
    struct sl_ranks ranks;
    float *grads = calloc((2 + RANKS + 1) * ELEMS, sizeof *grads); /* and errors, and those of all */
    bool fine = grads && sl_connection_open(&joining, &connection, &err) == SEQLSTM_OK;
    fine = fine && sl_ranks_init(&ranks, connection, &config, NULL, &err) == SEQLSTM_OK;
    fine = fine && ranks.compress_rank == compress_rank;
    ranks.spares_core = spares_core;
    const struct sl_reducer_request request = {.ranks = &ranks,
                                               .grads = grads,
                                               .elems = ELEMS,
                                               .matrices = compress_rank > 0 ? compressed : embeddings,
                                               .matrix_count = compress_rank > 0 ? COMPRESSED : EMBEDDINGS,
                                               .errors = compress_rank > 0 ? grads + ELEMS : NULL,
                                               .marks = marks};
    fine = fine && sl_reducer_create(&request, &reducer, &err) == SEQLSTM_OK;
    if (fine && compress_rank > 0)
        fine = add_compressed(&ranks, reducer, grads, grads + ELEMS, grads + 2 * ELEMS) &&
               add_fractions(&ranks, reducer, grads, grads + 2 * ELEMS);
    for (int u = 0; u < UPDATES && fine && compress_rank == 0; u++)
        fine = add(&ranks, reducer, grads, u, marks);
    fine = fine && sl_reducer_get_times(reducer).exchange_ns > 0;
    sl_reducer_destroy(reducer);
    sl_connection_close(connection);
    free(grads);
    return fine;
}

static void run_ranks(const char *name, struct sl_reduce_config reduce, bool marks, int compress_rank, bool spares_core)
{
    char job[64];
    pid_t others[RANKS] = {0};
    snprintf(job, sizeof job, "reducer-%s-%d", name, (int)getpid());
    for (int r = 1; r < RANKS; r++) {
        others[r] = fork();
        if (others[r] == 0)
            _exit(be_rank(r, job, &reduce, marks, compress_rank, spares_core) ? 0 : 1);
    }
    assert_true(be_rank(0, job, &reduce, marks, compress_rank, spares_core));
    for (int r = 1; r < RANKS; r++) {
        int status = -1;
        assert_int_equal(waitpid(others[r], &status, 0), others[r]);
        assert_int_equal(status, 0);
    }
}

static void all_ranks_get_the_sums(void **state)
{
    (void)state;
    run_ranks("all", (struct sl_reduce_config){SL_REDUCE_ALL, SL_REDUCE_FLOAT32}, false, 0, true);
    run_ranks("bf16", (struct sl_reduce_config){SL_REDUCE_ALL, SL_REDUCE_BFLOAT16}, false, 0, true);
    run_ranks("central", (struct sl_reduce_config){SL_REDUCE_CENTRAL, SL_REDUCE_FLOAT32}, false, 0, true);
}

static void rows_that_are_named_are_enough(void **state)
{
    (void)state;
    run_ranks("marks", (struct sl_reduce_config){SL_REDUCE_ALL, SL_REDUCE_FLOAT32}, true, 0, false);
    run_ranks("marks-central", (struct sl_reduce_config){SL_REDUCE_CENTRAL, SL_REDUCE_FLOAT32}, true, 0, false);
}

static void factors_are_added_in_groups(void **state)
{
    (void)state;
    run_ranks("compressed", (struct sl_reduce_config){SL_REDUCE_ALL, SL_REDUCE_FLOAT32}, true, 2, false);
    run_ranks("compressed-spare", (struct sl_reduce_config){SL_REDUCE_ALL, SL_REDUCE_FLOAT32}, true, 2, true);
}

static void a_bundle_grows_with_latency_and_bandwidth(void **state)
{
    (void)state;
    const int64_t usual = sl_reducer_choose_bundle(5e-6, 10e9);
    assert_int_equal(usual, 16 * 50000 / 4);
    assert_true(sl_reducer_choose_bundle(10e-6, 10e9) == 2 * usual);
    assert_int_equal(sl_reducer_choose_bundle(0, 10e9), 16 << 10);
    assert_int_equal(sl_reducer_choose_bundle(NAN, 10e9), 16 << 10);
    assert_int_equal(sl_reducer_choose_bundle(1, 1e12), 4 << 20);
}

/* Of each number of columns, each column once. */
static void rows_of_zeros_are_not_exchanged(void **state)
{
    (void)state;
    enum { COLUMNS = 19 };
    for (int64_t columns = 1; columns <= COLUMNS; columns++)
        for (int64_t k = 0; k < columns; k++) {
            float row[COLUMNS + 1] = {0};
            row[columns] = 1; /* that of the next row */
            assert_false(sl_bundle_uses_row(row, columns));
            row[k] = -0.0f;
            assert_true(sl_bundle_uses_row(row, columns));
            row[k] = 1e-45f;
            assert_true(sl_bundle_uses_row(row, columns));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_get_the_sums),          cmocka_unit_test(rows_that_are_named_are_enough),
        cmocka_unit_test(factors_are_added_in_groups),     cmocka_unit_test(a_bundle_grows_with_latency_and_bandwidth),
        cmocka_unit_test(rows_of_zeros_are_not_exchanged),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
