/* SPDX-License-Identifier: Apache-2.0 */
/* Predictors on texts in memory answer what predict answers for a file with the same texts. */
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

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct seqlstm_session *train(const char *model)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    char out[256];
    static int runs;
    snprintf(out, sizeof out, "%s-%d", scratch_path("run"), runs++);
    options.out_dir = out;
    options.threads = 1;
    write_file("m.yaml", model);
    ok(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err), &err);
    ok(seqlstm_train(session, NULL, NULL, &err), &err);
    return session;
}

static struct seqlstm_predictor *open(struct seqlstm_session *session, int64_t sequences, const char *layer)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_predictor *predictor = NULL;
    options.sequences = sequences;
    options.layer = layer;
    ok(seqlstm_predictor_open(session, &options, &predictor, &err), &err);
    return predictor;
}

enum { ROOM = 4096 };

/* Answers one after the other. */
struct kept {
    float values[ROOM];
    int64_t count, records, rows[64];
    char texts[ROOM];
    double scores[64];
    int32_t score_count;
};

static seqlstm_status keep_values(void *context, int64_t record, const float *values, int64_t rows, int64_t features)
{
    struct kept *kept = context;
    assert_int_equal(record, kept->records);
    assert_true(kept->count + rows * features <= ROOM && record < 64);
    kept->rows[kept->records++] = rows;
    if (values && rows)
        memcpy(kept->values + kept->count, values, (size_t)(rows * features) * sizeof *values);
    kept->count += rows * features;
    return SEQLSTM_OK;
}

static seqlstm_status keep(void *context, const struct seqlstm_reply *answer)
{
    struct kept *kept = context;
    for (int64_t t = 0; t < answer->text_count; t++) {
        strncat(kept->texts, answer->texts[t].text, answer->texts[t].bytes);
        strcat(kept->texts, "\n");
        kept->scores[kept->score_count++] = answer->texts[t].score;
    }
    return keep_values(context, answer->record, answer->values, answer->rows, answer->features);
}

/* However much room there is, all that would fit is counted, and nothing is written beyond it. */
static void check_rooms(const struct seqlstm_predictor *predictor, const int32_t *ids, int64_t count, const char *text,
                        size_t bytes)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const int32_t first = 0;
    char some[64];
    size_t all;
    ok(seqlstm_decode(predictor, &first, 1, some, sizeof some, &all, &err), &err);
    ok(seqlstm_decode(predictor, ids, count, NULL, 0, &all, &err), &err);
    assert_int_equal(all, bytes);
    for (size_t room = 0; room <= bytes; room++) {
        memset(some, '#', sizeof some);
        ok(seqlstm_decode(predictor, ids, count, some, room, &all, &err), &err);
        assert_int_equal(all, bytes);
        assert_memory_equal(some, text, room);
        assert_int_equal(some[room], '#');
    }
    int64_t needed;
    ok(seqlstm_encode(predictor, text, bytes, 0, NULL, 0, &needed, &err), &err);
    assert_int_equal(needed, count);
    for (int64_t room = 0; room <= count; room++) {
        int32_t made[16] = {0};
        int64_t found;
        made[room] = -7;
        ok(seqlstm_encode(predictor, text, bytes, 0, made, room, &found, &err), &err);
        assert_int_equal(found, count);
        assert_memory_equal(made, ids, (size_t)room * sizeof *made);
        assert_int_equal(made[room], -7);
    }
}

static void compare(struct seqlstm_session *session, const char *file, const char *const *texts, int64_t count)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static struct kept from_file, from_memory;
    from_file = from_memory = (struct kept){.count = 0};
    write_file("in.txt", file);
    ok(seqlstm_predict_file(session, scratch_path("in.txt"), keep_values, &from_file, &err), &err);
    assert_int_equal(from_file.records, count);
    for (int64_t sequences = 1; sequences <= 64; sequences *= 8) {
        struct seqlstm_predictor *predictor = open(session, sequences, NULL);
        struct seqlstm_context *context = NULL;
        struct seqlstm_predictor_info info = {.struct_size = sizeof info};
        seqlstm_predictor_get_info(predictor, &info);
        assert_true(info.texts == 1 && info.output == SEQLSTM_OUTPUT_PROBABILITIES && info.input == SEQLSTM_INPUT_IDS);
        ok(seqlstm_context_open(predictor, &context, &err), &err);
        from_memory = (struct kept){.count = 0};
        ok(seqlstm_predict_texts(context, texts, NULL, count, keep, &from_memory, &err), &err);
        assert_int_equal(from_memory.records, count);
        assert_memory_equal(from_memory.rows, from_file.rows, sizeof from_file.rows);
        assert_memory_equal(from_memory.values, from_file.values, sizeof from_file.values);
        const char *bad[] = {"good film", "two\n\nlines"}, *empty[] = {""};
        assert_int_equal(seqlstm_predict_texts(context, bad, NULL, 2, keep, &from_memory, &err),
                         SEQLSTM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "text 1 has "));
        assert_int_equal(seqlstm_predict_texts(context, empty, NULL, 1, keep, &from_memory, &err),
                         SEQLSTM_INVALID_ARGUMENT);
        seqlstm_context_close(context);
        seqlstm_predictor_close(predictor);
    }
}

/* Of several texts, the one that is refused is named, and none is answered. */
static void check_refused(struct seqlstm_session *session)
{
    static const struct {
        const char *texts[4];
        size_t bytes[4];
        const char *message;
    } rows[] = {
        {{"good film", "bad", "", "film"}, {9, 3, 0, 4}, "text 2 is empty"},
        {{"good film", "bad", "film", "a"}, {4, 3, 0, 1}, "text 2 is empty"},
        {{"bad", "\nfilm", "good", "a"}, {3, 5, 4, 1}, "text 1 has a line break in it, which would end it"},
        {{"bad", "good", "a", "a film\n"}, {3, 4, 1, 7}, "text 3 has a line break in it, which would end it"},
        {{"a b c d e f", "bad", "a b c d e f g", "good"},
         {11, 3, 13, 4},
         "text 2 has 7 tokens, expected at most 6, the limit `steps` of the predictor"},
    };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_predictor *predictor = NULL;
    struct seqlstm_context *context = NULL;
    static struct kept kept;
    options.sequences = 4;
    options.steps = 6;
    ok(seqlstm_predictor_open(session, &options, &predictor, &err), &err);
    ok(seqlstm_context_open(predictor, &context, &err), &err);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        kept = (struct kept){.count = 0};
        assert_int_equal(seqlstm_predict_texts(context, rows[k].texts, rows[k].bytes, 4, keep, &kept, &err),
                         SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, rows[k].message);
        assert_int_equal(kept.records, 0);
    }
    const size_t parts[] = {4, 3, 1, 11}; /* of longer texts */
    const char *const longer[] = {"good\n", "bad film", "a b c d e f g", "a b c d e f g"};
    kept = (struct kept){.count = 0};
    ok(seqlstm_predict_texts(context, longer, parts, 4, keep, &kept, &err), &err);
    assert_int_equal(kept.records, 4);
    seqlstm_context_close(context);
    seqlstm_predictor_close(predictor);
}

/* Ids from 0 to the last of the vocabulary are read. Of several sequences the place of the wrong one is told. */
static void check_wrong_ids(const struct seqlstm_predictor *predictor, struct seqlstm_context *context)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor_info info = {.struct_size = sizeof info};
    seqlstm_predictor_get_info(predictor, &info);
    const int32_t most = (int32_t)info.input_classes - 1;
    const int32_t wrong[] = {-1, most + 1};
    const int64_t lengths[3] = {2, 1, 3};
    int32_t ids[6] = {0, most, 1, most, 0, 1};
    float y[3 * 5];
    char expected[96], text[64];
    size_t bytes;
    ok(seqlstm_predict(context, ids, lengths, 3, y, &err), &err);
    ok(seqlstm_decode(predictor, ids, 6, text, sizeof text, &bytes, &err), &err);
    for (int k = 0; k < 2; k++) {
        ids[4] = wrong[k];
        assert_int_equal(seqlstm_predict(context, ids, lengths, 3, y, &err), SEQLSTM_INVALID_ARGUMENT);
        snprintf(expected, sizeof expected, "token 4 of the input has the id %d, expected 0 to %d", wrong[k], most);
        assert_string_equal(err.message, expected);
        assert_int_equal(seqlstm_decode(predictor, ids, 6, text, sizeof text, &bytes, &err), SEQLSTM_INVALID_ARGUMENT);
        snprintf(expected, sizeof expected, "token 4 has the id %d, expected 0 to %d", wrong[k], most);
        assert_string_equal(err.message, expected);
    }
}

#define TAIL "train: {epochs: 2, loss: cross_entropy}\nbackends: [reference]\ndispatch: {policy: order}\n"

static void classifiers_read_texts(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    write_file("train.txt", "good a good film\nbad a bad film\ngood fine\nbad dull and bad\ngood good\n");
    struct seqlstm_session *session =
        train("seqlstm: 1\nseed: 1\ndata:\n  type: lines\n  label: first\n  delimiter: ' '\n"
              "  tokenizer: {type: whitespace, specials: [unk]}\n  train: {file: train.txt}\n  batch_size: 2\nmodel:\n"
              "  - {type: embedding, dim: 4}\n  - {type: lstm, units: 5}\n"
              "  - {type: dense, units: from_target, activation: softmax}\n" TAIL);
    const char *texts[] = {"good film", "bad", "an unknown word", "good and dull and bad film"};
    compare(session, "good film\nbad\nan unknown word\ngood and dull and bad film\n", texts, 4);
    check_refused(session);
    struct seqlstm_predictor *predictor = open(session, 4, "lstm_1");
    struct seqlstm_context *context = NULL;
    struct seqlstm_stream *stream = NULL;
    struct kept kept = {.count = 0};
    ok(seqlstm_context_open(predictor, &context, &err), &err);
    ok(seqlstm_predict_texts(context, texts, NULL, 4, keep, &kept, &err), &err);
    assert_int_equal(kept.count, 4 * 5); /* the layer's output: text vectors */
    assert_string_equal(seqlstm_predictor_find_class(predictor, 0), seqlstm_find_class(session, 0));
    assert_null(seqlstm_predictor_find_class(predictor, 2));
    /* the stream of its tokens ends in the same vector */
    int32_t ids[8];
    int64_t count;
    float y[5], last[5];
    ok(seqlstm_encode(predictor, texts[3], strlen(texts[3]), 0, ids, 8, &count, &err), &err);
    assert_int_equal(count, 6);
    char text[64];
    size_t bytes;
    ok(seqlstm_decode(predictor, ids, count, text, sizeof text, &bytes, &err), &err);
    assert_int_equal(bytes, strlen(texts[3]));
    assert_memory_equal(text, texts[3], bytes);
    check_rooms(predictor, ids, count, text, bytes);
    ok(seqlstm_stream_open(predictor, &stream, &err), &err);
    for (int64_t t = 0; t < count; t++)
        ok(seqlstm_stream_step(context, stream, ids + t, 1, t + 1 < count ? NULL : y, &err), &err);
    memcpy(last, kept.values + 3 * 5, sizeof last);
    for (int k = 0; k < 5; k++)
        assert_true(fabsf(y[k] - last[k]) <= 1e-5f);
    check_wrong_ids(predictor, context);
    ids[0] = 1000;
    assert_int_equal(seqlstm_stream_step(context, stream, ids, 1, y, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(seqlstm_decode(predictor, ids, 1, text, sizeof text, &bytes, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(seqlstm_stream_get_position(stream), count); /* a wrong id leaves it as it was */
    seqlstm_stream_close(stream);
    seqlstm_context_close(context);
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
}

/* Columns of a table: what a cell holds is asked for without the quotes of the file, and in UTF-8. */
static void models_of_tables_read_texts(void **state)
{
    (void)state;
    write_file("train.csv",
               "kind,words\ngood,a good film\nbad,\"a bad, \"\"bad\"\" film\"\ngood,fine\nbad,dull \xe9t\xe9\n");
    struct seqlstm_session *session =
        train("seqlstm: 1\nseed: 1\ndata:\n  type: csv\n  text: words\n  label: kind\n  encoding: latin-1\n"
              "  tokenizer: {type: whitespace, specials: [unk]}\n  train: {file: train.csv}\n  batch_size: 2\nmodel:\n"
              "  - {type: embedding, dim: 4}\n  - {type: lstm, units: 5}\n"
              "  - {type: dense, units: from_target, activation: softmax}\n" TAIL);
    const char *texts[] = {"good film", "bad, \"bad\"", "dull \xc3\xa9t\xc3\xa9", "a,\tb"};
    compare(session, "words\ngood film\n\"bad, \"\"bad\"\"\"\ndull \xe9t\xe9\n\"a,\tb\"\n", texts, 4);
    seqlstm_close(session);
}

static void taggers_read_texts(void **state)
{
    (void)state;
    write_file("train.tsv", "a\tD\nfilm\tN\n\nfine\tA\n\nthe\tD\nfine\tA\nfilm\tN\n");
    struct seqlstm_session *session =
        train("seqlstm: 1\nseed: 1\ndata:\n  type: conll\n  label: 2\n"
              "  tokenizer: {type: whitespace, specials: [unk]}\n  train: {file: train.tsv}\n  batch_size: 2\nmodel:\n"
              "  - {type: embedding, dim: 4}\n  - {type: lstm, units: 3, direction: bidirectional, return_sequences: "
              "true}\n  - {type: dense, units: from_target, activation: softmax}\n" TAIL);
    const char *texts[] = {"film", "the\nfine\nfilm", "a\nword"};
    compare(session, "film\n\nthe\nfine\nfilm\n\na\nword\n", texts, 3);
    seqlstm_close(session);
}

/* The limit of a decoder's texts is that of its sources. */
static void check_long_sources(struct seqlstm_session *session)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_predictor *predictor = NULL;
    struct seqlstm_context *context = NULL;
    const char *texts[] = {"1+2", "12+3", "12+34", "5+6"};
    static struct kept kept;
    options.steps = 4;
    ok(seqlstm_predictor_open(session, &options, &predictor, &err), &err);
    ok(seqlstm_context_open(predictor, &context, &err), &err);
    assert_int_equal(seqlstm_predict_texts(context, texts, NULL, 4, keep, &kept, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "text 2 has 5 tokens, expected at most 4, the limit `steps` of the predictor");
    assert_int_equal(kept.records, 0);
    ok(seqlstm_predict_texts(context, texts, NULL, 2, keep, &kept, &err), &err);
    assert_int_equal(kept.records, 2);
    seqlstm_context_close(context);
    seqlstm_predictor_close(predictor);
}

static void decoders_write_texts(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session =
        train("seqlstm: 1\nseed: 1\ndata:\n  train: {type: generator, name: addition, digits: 2, size: 40}\n"
              "  batch_size: 8\nmodel:\n  encoder:\n    - {type: embedding, dim: 4}\n    - {type: lstm, units: 6}\n"
              "  decoder:\n    - {type: embedding, dim: 4}\n    - {type: lstm, units: 6, return_sequences: true}\n"
              "    - {type: output, activation: softmax}\ntrain: {epochs: 2}\ndecode: {beam: 2, n_best: 2, max_length: "
              "3}\nbackends: [reference]\ndispatch: {policy: order}\n");
    const char *texts[] = {"12+34", "5+6", "99+1"};
    struct kept alone = {.count = 0};
    for (int64_t sequences = 4; sequences > 0; sequences -= 3) {
        struct seqlstm_predictor *predictor = open(session, sequences, NULL);
        struct seqlstm_context *context = NULL;
        struct seqlstm_predictor_info info = {.struct_size = sizeof info};
        seqlstm_predictor_get_info(predictor, &info);
        assert_true(info.texts == 1 && info.output == SEQLSTM_OUTPUT_TEXT && info.streams == 0);
        assert_non_null(strstr(info.stream_reason, "is in a decoder"));
        struct kept kept = {.count = 0};
        ok(seqlstm_context_open(predictor, &context, &err), &err);
        ok(seqlstm_predict_texts(context, texts, NULL, 3, keep, &kept, &err), &err);
        assert_int_equal(kept.records, 3);
        int lines = 0;
        for (const char *c = kept.texts; *c; c++)
            lines += *c == '\n';
        assert_int_equal(lines, 6);
        if (sequences == 4)
            alone = kept;
        assert_string_equal(kept.texts, alone.texts);
        assert_int_equal(kept.score_count, 6);
        for (int t = 0; t < 6; t++) { /* of each text its own, the best first */
            assert_true(fabs(kept.scores[t] - alone.scores[t]) <= 1e-5);
            assert_true(t % 2 == 0 || kept.scores[t] < kept.scores[t - 1]);
        }
        const float x[2] = {0};
        const int64_t lengths[1] = {1};
        float y[1];
        assert_int_equal(seqlstm_predict(context, x, lengths, 1, y, &err), SEQLSTM_UNSUPPORTED);
        seqlstm_context_close(context);
        seqlstm_predictor_close(predictor);
    }
    check_long_sources(session);
    seqlstm_close(session);
}

/* Pairs of columns, and the same pairs in two files. */
static void decoders_of_tables_write_texts(void **state)
{
    (void)state;
    static const char *const data[] = {
        "  type: tsv\n  source: from\n  target: to\n  train: {file: pairs.tsv}\n",
        "  type: lines\n  train: {source: from.txt, target: to.txt}\n",
    };
    const char *texts[] = {"a b c", "c", "b \"b"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct kept kept[2] = {{.count = 0}};
    write_file("pairs.tsv", "to\tfrom\nc b a\ta b c\nb \"b\t\"b b\na c\tc a\n");
    write_file("from.txt", "a b c\n\"b b\nc a\n");
    write_file("to.txt", "c b a\nb \"b\na c\n");
    for (int k = 0; k < 2; k++) {
        char model[1024];
        snprintf(model, sizeof model,
                 "seqlstm: 1\nseed: 1\ndata:\n%s  tokenizer: {type: whitespace}\n  batch_size: 2\nmodel:\n"
                 "  encoder:\n    - {type: embedding, dim: 4}\n    - {type: lstm, units: 6}\n"
                 "  decoder:\n    - {type: embedding, dim: 4}\n    - {type: lstm, units: 6, return_sequences: true}\n"
                 "    - {type: output, activation: softmax}\ndecode: {beam: 2, n_best: 2, max_length: 4}\n" TAIL,
                 data[k]);
        struct seqlstm_session *session = train(model);
        struct seqlstm_predictor *predictor = open(session, 4, NULL);
        struct seqlstm_context *context = NULL;
        ok(seqlstm_context_open(predictor, &context, &err), &err);
        ok(seqlstm_predict_texts(context, texts, NULL, 3, keep, &kept[k], &err), &err);
        assert_int_equal(kept[k].records, 3);
        seqlstm_context_close(context);
        seqlstm_predictor_close(predictor);
        seqlstm_close(session);
    }
    assert_true(strlen(kept[0].texts) > 6);
    assert_string_equal(kept[0].texts, kept[1].texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classifiers_read_texts),
        cmocka_unit_test(models_of_tables_read_texts),
        cmocka_unit_test(taggers_read_texts),
        cmocka_unit_test(decoders_write_texts),
        cmocka_unit_test(decoders_of_tables_write_texts),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
