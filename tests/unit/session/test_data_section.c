/* SPDX-License-Identifier: Apache-2.0 */
/* What a report shows of the training data: lengths and classes that the test makes up, with bars as long as their
 * share of the largest. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/dataset/census.h"
#include "ok.h"
#include "oom.h"
#include "session/record/session_record.h"
#include "session/report/data_section.h"

enum { CLASSES_MOST = 40 };

static int64_t class_counts[CLASSES_MOST], classes; /* 0: there are none */
static struct sl_vocabulary *names;
static bool alone; /* one sequence of one step */
static seqlstm_status lengths_status, classes_status;

seqlstm_status __wrap_sl_census_take_lengths(const struct sl_dataset *dataset, struct sl_lengths *out,
                                             struct seqlstm_error *err);
seqlstm_status __wrap_sl_census_count_classes(const struct sl_dataset *dataset, int64_t **out_counts,
                                              int64_t *out_classes, struct seqlstm_error *err);
const struct sl_vocabulary *__wrap_sl_data_state_find_classes(const struct sl_data_state *state);

/* Eight sequences of 2 to 9 steps, or one. */
seqlstm_status __wrap_sl_census_take_lengths(const struct sl_dataset *dataset, struct sl_lengths *out,
                                             struct seqlstm_error *err)
{
    static const int32_t sorted[] = {2, 2, 4, 4, 5, 5, 5, 9};
    static const int32_t one[] = {1};
    (void)dataset;
    if (lengths_status != SEQLSTM_OK)
        return lengths_status;
    if (alone) {
        SEQLSTM_TRY(sl_lengths_init(out, one, 1, err));
        out->bins[0] = (struct sl_length_bin){.first = 1, .last = 1, .records = 1};
        out->bin_count = 1;
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(sl_lengths_init(out, sorted, 8, err));
    out->bins[0] = (struct sl_length_bin){.first = 2, .last = 2, .records = 2};
    out->bins[1] = (struct sl_length_bin){.first = 3, .last = 5, .records = 5};
    out->bins[2] = (struct sl_length_bin){.first = 6, .last = 9, .records = 1};
    out->bin_count = 3;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_census_count_classes(const struct sl_dataset *dataset, int64_t **out_counts,
                                              int64_t *out_classes, struct seqlstm_error *err)
{
    (void)dataset, (void)err;
    *out_counts = NULL;
    *out_classes = classes;
    if (classes_status != SEQLSTM_OK)
        return classes_status;
    if (classes > 0) {
        *out_counts = malloc(sizeof class_counts);
        assert_non_null(*out_counts);
        memcpy(*out_counts, class_counts, sizeof class_counts);
    }
    return SEQLSTM_OK;
}

const struct sl_vocabulary *__wrap_sl_data_state_find_classes(const struct sl_data_state *state)
{
    (void)state;
    return names;
}

static void write_section(enum sl_batch_unit unit, int64_t longest, struct sl_buf *out)
{
    static char dataset;
    struct sl_model model = {.data = {.batching = {.unit = unit}}};
    struct sl_graph graph = {.facts = {.longest = longest}};
    struct sl_session session = {.model = &model, .train_data = (void *)&dataset};
    session.train.graph = &graph;
    sl_data_section_write(&session, out);
    assert_int_equal(out->failed, lengths_status == SEQLSTM_NO_MEMORY || classes_status == SEQLSTM_NO_MEMORY);
}

#define LENGTHS                                                                                                        \
    "<h2>Lengths</h2>\n<p>8 training sequences of 2 to 9 steps, mean 4.5</p>\n<div class=\"scroll\">"                  \
    "<table class=\"counts\"><tr><th>steps</th><th>sequences</th><th>share</th><th></th></tr>\n"                       \
    "<tr><td>2</td><td>2</td><td>25.0 %</td><td class=\"share\"><i style=\"width:40.0%\"></i></td></tr>\n"             \
    "<tr><td>3 to 5</td><td>5</td><td>62.5 %</td><td class=\"share\"><i style=\"width:100.0%\"></i></td></tr>\n"       \
    "<tr><td>6 to 9</td><td>1</td><td>12.5 %</td><td class=\"share\"><i style=\"width:20.0%\"></i></td></tr>\n"        \
    "</table></div>\n"

static void lengths_of_sequences(void **state)
{
    struct sl_buf out = {0};
    (void)state;
    classes = 0;
    write_section(SL_UNIT_SEQUENCE, 9, &out);
    assert_string_equal(sl_buf_text(&out), LENGTHS);
    sl_buf_deinit(&out);
    write_section(SL_UNIT_SEQUENCE, 2, &out);
    assert_string_equal(sl_buf_text(&out), LENGTHS);
    sl_buf_deinit(&out);
    alone = true;
    write_section(SL_UNIT_SEQUENCE, 2, &out); /* the longest of another split */
    assert_non_null(strstr(sl_buf_text(&out), "<p>1 training sequence of 1 to 1 step, mean 1.0</p>"));
    assert_non_null(strstr(sl_buf_text(&out), "<tr><td>1</td><td>1</td><td>100.0 %</td>"));
    sl_buf_deinit(&out);
    alone = false;
    write_section(SL_UNIT_SEQUENCE, 1, &out); /* rows of a table have no lengths, nor has a stream */
    assert_string_equal(sl_buf_text(&out), "");
    write_section(SL_UNIT_STREAM, 9, &out);
    assert_string_equal(sl_buf_text(&out), "");
    const struct sl_session none = {.train_data = NULL};
    sl_data_section_write(&none, &out);
    assert_string_equal(sl_buf_text(&out), "");
    sl_buf_deinit(&out);
}

static void set_classes(int64_t count)
{
    struct sl_vocabulary_entry entries[CLASSES_MOST];
    char texts[CLASSES_MOST][8];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_vocabulary_destroy(names);
    classes = count;
    for (int k = 0; k < count; k++) {
        snprintf(texts[k], sizeof texts[k], "<%d>", k % 100);
        entries[k] = (struct sl_vocabulary_entry){texts[k], strlen(texts[k]), 1};
    }
    ok(sl_vocabulary_create(entries, count, NULL, &names, &err), &err);
}

static void balance_of_classes(void **state)
{
    static const int64_t counts[] = {4, 0, 12, 8};
    struct sl_buf out = {0};
    (void)state;
    memcpy(class_counts, counts, sizeof counts);
    set_classes(4);
    write_section(SL_UNIT_STREAM, 9, &out);
    assert_string_equal(
        sl_buf_text(&out),
        "<h2>Class balance</h2>\n<p>Targets of the training data.</p>\n<div class=\"scroll\"><table "
        "class=\"counts\"><tr>"
        "<th>class</th><th>targets</th><th>share</th><th></th></tr>\n"
        "<tr><td>&lt;0&gt;</td><td>4</td><td>16.7 %</td><td class=\"share\"><i style=\"width:33.3%\"></i></td></tr>\n"
        "<tr><td>&lt;1&gt;</td><td>0</td><td>0.0 %</td><td class=\"share\"><i style=\"width:0.0%\"></i></td></tr>\n"
        "<tr><td>&lt;2&gt;</td><td>12</td><td>50.0 %</td><td class=\"share\"><i style=\"width:100.0%\"></i></td></tr>\n"
        "<tr><td>&lt;3&gt;</td><td>8</td><td>33.3 %</td><td class=\"share\"><i style=\"width:66.7%\"></i></td></tr>\n"
        "</table></div>\n");
    sl_buf_deinit(&out);
    for (int64_t count = 30; count <= 32; count++) { /* thirty are shown; those that are not count, too */
        set_classes(count);
        for (int k = 0; k < count; k++)
            class_counts[k] = k == count - 1 ? 100 : 1;
        write_section(SL_UNIT_STREAM, 9, &out);
        const char *text = sl_buf_text(&out), *end = "</table></div>\n";
        char share[64];
        snprintf(share, sizeof share, "<td>1</td><td>%.1f %%</td><td class=\"share\"><i style=\"width:1.0%%\">",
                 100.0 / (double)(count + 99));
        assert_non_null(strstr(text, share));
        assert_non_null(strstr(text, "<td>&lt;29&gt;</td>"));
        assert_int_equal(strstr(text, "<td>&lt;30&gt;</td>") != NULL, 0);
        assert_string_equal(strstr(text, end) + strlen(end), count == 30   ? ""
                                                             : count == 31 ? "<p>and 1 more class</p>\n"
                                                                           : "<p>and 2 more classes</p>\n");
        sl_buf_deinit(&out);
    }
}

/* What cannot be read any more is left out; what there is no memory for makes the page fail. */
static void without_lengths_or_classes(void **state)
{
    static const seqlstm_status rows[][2] = {{SEQLSTM_IO, SEQLSTM_OK},
                                             {SEQLSTM_OK, SEQLSTM_IO},
                                             {SEQLSTM_NO_MEMORY, SEQLSTM_OK},
                                             {SEQLSTM_OK, SEQLSTM_NO_MEMORY}};
    (void)state;
    set_classes(2);
    class_counts[0] = class_counts[1] = 3;
    for (int k = 0; k < 4; k++) {
        struct sl_buf out = {0};
        lengths_status = rows[k][0];
        classes_status = rows[k][1];
        write_section(SL_UNIT_SEQUENCE, 9, &out);
        if (!out.failed) {
            assert_int_equal(strstr(sl_buf_text(&out), "<h2>Lengths</h2>") != NULL, lengths_status == SEQLSTM_OK);
            assert_int_equal(strstr(sl_buf_text(&out), "<h2>Class balance</h2>") != NULL, classes_status == SEQLSTM_OK);
        }
        sl_buf_deinit(&out);
    }
    sl_vocabulary_destroy(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_of_sequences),
        cmocka_unit_test(balance_of_classes),
        cmocka_unit_test(without_lengths_or_classes),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
