/* SPDX-License-Identifier: Apache-2.0 */
/* Which layer `embed` writes where none is named: the one before the answer, or the vector of an encoder. */
#include "model_fixture.h"
#include "oom.h"

#include "session/predict/embedding_layer.h"

#define LIST(layers)                                                                                                   \
    "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\nmodel:\n" layers "train: {loss: mse, epochs: 1}\n"
#define PAIR(embedding)                                                                                                \
    "seqlstm: 1\n"                                                                                                     \
    "data: {type: lines, train: {source: a.txt, target: b.txt}, tokenizer: {type: whitespace}}\n"                      \
    "model:\n"                                                                                                         \
    "  encoder:\n"                                                                                                     \
    "    - {type: embedding, name: words, dim: 3}\n"                                                                   \
    "    - {type: lstm, name: reader, units: 4}\n"                                                                     \
    "    - {type: dense, name: narrow, units: 4}\n"                                                                    \
    "    - {type: dropout, name: vector, rate: 0.5}\n"                                                                 \
    "  decoder:\n"                                                                                                     \
    "    - {type: embedding, name: target, dim: 3}\n"                                                                  \
    "    - {type: repeat, name: context}\n"                                                                            \
    "    - {type: concat, from: [target, context]}\n"                                                                  \
    "    - {type: lstm, units: 4, return_sequences: true, initial_state: reader}\n"                                    \
    "    - {type: output, activation: softmax}\n" embedding "train: {epochs: 1}\n"

#define A_SEQUENCE "  - {type: lstm, name: a, units: 3, return_sequences: true}\n"
#define A_VECTOR   "  - {type: lstm, name: a, units: 3}\n"

static void test_the_layer_before_the_answer(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {LIST(A_VECTOR "  - {type: dense, name: b, units: 2}\n"), "a"},
        {LIST(A_VECTOR "  - {type: dense, name: b, units: 5}\n  - {type: dense, name: c, units: 2}\n"), "b"},
        {LIST(A_VECTOR "  - {type: dense, name: b, units: 2}\n  - {type: activation, name: c, activation: tanh}\n"),
         "a"},
        {LIST(A_VECTOR "  - {type: activation, name: b, activation: tanh}\n  - {type: dense, name: c, units: 2}\n"),
         "b"},
        {LIST(A_VECTOR "  - {type: output, name: b}\n"), "a"},
        {LIST(A_VECTOR "  - {type: dense, name: b, units: 5}\n  - {type: output, name: c, activation: sigmoid}\n"),
         "b"},
        {LIST(A_VECTOR), "a"}, /* the answer itself */
        {LIST(A_VECTOR "  - {type: activation, name: b, activation: tanh}\n"), "a"},
        {LIST(A_SEQUENCE "  - {type: pool, name: b, mode: mean}\n  - {type: dense, name: c, units: 2}\n"), "b"},
        {LIST(A_SEQUENCE "  - {type: gru, name: b, units: 5, return_sequences: true}\n"
                         "  - {type: concat, name: c, from: [a, b]}\n  - {type: dense, name: d, units: 2}\n"),
         "c"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct loaded l = load(rows[k].text);
        if (l.status != SEQLSTM_OK)
            fail_msg("row %zu: %s", k, sl_buf_text(&l.text));
        const char *got = sl_session_find_embedding_layer(l.model)->name;
        if (strcmp(got, rows[k].expected) != 0)
            fail_msg("row %zu: %s, not %s", k, got, rows[k].expected);
        unload(&l);
    }
}

static void test_the_vector_of_an_encoder(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {PAIR(""), "vector"}, {PAIR("  embedding: reader\n"), "reader"}, {PAIR("  embedding: narrow\n"), "narrow"}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct loaded l = load(rows[k].text);
        if (l.status != SEQLSTM_OK)
            fail_msg("row %zu: %s", k, sl_buf_text(&l.text));
        assert_string_equal(sl_session_find_embedding_layer(l.model)->name, rows[k].expected);
        unload(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_layer_before_the_answer),
        cmocka_unit_test(test_the_vector_of_an_encoder),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
