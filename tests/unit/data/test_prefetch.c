/* SPDX-License-Identifier: Apache-2.0 */
/* Batches through the queue are those of the batcher; position, early end and failures; threads (TSan). */
#include "data_fixture.h"

#include <dirent.h>
#include <signal.h>

#include "data/batch/prefetch.h"

#include "oom.h"

static struct data_open open_data(void)
{
    return data_open_train("type: generator, train: {name: adding_problem, size: 37, length: [5, 9]}, batch_size: 4",
                           MODEL_REGRESS, "loss: mse");
}

static struct sl_batch *next(struct sl_prefetch *prefetch)
{
    struct sl_batch *batch = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_prefetch_next(prefetch, &batch, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return batch;
}

static void expect_equal(const struct sl_batch *a, const struct sl_batch *b)
{
    assert_true(!a == !b);
    if (!a)
        return;
    assert_true(a->ordinal == b->ordinal && a->sequences == b->sequences && a->axis.rows == b->axis.rows);
    assert_memory_equal(a->sample, b->sample, (size_t)a->sequences * 8);
    assert_memory_equal(a->input.values, b->input.values, (size_t)(a->axis.rows * 2) * 4);
}

static void test_same_batches(void **state)
{
    (void)state;
    struct data_open o = open_data();
    for (int depth = 0; depth <= 4; depth += depth ? 3 : 1) {
        struct sl_batcher *plain = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
        struct sl_batcher *ahead = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
        struct sl_prefetch *prefetch;
        assert_int_equal(sl_prefetch_create(ahead, depth, &prefetch, NULL), SEQLSTM_OK);
        for (int i = 0; i < 35; i++) { /* three epochs of ten batches and their ends, and a bit */
            struct sl_batch *a = data_next(plain), *b = next(prefetch);
            expect_equal(a, b);
            sl_batch_destroy(a);
            sl_batch_destroy(b);
        }
        assert_true(sl_prefetch_get_wait_ns(prefetch) >= 0);
        sl_prefetch_destroy(prefetch);
        sl_batcher_close(plain);
        sl_batcher_close(ahead);
    }
    data_close(&o);
}

/* A queue holds 0 to 64 batches. */
static void test_depths(void **state)
{
    (void)state;
    struct data_open o = open_data();
    for (int depth = -1; depth <= 65; depth++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_prefetch *prefetch = NULL;
        struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
        const bool fits = depth >= 0 && depth <= 64;
        assert_int_equal(sl_prefetch_create(batcher, depth, &prefetch, &err),
                         fits ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
        assert_true(fits || strstr(err.message, "expected 0 to 64"));
        if (fits) {
            sl_batch_destroy(next(prefetch));
            sl_prefetch_destroy(prefetch);
        }
        sl_batcher_close(batcher);
    }
    data_close(&o);
}

/* It begins where the batcher is. */
static void test_position(void **state)
{
    (void)state;
    struct data_open o = open_data();
    struct sl_batcher *plain = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
    struct sl_batcher *ahead = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
    struct sl_prefetch *prefetch;
    assert_int_equal(sl_batcher_seek(plain, 2, 7, NULL), SEQLSTM_OK);
    assert_int_equal(sl_batcher_seek(ahead, 2, 7, NULL), SEQLSTM_OK);
    assert_int_equal(sl_prefetch_create(ahead, 3, &prefetch, NULL), SEQLSTM_OK);
    for (int i = 0; i < 6; i++) {
        struct sl_batch *a = data_next(plain), *b = next(prefetch);
        expect_equal(a, b);
        sl_batch_destroy(a);
        sl_batch_destroy(b);
    }
    sl_prefetch_destroy(prefetch);
    sl_batcher_close(plain);
    sl_batcher_close(ahead);
    data_close(&o);
}

/* Destroyed while the thread is at work, waits for room, or has just begun. */
static void test_early_end(void **state)
{
    (void)state;
    struct data_open o = open_data();
    for (int i = 0; i < 30; i++) {
        struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
        struct sl_prefetch *prefetch;
        assert_int_equal(sl_prefetch_create(batcher, 1 + i % 3, &prefetch, NULL), SEQLSTM_OK);
        for (int k = 0; k < i % 4; k++)
            sl_batch_destroy(next(prefetch));
        sl_prefetch_destroy(prefetch);
        sl_batch_destroy(data_next(batcher)); /* given back, and alive */
        sl_batcher_close(batcher);
    }
    sl_prefetch_destroy(NULL);
    data_close(&o);
}

/* Memory that runs out comes out of next; from the thread again and again. */
static void test_failure(void **state)
{
    (void)state;
    struct data_open o = open_data();
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
    struct sl_prefetch *prefetch = NULL;
    struct sl_batch *batch = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_prefetch_create(batcher, 65, &prefetch, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_prefetch_create(batcher, 0, &prefetch, NULL), SEQLSTM_OK);
    oom_fail_at(2);
    assert_int_equal(sl_prefetch_next(prefetch, &batch, &err), SEQLSTM_NO_MEMORY);
    assert_true(oom_disarm());
    assert_null(batch);
    batch = next(prefetch);
    assert_int_equal(batch->ordinal, 0);
    sl_batch_destroy(batch);
    sl_prefetch_destroy(prefetch);
    int failed = 0;
    for (int n = 1; n <= 12; n++) {
        oom_fail_at(n);
        seqlstm_status created = sl_prefetch_create(batcher, 1, &prefetch, &err);
        seqlstm_status first = created == SEQLSTM_OK ? sl_prefetch_next(prefetch, &batch, &err) : created;
        oom_disarm();
        if (created != SEQLSTM_OK)
            continue;
        if (first == SEQLSTM_OK) {
            sl_batch_destroy(batch);
        } else {
            failed++;
            for (int again = 0; again < 2; again++) {
                err.message[0] = '\0';
                assert_int_equal(sl_prefetch_next(prefetch, &batch, &err), first);
                assert_int_equal(err.code, first);
                assert_non_null(strstr(err.message, "no memory"));
            }
        }
        sl_prefetch_destroy(prefetch);
    }
    assert_true(failed > 0);
    sl_batcher_close(batcher);
    data_close(&o);
}

/* Threads of this process that take SIGINT. */
static int count_takers(void)
{
    int takers = 0;
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    for (const struct dirent *thread; (thread = readdir(threads)) != NULL;) {
        char path[300], line[200];
        unsigned long long blocked = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", thread->d_name);
        FILE *status = thread->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (status && fgets(line, sizeof line, status))
            if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
                takers += !(blocked >> (SIGINT - 1) & 1);
        if (status)
            fclose(status);
    }
    closedir(threads);
    return takers;
}

/* Signals go to the main program's threads, and those still take them. */
static void test_signals(void **state)
{
    (void)state;
    struct data_open o = open_data();
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
    struct sl_prefetch *prefetch;
    sigset_t before, now;
    const int takers = count_takers();
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(sl_prefetch_create(batcher, 2, &prefetch, NULL), SEQLSTM_OK);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    for (int number = 1; number < SIGRTMIN; number++)
        assert_int_equal(sigismember(&now, number), sigismember(&before, number));
    sl_batch_destroy(next(prefetch)); /* it runs */
    assert_int_equal(count_takers(), takers);
    sl_prefetch_destroy(prefetch);
    sl_batcher_close(batcher);
    data_close(&o);
}

/* The time that all batches were waited for. */
static void test_waits_add_up(void **state)
{
    (void)state;
    struct data_open o = open_data();
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
    struct sl_prefetch *prefetch;
    int64_t before = 0;
    assert_int_equal(sl_prefetch_create(batcher, 0, &prefetch, NULL), SEQLSTM_OK);
    for (int i = 0; i < 40; i++) {
        sl_batch_destroy(next(prefetch));
        assert_true(sl_prefetch_get_wait_ns(prefetch) > before);
        before = sl_prefetch_get_wait_ns(prefetch);
    }
    sl_prefetch_destroy(prefetch);
    sl_batcher_close(batcher);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_batches), cmocka_unit_test(test_depths),  cmocka_unit_test(test_position),
        cmocka_unit_test(test_early_end),    cmocka_unit_test(test_failure), cmocka_unit_test(test_signals),
        cmocka_unit_test(test_waits_add_up),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
