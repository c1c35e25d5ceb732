/* SPDX-License-Identifier: Apache-2.0 */
/* The batches that ab, bench and verify take of the training data: which, how large, and what they are filled up with.
 */
#include "data_fixture.h"
#include "oom.h"

#include "compare/sample/repeat.h"
#include "compare/sample/sample.h"
#include "session/prepare/training.h"
#include "session/session.h"

/* Batches of the sample, spread over the epoch: the same as a batcher gives there. */
static void check_batches(const struct data_open *o, int64_t batch_size, int32_t most, int64_t sequences,
                          const char *ordinals)
{
    struct sl_sample sample;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf got = {0};
    if (sl_sample_create(o->train, 7, batch_size, most, &sample, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    struct sl_envelope widest = {.sequences = 0};
    for (int32_t b = 0; b < sample.count; b++) {
        const struct sl_batch *batch = sample.batches[b];
        sl_buf_printf(&got, "%s%lld", b ? " " : "", (long long)batch->ordinal);
        assert_false(batch->carry_state);
        assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_OK);
        widest.sequences = batch->sequences > widest.sequences ? batch->sequences : widest.sequences;
        widest.steps = batch->axis.steps > widest.steps ? batch->axis.steps : widest.steps;
        widest.rows = batch->axis.rows > widest.rows ? batch->axis.rows : widest.rows;
        widest.source_steps =
            batch->source.axis.steps > widest.source_steps ? batch->source.axis.steps : widest.source_steps;
        widest.source_rows =
            batch->source.axis.rows > widest.source_rows ? batch->source.axis.rows : widest.source_rows;
    }
    assert_string_equal(sl_buf_text(&got), ordinals);
    assert_int_equal(widest.sequences, sequences);
    assert_int_equal(sample.envelope.sequences, widest.sequences);
    assert_int_equal(sample.envelope.steps, widest.steps);
    assert_int_equal(sample.envelope.rows, widest.rows);
    assert_int_equal(sample.envelope.source_steps, widest.source_steps);
    assert_int_equal(sample.envelope.source_rows, widest.source_rows);
    sl_sample_deinit(&sample);
    assert_int_equal(sample.count, 0);
    sl_buf_deinit(&got);
}

static void batches_are_spread_over_an_epoch(void **state)
{
    (void)state;
    struct data_open o = data_open_train("train: {type: generator, name: adding_problem, length: [3, 6], size: 20}, "
                                         "batch_size: 2, batching: {bucketing: "
                                         "off}",
                                         MODEL_REGRESS, "loss: mse");
    check_batches(&o, 0, SL_SAMPLE_MOST, 2, "0 1 2 3 5 6 7 8");
    check_batches(&o, 0, 4, 2, "0 2 5 7");
    check_batches(&o, 0, 3, 2, "0 3 6");
    check_batches(&o, 0, 1, 2, "0");
    check_batches(&o, 7, 3, 7, "0 1 0"); /* the third one is filled up, and is no batch of the epoch */
    check_batches(&o, 20, 3, 20, "0");
    check_batches(&o, 21, 3, 21, "0");
    check_batches(&o, 57, 3, 57, "0");
    data_close(&o);
}

/* A text of 100 characters has room for 25 streams at most: more are copies. */
static void streams(void **state)
{
    (void)state;
    struct sl_buf text = {0};
    for (int i = 0; i < 100; i++)
        sl_buf_append_char(&text, (char)('a' + i % 26));
    data_write("train.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
    struct data_open o = data_open_train("type: text, train: {file: train.txt}, tokenizer: {type: char}, batching: "
                                         "{unit: stream, bptt: 5}, batch_size: 4",
                                         MODEL_LM, "task: language_model");
    struct sl_sample sample;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const int64_t sizes[] = {0, 3, 24, 26, 70};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        if (sl_sample_create(o.train, 7, sizes[k], 2, &sample, &err) != SEQLSTM_OK)
            fail_msg("%d: %s", (int)sizes[k], err.message);
        assert_int_equal(sample.batches[0]->sequences, sizes[k] ? sizes[k] : 4);
        assert_true(sample.envelope.stream && sample.batches[0]->axis.steps <= 5);
        for (int32_t b = 0; b < sample.count; b++) /* in the middle of a stream, too, states begin as zeros */
            assert_false(sample.batches[b]->carry_state);
        assert_true(sizes[k] >= 24 || (sample.count == 2 && sample.batches[1]->ordinal > 0));
        sl_sample_deinit(&sample);
    }
    data_close(&o);
}

/* Pairs of other lengths on both sides, several features: each copy is the sequence it comes from, neighbours stay
 * neighbours, and each has a number of its own. */
static void copies_of_pairs(void **state)
{
    (void)state;
    data_write("train.tsv", "a b c d\tx\na\tx y z\nb c\tx y\nd d d\tz y x x\n");
    struct data_open o = data_open_train(
        "type: tsv, train: {file: train.tsv, source: 1, target: 2, header: false}, batch_size: 4", MODEL_PAIRS, PAIRS);
    struct sl_sample few, many;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_sample_create(o.train, 7, 0, 1, &few, &err) != SEQLSTM_OK ||
        sl_sample_create(o.train, 7, 10, 1, &many, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    const struct sl_batch *from = few.batches[0], *to = many.batches[0];
    assert_int_equal(from->sequences, 4);
    assert_int_equal(to->sequences, 10);
    for (int64_t k = 0; k < 10; k++) {
        const int64_t origin = k * 4 / 10, place = to->source.place[k], place_of_origin = from->source.place[origin];
        assert_int_equal(to->axis.lengths[k], from->axis.lengths[origin]);
        assert_int_equal(to->axis.sequence_id[k], k);
        assert_int_equal(to->source.axis.sequence_id[place], k);
        for (int64_t t = 0; t < to->axis.lengths[k]; t++) {
            const int64_t row = sl_batch_row(to, k, t), row_of_origin = sl_batch_row(from, origin, t);
            assert_int_equal(to->input.ids[row], from->input.ids[row_of_origin]);
            assert_int_equal(to->target.ids[row], from->target.ids[row_of_origin]);
        }
        assert_int_equal(to->source.axis.lengths[place], from->source.axis.lengths[place_of_origin]);
        for (int64_t t = 0; t < to->source.axis.lengths[place]; t++)
            assert_int_equal(to->source.input.ids[sl_batch_source_row(to, k, t)],
                             from->source.input.ids[sl_batch_source_row(from, origin, t)]);
    }
    assert_true(to->last_segment);
    sl_sample_deinit(&few);
    sl_sample_deinit(&many);
    data_close(&o);
}

/* Values of several features, targets and weights at each step. */
static void copies_of_values(void **state)
{
    (void)state;
    static const int32_t lengths[] = {4, 2, 1};
    const struct sl_batch_shape shape = {.sequences = 3,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = 3,
                                         .input_on_steps = true,
                                         .target_kind = SL_FIELD_VALUES,
                                         .target_features = 2,
                                         .target_on_steps = true,
                                         .has_weight = true};
    struct sl_batch *from = NULL, *to = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_batch_create(&shape, &from, &err), SEQLSTM_OK);
    for (int64_t i = 0; i < 7 * 3; i++)
        ((float *)(uintptr_t)from->input.values)[i] = (float)i;
    for (int64_t i = 0; i < 7 * 2; i++)
        ((float *)(uintptr_t)from->target.values)[i] = 100 + (float)i;
    for (int64_t i = 0; i < (from->weight.on_steps ? 7 : 3); i++)
        ((float *)(uintptr_t)from->weight.values)[i] = 0.5f * (float)i;
    assert_int_equal(sl_batch_repeat(from, 8, &to, &err), SEQLSTM_OK);
    assert_int_equal(to->axis.rows, 4 * 3 + 2 * 3 + 2);
    for (int64_t k = 0; k < 8; k++)
        for (int64_t t = 0; t < to->axis.lengths[k]; t++) {
            const int64_t row = sl_batch_row(to, k, t), origin = sl_batch_row(from, k * 3 / 8, t);
            assert_memory_equal(to->input.values + 3 * row, from->input.values + 3 * origin, 3 * sizeof(float));
            assert_memory_equal(to->target.values + 2 * row, from->target.values + 2 * origin, 2 * sizeof(float));
            assert_true(to->weight.values[to->weight.on_steps ? row : k] ==
                        from->weight.values[to->weight.on_steps ? origin : k * 3 / 8]);
        }
    sl_batch_destroy(from);
    sl_batch_destroy(to);
}

/* ---- small samples ---- */

static const char large_text[] =
    "seqlstm: 1\nseed: 1\n"
    "data: {type: generator, name: adding_problem, length: 400, train: {size: 64}, batch_size: 4}\n"
    "model: [{type: lstm, units: 64}, {type: dense, units: from_target}]\n"
    "train: {loss: mse, updates: 1}\ndispatch: {policy: order}\nbackends: [reference]\n";

/* What is asked for, up to the number that takes the reference a few seconds, which a larger request does not change.
 */
static void large_models_have_smaller_samples(void **state)
{
    static const int64_t sizes[] = {1, 2, 20, 200, 1000};
    char path[TEMPORARY_BYTES];
    const int file = mkstemp(temporary_template(path, "sample"));
    struct sl_model_request model = {.path = path};
    const struct sl_session_options options = {.model = &model, .threads = 1, .threads_given = true};
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_session *session = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t fits = 0;
    (void)state;
    assert_true(file >= 0 && dprintf(file, "%s", large_text) > 0);
    close(file);
    assert_int_equal(sl_diagnostics_create(&diagnostics, &err), SEQLSTM_OK);
    if (sl_session_open_model(&options, diagnostics, &session, &err) != SEQLSTM_OK ||
        sl_session_prepare_training(session, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    for (int k = (int)(sizeof sizes / sizeof *sizes) - 1; k >= 0; k--) {
        struct sl_sample sample;
        if (sl_sample_create_small(session, sizes[k], &sample, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(sample.count, 1);
        const int64_t got = sample.batches[0]->sequences;
        fits = fits ? fits : got;
        assert_int_equal(got, sizes[k] < fits ? sizes[k] : fits);
        assert_int_equal(sample.envelope.sequences, got);
        sl_sample_deinit(&sample);
    }
    struct sl_sample sample;
    for (int n = 1;; n++) {
        oom_fail_at(n);
        const seqlstm_status status = sl_sample_create_small(session, 1000, &sample, &err);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
    }
    assert_int_equal(sample.batches[0]->sequences, fits);
    sl_sample_deinit(&sample);
    assert_in_range(fits, 21, 199); /* 400 steps of at least 3 times 8 * 64 * 66 operations, of 4e9 */
    sl_session_close(session);
    sl_diagnostics_destroy(diagnostics);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches_are_spread_over_an_epoch), cmocka_unit_test(streams),
                                       cmocka_unit_test(copies_of_pairs), cmocka_unit_test(copies_of_values),
                                       cmocka_unit_test(large_models_have_smaller_samples)};
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
