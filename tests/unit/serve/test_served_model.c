/* SPDX-License-Identifier: Apache-2.0 */
/* What a server knows of a model before the first request: what it reads and gives, in which numbers, whether outputs
 * have names, and its limits. */
#include "oom.h"
#include "served_fixture.h"

#include "serve/job/served_model.h"

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

struct expected {
    const char *text; /* of the model file */
    int64_t steps;    /* the limit that is asked for; 0: none */
    bool reads_ids, reads_steps, reads_text, decodes, gives_steps, continues, streams;
    int64_t input_features, input_classes, output_features, class_count; /* 0: no names */
    int64_t most_steps, text_steps;                                      /* 0: it is not looked at */
    int32_t never_count;                                                 /* tokens that it must not draw */
};

static void check(const struct expected *e)
{
    const struct sl_predictor_limits limits = {
        .sequences = 5, .steps = e->steps, .rows = 300, .threads = 1, .chunk_steps = 8};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_diagnostics *diagnostics;
    struct sl_session *session;
    struct sl_served_model model;
    train_session(e->text, NULL, &diagnostics, &session);
    ok(sl_served_model_open(session, "a name", &limits, &model, &err), &err);
    assert_string_equal(model.name, "a name");
    assert_int_equal(atomic_load(&model.uses->count), 1);
    assert_int_equal(model.reads_ids, e->reads_ids);
    assert_int_equal(model.reads_steps, e->reads_steps);
    assert_int_equal(model.reads_text, e->reads_text);
    assert_int_equal(model.decodes, e->decodes);
    assert_int_equal(model.gives_steps, e->gives_steps);
    assert_int_equal(model.continues, e->continues);
    assert_int_equal(model.streams, e->streams);
    assert_int_equal(model.chunk_steps, e->streams ? 8 : 0);
    assert_int_equal(model.input_features, e->input_features);
    assert_int_equal(model.input_classes, e->input_classes);
    assert_int_equal(model.output_features, e->output_features);
    assert_int_equal(model.classes ? sl_vocabulary_get_size(model.classes) : 0, e->class_count);
    assert_int_equal(model.sequences, 5);
    assert_int_equal(model.rows, e->decodes ? 5 : e->steps ? 5 * e->steps : 300); /* no more than sequences need */
    if (e->most_steps)
        assert_int_equal(model.steps, e->most_steps);
    assert_true(model.steps > 0);
    assert_int_equal(model.never.count, e->never_count);
    if (e->text_steps)
        assert_int_equal(model.text_steps, e->text_steps);
    sl_served_model_close(&model);
    sl_session_close(session);
    sl_diagnostics_destroy(diagnostics);
}

#define REST "backends: [reference]\ndispatch: {policy: order}\n"
#define LINES                                                                                                          \
    "seqlstm: 1\nname: m\nseed: 1\ndata:\n  type: lines\n  train: {file: train.txt}\n  label: first\n"                 \
    "  tokenizer: {type: whitespace, specials: [unk]}\n  batch_size: 2\nmodel:\n  - {type: embedding, dim: 3}\n"
#define LETTERS                                                                                                        \
    "seqlstm: 1\nname: m\nseed: 2\ndata:\n  train: {type: text, file: text.txt}\n"                                     \
    "  tokenizer: {type: char, specials: []}\n  batching: {unit: stream, bptt: 4}\n  batch_size: 1\n"                  \
    "model:\n  - {type: embedding, dim: 3}\n  - {type: lstm, units: 3, return_sequences: true}\n"                      \
    "  - {type: output, activation: softmax}\ntrain: {task: language_model, epochs: 1}\n" REST

static void write_lines(void)
{
    write_file("train.txt", "yes a b\nno b c a\nyes a b c d\n");
}

static void outputs_have_the_names_of_classes(void **state)
{
    (void)state;
    write_lines();
    check(&(struct expected){.text = LINES "  - {type: lstm, units: 3, direction: bidirectional}\n"
                                           "  - {type: output, activation: softmax}\ntrain: {epochs: 1}\n" REST,
                             .steps = 30,
                             .reads_ids = true,
                             .reads_steps = true,
                             .reads_text = true,
                             .input_features = 1,
                             .input_classes = 5,
                             .output_features = 2,
                             .class_count = 2,
                             .most_steps = 30});
}

/* One probability stands for two classes, of which neither is its name. */
static void one_probability_has_no_name(void **state)
{
    (void)state;
    write_lines();
    check(&(struct expected){.text = LINES "  - {type: lstm, units: 3}\n"
                                           "  - {type: dense, units: from_target, activation: sigmoid}\n"
                                           "train: {epochs: 1, loss: binary_cross_entropy}\n" REST,
                             .steps = 30,
                             .reads_ids = true,
                             .reads_steps = true,
                             .reads_text = true,
                             .streams = true,
                             .input_features = 1,
                             .input_classes = 5,
                             .output_features = 1,
                             .most_steps = 30});
}

/* The limit of a sequence is that of a text and its continuation, too; without one a text may be far longer. */
static void check_letters(int64_t steps, int64_t text_steps)
{
    write_file("text.txt", "abcd\nab\nabcd\nabcdab\n");
    check(&(struct expected){.text = LETTERS,
                             .steps = steps,
                             .reads_ids = true,
                             .reads_steps = true,
                             .reads_text = true,
                             .gives_steps = true,
                             .continues = true,
                             .streams = true,
                             .input_features = 1,
                             .input_classes = 5,
                             .output_features = 5,
                             .class_count = 5,
                             .most_steps = steps,
                             .text_steps = text_steps});
}

static void texts_are_limited_as_sequences(void **state)
{
    (void)state;
    check_letters(30, 30);
}

static void without_a_limit_texts_are_long(void **state)
{
    (void)state;
    check_letters(0, 65536);
}

/* Tokens that stand for no text are not drawn. */
static void some_tokens_are_never_drawn(void **state)
{
    (void)state;
    write_file("text.txt", "a b c\nb a\nc a b\n");
    check(&(struct expected){.text = "seqlstm: 1\nname: m\nseed: 2\ndata:\n  train: {type: text, file: text.txt}\n"
                                     "  tokenizer: {type: whitespace, specials: [unk, eos]}\n"
                                     "  batching: {unit: stream, bptt: 4}\n  batch_size: 1\n"
                                     "model:\n  - {type: embedding, dim: 3}\n"
                                     "  - {type: lstm, units: 3, return_sequences: true}\n"
                                     "  - {type: output, activation: softmax}\n"
                                     "train: {task: language_model, epochs: 1}\n" REST,
                             .steps = 30,
                             .reads_ids = true,
                             .reads_steps = true,
                             .reads_text = true,
                             .gives_steps = true,
                             .continues = true,
                             .streams = true,
                             .input_features = 1,
                             .input_classes = 5,
                             .output_features = 5,
                             .class_count = 5,
                             .most_steps = 30,
                             .text_steps = 30,
                             .never_count = 1});
}

/* It gives a class for each token, and can go on from step to step, and yet it continues no text. */
static void taggers_continue_nothing(void **state)
{
    (void)state;
    write_file("train.tsv", "a\tD\nfilm\tN\n\nfine\tA\n\nthe\tD\nfine\tA\nfilm\tN\n");
    check(&(struct expected){.text = "seqlstm: 1\nname: m\nseed: 1\ndata:\n  type: conll\n  label: 2\n"
                                     "  tokenizer: {type: whitespace, specials: [unk]}\n  train: {file: train.tsv}\n"
                                     "  batch_size: 2\nmodel:\n  - {type: embedding, dim: 4}\n"
                                     "  - {type: lstm, units: 3, return_sequences: true}\n"
                                     "  - {type: dense, units: from_target, activation: softmax}\n"
                                     "train: {epochs: 1, loss: cross_entropy}\n" REST,
                             .steps = 30,
                             .reads_ids = true,
                             .reads_steps = true,
                             .reads_text = true,
                             .gives_steps = true,
                             .streams = true,
                             .input_features = 1,
                             .input_classes = 5,
                             .output_features = 3,
                             .class_count = 3,
                             .most_steps = 30});
}

static void values_have_no_tokens(void **state)
{
    (void)state;
    check(&(struct expected){.text = "seqlstm: 1\nname: m\nseed: 1\ndata: {type: generator, name: adding_problem, "
                                     "length: 6, train: {size: 8}, batch_size: 4}\n"
                                     "model:\n  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"
                                     "train: {epochs: 1, loss: mse}\n" REST,
                             .steps = 30,
                             .reads_steps = true,
                             .streams = true,
                             .input_features = 2,
                             .output_features = 1,
                             .most_steps = 30});
}

/* Its limit is that of what it reads, not of what it writes. */
static void check_decoder(int64_t steps, int64_t most_steps)
{
    check(&(struct expected){.text = "seqlstm: 1\nname: m\nseed: 2\ndata:\n"
                                     "  train: {type: generator, name: addition, digits: 2, size: 38}\n"
                                     "  batch_size: 8\nmodel:\n  encoder:\n    - {type: embedding, dim: 3}\n"
                                     "    - {type: lstm, units: 3}\n  decoder:\n    - {type: embedding, dim: 3}\n"
                                     "    - {type: lstm, units: 3, return_sequences: true}\n"
                                     "    - {type: output, activation: softmax}\n"
                                     "train: {epochs: 1, loss: cross_entropy}\n" REST,
                             .steps = steps,
                             .reads_text = true,
                             .decodes = true,
                             .input_features = 1,
                             .output_features = 1,
                             .most_steps = most_steps});
}

static void decoders_read_texts_alone(void **state)
{
    (void)state;
    check_decoder(30, 30);
}

static void without_a_limit_they_read_what_they_were_trained_with(void **state)
{
    (void)state;
    check_decoder(0, 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(outputs_have_the_names_of_classes, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(one_probability_has_no_name, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(texts_are_limited_as_sequences, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(without_a_limit_texts_are_long, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(some_tokens_are_never_drawn, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(taggers_continue_nothing, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(values_have_no_tokens, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(decoders_read_texts_alone, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(without_a_limit_they_read_what_they_were_trained_with, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
