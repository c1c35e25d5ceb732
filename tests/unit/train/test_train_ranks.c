/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranks, which are processes: they begin with the same, evaluate as one does, and are interrupted together. */
#include <stdatomic.h>

#include "base/system/clock.h"
#include "forked_ranks.h"
#include "oom.h"
#include "train_plain.h"
#include "train/evaluate.h"
#include "train/exchanged.h"
#include "train/trainer/shards.h"

enum { RANKS = 3 };

struct trial {
    const char *name;
    bool carries;
    int stopped; /* the rank that a signal asks to stop; -1: none */
    int batches;
};

static seqlstm_status evaluate(const struct trial *trial, struct sl_ranks *ranks, struct sl_evaluation *out)
{
    struct fake_params fake;
    fake_params_init(&fake);
    struct sl_exec exec = {.params = &fake.params};
    struct sl_batcher batcher = {.batches = trial->batches, .evaluate = true, .stream = trial->carries};
    struct sl_metric_rule rule = {.loss = SL_LOSS_MSE};
    const struct sl_evaluation_ranks request = {
        .exec = &exec, .batcher = &batcher, .rule = &rule, .carries = trial->carries};
    rule.wanted[SL_METRIC_LOSS] = rule.wanted[SL_METRIC_MAE] = true;
    const seqlstm_status status = sl_evaluate_on_ranks(&request, ranks, out, NULL);
    if (status != SEQLSTM_OK)
        return status;
    const struct sl_evaluation first = *out; /* the second begins where the first did */
    SEQLSTM_TRY(sl_evaluate_on_ranks(&request, ranks, out, NULL));
    return memcmp(&first.sums, &out->sums, sizeof first.sums) == 0 && first.batches == out->batches ? SEQLSTM_OK
                                                                                                    : SEQLSTM_INTERNAL;
}

/* The sums of batches are added in another order where batches are divided. */
static bool are_equal(const struct sl_evaluation *a, const struct sl_evaluation *b)
{
    bool same = a->batches == b->batches && a->values.count == b->values.count && a->values.count > 0;
    for (int k = 0; same && k < a->values.count; k++)
        same = fabs(a->values.items[k].value - b->values.items[k].value) <= 1e-12 * fabs(b->values.items[k].value);
    return same;
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
    if (join_ranks(rank, RANKS, job, &connection) != SEQLSTM_OK ||
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
        {"divided", false, -1, 7},
        {"a batch for each rank in each round", false, -1, 6},
        {"a batch for all but one rank", false, -1, 2},
        {"one batch", false, -1, 1},
        {"carried", true, -1, 7},
        {"divided, stopped at the first", false, 0, 7},
        {"divided, stopped in the middle", false, 1, 7},
        {"carried, stopped", true, 0, 7},
    };
    for (size_t k = 0; k < sizeof trials / sizeof *trials; k++)
        expect_of_ranks(RANKS, trials[k].name, be_rank, &trials[k]);
}

/* Some ranks cannot read their batches any more, at this of them. */
struct failing {
    const char *name;
    int ranks; /* bits */
    int at;
    bool carries;
};

static bool fail_rank(int rank, const char *job, const void *context)
{
    const struct failing *trial = context;
    const bool fails = trial->ranks >> rank & 1;
    const struct sl_parallel_config config = {.data = RANKS};
    struct sl_interrupt own = {0};
    struct sl_connection *connection = NULL;
    struct sl_ranks ranks;
    struct fake_params fake;
    struct sl_evaluation evaluation = {.batches = -7};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    fake_params_init(&fake);
    struct sl_exec exec = {.params = &fake.params};
    struct sl_batcher batcher = {
        .batches = 7, .evaluate = true, .stream = trial->carries, .fail_at = fails ? trial->at : 0};
    struct sl_metric_rule rule = {.loss = SL_LOSS_MSE};
    const struct sl_evaluation_ranks request = {
        .exec = &exec, .batcher = &batcher, .rule = &rule, .carries = trial->carries};
    rule.wanted[SL_METRIC_LOSS] = true;
    if (join_ranks(rank, RANKS, job, &connection) != SEQLSTM_OK ||
        sl_ranks_init(&ranks, connection, &config, &own, NULL) != SEQLSTM_OK)
        return false;
    const int64_t begun = sl_clock_ns();
    const seqlstm_status status = sl_evaluate_on_ranks(&request, &ranks, &evaluation, &err);
    sl_connection_close(connection);
    /* its own message, and no result; the others do not wait for it until their time is up */
    const bool fine = fails ? status == SEQLSTM_IO && strcmp(err.message, "the disk is gone") == 0
                            : status != SEQLSTM_OK && err.message[0] != '\0';
    if (!fine)
        print_error("%s, rank %d: %d %s\n", trial->name, rank, (int)status, err.message);
    return fine && evaluation.batches == -7 && sl_clock_ns() - begun < INT64_C(30000000000);
}

static void a_rank_that_fails_ends_the_others(void **state)
{
    (void)state;
    static const struct failing trials[] = {
        {"the first batch of rank 0", 1 << 0, 1, false},
        {"the first batch of rank 2", 1 << 2, 1, false},
        {"a later round of rank 1", 1 << 1, 5, false},
        {"the end at rank 2", 1 << 2, 8, false},
        {"rank 0 alone", 1 << 0, 3, true},
        {"the first batch of two", 1 << 0 | 1 << 2, 1, false},
        {"a later round of two", 1 << 1 | 1 << 2, 4, false},
        {"the end at all", 1 << 0 | 1 << 1 | 1 << 2, 8, false},
    };
    for (size_t k = 0; k < sizeof trials / sizeof *trials; k++)
        expect_of_ranks(RANKS, trials[k].name, fail_rank, &trials[k]);
}

enum part { ROWS, RECORDS, UPDATES, BATCHES };

/* What one rank has that rank 0 has not, and which rank is named. */
struct beginning {
    const char *name;
    int rank;          /* the first that differs; -1: none */
    int weights, data; /* the ranks with other weights and other data; -1: none */
    const char *what;
    enum part part; /* of the data */
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
    const bool other = rank == trial->data;
    facts.records += other && trial->part == RECORDS;
    facts.rows += other && trial->part == ROWS;
    batcher.batches += other && trial->part == BATCHES;
    if (join_ranks(rank, RANKS, job, &connection) != SEQLSTM_OK ||
        sl_ranks_init(&ranks, connection, &config, &own, NULL) != SEQLSTM_OK)
        return false;
    struct sl_trainer trainer = {
        .state.updates = other && trial->part == UPDATES ? 3 : 0,
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
        {"alike", -1, -1, -1, "", ROWS},
        {"the second", 1, 1, -1, "weights", ROWS},
        {"the last", 2, 2, -1, "weights", ROWS},
        {"records", 1, -1, 1, "data", RECORDS},
        {"rows", 2, -1, 2, "data", ROWS},
        {"updates", 2, -1, 2, "data", UPDATES},
        {"batches", 1, -1, 1, "data", BATCHES},
        {"rows of the first", 1, -1, 0, "data", ROWS},
        {"both in turn", 1, 1, 2, "weights", ROWS},
        {"both the other way round", 1, 2, 1, "data", ROWS},
    };
    for (size_t k = 0; k < sizeof trials / sizeof *trials; k++)
        expect_of_ranks(RANKS, trials[k].name, begin_rank, &trials[k]);
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
        cmocka_unit_test(a_rank_that_fails_ends_the_others),
        cmocka_unit_test(ranks_begin_alike),
        cmocka_unit_test(all_rows_of_an_update_are_lookups),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
