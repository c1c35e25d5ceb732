/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a language model that end at a stop, against what the header says: all tokens are drawn beforehand, and the
 * text is what stands before the first place where a stop is complete. Nothing is told that is taken back later. */
#include "data_fixture.h"

#include <math.h>

#include "ok.h"
#include "serve/job/completion.h"

enum { TOKENS_MOST = 40, CLASSES_MOST = 64 };

struct world {
    struct data_open data;
    struct sl_served_model model;
    struct sl_completion completion;
    struct sl_prompt prompt;
    struct sl_choice choice;
    struct sl_job job;
    struct sl_buf all; /* the text of all tokens that were drawn */
};

static void begin(struct world *w, const char *tokenizer, const char *text)
{
    char data[300];
    static int32_t first[1];
    memset(w, 0, sizeof *w);
    data_write("train.txt", text);
    snprintf(data, sizeof data,
             "type: text, train: {file: train.txt}, batch_size: 1, tokenizer: {%s}, batching: {unit: stream, bptt: 4}",
             tokenizer);
    w->data = data_open_train(data, MODEL_LM, "task: language_model");
    w->model.state = w->data.state;
    w->model.output_features = sl_vocabulary_get_size(sl_data_state_find_vocabulary(w->data.state));
    assert_in_range(w->model.output_features, 2, CLASSES_MOST);
    w->prompt = (struct sl_prompt){first, 1};
    w->completion.end = -1;
    w->completion.rule.top_p = 1;
    w->job.model = &w->model;
    w->job.completion = &w->completion;
}

static void reset(struct world *w, int64_t most)
{
    sl_buf_deinit(&w->choice.text);
    sl_buf_deinit(&w->all);
    w->choice = (struct sl_choice){.prompt = &w->prompt};
    w->all = (struct sl_buf){0};
    w->completion.most = most;
}

static void end(struct world *w)
{
    reset(w, 0);
    data_close(&w->data);
}

/* The model draws `token`. */
static void draw(struct world *w, int32_t token)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float probabilities[CLASSES_MOST] = {0};
    const int32_t before = w->choice.drawn ? w->choice.token : w->prompt.ids[0];
    probabilities[token] = 1;
    if (token != w->completion.end || w->completion.ignores_end)
        sl_next_token_append(w->data.state, before, token, &w->all);
    ok(sl_choice_take(&w->job, &w->choice, probabilities, NULL, &err), &err);
    assert_int_equal(w->choice.token, token);
}

/* The first place in a text where a stop is complete; its length: there is none. Both by a walk over all places. */
static size_t find_end(const struct world *w, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++)
        for (int s = 0; s < w->completion.stop_count; s++) {
            const size_t each = strlen(w->completion.stops[s]);
            if (at + each <= bytes && memcmp(text + at, w->completion.stops[s], each) == 0)
                return at;
        }
    return bytes;
}

/* The longest beginning after which no stop can begin any more that ends in what is still to come. */
static size_t find_told(const struct world *w, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++)
        for (int s = 0; s < w->completion.stop_count; s++) {
            const size_t rest = bytes - at;
            if (rest < strlen(w->completion.stops[s]) && memcmp(text + at, w->completion.stops[s], rest) == 0)
                return at;
        }
    return bytes;
}

static void check_step(const struct world *w, size_t told_before)
{
    const char *all = sl_buf_text(&w->all);
    const size_t stop = find_end(w, all, w->all.length_bytes);
    const bool stopped = stop < w->all.length_bytes, over = w->choice.drawn == w->completion.most;
    if (w->choice.text.length_bytes != stop || memcmp(sl_buf_text(&w->choice.text), all, stop) != 0)
        fail_msg("'%s' of '%s'", sl_buf_text(&w->choice.text), all);
    if (stopped || over)
        assert_string_equal(w->choice.finish, stopped ? "stop" : "length");
    else
        assert_null(w->choice.finish);
    const size_t told = stopped || over ? stop : find_told(w, all, w->all.length_bytes);
    if (w->choice.fixed != told || told < told_before)
        fail_msg("%zu bytes of '%s' are told after %zu, expected %zu", w->choice.fixed, all, told_before, told);
}

/* Every text of up to six characters of `a`, `b` and `c`, and every one of them as the limit. */
static void test_stops(void **state)
{
    static char *const lists[][SL_STOPS_MOST] = {{"b"},
                                                 {"ab"},
                                                 {"aab"},
                                                 {"abab"},
                                                 {"ba", "ab"},
                                                 {"cc", "cba"},
                                                 {"ca", "bca"},
                                                 {"aba", "b"},
                                                 {"caa", "ca", "bbb"},
                                                 {"aaaa", "aaab", "c", "ba"},
                                                 {NULL}};
    struct world w;
    (void)state;
    begin(&w, "type: char, specials: []", "abcabc\nabc\n");
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(w.data.state);
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        for (w.completion.stop_count = 0; w.completion.stop_count < SL_STOPS_MOST && lists[l][w.completion.stop_count];)
            w.completion.stops[w.completion.stop_count] = lists[l][w.completion.stop_count], w.completion.stop_count++;
        for (int code = 0; code < 729; code++)
            for (int64_t most = 5; most <= 6; most++) {
                reset(&w, most);
                for (int k = 0, rest = code; k < most && !w.choice.finish; k++, rest /= 3) {
                    const size_t told = w.choice.fixed;
                    draw(&w, sl_vocabulary_find(vocabulary, &"abc"[rest % 3], 1));
                    check_step(&w, told);
                }
                assert_non_null(w.choice.finish);
            }
    }
    w.completion.stop_count = 0;
    end(&w);
}

/* An echoed prompt is no part of what is searched, though a stop may begin in the continuation only. */
static void test_no_stop_begins_in_the_prompt(void **state)
{
    struct world w;
    (void)state;
    begin(&w, "type: char, specials: []", "abcabc\nabc\n");
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(w.data.state);
    w.completion.stops[0] = "ab";
    w.completion.stop_count = 1;
    reset(&w, 9);
    sl_buf_append_text(&w.choice.text, "caba");
    w.choice.fixed = 4;
    draw(&w, sl_vocabulary_find(vocabulary, "b", 1));
    assert_null(w.choice.finish);
    assert_string_equal(sl_buf_text(&w.choice.text), "cabab");
    draw(&w, sl_vocabulary_find(vocabulary, "a", 1));
    assert_int_equal(w.choice.fixed, 5);
    draw(&w, sl_vocabulary_find(vocabulary, "b", 1));
    assert_string_equal(w.choice.finish, "stop");
    assert_string_equal(sl_buf_text(&w.choice.text), "cabab");
    w.completion.stop_count = 0;
    end(&w);
}

/* The end token ends a text and adds nothing to it, unless it is ignored; also behind the first bytes of a stop, which
 * are told then. */
static void test_the_end_token(void **state)
{
    struct world w;
    (void)state;
    begin(&w, "type: whitespace, specials: [unk, eos]", "a b\nb a\n");
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(w.data.state);
    const int32_t eos = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS),
                  a = sl_vocabulary_find(vocabulary, "a", 1);
    assert_true(eos >= 0 && a >= 0);
    w.completion.end = eos;
    w.completion.stops[0] = "a a";
    w.completion.stop_count = 1;
    for (int ignores = 0; ignores < 2; ignores++) {
        w.completion.ignores_end = ignores;
        reset(&w, 3);
        draw(&w, a);
        const size_t before = w.choice.text.length_bytes;
        assert_true(before > 0 && w.choice.fixed < before && w.choice.finish == NULL);
        draw(&w, eos);
        assert_int_equal(w.choice.drawn, 2);
        assert_int_equal(w.choice.finish != NULL, !ignores);
        if (!ignores) {
            assert_string_equal(w.choice.finish, "stop");
            assert_int_equal(w.choice.text.length_bytes, before);
            assert_int_equal(w.choice.fixed, before);
        } else {
            assert_true(w.choice.text.length_bytes > before);
            draw(&w, a);
            assert_string_equal(w.choice.finish, "length");
            assert_int_equal(w.choice.fixed, w.choice.text.length_bytes);
        }
    }
    w.completion.stop_count = 0;
    end(&w);
}

/* A token may hold several stops: the text ends where the first of them begins, of whichever stop it is. */
static void test_the_first_stop_of_a_token_counts(void **state)
{
    static const struct {
        const char *stops[2], *text;
    } cases[] = {
        {{"n", NULL}, "ba"}, {{"a", "n"}, "b"}, {{"n", "a"}, "b"}, {{"s", "na"}, "ba"}, {{"nas", "anas"}, "ban"}};
    struct world w;
    (void)state;
    begin(&w, "type: whitespace, specials: []", "bananas b\nb bananas\n");
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(w.data.state);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        static int32_t begins;
        for (w.completion.stop_count = 0; w.completion.stop_count < 2 && cases[k].stops[w.completion.stop_count];)
            w.completion.stops[w.completion.stop_count] = (char *)(uintptr_t)cases[k].stops[w.completion.stop_count],
            w.completion.stop_count++;
        begins = sl_vocabulary_find(vocabulary, "b", 1);
        w.prompt = (struct sl_prompt){&begins, 1};
        reset(&w, 9);
        draw(&w, sl_vocabulary_find(vocabulary, "bananas", 7));
        assert_string_equal(w.choice.finish, "stop");
        const char *found = sl_buf_text(&w.choice.text);
        assert_string_equal(found + (*found == ' '), cases[k].text);
        assert_int_equal(w.choice.fixed, w.choice.text.length_bytes);
    }
    w.completion.stop_count = 0;
    end(&w);
}

/* Of any number of bytes, and beside stops that begin with the same ones. */
static void test_characters_are_told_whole(void **state)
{
    static const char *const characters[] = {"a", "\xC3\xA9", "z", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "b"};
    struct world w;
    (void)state;
    begin(&w, "type: char, specials: []", "a\xC3\xA9z\xE2\x82\xAC\xF0\x9F\x98\x80\nb\n");
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(w.data.state);
    w.completion.stops[0] = "\xC3\xA8";
    w.completion.stops[1] = "\xF0\x9F\x98\x81";
    w.completion.stop_count = 2;
    reset(&w, TOKENS_MOST);
    for (size_t k = 0, told = 0; k < sizeof characters / sizeof *characters; k++) {
        const size_t bytes = strlen(characters[k]);
        draw(&w, sl_vocabulary_find(vocabulary, characters[k], bytes));
        told += bytes;
        assert_int_equal(w.choice.fixed, told);
        assert_string_equal(sl_buf_text(&w.choice.text) + told - bytes, characters[k]);
    }
    w.completion.stop_count = 0;
    end(&w);
}

/* The first token continues what the prompt ends with: the texts of both together are those of all tokens. */
static void test_a_text_continues_the_end_of_its_prompt(void **state)
{
    struct world w;
    (void)state;
    begin(&w, "type: whitespace, specials: [unk, eos]", "a b\nb a\n");
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(w.data.state);
    const int32_t eos = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS),
                  a = sl_vocabulary_find(vocabulary, "a", 1), b = sl_vocabulary_find(vocabulary, "b", 1);
    int32_t prompts[][4] = {{eos, a, b}, {a, eos, b}, {eos, eos, a}, {a, b, a}};
    size_t lengths[4];
    for (int k = 0; k < 4; k++) {
        float probabilities[CLASSES_MOST] = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf before = {0}, all = {0};
        w.prompt = (struct sl_prompt){prompts[k], 2};
        reset(&w, 9);
        probabilities[prompts[k][2]] = 1;
        ok(sl_choice_take(&w.job, &w.choice, probabilities, NULL, &err), &err);
        sl_data_state_decode(w.data.state, prompts[k], 2, &before);
        sl_data_state_decode(w.data.state, prompts[k], 3, &all);
        assert_string_equal(sl_buf_text(&w.choice.text), sl_buf_text(&all) + before.length_bytes);
        lengths[k] = w.choice.text.length_bytes;
        sl_buf_deinit(&before);
        sl_buf_deinit(&all);
    }
    assert_true(lengths[0] > lengths[2] && lengths[3] > lengths[2]); /* with a space, and without */
    end(&w);
}

static void test_what_is_no_number_is_refused(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float probabilities[CLASSES_MOST];
    struct world w;
    (void)state;
    begin(&w, "type: char, specials: []", "abcabc\nabc\n");
    for (int k = 0; k < CLASSES_MOST; k++)
        probabilities[k] = NAN;
    reset(&w, 3);
    assert_int_equal(sl_choice_take(&w.job, &w.choice, probabilities, NULL, &err), SEQLSTM_NUMERIC);
    assert_non_null(strstr(err.message, "after 1 token are not numbers"));
    assert_int_equal(w.choice.drawn, 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_no_stop_begins_in_the_prompt),
        cmocka_unit_test(test_the_end_token),
        cmocka_unit_test(test_the_first_stop_of_a_token_counts),
        cmocka_unit_test(test_characters_are_told_whole),
        cmocka_unit_test(test_a_text_continues_the_end_of_its_prompt),
        cmocka_unit_test(test_what_is_no_number_is_refused),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
