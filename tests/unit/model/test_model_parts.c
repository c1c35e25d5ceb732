/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the model's interface that others use: files of sources, data in memory, words of the configuration, places
 * of the options of plugins, entries of a written configuration; findings that are taken back; and limits of documents,
 * of lines and of memory. */
#include "model_fixture.h"
#include "oom.h"

#include <stdio.h>

#include "base/memory/arena.h"
#include "model/doc_limits.h"
#include "model/load/entries.h"
#include "model/read/sections.h"
#include "model/yaml/diagnostics_private.h"

/* ---- sources -------------------------------------------------------------------------------------------------------
 */

/* Those that are given, in the order of the keys; a part of another split and a generator have none. */
static void the_files_of_a_source(void **state)
{
    static const struct {
        struct sl_source source;
        const char *files;
    } rows[] = {
        {{.origin = SL_SOURCE_FILES, .type = SL_SOURCE_CSV, .file = "a"}, "file=a "},
        {{.origin = SL_SOURCE_FILES, .type = SL_SOURCE_LINES, .target_file = "t", .source_file = "s"},
         "source=s target=t "},
        {{.origin = SL_SOURCE_FILES, .type = SL_SOURCE_NPY, .x = "x", .y = "y", .lengths = "l"}, "x=x y=y lengths=l "},
        {{.origin = SL_SOURCE_FILES, .type = SL_SOURCE_NPY, .y = "y"}, "y=y "},
        {{.origin = SL_SOURCE_FROM_TRAIN, .type = SL_SOURCE_CSV, .file = "a"}, ""},
        {{.origin = SL_SOURCE_NONE, .type = SL_SOURCE_CSV, .file = "a"}, ""},
        {{.origin = SL_SOURCE_FILES, .type = SL_SOURCE_GENERATOR, .file = "a"}, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_data_file files[SL_DATA_FILE_COUNT];
        const int count = sl_source_list_files(&rows[i].source, files);
        char text[128] = "";
        for (int k = 0; k < count; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s=%s ", files[k].key, files[k].path);
        assert_string_equal(text, rows[i].files);
    }
}

#define ARRAYS(x, y)                                                                                                   \
    "seqlstm: 1\ndata: {train: {type: npy, x: " x ", y: " y "}}\n"                                                     \
    "model: [{type: lstm, name: a, units: 3}, {type: output, name: o}]\ntrain: {epochs: 1}\n"

/* `memory:NAME` is the file that the request has for it; a name that it lacks stays as it is. */
static void data_in_memory_have_names(void **state)
{
    static const struct sl_memory_data memory[] = {{"one", "/tmp/first.npy"}, {"two", "/tmp/second.npy"}};
    static const char text[] = ARRAYS("\"memory:two\"", "\"memory:one\"");
    const struct sl_model_request request = {.memory = memory, .memory_count = 2};
    (void)state;
    struct loaded l = load_text("m.yaml", text, strlen(text), &request);
    if (l.model == NULL)
        fail_msg("%s", sl_buf_text(&l.text));
    const struct sl_source *train = &l.model->data.splits[SL_SPLIT_TRAIN];
    assert_string_equal(train->x, "/tmp/second.npy");
    assert_string_equal(train->y, "/tmp/first.npy");
    struct sl_buf shown = {0};
    sl_diagnostics_write_text(l.diagnostics, "/tmp/first.npy, /tmp/second.npy", &shown);
    assert_string_equal(sl_buf_text(&shown), "memory:one, memory:two");
    sl_buf_deinit(&shown);
    unload(&l);
    static const char other[] = ARRAYS("\"memory:three\"", "\"memory:one\"");
    l = load_text("m.yaml", other, strlen(other), &request);
    assert_non_null(l.model);
    assert_string_equal(l.model->data.splits[SL_SPLIT_TRAIN].x, "memory:three");
    unload(&l);
}

/* ---- words and places ----------------------------------------------------------------------------------------------
 */

static const char *show(const char *word)
{
    return word ? word : "-";
}

static void words_of_the_configuration(void **state)
{
    static const struct {
        int layer; /* -1: none */
        const char *path, *word;
    } rows[] = {
        {-1, "seqlstm", "1"},
        {-1, "train.optimizer", "adam"},
        {-1, "train.optimizer.type", "adam"},
        {-1, "train.optimizer.learning_rate", "1e-3"},
        {-1, "train", "-"},
        {-1, "train.nothing", "-"},
        {-1, "data.train.rows", "-"},
        {-1, "data.train.comment", "-"},
        {-1, "model", "-"},
        {0, "type", "embedding"},
        {1, "units", "4"},
        {1, "activation", "relu"},
        {1, "activation.alpha", "-"},
        {2, "dim", "5"},
        {3, "units", "4"},
        {3, "name", "g"},
    };
    struct loaded l = load_clean("seqlstm: 1\ndata: {train: {type: lines, source: a, target: b}}\nmodel:\n"
                                 "  encoder: [{type: embedding, dim: 4}, {type: gru, units: 4, activation: relu}]\n"
                                 "  decoder: [{type: embedding, dim: 5}, {type: gru, name: g, units: 4, "
                                 "return_sequences: true}, {type: output, activation: softmax}]\n"
                                 "train: {epochs: 1}\n");
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sl_layer *layer = rows[i].layer < 0 ? NULL : &l.model->layers[rows[i].layer];
        const char *word = show(sl_model_find_word(l.model, layer, rows[i].path));
        if (strcmp(word, rows[i].word) != 0)
            fail_msg("%s: `%s`, expected `%s`", rows[i].path, word, rows[i].word);
    }
    unload(&l);
}

/* An empty value is no word. */
static void an_empty_value_is_no_word(void **state)
{
    struct sl_node null = {.kind = SL_NODE_SCALAR, .text = "~"};
    struct sl_pair pair = {"key", {0}, &null};
    const struct sl_node map = {.kind = SL_NODE_MAP, .pairs = &pair, .count = 1};
    const struct sl_model model = {.document = &map};
    (void)state;
    assert_null(sl_model_find_word(&model, NULL, "key"));
    null.quoted = true;
    assert_string_equal(sl_model_find_word(&model, NULL, "key"), "~");
}

static void options_of_plugins_have_two_places(void **state)
{
    struct loaded l = load_clean("seqlstm: 1\ndata: {train: {type: npy, x: a, y: b}}\n"
                                 "model: [{type: lstm, units: 3}, {type: output}]\ntrain: {epochs: 1}\nbackends:\n"
                                 "  - reference\n  - {plugin: cpu-blas, options: {threads: 3, mode:   fast}}\n");
    (void)state;
    assert_int_equal(l.model->backend_count, 2);
    assert_int_equal(l.model->backends[0].option_count, 0);
    const struct sl_backend_entry *entry = &l.model->backends[1];
    assert_int_equal(entry->option_count, 2);
    assert_string_equal(entry->options[1].key, "mode");
    assert_string_equal(entry->options[1].value, "fast");
    assert_int_equal(entry->options[1].place.line, 7);
    assert_int_equal(entry->options[1].place.column, 46);
    assert_int_equal(entry->options[1].value_place.column, 54);
    assert_int_equal(entry->options[0].place.column, 34);
    unload(&l);
}

/* ---- entries -------------------------------------------------------------------------------------------------------
 */

/* Each value of a configuration has a path, elements of lists by their number, whatever stands beside them. */
static void entries_have_paths(void **state)
{
    static const char text[] = "seqlstm: 1\n"
                               "data:\n"
                               "  train:\n"
                               "    file: a.csv\n"
                               "    inputs: [a, b]\n"
                               "model:\n"
                               "- type: lstm\n"
                               "  units: 4\n"
                               "  activation:\n"
                               "    type: relu\n"
                               "- type: dense\n"
                               "  units: 2\n"
                               "backends:\n"
                               "- plugin: one\n"
                               "- plain\n"
                               "- plugin: three\n"
                               "train:\n"
                               "  epochs: 1\n";
    static const char expected[] = "seqlstm=1\ndata.train.file=a.csv\ndata.train.inputs=[a, b]\n"
                                   "model[0].type=lstm\nmodel[0].units=4\nmodel[0].activation.type=relu\n"
                                   "model[1].type=dense\nmodel[1].units=2\nbackends[0].plugin=one\n"
                                   "backends[1]=plain\nbackends[2].plugin=three\ntrain.epochs=1\n";
    struct sl_arena arena;
    struct sl_config_entries entries;
    struct sl_buf found = {0};
    char copy[sizeof text];
    (void)state;
    memcpy(copy, text, sizeof text);
    sl_arena_init(&arena);
    assert_true(sl_config_entries_read(&arena, copy, &entries));
    for (size_t i = 0; i < entries.count; i++)
        sl_buf_printf(&found, "%s=%s\n", entries.items[i].path, entries.items[i].value);
    assert_string_equal(sl_buf_text(&found), expected);
    assert_string_equal(sl_config_entries_find(&entries, "model[1].units"), "2");
    assert_string_equal(sl_config_entries_find(&entries, "train.epochs"), "1");
    assert_null(sl_config_entries_find(&entries, "model[2].units"));
    assert_null(sl_config_entries_find(&entries, "train"));
    sl_buf_deinit(&found);
    sl_arena_deinit(&arena);
}

/* Of nested keys as many as a document may have. */
static void entries_are_as_deep_as_documents(void **state)
{
    enum { DEPTH = 30 };
    struct sl_arena arena;
    struct sl_config_entries entries;
    struct sl_buf text = {0}, path = {0};
    (void)state;
    for (int d = 0; d < DEPTH; d++) {
        sl_buf_printf(&text, "%*sk%d:%s\n", 2 * d, "", d, d + 1 == DEPTH ? " v" : "");
        sl_buf_printf(&path, "%sk%d", d ? "." : "", d);
    }
    sl_arena_init(&arena);
    assert_true(sl_config_entries_read(&arena, text.data, &entries));
    assert_int_equal(entries.count, 1);
    assert_string_equal(entries.items[0].path, sl_buf_text(&path));
    sl_arena_deinit(&arena);
    sl_buf_deinit(&text);
    sl_buf_deinit(&path);
}

static void values_are_the_same_as_texts_or_numbers(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {{"relu", "relu", true}, {"relu", "tanh", false}, {"1e-3", "0.001", true},
                {"1", "1.0", true},     {"1", "2", false},       {"1", "one", false},
                {"one", "1", false},    {"0", "-0", true},       {"[1]", "[1.0]", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(sl_config_entries_is_same(rows[i].a, rows[i].b), rows[i].same);
}

/* ---- findings ------------------------------------------------------------------------------------------------------
 */

static void add(struct sl_diagnostics *diagnostics, const char *code, int line)
{
    const struct sl_diagnostic finding = {
        .code = code, .place = {"m.yaml", line, 1, 1}, .message = "something is wrong"};
    sl_diagnostics_add(diagnostics, &finding);
}

static void assert_counts(const struct sl_diagnostics *diagnostics, size_t errors, size_t warnings)
{
    assert_int_equal(sl_diagnostics_count(diagnostics, SL_SEVERITY_ERROR), errors);
    assert_int_equal(sl_diagnostics_count(diagnostics, SL_SEVERITY_WARNING), warnings);
}

/* What is taken back is not counted, each as what it was; and may be found again. */
static void findings_are_taken_back(void **state)
{
    struct sl_diagnostics *diagnostics;
    (void)state;
    assert_int_equal(sl_diagnostics_create(&diagnostics, NULL), SEQLSTM_OK);
    add(diagnostics, "W0301", 1);
    add(diagnostics, "E0101", 2);
    add(diagnostics, "E0101", 3);
    add(diagnostics, "W0302", 4);
    add(diagnostics, "E0102", 4);
    assert_counts(diagnostics, 3, 2);
    sl_diagnostics_cut(diagnostics, 4);
    assert_counts(diagnostics, 2, 2);
    sl_diagnostics_cut(diagnostics, 2);
    assert_counts(diagnostics, 1, 1);
    sl_diagnostics_cut(diagnostics, 2);
    assert_counts(diagnostics, 1, 1);
    add(diagnostics, "E0101", 3);
    add(diagnostics, "E0101", 2);
    assert_counts(diagnostics, 2, 1);
    sl_diagnostics_forget(diagnostics);
    assert_counts(diagnostics, 0, 0);
    add(diagnostics, "E0101", 2);
    assert_counts(diagnostics, 1, 0);
    sl_diagnostics_destroy(diagnostics);
}

/* A line that fits is shown whole; of a longer one, dots stand for the rest. */
static void dots_stand_for_what_is_left_out(void **state)
{
    (void)state;
    for (size_t length = 138; length < 144; length++) {
        struct sl_diagnostics *diagnostics;
        struct sl_buf out = {0};
        char line[160] = "";
        assert_int_equal(sl_diagnostics_create(&diagnostics, NULL), SEQLSTM_OK);
        memset(line, 'x', length);
        sl_diagnostics_add_file(diagnostics, "m.yaml", line, length);
        add(diagnostics, "E0101", 1);
        assert_int_equal(sl_diagnostics_render(diagnostics, false, &out, NULL), SEQLSTM_OK);
        const char *shown = strchr(sl_buf_text(&out), 'x');
        assert_non_null(shown);
        assert_int_equal(strspn(shown, "x"), length < 140 ? length : 140);
        assert_int_equal(strncmp(shown + strspn(shown, "x"), "...\n", 4) == 0, length > 140);
        sl_diagnostics_destroy(diagnostics);
        sl_buf_deinit(&out);
    }
}

/* ---- limits --------------------------------------------------------------------------------------------------------
 */

/* A list of so many values is read, one more is not: the map, its key and the list count, too. */
static void documents_have_a_most_of_values(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        const size_t count = SL_DOC_MAX_NODES - 3 + (size_t)more;
        struct sl_buf text = {0};
        sl_buf_append_text(&text, "a: [");
        for (size_t i = 0; i < count; i++)
            sl_buf_append_text(&text, "1,");
        sl_buf_append_text(&text, "]\n");
        struct loaded l = load_text("m.yaml", text.data, text.length_bytes, NULL);
        assert_int_equal(strstr(sl_buf_text(&l.text), "E0004") != NULL, more);
        unload(&l);
        sl_buf_deinit(&text);
    }
}

/* A bare word becomes a map. Where there is no memory for it, nothing else is said about it, and nothing is read. */
static void a_word_that_cannot_become_a_map_is_left(void **state)
{
    int failures = 0;
    (void)state;
    for (size_t used = 0; used < 70000 && failures < 3; used += 16) {
        static const char *const words[] = {"adam", "cosine"};
        const struct sl_section *const sections[] = {&sl_section_optimizer, &sl_section_schedule};
        for (int k = 0; k < 2; k++) {
            struct sl_train_config train = {0};
            struct sl_diagnostics *diagnostics;
            struct sl_arena arena;
            sl_arena_init(&arena);
            assert_int_equal(sl_diagnostics_create(&diagnostics, NULL), SEQLSTM_OK);
            struct sl_reader reader = {.arena = &arena, .diagnostics = diagnostics};
            struct sl_node node = {.kind = SL_NODE_SCALAR, .text = words[k], .place = {"m.yaml", 1, 1, 4}};
            assert_non_null(sl_arena_alloc(&arena, used + 1));
            oom_fail_at(1);
            const bool expanded = sl_reader_expand(&reader, &node, "type");
            const bool failed = oom_disarm();
            if (!failed || expanded) { /* there was room */
                assert_true(expanded);
            } else {
                assert_true(reader.no_memory);
                node = (struct sl_node){.kind = SL_NODE_SCALAR, .text = words[k], .place = {"m.yaml", 1, 1, 4}};
                struct sl_arena full;
                sl_arena_init(&full);
                assert_non_null(sl_arena_alloc(&full, used + 1));
                reader = (struct sl_reader){.arena = &full, .diagnostics = diagnostics};
                oom_fail_at(1);
                sl_reader_read_section(&reader, sections[k], &node, k ? (void *)&train.schedule : &train.optimizer);
                assert_true(oom_disarm());
                assert_true(reader.no_memory);
                assert_int_equal(reader.errors, 0);
                assert_int_equal(sl_diagnostics_count(diagnostics, SL_SEVERITY_ERROR), 0);
                sl_arena_deinit(&full);
                failures++;
            }
            sl_diagnostics_destroy(diagnostics);
            sl_arena_deinit(&arena);
        }
    }
    assert_true(failures > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_of_a_source),
        cmocka_unit_test(data_in_memory_have_names),
        cmocka_unit_test(words_of_the_configuration),
        cmocka_unit_test(an_empty_value_is_no_word),
        cmocka_unit_test(options_of_plugins_have_two_places),
        cmocka_unit_test(entries_have_paths),
        cmocka_unit_test(entries_are_as_deep_as_documents),
        cmocka_unit_test(values_are_the_same_as_texts_or_numbers),
        cmocka_unit_test(findings_are_taken_back),
        cmocka_unit_test(dots_stand_for_what_is_left_out),
        cmocka_unit_test(documents_have_a_most_of_values),
        cmocka_unit_test(a_word_that_cannot_become_a_map_is_left),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
