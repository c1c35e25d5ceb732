/* SPDX-License-Identifier: Apache-2.0 */
/* All that opening data gives, as text, compared as a whole with tests/fixtures/dumps/NAME.txt: facts, counts, what was
 * learned, records, the batches of two epochs, other ways of batching, inputs of predict.
 *
 * `== FILE` is followed by the lines of a data file, in which \r, \t, \xHH and \\ mean bytes; \c at the end of a line
 * leaves its line end out. `? npy FILE TYPE SHAPE: NUMBERS` writes an array. `? data: …` begins a case; `? model: …`
 * and `? train: …` belong to it, `? input: FILE [COLUMN …]` are inputs to predict, `? ways` shows other ways of
 * batching, and `? columns` what the columns hold. What comes out follows, with `|` before each line; see golden.h.
 */
#include "data_dump.h"
#include "golden.h"
#include "npy_fixture.h"

#include "data/table/columns.h"

enum { INPUTS_MOST = 4 };

static const struct {
    const char *name, *layers;
} models[] = {{"language", MODEL_LM},
              {"classify", MODEL_CLASSIFY},
              {"classify values", MODEL_CLASSIFY_VALUES},
              {"pairs", MODEL_PAIRS},
              {"regress", MODEL_REGRESS},
              {"regress steps", MODEL_REGRESS_STEPS},
              {"dense", MODEL_DENSE},
              {"dense classes", "[{type: dense, units: 3}, {type: output, activation: softmax}]"}};

struct dump_case {
    char *data, *model, *train, *inputs[INPUTS_MOST];
    int input_count;
    bool ways, columns;
};

/* What `data stats` says of each column. */
static void add_columns(struct sl_buf *out, const struct sl_model *model)
{
    const struct sl_source *source = &model->data.splits[SL_SPLIT_TRAIN];
    struct sl_columns columns;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_columns_read(model, source->inputs, source->targets, &columns, &err) != SEQLSTM_OK) {
        sl_buf_printf(out, "no columns: %d %s\n", (int)err.code, err.message);
        return;
    }
    sl_buf_printf(out, "columns of %lld rows\n", (long long)columns.rows);
    for (int32_t c = 0; c < columns.count; c++) {
        sl_buf_printf(out, "column %s", columns.items[c].name);
        add_text(out, "", columns.items[c].use, strlen(columns.items[c].use));
        add_count(out, "missing", columns.items[c].missing);
        add_count(out, "categories", columns.items[c].categories);
        sl_buf_append_text(out, ": ");
        sl_column_print_values(&columns.items[c], out);
        sl_buf_append_char(out, '\n');
    }
    sl_columns_deinit(&columns);
}

static void add_case(struct sl_buf *out, const struct dump_case *c)
{
    const char *layers = c->model ? c->model : MODEL_DENSE;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i].name, layers) == 0)
            layers = models[i].layers;
    struct data_open o = {.model = data_model(c->data, layers, c->train ? c->train : "loss: mse")};
    if (sl_dataset_open_train(o.model, &o.train, &o.state, &err) != SEQLSTM_OK) {
        sl_buf_printf(out, "refused %d: %s\n", (int)err.code, err.message);
        if (c->columns)
            add_columns(out, o.model);
        sl_model_destroy(o.model);
        return;
    }
    if (c->columns)
        add_columns(out, o.model);
    add_state(out, o.state);
    for (enum sl_split split = SL_SPLIT_TRAIN; split < SL_SPLIT_COUNT; split++) {
        struct sl_dataset *d = o.train;
        if (!sl_dataset_has_split(o.model, split))
            continue;
        if (split != SL_SPLIT_TRAIN && sl_dataset_open(o.model, split, o.state, &d, &err) != SEQLSTM_OK) {
            sl_buf_printf(out, "-- %s\nrefused %d: %s\n", sl_split_get_name(split), (int)err.code, err.message);
            continue;
        }
        add_split(out, d, split, c->ways);
        if (split != SL_SPLIT_TRAIN)
            sl_dataset_close(d);
    }
    for (int i = 0; i < c->input_count; i++)
        add_input(out, &o, c->inputs[i]);
    data_close(&o);
}

/* ---- the files of cases ----------------------------------------------------------------------------- */

/* Without the folder of the test, and with a mark before each line. */
static void quote(struct sl_buf *out, const struct sl_buf *from)
{
    char *copy = strdup(sl_buf_text(from)), *rest = copy, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (rest == NULL && *line == '\0')
            break;
        sl_buf_append_char(out, '|');
        for (char *at; (at = strstr(line, data_folder)) != NULL; line = at + strlen(data_folder))
            sl_buf_printf(out, "%.*sFOLDER", (int)(at - line), line);
        sl_buf_printf(out, "%s\n", line);
    }
    free(copy);
}

static void end_case(struct sl_buf *out, struct dump_case *c)
{
    struct sl_buf text = {0};
    if (!c->data)
        return;
    add_case(&text, c);
    quote(out, &text);
    sl_buf_deinit(&text);
    memset(c, 0, sizeof *c);
}

/* A line of a data file, with the bytes that it names. */
static void add_file_line(struct sl_buf *file, const char *line)
{
    for (; *line; line++) {
        char byte = *line;
        if (byte == '\\' && line[1] == 'c' && line[2] == '\0')
            return;
        if (byte == '\\' && line[1] == 'x') {
            char hex[3] = {line[2], line[3], '\0'};
            byte = (char)strtol(hex, NULL, 16);
            line += 3;
        } else if (byte == '\\' && line[1] != '\0') {
            line++;
            byte = *line == 'r' ? '\r' : *line == 't' ? '\t' : *line;
        }
        sl_buf_append_char(file, byte);
    }
    sl_buf_append_char(file, '\n');
}

static void end_file(const char *name, struct sl_buf *file)
{
    if (name)
        data_write_bytes(name, file->length_bytes ? file->data : "", file->length_bytes);
    sl_buf_truncate(file, 0);
}

/* "x.npy <f4 (2, 3): 1 2 3 4 5 6" */
static void write_npy(char *words)
{
    struct sl_buf out = {0};
    char *name = strtok(words, " "), *type = strtok(NULL, " "), *shape = strtok(NULL, ":"), header[NPY_HEADER];
    npy_write_header(header, type, shape);
    sl_buf_append(&out, header, sizeof header);
    for (const char *word; (word = strtok(NULL, " ")) != NULL;) {
        const double value = strtod(word, NULL);
        const float single = (float)value;
        const int64_t whole = strtoll(word, NULL, 10);
        sl_buf_append(&out, type[1] == 'f' ? type[2] == '8' ? (const void *)&value : &single : &whole,
                      (size_t)(type[2] - '0'));
    }
    data_write_bytes(name, out.data, out.length_bytes);
    sl_buf_deinit(&out);
}

static void take_directive(struct sl_buf *out, struct dump_case *c, char *line)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", line);
    if (strncmp(line, "data: ", 6) == 0 || strncmp(line, "npy ", 4) == 0)
        end_case(out, c);
    sl_buf_printf(out, "? %s\n", line);
    if (strncmp(line, "npy ", 4) == 0)
        write_npy(copy + 4);
    else if (strncmp(line, "data: ", 6) == 0)
        c->data = line + 6;
    else if (strncmp(line, "model: ", 7) == 0)
        c->model = line + 7;
    else if (strncmp(line, "train: ", 7) == 0)
        c->train = line + 7;
    else if (strcmp(line, "ways") == 0)
        c->ways = true;
    else if (strcmp(line, "columns") == 0)
        c->columns = true;
    else if (strncmp(line, "input: ", 7) == 0 && c->input_count < INPUTS_MOST)
        c->inputs[c->input_count++] = line + 7;
    else
        fail_msg("unknown line: ? %s", line);
}

/* The file of cases as it is now. Its text is changed. */
static void replay(struct sl_buf *out, char *text)
{
    struct sl_buf file = {0};
    struct dump_case c = {0};
    const char *name = NULL;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        bool is_name = strncmp(line, "== ", 3) == 0, is_directive = strncmp(line, "? ", 2) == 0;
        if (*line == '|' || (rest == NULL && *line == '\0'))
            continue;
        if (is_name || is_directive) {
            end_file(name, &file);
            name = NULL;
        }
        if (is_name)
            end_case(out, &c);
        if (is_directive) {
            take_directive(out, &c, line + 2);
            continue;
        }
        sl_buf_printf(out, "%s\n", line);
        if (is_name)
            name = line + 3;
        else
            add_file_line(&file, line);
    }
    end_case(out, &c);
    sl_buf_deinit(&file);
}

static void compare(const char *name)
{
    struct sl_buf now = {0};
    char file[64], *text;
    snprintf(file, sizeof file, "dumps/%s.txt", name);
    text = golden_read(file);
    replay(&now, text);
    golden_expect(file, "? data", sl_buf_text(&now));
    free(text);
    sl_buf_deinit(&now);
}

#define DUMP(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        compare(#name);                                                                                                \
    }

DUMP(tables)
DUMP(gaps)
DUMP(texts)
DUMP(pairs)
DUMP(arrays)
DUMP(generators)
DUMP(batches)
DUMP(unequal)
DUMP(columns)
DUMP(places)
DUMP(rules)

/* ---- states of other models -------------------------------------------------------------------------- */

static const struct {
    const char *data, *layers, *train;
} kin[] = {
    {"type: lines, train: {file: t.txt}, tokenizer: {type: whitespace, specials: [unk]}", MODEL_LM,
     "task: language_model"},
    {"type: lines, train: {file: t.txt}, tokenizer: {type: whitespace, specials: [unk], lowercase: true}", MODEL_LM,
     "task: language_model"},
    {"type: lines, train: {file: t.txt}, tokenizer: {type: char, specials: [unk]}", MODEL_LM, "task: language_model"},
    {"type: lines, train: {file: t.txt}, tokenizer: {type: whitespace, specials: [unk, bos, eos]}", MODEL_LM,
     "task: language_model"},
    {"type: lines, train: {file: t.txt}, label: first, tokenizer: {type: whitespace, specials: [unk]}", MODEL_CLASSIFY,
     "task: classify"},
    {"type: lines, train: {source: t.txt, target: u.txt}, tokenizer: {type: whitespace, specials: [unk, bos, eos]}",
     MODEL_PAIRS, "loss: cross_entropy"},
    {"type: lines, train: {source: t.txt, target: u.txt}, source_tokenizer: {type: whitespace, specials: [unk], "
     "lowercase: true}, "
     "tokenizer: {type: whitespace, specials: [unk, bos, eos]}",
     MODEL_PAIRS, "loss: cross_entropy"},
    {"type: lines, train: {source: t.txt, target: u.txt}, source_tokenizer: {type: char, specials: [unk]}, tokenizer: "
     "{type: "
     "whitespace, specials: [unk, bos, eos], lowercase: true}",
     MODEL_PAIRS, "loss: cross_entropy"},
    {"type: lines, train: {source: t.txt, target: u.txt}, tokenizer: {type: whitespace, specials: [unk, bos, eos], "
     "shared: true}",
     MODEL_PAIRS, "loss: cross_entropy"},
    {"type: csv, train: {file: t.csv}, group: g, inputs: [a, b], targets: [c]", MODEL_REGRESS, "loss: mse"},
    {"type: csv, train: {file: t.csv}, group: g, inputs: [b, a], targets: [c]", MODEL_REGRESS, "loss: mse"},
    {"type: csv, train: {file: t.csv}, group: g, inputs: [a, b], targets: [c], scale: standard", MODEL_REGRESS,
     "loss: mse"},
    {"type: csv, train: {file: t.csv}, group: g, inputs: [a, b], targets: [c], scale: {type: minmax, targets: false}",
     MODEL_REGRESS, "loss: mse"},
    {"type: csv, train: {file: t.csv}, group: g, inputs: [a], targets: [b, c]", MODEL_REGRESS, "loss: mse"},
    {"type: csv, train: {file: t.csv}, inputs: [a, b], targets: [c]", MODEL_DENSE, "loss: mse"},
    {"type: csv, train: {file: t.csv}, inputs: [a, b], label: g",
     "[{type: dense, units: 3}, {type: output, activation: softmax}]", "task: classify, loss: cross_entropy"},
};
enum { KIN = sizeof kin / sizeof *kin };

/* What training on one kind of data has learned, taken for a model of each other kind. */
static void test_foreign_states(void **state)
{
    (void)state;
    struct data_open o[KIN];
    struct sl_buf out = {0}, shown = {0};
    data_write("t.txt", "0 The cat\n1 a dog\n0 the Dog\n");
    data_write("u.txt", "x The y\nY a\nx\n");
    data_write("t.csv", "g,a,b,c\n0,1,2,3\n0,4,5,7\n1,7,6,9\n1,2,2,1\n");
    for (int k = 0; k < KIN; k++)
        o[k] = data_open_train(kin[k].data, kin[k].layers, kin[k].train);
    for (int k = 0; k < KIN; k++) {
        sl_buf_printf(&out, "== %s\n", kin[k].data);
        for (int s = 0; s < KIN; s++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_dataset *d = NULL;
            seqlstm_status status = sl_data_state_check(o[s].state, o[k].model, "data.json", &err);
            if (status == SEQLSTM_OK)
                status = sl_dataset_open(o[k].model, SL_SPLIT_TRAIN, o[s].state, &d, &err);
            if (status != SEQLSTM_OK)
                sl_buf_printf(&out, "%d: %d %s\n", s, (int)status, err.message);
            else
                sl_buf_printf(&out, "%d: ok\n", s);
            sl_dataset_close(d);
        }
    }
    quote(&shown, &out);
    golden_expect("dumps/states.txt", "|==", sl_buf_text(&shown));
    sl_buf_deinit(&shown);
    sl_buf_deinit(&out);
    for (int k = 0; k < KIN; k++)
        data_close(&o[k]);
}

/* The same texts through the token cache, which makes a file of each and reads it the second time. */
static void test_cached(void **state)
{
    (void)state;
    char folder[160];
    snprintf(folder, sizeof folder, "%s/cache", data_folder);
    setenv("SEQLSTM_CACHE", folder, 1);
    setenv("SEQLSTM_CACHE_LEAST", "0", 1);
    compare("cached");
    if (getenv("SEQLSTM_UPDATE") == NULL)
        compare("cached");
    unsetenv("SEQLSTM_CACHE_LEAST");
    unsetenv("SEQLSTM_CACHE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),         cmocka_unit_test(test_gaps),    cmocka_unit_test(test_texts),
        cmocka_unit_test(test_pairs),          cmocka_unit_test(test_arrays),  cmocka_unit_test(test_generators),
        cmocka_unit_test(test_batches),        cmocka_unit_test(test_unequal), cmocka_unit_test(test_columns),
        cmocka_unit_test(test_cached),         cmocka_unit_test(test_places),  cmocka_unit_test(test_rules),
        cmocka_unit_test(test_foreign_states),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
