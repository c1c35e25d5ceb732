/* SPDX-License-Identifier: Apache-2.0 */
/* What `profile` tries out, and its end by a signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "compare/advice.h"

static const char text[] = "seqlstm: 1\n"
                           "seed: 1\n"
                           "data: {type: generator, name: adding_problem, length: [3, 4], train: {size: %d}, "
                           "batch_size: 4}\n"
                           "model: [{type: lstm, units: 2}, {type: dense, units: from_target}]\n"
                           "train: {loss: mse, optimizer: adam, updates: 40}\n"
                           "dispatch: {policy: order}\n"
                           "backends: [reference]\n";

struct trials {
    struct sl_interrupt interrupt;
    int records;
    const char *until; /* the trial that is interrupted; NULL: none */
    char last[96];
    int count;
    int largest; /* batch */
};

static void note_trial(void *context, const char *change)
{
    struct trials *trials = context;
    int batch;
    trials->count++;
    if (sscanf(change, "--set data.batch_size=%d", &batch) == 1 && batch > trials->largest)
        trials->largest = batch;
    snprintf(trials->last, sizeof trials->last, "%s", change);
    if (trials->until && strcmp(trials->until, change) == 0)
        atomic_store(&trials->interrupt.stop, 2);
}

static seqlstm_status find(struct trials *trials, struct sl_timeline_advices *advices)
{
    char path[] = "/tmp/seqlstm-advice-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0 && dprintf(file, text, trials->records) > 0);
    close(file);
    struct sl_model_request model = {.path = path};
    const struct sl_session_options options = {
        .model = &model, .threads = 1, .threads_given = true, .interrupt = &trials->interrupt};
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_session *session = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_diagnostics_create(&diagnostics, &err), SEQLSTM_OK);
    if (sl_session_open_model(&options, diagnostics, &session, &err) != SEQLSTM_OK ||
        sl_session_prepare_training(session, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    const struct sl_advice_request request = {.session = session,
                                              .options = &options,
                                              .update_ns = 1e9,
                                              .seconds = 1e9,
                                              .on_trial = note_trial,
                                              .context = trials};
    const seqlstm_status status = sl_advice_find(&request, advices, &err);
    sl_session_close(session);
    sl_diagnostics_destroy(diagnostics);
    unlink(path);
    return status;
}

static void test_interrupt(void **state)
{
    (void)state;
    static struct sl_timeline_advices advices;
    struct trials all = {.records = 64};
    assert_int_equal(find(&all, &advices), SEQLSTM_OK);
    assert_true(all.count > 3 && advices.count > 0);
    struct trials last = {.records = 64, .until = all.last};
    assert_int_equal(find(&last, &advices), SEQLSTM_CANCELLED);
    assert_int_equal(last.count, all.count);
}

/* Batches of up to eight times the size are tried, of which the data fill at least two. */
static void test_batches(void **state)
{
    (void)state;
    static const struct {
        int records, largest;
    } cases[] = {{15, 0}, {16, 8}, {31, 8}, {32, 16}, {63, 16}, {64, 32}, {400, 32}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        static struct sl_timeline_advices advices;
        struct trials trials = {.records = cases[k].records};
        assert_int_equal(find(&trials, &advices), SEQLSTM_OK);
        assert_int_equal(trials.largest, cases[k].largest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_interrupt), cmocka_unit_test(test_batches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
