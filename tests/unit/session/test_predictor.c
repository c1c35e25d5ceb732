/* SPDX-License-Identifier: Apache-2.0 */
/* Predictors: whole sequences and streams compute what predict does, and streams keep, give away and take back their
 * states. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/seqlstm.h>

#include "ok.h"
#include "scratch.h"

enum { RECORDS = 9, MOST = 7, FEATURES = 2, STREAMS = 5 };

static double get_value(int record, int step, int feature)
{
    const double wave = sin(1.3 * record + 0.7 * step + feature);
    return feature ? 40 + 3 * wave : 1000 * wave - 250;
}

static int get_steps(int record)
{
    return 1 + record * 5 % MOST;
}

/* Sequences of different lengths, scaled inputs and targets. `layers`: the first lines of the model. */
static void write_model(const char *layers, const char *more)
{
    FILE *file = fopen(scratch_path("train.csv"), "w");
    assert_non_null(file);
    fprintf(file, "id,a,b,y\n");
    for (int r = 0; r < RECORDS; r++)
        for (int t = 0; t < get_steps(r); t++)
            fprintf(file, "%d,%.3f,%.3f,%.3f\n", r, get_value(r, t, 0), get_value(r, t, 1),
                    7 + get_value(r, t, 0) / 100 + get_value(r, t, 1));
    fclose(file);
    file = fopen(scratch_path("m.yaml"), "w");
    assert_non_null(file);
    fprintf(file,
            "seqlstm: 1\n%sdata:\n  type: csv\n  group: id\n  inputs: [a, b]\n  targets: [y]\n"
            "  scale: standard\n  train: {file: train.csv}\n  batch_size: 4\nmodel:\n%s"
            "  - {type: dense, units: from_target}\ntrain: {epochs: 1, loss: mse}\n%sdispatch: {policy: order}\n",
            strstr(more, "seed:") ? "" : "seed: 1\n", layers, more);
    fclose(file);
}

static const char *override; /* of a key of the model file; NULL: none */

static struct seqlstm_session *train(const char *layers, const char *more)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    static char devices[512];
    static const char *const folders[] = {devices};
    char out[256];
    snprintf(devices, sizeof devices, "%s/tests/gpu", getenv("SEQLSTM_BUILD") ? getenv("SEQLSTM_BUILD") : "build");
    options.backend_folders = folders;
    options.folder_count = 1;
    options.flags = SEQLSTM_OPEN_TRUST;
    static int runs;
    snprintf(out, sizeof out, "%s-%d", scratch_path("run"), runs++);
    options.out_dir = out;
    options.threads = 1;
    options.overrides = &override;
    options.override_count = override != NULL;
    write_model(layers, more);
    ok(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err), &err);
    ok(seqlstm_train(session, NULL, NULL, &err), &err);
    return session;
}

#define REFERENCE "backends: [reference]\n"
#define STEPS     "return_sequences: true"
#define STACK     "  - {type: lstm, units: 5, layers: 2, " STEPS "}\n  - {type: gru, units: 4, " STEPS "}\n"

/* All sequences one after the other. */
struct input {
    float x[RECORDS * MOST][FEATURES];
    int64_t lengths[RECORDS], begins[RECORDS], rows;
};

static void fill(struct input *in)
{
    in->rows = 0;
    for (int r = 0; r < RECORDS; r++) {
        in->lengths[r] = get_steps(r);
        in->begins[r] = in->rows;
        for (int t = 0; t < get_steps(r); t++, in->rows++)
            for (int f = 0; f < FEATURES; f++)
                in->x[in->rows][f] = (float)get_value(r, t, f);
    }
}

struct kept {
    float y[RECORDS * MOST];
    int64_t rows;
};

static seqlstm_status keep(void *context, int64_t record, const float *values, int64_t rows, int64_t features)
{
    struct kept *kept = context;
    (void)record;
    assert_int_equal(features, 1);
    memcpy(kept->y + kept->rows, values, (size_t)rows * sizeof *values);
    kept->rows += rows;
    return SEQLSTM_OK;
}

static void is_near(const float *a, const float *b, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (!(fabsf(a[k] - b[k]) <= 1e-4f))
            fail_msg("value %lld is %.7g, expected %.7g", (long long)k, (double)a[k], (double)b[k]);
}

static uint32_t open_flags;

static struct seqlstm_predictor *open(struct seqlstm_session *session, int64_t sequences, int64_t rows, int64_t streams,
                                      int64_t stream_steps)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_predictor *predictor = NULL;
    options.flags = open_flags;
    options.sequences = sequences;
    options.steps = MOST;
    options.rows = rows;
    options.streams = streams;
    options.stream_steps = stream_steps;
    ok(seqlstm_predictor_open(session, &options, &predictor, &err), &err);
    return predictor;
}

static struct seqlstm_context *open_context(struct seqlstm_predictor *predictor)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_context *context = NULL;
    ok(seqlstm_context_open(predictor, &context, &err), &err);
    return context;
}

static struct seqlstm_stream *open_stream(struct seqlstm_predictor *predictor)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_stream *stream = NULL;
    ok(seqlstm_stream_open(predictor, &stream, &err), &err);
    return stream;
}

static void whole_sequences_are_predicted(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = train(STACK, REFERENCE);
    struct input in;
    struct kept kept = {.rows = 0};
    float y[RECORDS * MOST] = {0};
    fill(&in);
    ok(seqlstm_predict_values(session, in.x[0], in.lengths, RECORDS, keep, &kept, &err), &err);
    const int64_t limits[][2] = {{0, 0}, {RECORDS, RECORDS * MOST}, {2, MOST}, {1, 20}};
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        struct seqlstm_predictor *predictor = open(session, limits[l][0], limits[l][1], 0, 0);
        struct seqlstm_context *context = open_context(predictor);
        for (int again = 0; again < 3; again++) {
            memset(y, 0, sizeof y);
            ok(seqlstm_predict(context, in.x, in.lengths, RECORDS, y, &err), &err);
            assert_memory_equal(y, kept.y, (size_t)kept.rows * sizeof *y); /* the reference: no bit depends on others */
        }
        const int64_t empty[3] = {2, 0, 3};
        ok(seqlstm_predict(context, in.x, empty, 3, y, &err), &err);
        assert_memory_equal(y, kept.y, sizeof *y);
        const int64_t bad[2] = {1, MOST + 1};
        assert_int_equal(seqlstm_predict(context, in.x, bad, 2, y, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "sequence 1 has 8 steps, expected 0 to 7"));
        assert_int_equal(seqlstm_predict(context, in.x, NULL, 2, y, &err), SEQLSTM_INVALID_ARGUMENT);
        seqlstm_context_close(context);
        seqlstm_predictor_close(predictor);
    }
    seqlstm_close(session);
}

/* Also of a model that is trained on segments, whose graphs carry states. */
static void whole_sequences_begin_with_zeros(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    override = "data.batching.bptt=2";
    struct seqlstm_session *session = train(STACK, REFERENCE);
    override = NULL;
    struct input in;
    float first[RECORDS * MOST], again[RECORDS * MOST];
    fill(&in);
    const int64_t counts[] = {RECORDS, 4, 1}; /* each is planned by itself */
    struct seqlstm_predictor *predictor = open(session, 0, 0, 0, 0);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct seqlstm_context *context = open_context(predictor);
        const int64_t begin = RECORDS - counts[c];
        const size_t bytes = (size_t)(in.rows - in.begins[begin]) * sizeof *first;
        ok(seqlstm_predict(context, in.x[in.begins[begin]], in.lengths + begin, counts[c], first, &err), &err);
        ok(seqlstm_predict(context, in.x[in.begins[begin]], in.lengths + begin, counts[c], again, &err), &err);
        assert_memory_equal(first, again, bytes);
        seqlstm_context_close(context);
    }
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
}

/* On the default backends, whose kernels for one row differ from those for many. */
static void reproducible_outputs_have_the_same_bits(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = train("  - {type: lstm, units: 40, " STEPS "}\n", "");
    struct input in;
    float together[RECORDS * MOST], alone[RECORDS * MOST];
    struct seqlstm_stream *streams[STREAMS];
    fill(&in);
    open_flags = SEQLSTM_PREDICTOR_REPRODUCIBLE;
    struct seqlstm_predictor *predictor = open(session, RECORDS, RECORDS * MOST, STREAMS, 0);
    open_flags = 0;
    struct seqlstm_context *context = open_context(predictor);
    ok(seqlstm_predict(context, in.x, in.lengths, RECORDS, together, &err), &err);
    for (int r = 0; r < RECORDS; r++)
        ok(seqlstm_predict(context, in.x[in.begins[r]], &in.lengths[r], 1, alone + in.begins[r], &err), &err);
    assert_memory_equal(together, alone, (size_t)in.rows * sizeof *alone);
    for (int s = 0; s < STREAMS; s++)
        streams[s] = open_stream(predictor);
    for (int t = 0; t < 4; t++) /* row s of the input is the next step of stream s */
        ok(seqlstm_streams_step(context, streams, STREAMS, in.x[t * STREAMS], together + t * STREAMS, &err), &err);
    for (int s = 0; s < STREAMS; s++) {
        seqlstm_stream_reset(streams[s]);
        for (int t = 0; t < 4; t++)
            ok(seqlstm_stream_step(context, streams[s], in.x[t * STREAMS + s], 1, alone + t * STREAMS + s, &err), &err);
        seqlstm_stream_close(streams[s]);
    }
    assert_memory_equal(together, alone, 4 * STREAMS * sizeof *alone);
    seqlstm_context_close(context);
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
}

static void streams_continue(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = train(STACK, REFERENCE);
    struct input in;
    float whole[RECORDS * MOST], y[RECORDS * MOST];
    fill(&in);
    struct seqlstm_predictor *predictor = open(session, 0, 0, 0, 3);
    struct seqlstm_context *context = open_context(predictor), *other = open_context(predictor);
    ok(seqlstm_predict(context, in.x, in.lengths, RECORDS, whole, &err), &err);
    struct seqlstm_stream *stream = open_stream(predictor);
    const int64_t counts[] = {1, 2, 3, MOST};
    for (size_t p = 0; p < sizeof counts / sizeof *counts; p++)
        for (int r = 0; r < RECORDS; r++) {
            seqlstm_stream_reset(stream);
            for (int64_t t = 0; t < in.lengths[r]; t += counts[p]) {
                const int64_t left = in.lengths[r] - t, row = in.begins[r] + t;
                assert_int_equal(seqlstm_stream_get_position(stream), t);
                ok(seqlstm_stream_step(t % 2 ? context : other, stream, in.x[row], left < counts[p] ? left : counts[p],
                                       y + row, &err),
                   &err);
            }
            is_near(y + in.begins[r], whole + in.begins[r], in.lengths[r]);
        }
    assert_int_equal(seqlstm_stream_step(context, stream, in.x, 0, y, &err), SEQLSTM_INVALID_ARGUMENT);
    seqlstm_stream_close(stream);
    seqlstm_context_close(other);
    seqlstm_context_close(context);
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
}

static void streams_step_together(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = train(STACK, REFERENCE);
    float x[STREAMS][FEATURES], y[STREAMS], alone[STREAMS];
    for (int64_t width = 1; width <= STREAMS; width += 2) {
        struct seqlstm_predictor *predictor = open(session, 0, 0, width, 1);
        struct seqlstm_context *context = open_context(predictor);
        struct seqlstm_stream *together[STREAMS], *single[STREAMS];
        for (int s = 0; s < STREAMS; s++) {
            together[s] = open_stream(predictor);
            single[s] = open_stream(predictor);
        }
        for (int t = 0; t < 6; t++) {
            for (int s = 0; s < STREAMS; s++)
                for (int f = 0; f < FEATURES; f++)
                    x[s][f] = (float)get_value(s, t, f);
            const int64_t now = STREAMS - t % 3; /* not all of them at every step */
            ok(seqlstm_streams_step(context, together, now, x, y, &err), &err);
            for (int s = 0; s < now; s++)
                ok(seqlstm_stream_step(context, single[s], x[s], 1, alone + s, &err), &err);
            is_near(y, alone, now);
        }
        for (int s = 0; s < STREAMS; s++) {
            assert_int_equal(seqlstm_stream_get_position(together[s]), seqlstm_stream_get_position(single[s]));
            seqlstm_stream_close(together[s]);
            seqlstm_stream_close(single[s]);
        }
        seqlstm_context_close(context);
        seqlstm_predictor_close(predictor);
    }
    seqlstm_close(session);
}

static void states_are_saved(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = train(STACK, REFERENCE);
    struct seqlstm_predictor *predictor = open(session, 0, 0, 0, 0);
    struct seqlstm_context *context = open_context(predictor);
    struct seqlstm_predictor_info info = {.struct_size = sizeof info};
    seqlstm_predictor_get_info(predictor, &info);
    assert_true(info.streams == 1 && info.stream_reason[0] == 0 && info.output_on_steps == 1 && info.steps == MOST);
    assert_true(info.input == SEQLSTM_INPUT_VALUES && info.input_features == 2 && info.output_features == 1);
    assert_int_equal(info.stream_bytes, 8 + 4 + 4 + 8 + 8 + 4 * (2 * 2 * 5 + 4) + 8);
    struct seqlstm_stream *a = open_stream(predictor), *b = open_stream(predictor);
    const float x[2] = {100, 41};
    float first, second, again;
    unsigned char bytes[256];
    size_t size = sizeof bytes;
    ok(seqlstm_stream_step(context, a, x, 1, &first, &err), &err);
    ok(seqlstm_stream_save(a, NULL, &size, &err), &err);
    assert_int_equal(size, info.stream_bytes);
    size--;
    assert_int_equal(seqlstm_stream_save(a, bytes, &size, &err), SEQLSTM_INVALID_ARGUMENT);
    ok(seqlstm_stream_save(a, bytes, &size, &err), &err);
    ok(seqlstm_stream_step(context, a, x, 1, &second, &err), &err);
    assert_true(first != second);
    ok(seqlstm_stream_load(b, bytes, size, &err), &err);
    assert_int_equal(seqlstm_stream_get_position(b), 1);
    for (size_t k = 0; k < size; k++) { /* every damage is seen, and leaves the stream as it is */
        bytes[k] ^= 1;
        const seqlstm_status status = seqlstm_stream_load(b, bytes, size, &err);
        assert_true(status == SEQLSTM_CORRUPT_DATA || status == SEQLSTM_INVALID_ARGUMENT);
        assert_int_equal(seqlstm_stream_load(b, bytes, k, &err), SEQLSTM_CORRUPT_DATA);
        bytes[k] ^= 1;
    }
    ok(seqlstm_stream_step(context, b, x, 1, &again, &err), &err);
    assert_memory_equal(&second, &again, sizeof again);
    seqlstm_stream_reset(b);
    ok(seqlstm_stream_step(context, b, x, 1, &again, &err), &err);
    assert_memory_equal(&first, &again, sizeof again);
    seqlstm_stream_close(a);
    seqlstm_stream_close(b);
    seqlstm_context_close(context);
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
    for (int k = 0; k < 2; k++) { /* of other layers, and of the same ones with other weights */
        session = train(k ? STACK : "  - {type: lstm, units: 5, " STEPS "}\n", k ? REFERENCE "seed: 77\n" : REFERENCE);
        predictor = open(session, 0, 0, 0, 0);
        a = open_stream(predictor);
        assert_int_equal(seqlstm_stream_load(a, bytes, size, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "another model"));
        seqlstm_stream_close(a);
        seqlstm_predictor_close(predictor);
        seqlstm_close(session);
    }
}

static void whole_models_are_no_streams(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const struct {
        const char *layers, *name, *why;
    } cases[] = {
        {"  - {type: lstm, units: 3, direction: bidirectional, name: both, " STEPS "}\n", "`both` (",
         "is bidirectional"},
        {"  - {type: lstm, units: 3, " STEPS "}\n  - {type: gru, units: 3, direction: backward, name: back, " STEPS
         "}\n",
         "`back` (", "runs backward"},
        {"  - {type: lstm, units: 3, name: first, " STEPS "}\n  - {type: lstm, units: 3, initial_state: first, name: "
         "second, " STEPS "}\n",
         "`second` (", "starts from the final state of another layer"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct seqlstm_session *session = train(cases[c].layers, REFERENCE);
        struct seqlstm_predictor *predictor = open(session, 0, 0, 4, 4);
        struct seqlstm_context *context = open_context(predictor);
        struct seqlstm_stream *stream = NULL;
        struct seqlstm_predictor_info info = {.struct_size = sizeof info};
        seqlstm_predictor_get_info(predictor, &info);
        assert_true(info.streams == 0 && info.stream_bytes == 0);
        assert_int_equal(seqlstm_stream_open(predictor, &stream, &err), SEQLSTM_UNSUPPORTED);
        const char *const told[] = {err.message, info.stream_reason};
        for (int k = 0; k < 2; k++) {
            assert_non_null(strstr(told[k], cases[c].name));
            assert_non_null(strstr(told[k], cases[c].why));
            assert_non_null(strstr(told[k], "yaml:"));
        }
        struct input in;
        float y[RECORDS * MOST];
        fill(&in);
        ok(seqlstm_predict(context, in.x, in.lengths, RECORDS, y, &err), &err);
        seqlstm_context_close(context);
        seqlstm_predictor_close(predictor);
        seqlstm_close(session);
    }
}

/* Streams of which each takes three steps, alone and in a batch; the outputs of both. */
static void run_streams(struct seqlstm_predictor *predictor, struct seqlstm_context *context, float out[2 * 3])
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_stream *streams[2] = {open_stream(predictor), open_stream(predictor)};
    const float x[2][FEATURES] = {{100, 41}, {-300, 38}};
    for (int t = 0; t < 3; t++) {
        float y[2];
        ok(seqlstm_streams_step(context, streams, 2, x, y, &err), &err);
        out[t] = y[0];
    }
    seqlstm_stream_reset(streams[0]);
    for (int t = 0; t < 3; t++)
        ok(seqlstm_stream_step(context, streams[0], x[0], 1, out + 3 + t, &err), &err);
    seqlstm_stream_close(streams[0]);
    seqlstm_stream_close(streams[1]);
}

/* A device with memory of its own, whose arithmetic is the reference's: every bit is as on the host, and a stream may
 * move from one to the other. */
static void streams_run_on_devices(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const char *const backends[] = {REFERENCE, "backends: [fake-a]\n"};
    struct seqlstm_session *sessions[2];
    struct seqlstm_predictor *predictors[2];
    struct seqlstm_context *contexts[2], *second;
    struct input in;
    float whole[2][RECORDS * MOST], steps[2][6], next[2];
    fill(&in);
    for (int k = 0; k < 2; k++) {
        sessions[k] = train(STACK, backends[k]);
        predictors[k] = open(sessions[k], 4, 0, 2, 1);
        contexts[k] = open_context(predictors[k]);
        ok(seqlstm_predict(contexts[k], in.x, in.lengths, RECORDS, whole[k], &err), &err);
        run_streams(predictors[k], contexts[k], steps[k]);
    }
    assert_memory_equal(whole[0], whole[1], (size_t)in.rows * sizeof(float));
    assert_memory_equal(steps[0], steps[1], sizeof steps[0]);
    second = open_context(predictors[1]); /* with a copy of the weights of its own */
    run_streams(predictors[1], second, steps[1]);
    assert_memory_equal(steps[0], steps[1], sizeof steps[0]);
    unsigned char bytes[256];
    size_t size = sizeof bytes;
    struct seqlstm_stream *streams[2] = {open_stream(predictors[0]), open_stream(predictors[1])};
    ok(seqlstm_stream_step(contexts[0], streams[0], in.x, 1, next, &err), &err);
    ok(seqlstm_stream_save(streams[0], bytes, &size, &err), &err);
    ok(seqlstm_stream_load(streams[1], bytes, size, &err), &err);
    for (int k = 0; k < 2; k++)
        ok(seqlstm_stream_step(contexts[k], streams[k], in.x, 1, next + k, &err), &err);
    assert_memory_equal(&next[0], &next[1], sizeof next[0]);
    seqlstm_context_close(second);
    for (int k = 0; k < 2; k++) {
        seqlstm_stream_close(streams[k]);
        seqlstm_context_close(contexts[k]);
        seqlstm_predictor_close(predictors[k]);
        seqlstm_close(sessions[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_sequences_are_predicted),
        cmocka_unit_test(whole_sequences_begin_with_zeros),
        cmocka_unit_test(streams_continue),
        cmocka_unit_test(reproducible_outputs_have_the_same_bits),
        cmocka_unit_test(streams_step_together),
        cmocka_unit_test(states_are_saved),
        cmocka_unit_test(whole_models_are_no_streams),
        cmocka_unit_test(streams_run_on_devices),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
