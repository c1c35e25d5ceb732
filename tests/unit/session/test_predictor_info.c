/* SPDX-License-Identifier: Apache-2.0 */
/* What a predictor says of itself, for models of each kind; and that what a session keeps between two calls does not
 * outlive a change of the weights or of the lengths.
 */
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

#include "scratch.h"

enum { LONGEST = 6 };

static void write_file(const char *name, const char *content)
{
    FILE *file = fopen(scratch_path(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, strlen(content), file), strlen(content));
    assert_int_equal(fclose(file), 0);
}

static void write_data(void)
{
    write_file("lines.txt", "good fine day\nbad grey day\nfair mild day here now\nbad cold day\ngood warm\n");
    write_file("table.csv", "id,a,b,y,z\n1,100,2,30,4\n1,300,1,50,3\n1,200,2,10,1\n2,100,3,20,2\n2,400,1,60,5\n");
}

#define TABLE "  type: csv\n  train: {file: table.csv}\n  group: id\n  inputs: [a, b]\n  targets: [y, z]\n"
#define LINES                                                                                                          \
    "  type: lines\n  train: {file: lines.txt}\n  label: first\n  tokenizer: {type: whitespace, specials: [unk]}\n"
#define OUT "  - {type: dense, name: out, units: from_target}\n"

/* The folder of the run; a new one for each call. */
static struct seqlstm_session *train(const char *data, const char *layers, char out[256])
{
    static int runs;
    char yaml[1024];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    snprintf(yaml, sizeof yaml,
             "seqlstm: 1\nseed: 3\ndata:\n%s  batch_size: 2\nmodel:\n%strain: {epochs: 1, optimizer: {type: adam, "
             "learning_rate: 0.05}}\nbackends: [reference]\ndispatch: {policy: order}\n",
             data, layers);
    write_file("m.yaml", yaml);
    snprintf(out, 256, "%s-%d", scratch_path("run"), runs++);
    options.out_dir = out;
    options.threads = 1;
    if (seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err) != SEQLSTM_OK ||
        seqlstm_train(session, NULL, NULL, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return session;
}

static struct seqlstm_predictor *open(struct seqlstm_session *session, const char *layer, int64_t streams)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_predictor *predictor = NULL;
    options.steps = LONGEST;
    options.layer = layer;
    options.streams = streams;
    if (seqlstm_predictor_open(session, &options, &predictor, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return predictor;
}

struct info_case {
    const char *name, *data, *layers, *layer;
    struct seqlstm_predictor_info want; /* without bytes and reason */
};

static const struct info_case cases[] = {
    {"values for steps",
     "  scale: standard\n" TABLE,
     "  - {type: lstm, name: r, units: 3, return_sequences: true}\n" OUT,
     NULL,
     {.input = SEQLSTM_INPUT_VALUES,
      .output = SEQLSTM_OUTPUT_VALUES,
      .input_on_steps = 1,
      .output_on_steps = 1,
      .streams = 1,
      .input_features = 2,
      .output_features = 2}},
    {"values for sequences",
     TABLE,
     "  - {type: gru, name: r, units: 5}\n" OUT,
     NULL,
     {.input = SEQLSTM_INPUT_VALUES,
      .output = SEQLSTM_OUTPUT_VALUES,
      .input_on_steps = 1,
      .streams = 1,
      .input_features = 2,
      .output_features = 2}},
    {"a layer between",
     TABLE,
     "  - {type: gru, name: r, units: 5, return_sequences: true}\n  - {type: pool, mode: max}\n" OUT,
     "r",
     {.input = SEQLSTM_INPUT_VALUES,
      .output = SEQLSTM_OUTPUT_VALUES,
      .input_on_steps = 1,
      .output_on_steps = 1,
      .streams = 1,
      .input_features = 2,
      .output_features = 5}},
    {"classes of texts",
     LINES,
     "  - {type: embedding, dim: 3}\n  - {type: lstm, name: r, units: 4, direction: bidirectional}\n"
     "  - {type: output, activation: softmax}\n",
     NULL,
     {.input = SEQLSTM_INPUT_IDS,
      .output = SEQLSTM_OUTPUT_PROBABILITIES,
      .input_on_steps = 1,
      .texts = 1,
      .input_features = 1,
      .input_classes = 9,
      .output_features = 3}},
};

static void compare(const char *name, const char *what, int64_t got, int64_t want)
{
    if (got != want)
        fail_msg("%s: %s %lld, expected %lld", name, what, (long long)got, (long long)want);
}

static void check_info(const struct info_case *c, const struct seqlstm_predictor_info *got)
{
    compare(c->name, "input", got->input, c->want.input);
    compare(c->name, "output", got->output, c->want.output);
    compare(c->name, "input_on_steps", got->input_on_steps, c->want.input_on_steps);
    compare(c->name, "output_on_steps", got->output_on_steps, c->want.output_on_steps);
    compare(c->name, "streams", got->streams, c->want.streams);
    compare(c->name, "texts", got->texts, c->want.texts);
    compare(c->name, "input_features", got->input_features, c->want.input_features);
    compare(c->name, "input_classes", got->input_classes, c->want.input_classes);
    compare(c->name, "output_features", got->output_features, c->want.output_features);
    compare(c->name, "steps", got->steps, LONGEST);
    compare(c->name, "a size", got->stream_bytes > 0, c->want.streams);
    compare(c->name, "a reason", got->stream_reason[0] != '\0', !c->want.streams);
}

static void models_are_described(void **state)
{
    (void)state;
    char out[256];
    write_data();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seqlstm_session *session = train(cases[i].data, cases[i].layers, out);
        struct seqlstm_predictor *predictor = open(session, cases[i].layer, 1);
        struct seqlstm_predictor_info info = {.struct_size = sizeof info}, part;
        seqlstm_predictor_get_info(predictor, &info);
        check_info(&cases[i], &info);
        /* an older program knows fewer members */
        memset(&part, 0x5a, sizeof part);
        part.struct_size = (uint32_t)offsetof(struct seqlstm_predictor_info, output_features);
        seqlstm_predictor_get_info(predictor, &part);
        assert_true(part.input_features == info.input_features && part.output_features == 0x5a5a5a5a5a5a5a5a);
        seqlstm_predictor_close(predictor);
        seqlstm_close(session);
    }
}

/* The output of a layer is what the next one reads, in the network's units, though the target is scaled. */
static void outputs_of_layers_are_not_scaled_back(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const float x[] = {100, 2, 300, 1, 200, 2};
    const int64_t length = 3;
    char out[256];
    float y[3 * 3];
    write_data();
    struct seqlstm_session *session = train(cases[0].data, cases[0].layers, out);
    struct seqlstm_predictor *predictor = open(session, "r", 1);
    struct seqlstm_context *context = NULL;
    assert_int_equal(seqlstm_context_open(predictor, &context, &err), SEQLSTM_OK);
    assert_int_equal(seqlstm_predict(context, x, &length, 1, y, &err), SEQLSTM_OK);
    for (int k = 0; k < 9; k++)
        assert_true(fabsf(y[k]) < 1); /* of an LSTM; targets are 1 to 60 */
    seqlstm_context_close(context);
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
}

/* Five streams in batches of two: each has its own row of two outputs. */
static void rows_of_streams_are_in_their_order(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    enum { STREAMS = 5 };
    char out[256];
    float x[STREAMS][2], together[STREAMS][2], alone[2];
    struct seqlstm_stream *streams[STREAMS], *one = NULL;
    write_data();
    struct seqlstm_session *session = train(cases[0].data, cases[0].layers, out);
    struct seqlstm_predictor *predictor = open(session, NULL, 2);
    struct seqlstm_context *context = NULL;
    assert_int_equal(seqlstm_context_open(predictor, &context, &err), SEQLSTM_OK);
    for (int k = 0; k < STREAMS; k++) {
        x[k][0] = 100 * (float)k;
        x[k][1] = 3 - (float)k;
        assert_int_equal(seqlstm_stream_open(predictor, &streams[k], &err), SEQLSTM_OK);
    }
    assert_int_equal(seqlstm_streams_step(context, streams, STREAMS, x, &together[0][0], &err), SEQLSTM_OK);
    for (int k = 0; k < STREAMS; k++) {
        assert_int_equal(seqlstm_stream_open(predictor, &one, &err), SEQLSTM_OK);
        assert_int_equal(seqlstm_stream_step(context, one, x[k], 1, alone, &err), SEQLSTM_OK);
        assert_true(fabsf(alone[0] - together[k][0]) < 1e-4f && fabsf(alone[1] - together[k][1]) < 1e-4f);
        assert_int_equal(seqlstm_stream_get_position(streams[k]), 1);
        seqlstm_stream_close(one);
        seqlstm_stream_close(streams[k]);
    }
    seqlstm_context_close(context);
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
}

/* Wherever the other one's stream stands, none goes further. */
static void streams_of_another_predictor_are_refused(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    enum { STREAMS = 3 };
    char out[256], message[120];
    const float x[STREAMS][2] = {{100, 2}, {300, 1}, {200, 3}};
    float y[STREAMS][2];
    struct seqlstm_stream *streams[STREAMS], *foreign = NULL;
    struct seqlstm_context *context = NULL;
    write_data();
    struct seqlstm_session *session = train(cases[0].data, cases[0].layers, out);
    struct seqlstm_predictor *predictor = open(session, NULL, 4), *other = open(session, NULL, 4);
    assert_int_equal(seqlstm_context_open(predictor, &context, &err), SEQLSTM_OK);
    assert_int_equal(seqlstm_stream_open(other, &foreign, &err), SEQLSTM_OK);
    for (int k = 0; k < STREAMS; k++)
        assert_int_equal(seqlstm_stream_open(predictor, &streams[k], &err), SEQLSTM_OK);
    for (int k = 0; k < STREAMS; k++) {
        struct seqlstm_stream *const own = streams[k];
        streams[k] = foreign;
        assert_int_equal(seqlstm_streams_step(context, streams, STREAMS, x, &y[0][0], &err), SEQLSTM_INVALID_ARGUMENT);
        snprintf(message, sizeof message, "stream %d and the context are of different predictors", k);
        assert_string_equal(err.message, message);
        streams[k] = own;
    }
    assert_int_equal(seqlstm_stream_step(context, foreign, x, 1, &y[0][0], &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the stream and the context are of different predictors");
    for (int k = 0; k < STREAMS; k++) {
        assert_int_equal(seqlstm_stream_get_position(streams[k]), 0);
        seqlstm_stream_close(streams[k]);
    }
    assert_int_equal(seqlstm_stream_get_position(foreign), 0);
    seqlstm_stream_close(foreign);
    seqlstm_context_close(context);
    seqlstm_predictor_close(other);
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
}

struct answers {
    int64_t rows;
    float first, last;
};

static seqlstm_status keep(void *context, int64_t record, const float *values, int64_t rows, int64_t features)
{
    struct answers *a = context;
    if (record == 0)
        a->first = values[0];
    a->last = values[(rows - 1) * features];
    a->rows += rows;
    return SEQLSTM_OK;
}

static struct answers predict(struct seqlstm_session *session, const int64_t *lengths, int64_t count)
{
    static const float x[] = {100, 2, 300, 1, 200, 2, 400, 1, 150, 3, 250, 2, 350, 1, 50, 2};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct answers a = {0};
    if (seqlstm_predict_values(session, x, lengths, count, keep, &a, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return a;
}

/* Calls with longer and with more sequences, and after more training. */
static void what_is_kept_does_not_get_old(void **state)
{
    (void)state;
    static const char *const more[] = {"train.epochs=30"};
    static const int64_t short_one[] = {2}, long_one[] = {8}, three[] = {2, 3, 3};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL, *again = NULL;
    char out[256];
    write_data();
    seqlstm_close(train(cases[0].data, cases[0].layers, out));
    options.overrides = more;
    options.override_count = 1;
    options.threads = 1;
    if (seqlstm_open_run(out, &options, &session, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    const struct answers before = predict(session, short_one, 1);
    assert_true(predict(session, long_one, 1).rows == 8 && predict(session, three, 3).rows == 8);
    assert_true(predict(session, short_one, 1).last == before.last);
    if (seqlstm_train(session, NULL, NULL, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    const struct answers after = predict(session, short_one, 1);
    assert_int_equal(seqlstm_open_run(out, NULL, &again, &err), SEQLSTM_OK);
    const struct answers fresh = predict(again, short_one, 1);
    assert_true(fabsf(after.last - before.last) > 1e-3f);
    assert_true(fabsf(after.last - fresh.last) < 1e-4f);
    seqlstm_close(session);
    seqlstm_close(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_described),
        cmocka_unit_test(outputs_of_layers_are_not_scaled_back),
        cmocka_unit_test(rows_of_streams_are_in_their_order),
        cmocka_unit_test(streams_of_another_predictor_are_refused),
        cmocka_unit_test(what_is_kept_does_not_get_old),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
