/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranks, which are processes: they begin with the same, evaluate as one does, and are interrupted together. */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train_plain.h"
#include "train/evaluate.h"
#include "train/exchanged.h"
#include "train/trainer/shards.h"

const struct seqlstm_collectives *seqlstm_comm_shm_query_v0(uint32_t host_minor);

enum { RANKS = 3 };

struct trial {
    const char *name;
    bool carries;
    int stopped; /* the rank that a signal asks to stop; -1: none */
};

static seqlstm_status evaluate(const struct trial *trial, struct sl_ranks *ranks, struct sl_evaluation *out)
{
    struct fake_params fake;
    fake_params_init(&fake);
    struct sl_exec exec = {.params = &fake.params};
    struct sl_batcher batcher = {.batches = 7, .evaluate = true, .stream = trial->carries};
    struct sl_metric_rule rule = {.loss = SL_LOSS_MSE};
    const struct sl_evaluation_ranks request = {
        .exec = &exec, .batcher = &batcher, .rule = &rule, .carries = trial->carries};
    rule.wanted[SL_METRIC_LOSS] = rule.wanted[SL_METRIC_MAE] = true;
    return sl_evaluate_on_ranks(&request, ranks, out, NULL);
}

/* The sums of batches are added in another order where batches are divided. */
static bool are_equal(const struct sl_evaluation *a, const struct sl_evaluation *b)
{
    bool same = a->batches == b->batches && a->values.count == b->values.count && a->values.count > 0;
    for (int k = 0; same && k < a->values.count; k++)
        same = fabs(a->values.items[k].value - b->values.items[k].value) <= 1e-12 * fabs(b->values.items[k].value);
    return same;
}

static seqlstm_status join(int rank, const char *job, struct sl_connection **out)
{
    static const struct sl_collectives_builtin builtin = {"comm-shm", seqlstm_comm_shm_query_v0};
    const struct sl_connection_request joining = {.name = "comm-shm",
                                                  .builtins = &builtin,
                                                  .builtin_count = 1,
                                                  .rank = rank,
                                                  .ranks = RANKS,
                                                  .job = job,
                                                  .timeout_ns = INT64_C(60000000000)};
    return sl_connection_open(&joining, out, NULL);
}

/* Each rank is a process, which ends with 0 if all was as it expected. */
static void expect_of_ranks(const char *name, bool (*be)(int rank, const char *job, const void *trial),
                            const void *trial)
{
    static int jobs;
    char job[64];
    pid_t pids[RANKS];
    snprintf(job, sizeof job, "train-ranks-%d-%d", jobs++, (int)getpid());
    for (int r = 0; r < RANKS; r++) {
        pids[r] = fork();
        if (pids[r] == 0)
            _exit(be(r, job, trial) ? 0 : 1);
    }
    for (int r = 0; r < RANKS; r++) {
        int status = -1;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        if (status != 0)
            fail_msg("%s: rank %d does otherwise", name, r);
    }
}

static bool be_rank(int rank, const char *job, const void *context)
{
    const struct trial *trial = context;
    const struct sl_parallel_config config = {.data = RANKS};
    struct sl_interrupt own = {0};
    struct sl_connection *connection = NULL;
    struct sl_ranks ranks, alone;
    struct sl_evaluation together = {0}, expected = {0};
    atomic_store(&own.stop, rank == trial->stopped ? 15 : 0);
    if (join(rank, job, &connection) != SEQLSTM_OK ||
        sl_ranks_init(&ranks, connection, &config, &own, NULL) != SEQLSTM_OK ||
        sl_ranks_init(&alone, NULL, &config, NULL, NULL) != SEQLSTM_OK)
        return false;
    const seqlstm_status status = evaluate(trial, &ranks, &together);
    bool fine = status == (trial->stopped < 0 ? SEQLSTM_OK : SEQLSTM_CANCELLED) &&
                sl_interrupt_get_stop(&ranks.agreed) == (trial->stopped < 0 ? 0 : 15) &&
                evaluate(trial, &alone, &expected) == SEQLSTM_OK;
    if (fine && trial->stopped < 0)
        fine = are_equal(&together, &expected);
    sl_connection_close(connection);
    return fine;
}

static void all_ranks_end_alike(void **state)
{
    (void)state;
    static const struct trial trials[] = {
        {"divided", false, -1},
        {"carried", true, -1},
        {"divided, stopped at the first", false, 0},
        {"divided, stopped in the middle", false, 1},
        {"carried, stopped", true, 0},
    };
    for (size_t k = 0; k < sizeof trials / sizeof *trials; k++)
        expect_of_ranks(trials[k].name, be_rank, &trials[k]);
}

/* What one rank has that rank 0 has not, and which rank is named. */
struct beginning {
    const char *name;
    int rank;          /* the first that differs; -1: none */
    int weights, data; /* the ranks with other weights and other data; -1: none */
    const char *what;
};

static bool begin_rank(int rank, const char *job, const void *context)
{
    const struct beginning *trial = context;
    const struct sl_parallel_config config = {.data = RANKS};
    struct sl_interrupt own = {0};
    struct sl_connection *connection = NULL;
    struct sl_ranks ranks;
    struct fake_params fake;
    struct sl_batcher batcher = {.batches = 7};
    struct sl_data_facts facts = {.records = 28, .rows = 77};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char expected[200] = "";
    fake_params_init(&fake);
    fake.values[25] += rank == trial->weights ? 1 : 0;
    facts.records += rank == trial->data && strcmp(trial->name, "records") == 0;
    facts.rows += rank == trial->data && strcmp(trial->name, "records") != 0;
    if (join(rank, job, &connection) != SEQLSTM_OK ||
        sl_ranks_init(&ranks, connection, &config, &own, NULL) != SEQLSTM_OK)
        return false;
    struct sl_trainer trainer = {
        .request = {.params = &fake.params, .facts = &facts, .train = &batcher, .ranks = &ranks}};
    const seqlstm_status status = sl_trainer_compare_ranks(&trainer, &err);
    if (trial->rank >= 0)
        snprintf(expected, sizeof expected,
                 "rank %d begins with other %s than rank 0: the files that the model names must be the same for all "
                 "ranks",
                 trial->rank, trial->what);
    const bool fine =
        trial->rank < 0 ? status == SEQLSTM_OK : status == SEQLSTM_INVALID_CONFIG && strcmp(err.message, expected) == 0;
    if (!fine)
        print_error("%s, rank %d: %d %s\n", trial->name, rank, (int)status, err.message);
    sl_connection_close(connection);
    return fine;
}

static void ranks_begin_alike(void **state)
{
    (void)state;
    static const struct beginning trials[] = {
        {"alike", -1, -1, -1, ""},
        {"the second", 1, 1, -1, "weights"},
        {"the last", 2, 2, -1, "weights"},
        {"records", 1, -1, 1, "data"},
        {"rows", 2, -1, 2, "data"},
        {"rows of the first", 1, -1, 0, "data"},
        {"both in turn", 1, 1, 2, "weights"},
        {"both the other way round", 1, 2, 1, "data"},
    };
    for (size_t k = 0; k < sizeof trials / sizeof *trials; k++)
        expect_of_ranks(trials[k].name, begin_rank, &trials[k]);
}

/* An update looks up the rows of both sides of its batches; without accumulation it has one batch. */
static void all_rows_of_an_update_are_lookups(void **state)
{
    (void)state;
    static const int64_t rows[] = {0, 1, 7, 1 << 20};
    static const int32_t batches[] = {0, 1, 2, 5};
    for (size_t a = 0; a < 4; a++)
        for (size_t b = 0; b < 4; b++)
            for (size_t k = 0; k < 4; k++) {
                const struct sl_envelope batch = {.rows = rows[a], .source_rows = rows[b]};
                int64_t expected = 0;
                for (int32_t turn = 0; turn == 0 || turn < batches[k]; turn++)
                    expected += rows[a] + rows[b];
                assert_int_equal(sl_exchanged_count_lookups(&batch, batches[k]), expected);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_end_alike),
        cmocka_unit_test(ranks_begin_alike),
        cmocka_unit_test(all_rows_of_an_update_are_lookups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
