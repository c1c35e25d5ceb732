/* SPDX-License-Identifier: Apache-2.0 */
/* Which special tokens a model never writes: those that its training has never shown it as a target. */
#include "data_fixture.h"
#include "oom.h"

#include "session/prepare/decoding.h"
#include "session/record/session_record.h"

#define SPECIALS "specials: [pad, unk, bos, eos]"
#define STREAM(how)                                                                                                    \
    "type: text, train: {file: train.txt}, batch_size: 2, batching: {unit: stream, bptt: 3}, tokenizer: " how
#define LINES(how) "type: lines, train: {file: train.txt}, batch_size: 2, tokenizer: " how
#define LM         "task: language_model"

static const char plain[] = "a b c a b\nb c d a\nc a\n"; /* a 4, b 3, c 3, d 1 */

static void expect_never(const char *text, const char *data, const char *expected)
{
    struct sl_buf got = {0};
    data_write("train.txt", text);
    struct data_open o = data_open_train(data, MODEL_LM, LM);
    const struct sl_session session = {.model = o.model, .state = o.state};
    const struct sl_never never = sl_session_find_never(&session);
    for (int32_t k = 0; k < never.count; k++)
        sl_buf_printf(&got, "%s%s", k ? " " : "", data_token(o.state, never.ids[k]));
    if (strcmp(sl_buf_text(&got), expected) != 0)
        fail_msg("%s: never `%s`, expected `%s`", data, sl_buf_text(&got), expected);
    sl_buf_deinit(&got);
    data_close(&o);
}

static void test_what_was_never_a_target_is_never_drawn(void **state)
{
    (void)state;
    expect_never(plain, LINES("{type: whitespace, " SPECIALS "}"), "<pad> <bos> <unk>");
    expect_never(plain, STREAM("{type: whitespace, " SPECIALS "}"), "<pad> <unk>"); /* <bos> follows each <eos> */
    expect_never(plain, LINES("{type: char, " SPECIALS "}"), "<pad> <bos> <unk>");
    expect_never(plain, STREAM("{type: whitespace, specials: [eos]}"), "");
    expect_never(plain, LINES("{type: whitespace, specials: [bos, eos]}"), "<bos>");
    expect_never(plain, STREAM("{type: whitespace, specials: [unk, eos]}"), "<unk>");
}

static void test_tokens_of_the_data_may_be_drawn(void **state)
{
    static const char shown[] = "a <pad> b\n<unk> a\n";
    (void)state;
    expect_never(shown, LINES("{type: whitespace, " SPECIALS "}"), "<bos>");
    expect_never("a <pad> b\na\n", LINES("{type: whitespace, " SPECIALS "}"), "<bos> <unk>");
    expect_never("a <unk> b\na\n", LINES("{type: whitespace, " SPECIALS "}"), "<pad> <bos>");
}

/* Other data than these may have tokens that the vocabulary lacks. */
static void test_a_vocabulary_that_was_cut_may_write_the_mark_for_unknown_tokens(void **state)
{
    (void)state;
    expect_never(plain, LINES("{type: whitespace, min_count: 1, " SPECIALS "}"), "<pad> <bos> <unk>");
    expect_never(plain, LINES("{type: whitespace, min_count: 2, " SPECIALS "}"), "<pad> <bos>");
    expect_never("a b c a b\nb c a\nc a\n", LINES("{type: whitespace, min_count: 2, " SPECIALS "}"), "<pad> <bos>");
    expect_never(plain, LINES("{type: whitespace, vocab_size: 9, " SPECIALS "}"), "<pad> <bos> <unk>");
    expect_never(plain, LINES("{type: whitespace, vocab_size: 8, " SPECIALS "}"), "<pad> <bos>");
    expect_never(plain, LINES("{type: whitespace, vocab_size: 7, " SPECIALS "}"), "<pad> <bos>");
    data_write("words.txt", "<pad>\n<unk>\n<bos>\n<eos>\na\nb\nc\nd\n"); /* it is not made of these data */
    expect_never(plain, LINES("{type: whitespace, vocab: words.txt, " SPECIALS "}"), "<pad> <bos>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_never_a_target_is_never_drawn, data_setup, data_teardown),
        cmocka_unit_test_setup_teardown(test_tokens_of_the_data_may_be_drawn, data_setup, data_teardown),
        cmocka_unit_test_setup_teardown(test_a_vocabulary_that_was_cut_may_write_the_mark_for_unknown_tokens,
                                        data_setup, data_teardown),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
