/* SPDX-License-Identifier: Apache-2.0 */
/* The next token of a text: what a prompt becomes, which token is drawn, and what it adds to the text. */
#include <math.h>

#include "data_fixture.h"
#include "ok.h"
#include "oom.h"

#include "predict/next_token.h"

#define WORDS "type: text, train: {file: train.txt}, batch_size: 2, batching: {unit: stream, bptt: 4}, tokenizer: "
#define LM    "task: language_model"

static const char text[] = "the cat saw the dog\nthe dog saw the cat\nthe end\n";

/* The texts of the tokens of a prompt, with `|` between them. */
static void expect_prompt(const struct data_open *o, const char *prompt, const char *expected)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf got = {0};
    int32_t *ids = NULL;
    int64_t count = 0;
    ok(sl_next_token_read_prompt(o->state, prompt, strlen(prompt), &ids, &count, &err), &err);
    for (int64_t k = 0; k < count; k++)
        sl_buf_printf(&got, "%s%s", k ? "|" : "", data_token(o->state, ids[k]));
    if (strcmp(sl_buf_text(&got), expected) != 0)
        fail_msg("`%s`: `%s`, expected `%s`", prompt, sl_buf_text(&got), expected);
    free(ids);
    sl_buf_deinit(&got);
}

/* Of an empty prompt: the token that ends a line, a line break where that is a character, or the most frequent one. */
static void prompts(void **state)
{
    (void)state;
    data_write("train.txt", text);
    struct data_open o = data_open_train(WORDS "whitespace", MODEL_LM, LM);
    expect_prompt(&o, "the dog", "the|dog");
    expect_prompt(&o, "dog  zebra", "dog|<unk>");
    expect_prompt(&o, "", "<eos>");
    data_close(&o);
    o = data_open_train(WORDS "{type: char, specials: []}", MODEL_LM, LM);
    expect_prompt(&o, "at d", "a|t| |d");
    expect_prompt(&o, "", "\n");
    data_close(&o);
    o = data_open_train(WORDS "{type: char, specials: [eos]}", MODEL_LM, LM); /* it has both */
    expect_prompt(&o, "", "<eos>");
    data_close(&o);
    data_write("train.txt", "xyzzyzxzz");
    o = data_open_train(WORDS "{type: char, specials: []}", MODEL_LM, LM);
    expect_prompt(&o, "", "z");
    data_close(&o);
}

/* Word by word, or letter by letter, the text is the one that was encoded. */
static void a_text_grows_token_by_token(void **state)
{
    (void)state;
    static const char *const tokenizers[] = {"whitespace", "{type: char, specials: []}"};
    data_write("train.txt", text);
    for (int k = 0; k < 2; k++) {
        char data[256];
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf got = {0};
        int32_t *ids;
        int64_t count;
        snprintf(data, sizeof data, WORDS "%s", tokenizers[k]);
        struct data_open o = data_open_train(data, MODEL_LM, LM);
        static const char sentence[] = "the dog saw the end";
        ok(sl_next_token_read_prompt(o.state, sentence, strlen(sentence), &ids, &count, &err), &err);
        sl_data_state_decode(o.state, ids, 1, &got);
        for (int64_t t = 1; t < count; t++)
            sl_next_token_append(o.state, ids[t - 1], ids[t], &got);
        assert_string_equal(sl_buf_text(&got), sentence);
        assert_false(got.failed);
        free(ids);
        sl_buf_deinit(&got);
        data_close(&o);
    }
}

enum { CLASSES = 5 };

/* Without a temperature the likeliest that may be drawn; with one each as often as it is likely. */
static void draws(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    static const float probabilities[CLASSES] = {0.1f, 0.4f, 0.2f, 0.25f, 0.05f};
    struct sl_sample_candidate candidates[CLASSES];
    struct sl_next_token_rule rule = {.top_p = 1, .never = {.ids = {1}, .count = 1}};
    assert_int_equal(sl_next_token_draw(&rule, probabilities, CLASSES, 7, candidates), 3);
    rule = (struct sl_next_token_rule){.temperature = 1, .top_p = 1, .key = sl_next_token_get_key(3, 0)};
    int drawn[CLASSES] = {0}, same_key = 0, same_step = 0;
    for (uint32_t position = 0; position < DRAWS; position++) {
        struct sl_next_token_rule other = rule;
        other.key = sl_next_token_get_key(3, 1);
        const int32_t token = sl_next_token_draw(&rule, probabilities, CLASSES, position, candidates);
        assert_int_equal(token, sl_next_token_draw(&rule, probabilities, CLASSES, position, candidates));
        same_key += token == sl_next_token_draw(&other, probabilities, CLASSES, position, candidates);
        same_step += token == sl_next_token_draw(&rule, probabilities, CLASSES, position + 1, candidates);
        drawn[token]++;
    }
    for (int c = 0; c < CLASSES; c++) /* four standard deviations at most */
        assert_true(fabs((double)drawn[c] / DRAWS - (double)probabilities[c]) <= 4 * sqrt(0.25 / DRAWS));
    assert_true(same_key < DRAWS / 2 && same_step < DRAWS / 2);
    assert_true(sl_next_token_get_key(3, 0) != sl_next_token_get_key(4, 0));
    assert_true(sl_next_token_get_key(3, 0) != sl_next_token_get_key(3 + (UINT64_C(1) << 32), 0));
    rule.top_k = 2;
    for (uint32_t position = 0; position < 200; position++) {
        const int32_t token = sl_next_token_draw(&rule, probabilities, CLASSES, position, candidates);
        assert_true(token == 1 || token == 3);
    }
    rule.top_k = 0;
    rule.top_p = 0.64; /* of the likeliest two together */
    for (uint32_t position = 0; position < 200; position++) {
        const int32_t token = sl_next_token_draw(&rule, probabilities, CLASSES, position, candidates);
        assert_true(token == 1 || token == 3);
    }
    static const float equals[CLASSES] = {0.1f, 0.4f, 0.05f, 0.05f, 0.4f};
    int first = 0, last = 0; /* however small a temperature is, what is as likely is drawn as often */
    rule = (struct sl_next_token_rule){.temperature = 1e-4, .top_p = 1, .key = rule.key};
    for (uint32_t position = 0; position < 200; position++) {
        const int32_t token = sl_next_token_draw(&rule, equals, CLASSES, position, candidates);
        first += token == 1;
        last += token == 4;
    }
    assert_true(first + last == 200 && first > 50 && last > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prompts, data_setup, data_teardown),
        cmocka_unit_test_setup_teardown(a_text_grows_token_by_token, data_setup, data_teardown),
        cmocka_unit_test(draws),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
