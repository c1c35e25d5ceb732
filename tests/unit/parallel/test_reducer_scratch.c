/* SPDX-License-Identifier: Apache-2.0 */
/* The scratch of the reducer between guards, and what each exchange names, for every share of used rows. The other
 * rank is an echo: it has the same gradients, so that each sum is twice this rank's. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory/memory.h"
#include "fake_collectives.h"
#include "oom.h"
#include "parallel/reducer.h"

enum { GUARD = 4096, ELEMS_MOST = 400 };

static struct {
    unsigned char *block; /* a guard, the scratch, a guard */
    size_t bytes;
    float *grads;
    int64_t elems, exchanged; /* floats of sums */
    int64_t gathered;         /* floats that each rank sends to all */
    int runs, fails_at;       /* the exchange that fails, counted from 1; 0: none */
    int late_ms;              /* until the other rank comes */
    sigset_t blocked;         /* the signals that the thread of the last exchange does not take */
} scratch;

static seqlstm_status describe(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    transport->dtypes = ~UINT32_C(0);
    transport->reductions = ~UINT32_C(0);
    return fake_describe(transport, err);
}

static seqlstm_status lend(struct seqlstm_connection *connection, uint64_t bytes, int64_t timeout_ns, void **out_memory,
                           struct seqlstm_error *err)
{
    (void)connection, (void)timeout_ns, (void)err;
    assert_null(scratch.block);
    assert_int_equal(posix_memalign((void **)&scratch.block, GUARD, (size_t)bytes + 2 * GUARD), 0);
    memset(scratch.block, 0xA5, (size_t)bytes + 2 * GUARD);
    scratch.bytes = (size_t)bytes;
    *out_memory = scratch.block + GUARD;
    return SEQLSTM_OK;
}

/* Do the bytes lie in the scratch or in the gradients? */
static bool is_inside(const void *at, int64_t bytes)
{
    const unsigned char *from = at, *begin = scratch.block + GUARD, *grads = (const unsigned char *)scratch.grads;
    return (from >= begin && from + bytes <= begin + scratch.bytes) ||
           (from >= grads && from + bytes <= grads + scratch.elems * (int64_t)sizeof(float));
}

static void double_bfloat16(uint16_t *values, int64_t elems)
{
    for (int64_t i = 0; i < elems; i++) {
        uint32_t bits = (uint32_t)values[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        value *= 2;
        memcpy(&bits, &value, sizeof bits);
        values[i] = (uint16_t)(bits >> 16);
    }
}

/* What each rank sends is the same. */
static seqlstm_status gather(const struct seqlstm_exchange *e, struct seqlstm_error *err)
{
    const bool flags = e->dtype == SEQLSTM_DTYPE_UINT8;
    const int64_t bytes = e->elems * (flags ? 1 : (int64_t)sizeof(float));
    if (!flags && (!is_inside(e->to, 2 * bytes) || !is_inside(e->from, bytes)))
        return seqlstm_error_set(err, SEQLSTM_INTERNAL, __FILE__, __LINE__, "a gathering into memory of others");
    memcpy(e->to, e->from, (size_t)bytes);
    memcpy((char *)e->to + bytes, e->from, (size_t)bytes);
    scratch.gathered += flags ? 0 : e->elems;
    return SEQLSTM_OK;
}

/* Sums are twice the values; what the other rank sends is what was offered to it: the packed or whole gradients. */
static seqlstm_status echo(struct seqlstm_group *group, struct seqlstm_queue *queue, const struct seqlstm_exchange *e,
                           struct seqlstm_error *err)
{
    (void)group, (void)queue;
    pthread_sigmask(SIG_SETMASK, NULL, &scratch.blocked);
    if (scratch.late_ms > 0)
        usleep((useconds_t)scratch.late_ms * 1000);
    if (++scratch.runs == scratch.fails_at)
        return seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "exchange %d has failed", scratch.runs);
    if (e->kind == SEQLSTM_COLLECTIVE_ALL_GATHER)
        return gather(e, err);
    if (e->dtype == SEQLSTM_DTYPE_UINT8)
        return SEQLSTM_OK;
    const int64_t bytes = e->elems * (e->dtype == SEQLSTM_DTYPE_BFLOAT16 ? 2 : 4);
    if (scratch.block && (!is_inside(e->to, bytes) || !is_inside(e->from, bytes)))
        return seqlstm_error_set(err, SEQLSTM_INTERNAL, __FILE__, __LINE__, "an exchange of memory of others");
    scratch.exchanged += e->elems;
    if (e->dtype == SEQLSTM_DTYPE_BFLOAT16)
        double_bfloat16(e->to, e->elems);
    else if (e->kind == SEQLSTM_COLLECTIVE_RECEIVE) /* into the rest of the scratch, and not over what is to be added */
        memcpy(e->to, e->from, (size_t)bytes);
    else
        for (int64_t i = 0; i < e->elems; i++)
            ((float *)e->to)[i] *= 2;
    return SEQLSTM_OK;
}

/* The other rank, for these gradients. */
static void begin(float *grads, int64_t elems)
{
    fake_reset();
    fake.table.describe = describe;
    fake.table.allocate = lend;
    fake.table.run = echo;
    memset(&scratch, 0, sizeof scratch);
    scratch.grads = grads;
    scratch.elems = elems;
}

static void check_guards(void)
{
    for (size_t k = 0; k < GUARD; k++) {
        assert_int_equal(scratch.block[k], 0xA5);
        assert_int_equal(scratch.block[GUARD + scratch.bytes + k], 0xA5);
    }
}

/* Two updates with `used` rows of the matrix. Small whole numbers, which bfloat16 has exactly. */
static void add(const struct sl_parallel_config *config, const struct sl_bundle_matrix *matrix, int64_t elems,
                int64_t used, bool marks)
{
    struct sl_connection *connection = NULL;
    struct sl_reducer *reducer = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_ranks ranks;
    float grads[ELEMS_MOST], given[ELEMS_MOST];
    int32_t ids[ELEMS_MOST];
    memset(grads, 0, sizeof grads);
    begin(grads, elems);
    assert_int_equal(fake_connect(0, 2, &connection, &err), SEQLSTM_OK);
    assert_int_equal(sl_ranks_init(&ranks, connection, config, NULL, &err), SEQLSTM_OK);
    const struct sl_reducer_request request = {
        .ranks = &ranks, .grads = grads, .elems = elems, .matrices = matrix, .matrix_count = 1, .marks = marks};
    assert_int_equal(sl_reducer_create(&request, &reducer, &err), SEQLSTM_OK);
    assert_int_equal(scratch.bytes, (elems + 1) * (int64_t)sizeof(float));
    const int64_t end = matrix->offset + matrix->rows * matrix->columns;
    for (int update = 0; update < 2; update++) {
        for (int64_t i = 0; i < elems; i++) {
            const int64_t row = (i - matrix->offset) / matrix->columns;
            const bool other = i >= matrix->offset && i < end && (row + update) % matrix->rows >= used;
            given[i] = grads[i] = other ? 0 : (float)(i % 7 + 1 + update);
        }
        int32_t count = 0;
        for (int64_t row = 0; row < matrix->rows; row++)
            if ((row + update) % matrix->rows < used)
                ids[count++] = (int32_t)row;
        scratch.exchanged = 0;
        if (marks)
            sl_reducer_mark(reducer, matrix->offset, ids, count);
        if (sl_reducer_finish(reducer, &err) != SEQLSTM_OK)
            fail_msg("%lld of %lld rows: %s", (long long)used, (long long)matrix->rows, err.message);
        for (int64_t i = 0; i < elems; i++)
            assert_true(grads[i] == 2 * given[i]);
        const int64_t packed = used * matrix->columns, whole = matrix->rows * matrix->columns;
        assert_int_equal(scratch.exchanged, elems - whole + (2 * packed > whole ? whole : packed));
        check_guards();
    }
    sl_reducer_destroy(reducer);
    sl_connection_close(connection);
    free(scratch.block);
}

/* A matrix that is all there is, one with neighbours on both sides, and one row. */
static void all_stays_in_the_scratch(void **state)
{
    static const struct {
        struct sl_bundle_matrix matrix;
        int64_t elems;
    } cases[] = {{{0, 10, 3, false}, 30},  {{0, 11, 4, false}, 44}, {{5, 10, 3, false}, 40},
                 {{0, 8, 16, false}, 130}, {{7, 9, 8, false}, 79},  {{0, 1, 5, false}, 5}};
    static const struct sl_reduce_config ways[] = {{SL_REDUCE_ALL, SL_REDUCE_FLOAT32},
                                                   {SL_REDUCE_ALL, SL_REDUCE_BFLOAT16},
                                                   {SL_REDUCE_CENTRAL, SL_REDUCE_FLOAT32}};
    (void)state;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int64_t used = 0; used <= cases[c].matrix.rows; used++)
                for (int marks = 0; marks < 2; marks++) {
                    const struct sl_parallel_config config = {.data = 2, .reduce = ways[w]};
                    add(&config, &cases[c].matrix, cases[c].elems, used, marks);
                }
}

/* Few ranks gather what a part of the scratch has room for, their own part beside it; more is added in place. */
static void what_is_gathered_has_room(void **state)
{
    static const struct sl_bundle_matrix matrices[] = {
        {0, 10, 3, false}, {0, 12, 4, false}, {5, 30, 2, false}, {2, 7, 8, false}};
    static const struct sl_parallel_config config = {.data = 2, .compress = {SL_COMPRESS_POWERSGD, 1}};
    (void)state;
    for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
        const struct sl_bundle_matrix *matrix = &matrices[m];
        const int64_t elems = matrix->rows * matrix->columns + 2 * matrix->offset;
        for (int64_t used = 0; used <= matrix->rows; used++) {
            struct sl_connection *connection = NULL;
            struct sl_reducer *reducer = NULL;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_ranks ranks;
            float grads[ELEMS_MOST] = {0}, errors[ELEMS_MOST] = {0}, given[ELEMS_MOST];
            begin(grads, elems);
            assert_int_equal(fake_connect(0, 2, &connection, &err), SEQLSTM_OK);
            assert_int_equal(sl_ranks_init(&ranks, connection, &config, NULL, &err), SEQLSTM_OK);
            const struct sl_reducer_request request = {.ranks = &ranks,
                                                       .grads = grads,
                                                       .elems = elems,
                                                       .matrices = matrix,
                                                       .matrix_count = 1,
                                                       .errors = errors};
            assert_int_equal(sl_reducer_create(&request, &reducer, &err), SEQLSTM_OK);
            for (int64_t i = 0; i < elems; i++) {
                const int64_t row = (i - matrix->offset) / matrix->columns;
                const bool other = i >= matrix->offset && row < matrix->rows && row >= used;
                given[i] = grads[i] = other ? 0 : (float)(i % 7 + 1);
            }
            if (sl_reducer_finish(reducer, &err) != SEQLSTM_OK)
                fail_msg("matrix %d, %lld rows: %s", (int)m, (long long)used, err.message);
            for (int64_t i = 0; i < elems; i++)
                assert_true(grads[i] == 2 * given[i]);
            check_guards();
            const int64_t sum = 2 * matrix->offset + used * matrix->columns;
            assert_int_equal(scratch.gathered, 3 * sum <= elems ? sum : 0);
            sl_reducer_destroy(reducer);
            sl_connection_close(connection);
            free(scratch.block);
        }
    }
}

/* Whichever exchange fails, of whichever group, the update ends with its message, and so does the next one. */
static void a_failure_is_told_with_its_message(void **state)
{
    static const struct sl_bundle_matrix matrices[] = {{5, 10, 3, false}, {60, 4, 5, false}};
    static const struct sl_parallel_config config = {.data = 2};
    (void)state;
    for (int spares_core = 0; spares_core < 2; spares_core++)
        for (int fails_at = 1;; fails_at++) {
            struct sl_connection *connection = NULL;
            struct sl_reducer *reducer = NULL;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_ranks ranks;
            float grads[100] = {0};
            char expected[60];
            begin(grads, 100);
            assert_int_equal(fake_connect(0, 2, &connection, &err), SEQLSTM_OK);
            assert_int_equal(sl_ranks_init(&ranks, connection, &config, NULL, &err), SEQLSTM_OK);
            ranks.spares_core = spares_core;
            const struct sl_reducer_request request = {
                .ranks = &ranks, .grads = grads, .elems = 100, .matrices = matrices, .matrix_count = 2};
            assert_int_equal(sl_reducer_create(&request, &reducer, &err), SEQLSTM_OK);
            scratch.runs = 0;
            scratch.fails_at = fails_at;
            const seqlstm_status status = sl_reducer_finish(reducer, &err);
            const bool fails = scratch.runs >= fails_at;
            assert_int_equal(status, fails ? SEQLSTM_DEVICE : SEQLSTM_OK);
            for (int update = 0; update < 2 && fails; update++) {
                snprintf(expected, sizeof expected, "exchange %d has failed", fails_at);
                assert_string_equal(err.message, expected);
                err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
                assert_int_equal(sl_reducer_finish(reducer, &err), SEQLSTM_DEVICE);
                assert_int_equal(scratch.runs, fails_at); /* nothing is exchanged any more */
            }
            sl_reducer_destroy(reducer);
            sl_connection_close(connection);
            free(scratch.block);
            if (!fails) {
                assert_true(fails_at > 4); /* vectors around and between the matrices, and flags of both */
                break;
            }
        }
}

static uint32_t no_dtype, no_reduction; /* what the transport does not know */

static seqlstm_status describe_less(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    transport->dtypes = ~UINT32_C(0) & ~no_dtype;
    transport->reductions = ~UINT32_C(0) & ~no_reduction;
    return fake_describe(transport, err);
}

/* Which rows are used is told by a maximum of bytes. A transport that has no such exchange gets all rows. */
static void rows_are_chosen_only_where_flags_can_be_exchanged(void **state)
{
    static const struct sl_bundle_matrix matrix = {5, 10, 3, false};
    static const struct sl_parallel_config config = {.data = 2};
    static const struct {
        uint32_t dtype, reduction;
        int64_t exchanged;
    } cases[] = {{0, 0, 10 + 3},
                 {UINT32_C(1) << SEQLSTM_DTYPE_UINT8, 0, 40},
                 {0, UINT32_C(1) << SEQLSTM_REDUCE_MAX, 40},
                 {UINT32_C(1) << SEQLSTM_DTYPE_UINT8, UINT32_C(1) << SEQLSTM_REDUCE_MAX, 40}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct sl_connection *connection = NULL;
        struct sl_reducer *reducer = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_ranks ranks;
        float grads[40] = {0};
        begin(grads, 40);
        fake.table.describe = describe_less;
        no_dtype = cases[c].dtype;
        no_reduction = cases[c].reduction;
        grads[5 + 2 * 3] = 1; /* row 2 alone */
        assert_int_equal(fake_connect(0, 2, &connection, &err), SEQLSTM_OK);
        assert_int_equal(sl_ranks_init(&ranks, connection, &config, NULL, &err), SEQLSTM_OK);
        const struct sl_reducer_request request = {
            .ranks = &ranks, .grads = grads, .elems = 40, .matrices = &matrix, .matrix_count = 1};
        assert_int_equal(sl_reducer_create(&request, &reducer, &err), SEQLSTM_OK);
        assert_int_equal(sl_reducer_finish(reducer, &err), SEQLSTM_OK);
        assert_int_equal(scratch.exchanged, cases[c].exchanged);
        assert_true(grads[5 + 2 * 3] == 2);
        assert_int_equal(sl_reducer_get_used(reducer, matrix.offset) != NULL, cases[c].exchanged < 40);
        sl_reducer_destroy(reducer);
        sl_connection_close(connection);
        free(scratch.block);
    }
}

/* Signals end a training at the thread that computes: it takes those that it took before, the reducer's takes none. */
static void signals_are_left_to_the_thread_that_computes(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
    static const struct sl_parallel_config config = {.data = 2};
    struct sl_connection *connection = NULL;
    struct sl_reducer *reducer = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_ranks ranks;
    sigset_t before, own;
    float grads[40] = {0};
    (void)state;
    begin(grads, 40);
    sigemptyset(&own);
    sigaddset(&own, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &own, &before);
    assert_int_equal(fake_connect(0, 2, &connection, &err), SEQLSTM_OK);
    assert_int_equal(sl_ranks_init(&ranks, connection, &config, NULL, &err), SEQLSTM_OK);
    const struct sl_reducer_request request = {.ranks = &ranks, .grads = grads, .elems = 40};
    assert_int_equal(sl_reducer_create(&request, &reducer, &err), SEQLSTM_OK);
    assert_int_equal(sl_reducer_finish(reducer, &err), SEQLSTM_OK);
    pthread_sigmask(SIG_SETMASK, &before, &own);
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++) {
        assert_int_equal(sigismember(&scratch.blocked, signals[k]), 1);
        assert_int_equal(sigismember(&own, signals[k]), signals[k] == SIGUSR1);
    }
    sl_reducer_destroy(reducer);
    sl_connection_close(connection);
    free(scratch.block);
}

/* Times grow from update to update. */
static void times_are_of_all_updates(void **state)
{
    static const struct sl_parallel_config config = {.data = 2};
    struct sl_connection *connection = NULL;
    struct sl_reducer *reducer = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_ranks ranks;
    struct sl_reducer_times before = {0, 0};
    float grads[40] = {0};
    (void)state;
    begin(grads, 40);
    assert_int_equal(fake_connect(0, 2, &connection, &err), SEQLSTM_OK);
    assert_int_equal(sl_ranks_init(&ranks, connection, &config, NULL, &err), SEQLSTM_OK);
    const struct sl_reducer_request request = {.ranks = &ranks, .grads = grads, .elems = 40};
    assert_int_equal(sl_reducer_create(&request, &reducer, &err), SEQLSTM_OK);
    for (int update = 0; update < 20; update++) {
        assert_int_equal(sl_reducer_finish(reducer, &err), SEQLSTM_OK);
        const struct sl_reducer_times now = sl_reducer_get_times(reducer);
        assert_true(now.exchange_ns >= before.exchange_ns && now.wait_ns > before.wait_ns);
        before = now;
    }
    sl_reducer_destroy(reducer);
    sl_connection_close(connection);
    free(scratch.block);
}

/* Another rank that comes late is waited for in an exchange. What of that is over before the update needs the sums is
 * no wait of the update. */
static void a_late_rank_is_waited_for(void **state)
{
    enum { LATE_MS = 150 };
    static const struct sl_parallel_config config = {.data = 2};
    struct sl_connection *connection = NULL;
    struct sl_reducer *reducer = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_ranks ranks;
    float grads[40] = {0};
    (void)state;
    for (int spares_core = 0; spares_core < 2; spares_core++) {
        const int64_t late_ns = INT64_C(1000000) * LATE_MS;
        begin(grads, 40);
        assert_int_equal(fake_connect(0, 2, &connection, &err), SEQLSTM_OK);
        assert_int_equal(sl_ranks_init(&ranks, connection, &config, NULL, &err), SEQLSTM_OK);
        ranks.spares_core = spares_core;
        const struct sl_reducer_request request = {.ranks = &ranks, .grads = grads, .elems = 40};
        assert_int_equal(sl_reducer_create(&request, &reducer, &err), SEQLSTM_OK);
        scratch.late_ms = LATE_MS;
        assert_int_equal(sl_reducer_finish(reducer, &err), SEQLSTM_OK);
        const struct sl_reducer_times waited = sl_reducer_get_times(reducer);
        assert_true(waited.exchange_ns >= late_ns && waited.wait_ns >= late_ns);
        sl_reducer_note(reducer, 0);
        struct sl_reducer_times now = waited;
        for (int k = 0; k < 10000 && now.exchange_ns == waited.exchange_ns; k++) {
            usleep(1000);
            now = sl_reducer_get_times(reducer);
        }
        assert_true(now.exchange_ns >= 2 * late_ns && now.wait_ns == waited.wait_ns);
        assert_int_equal(sl_reducer_finish(reducer, &err), SEQLSTM_OK);
        now = sl_reducer_get_times(reducer);
        assert_true(now.wait_ns > waited.wait_ns && now.wait_ns < waited.wait_ns + late_ns);
        sl_reducer_destroy(reducer);
        sl_connection_close(connection);
        free(scratch.block);
    }
}

/* Whichever allocation or exchange fails while it is opened, nothing of it is left. */
static void a_reducer_that_cannot_be_opened(void **state)
{
    enum { ELEMS = 20000, FAILS_LEAST = 10 }; /* so many that the link is timed */
    static const struct sl_bundle_matrix matrices[] = {
        {5, 10, 3, false}, {60, 40, 50, true}, {3000, 4, 5, false}, {4000, 30, 60, true}};
    static const struct sl_parallel_config config = {.data = 2, .compress = {SL_COMPRESS_POWERSGD, 2}};
    static float grads[ELEMS], errors[ELEMS];
    (void)state;
    for (int exchanges = 0; exchanges < 2; exchanges++)
        for (int n = 1;; n++) {
            struct sl_connection *connection = NULL;
            struct sl_reducer *reducer = NULL;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_memory memory;
            struct sl_ranks ranks;
            char expected[60];
            sl_memory_init(&memory);
            begin(grads, ELEMS);
            if (!exchanges)
                fake.table.allocate = NULL;
            assert_int_equal(fake_connect(0, 2, &connection, &err), SEQLSTM_OK);
            assert_int_equal(sl_ranks_init(&ranks, connection, &config, NULL, &err), SEQLSTM_OK);
            const struct sl_reducer_request request = {.ranks = &ranks,
                                                       .memory = &memory,
                                                       .grads = grads,
                                                       .elems = ELEMS,
                                                       .matrices = matrices,
                                                       .matrix_count = 4,
                                                       .errors = errors};
            scratch.fails_at = exchanges ? n : 0;
            if (!exchanges)
                oom_fail_at(n);
            const seqlstm_status status = sl_reducer_create(&request, &reducer, &err);
            const bool fails = exchanges ? scratch.runs >= n : oom_disarm();
            assert_int_equal(status, !fails ? SEQLSTM_OK : exchanges ? SEQLSTM_DEVICE : SEQLSTM_NO_MEMORY);
            if (fails) {
                assert_null(reducer);
                snprintf(expected, sizeof expected, "exchange %d has failed", n);
                assert_non_null(strstr(err.message, exchanges ? expected : "no memory for "));
                assert_non_null(strstr(err.message, exchanges ? expected : "gradients"));
            }
            sl_reducer_destroy(reducer);
            assert_int_equal(memory.live_blocks, 0);
            sl_connection_close(connection);
            free(scratch.block);
            if (!fails) {
                assert_true(n > FAILS_LEAST); /* trials of the link; lists, scratch and four parts of each matrix */
                break;
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_stays_in_the_scratch),
        cmocka_unit_test(what_is_gathered_has_room),
        cmocka_unit_test(a_failure_is_told_with_its_message),
        cmocka_unit_test(rows_are_chosen_only_where_flags_can_be_exchanged),
        cmocka_unit_test(signals_are_left_to_the_thread_that_computes),
        cmocka_unit_test(times_are_of_all_updates),
        cmocka_unit_test(a_late_rank_is_waited_for),
        cmocka_unit_test(a_reducer_that_cannot_be_opened),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
