/* SPDX-License-Identifier: Apache-2.0 */
/* A language model learns from the text of labelled data alone: whatever the labels are, or are not, is the same to
 * it. */
#include "data_fixture.h"

#include "data/dataset/dataset_private.h"

#define TOKENIZER "tokenizer: {type: whitespace, specials: [unk]}, batch_size: 2"

/* The same records a b | c | b a, with labels that other tasks would refuse or learn. */
static const struct {
    const char *source, *text;
} files[] = {
    {"type: csv, train: {file: train.txt, text: t, label: {column: l, type: LABEL}}", "l,t\nspam,a b\n,c\n-999,b a\n"},
    {"type: tsv, train: {file: train.txt, text: 2, label: {column: 1, type: LABEL}, header: false}",
     "spam\ta b\n\tc\n-999\tb a\n"},
    {"type: lines, train: {file: train.txt, label: {column: first, type: LABEL}, delimiter: \"\\t\"}",
     "spam\ta b\n\tc\n-999\tb a\n"},
    {"type: lines, train: {file: train.txt, label: {column: last, type: LABEL}, delimiter: \"\\t\"}",
     "a b\tspam\nc\t\nb a\t7\n"},
    {"type: conll, train: {file: train.txt, text: 1, label: {column: 2, type: LABEL}}",
     "a\tspam\nb\t\n\nc\tx\n\nb\t-999\na\n"}};

static const char *const kinds[] = {"class", "value"};

/* `source` with the kind of its labels. */
static void write_source(char out[400], const char *source, const char *kind)
{
    const char *mark = strstr(source, "LABEL");
    snprintf(out, 400, "%.*s%s%s, " TOKENIZER, (int)(mark - source), source, kind, mark + strlen("LABEL"));
}

static void labels_are_not_read(void **state)
{
    (void)state;
    static const char *const records[] = {"a b", "c", "b a"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (size_t k = 0; k < 2; k++) {
            char source[400];
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_buf text = {0};
            data_write("train.txt", files[f].text);
            write_source(source, files[f].source, kinds[k]);
            struct data_open o = data_open_train(source, MODEL_LM, "task: language_model");
            assert_int_equal(o.train->records, 3);
            for (int64_t r = 0; r < 3; r++) {
                struct sl_buf got = {0};
                sl_data_state_decode(o.state, o.train->input_ids + o.train->start[r], o.train->length[r] + 1, &got);
                assert_string_equal(sl_buf_text(&got), records[r]);
                sl_buf_deinit(&got);
            }
            assert_null(o.train->target_ids);
            assert_null(o.train->target_values);
            assert_ptr_equal(sl_data_state_find_classes(o.state), sl_data_state_find_vocabulary(o.state));
            assert_int_equal(sl_data_state_get_facts(o.state)->target.classes, 4);
            assert_int_equal(sl_data_state_write(o.state, &text, &err), SEQLSTM_OK);
            assert_null(strstr(sl_buf_text(&text), "spam"));
            sl_buf_deinit(&text);
            data_close(&o);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(labels_are_not_read)};
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
