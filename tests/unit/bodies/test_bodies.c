/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests, what is read of them, and the answers, as a whole: for models of every kind of input, without a
 * connection and without weights. */
#include "bodies_fixture.h"
#include "golden.h"

/* ---- infer -------------------------------------------------------------------------------------------------- */

static void add_job(struct sl_buf *out, const struct sl_job *job)
{
    const struct sl_served_model *model = job->model;
    sl_buf_printf(out, "%lld sequences, %lld rows", (long long)job->count, (long long)job->rows);
    if (job->id)
        sl_buf_printf(out, ", id '%s'", job->id);
    if (job->stream_id)
        sl_buf_printf(out, ", stream '%s'%s%s", job->stream_id, job->starts ? " starts" : "", job->ends ? " ends" : "");
    for (int64_t k = 0; job->x && k < job->rows * model->input_features; k++)
        if (model->reads_ids)
            sl_buf_printf(out, "%s%d", k ? " " : ", ids ", ((const int32_t *)job->x)[k]);
        else
            sl_buf_printf(out, "%s%.9g", k ? " " : ", x ", (double)((const float *)job->x)[k]);
    for (int64_t k = 0; job->lengths && k < job->count; k++)
        sl_buf_printf(out, "%s%lld", k ? " " : ", lengths ", (long long)job->lengths[k]);
    for (int64_t k = 0; job->texts && k < job->count; k++)
        sl_buf_printf(out, ", '%.*s'", (int)job->text_bytes[k], job->texts[k]);
    sl_buf_printf(out, "; wants%s%s%s%s\n", job->wants_y ? " y" : "", job->wants_y && job->binary_y ? " in binary" : "",
                  job->wants_labels ? " labels" : "", job->wants_labels && job->binary_labels ? " in binary" : "");
}

/* Bytes that are no text as \xNN. */
static void add_bytes(struct sl_buf *out, const char *data, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++)
        if ((unsigned char)data[k] < 0x20 || (unsigned char)data[k] > 0x7e)
            sl_buf_printf(out, "\\x%02x", (unsigned)(unsigned char)data[k]);
        else
            sl_buf_append_char(out, data[k]);
    sl_buf_append_char(out, '\n');
}

static void add_infer(struct sl_buf *out, enum kind kind, const char *body, const void *binary, size_t binary_bytes)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf text = {0}, answer = {0};
    int64_t json_bytes = 0;
    struct sl_job *job = sl_job_create(&models[kind], NULL);
    assert_non_null(job);
    sl_buf_append_text(&text, body);
    if (binary)
        sl_buf_append(&text, binary, binary_bytes);
    sl_buf_printf(out, "== %s %s\n", kinds[kind], body);
    const seqlstm_status status =
        sl_infer_read(job, sl_buf_text(&text), text.length_bytes, binary ? (int64_t)strlen(body) : -1, &err);
    if (status != SEQLSTM_OK) {
        assert_int_equal(status, SEQLSTM_INVALID_ARGUMENT);
        sl_buf_printf(out, "refused: %s\n", err.message);
    } else {
        add_job(out, job);
        fill_results(job);
        sl_infer_write(job, &answer, &json_bytes);
        sl_buf_printf(out, "%lld of %zu bytes are JSON: ", (long long)json_bytes, answer.length_bytes);
        add_bytes(out, sl_buf_text(&answer), answer.length_bytes);
    }
    sl_buf_deinit(&answer);
    sl_buf_deinit(&text);
    sl_job_destroy(job);
}

static const struct {
    enum kind kind;
    const char *body;
} bodies[] = {
    {VALUES, ""},
    {VALUES, "[]"},
    {VALUES, "{}"},
    {VALUES, "{\"inputs\":{}}"},
    {VALUES, "{\"inputs\":[]}"},
    {VALUES, "{\"inputs\":[{}]}"},
    {VALUES, "{\"inputs\":[],\"inputs\":[]}"},
    /* shapes */
    {VALUES, INPUTS("{\"name\":\"x\"}")},
    {VALUES, INPUTS("{\"name\":\"x\",\"shape\":[]}")},
    {VALUES, INPUTS("{\"name\":\"x\",\"shape\":[-1]}")},
    {VALUES, INPUTS("{\"name\":\"x\",\"shape\":[1.5]}")},
    {VALUES, INPUTS("{\"name\":\"x\",\"shape\":[1000000]}")},
    {VALUES, INPUTS("{\"name\":\"x\",\"shape\":[40,40]}")},
    {VALUES, INPUTS(X("FP32", "[2,2]", "[1,2,3,4]"))},
    {VALUES, INPUTS(X("FP64", "[2,2]", "[[1,2],[3,4e-3]]"))},
    {VALUES, INPUTS(X("FP32", "[2,1,2]", "[[[1,2]],[[3,4]]]"))},
    {VALUES, INPUTS(X("FP32", "[1,4]", "[1,2,3,4]"))},
    {VALUES, INPUTS(X("FP32", "[4]", "[1,2,3,4]"))},
    {VALUES, INPUTS(X("FP32", "[3]", "[1,2,3]"))},
    {VALUES, INPUTS(X("FP32", "[0,2]", "[]"))},
    {VALUES, INPUTS(X("FP32", "[1,2]", "[1]"))},
    {VALUES, INPUTS(X("FP32", "[1,2]", "[1,2,3]"))},
    {VALUES, INPUTS(X("FP32", "[1,2]", "[1,\"2\"]"))},
    {VALUES, INPUTS(X("FP32", "[1,2]", "[1,null]"))},
    {VALUES, INPUTS(X("FP32", "[1,2]", "[[[[[[[[1,2]]]]]]]]"))},
    {VALUES, INPUTS(X("FP32", "[1,2]", "[[[[[[[[[1,2]]]]]]]]]"))},
    {VALUES, INPUTS(X("FP32", "[1,2]", "7"))},
    {VALUES, INPUTS(X("FP16", "[1,2]", "[1,2]"))},
    {VALUES, INPUTS("{\"name\":\"x\",\"shape\":[1,2],\"data\":[1,2]}")},
    {VALUES, INPUTS(X("INT32", "[1,2]", "[1,2]"))},
    {VALUES, INPUTS(X("BYTES", "[1,2]", "[\"1\",\"2\"]"))},
    /* steps */
    {VALUES, INPUTS(X("FP32", "[4,2]", "[1,2,3,4,5,6,7,8]"))},
    {VALUES, INPUTS(X("FP32", "[5,2]", "[1,2,3,4,5,6,7,8,9,10]"))},
    {VALUES, INPUTS(X("FP32", "[5,2]", "[1,2,3,4,5,6,7,8,9,10]") "," LENGTHS("[3]", "[4,0,1]"))},
    {VALUES, INPUTS(LENGTHS("[2]", "[1,1]") "," X("FP32", "[2,2]", "[1,2,3,4]"))},
    {VALUES, INPUTS(X("FP32", "[5,2]", "[1,2,3,4,5,6,7,8,9,10]") "," LENGTHS("[1]", "[5]"))},
    {VALUES, INPUTS(ONE "," LENGTHS("[1]", "[2]"))},
    {VALUES, INPUTS(ONE "," LENGTHS("[0]", "[]"))},
    {VALUES, INPUTS(ONE "," LENGTHS("[1]", "[-1]"))},
    {VALUES, INPUTS(ONE "," LENGTHS("[1]", "[0.5]"))},
    {VALUES, INPUTS(ONE ",{\"name\":\"lengths\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}")},
    {VALUES, INPUTS(LENGTHS("[1]", "[1]"))},
    {VALUES, INPUTS(LENGTHS("[1]", "[1]") "," LENGTHS("[1]", "[1]"))},
    {VALUES, INPUTS(ONE "," ONE)},
    {VALUES, INPUTS(ONE "," TEXT("[1]", "[\"a\"]"))},
    {VALUES, INPUTS(TEXT("[1]", "[\"a\"]"))},
    {VALUES, INPUTS("{\"name\":\"z\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}")},
    {ROWS, INPUTS(X("FP32", "[3]", "[1,2,3]"))},
    {ROWS, INPUTS(X("FP32", "[3,1]", "[1,2,3]"))},
    {ROWS, INPUTS(X("FP32", "[9]", "[1,2,3,4,5,6,7,8,9]"))},
    {ROWS, INPUTS(X("FP32", "[1]", "[1]") "," LENGTHS("[1]", "[1]"))},
    /* ids */
    {IDS, INPUTS(X("INT64", "[3]", "[0,4,2]"))},
    {IDS, INPUTS(X("INT32", "[1]", "[5]"))},
    {IDS, INPUTS(X("INT32", "[1]", "[-1]"))},
    {IDS, INPUTS(X("INT32", "[1]", "[1.5]"))},
    {IDS, INPUTS(X("FP32", "[1]", "[1]"))},
    {IDS, INPUTS(TEXT("[1]", "[\"a\"]"))},
    /* texts */
    {TEXTS, INPUTS(TEXT("[2]", "[\"a b\",\"c\"]"))},
    {TEXTS, INPUTS(TEXT("[2]", "[\"a zebra\",\"\"]"))},
    {TEXTS, INPUTS(TEXT("[2]", "[\"\",\"c a\"]"))},
    {TEXTS, INPUTS(TEXT("[1]", "[\"a b c\"]"))},
    {TEXTS, INPUTS(TEXT("[1]", "[\"a b c a\"]"))},
    {TEXTS, INPUTS(TEXT("[2]", "[\"c\",\"a b c a b\"]"))},
    {TEXTS, INPUTS(TEXT("[0]", "[]"))},
    {TEXTS, INPUTS(TEXT("[2]", "[\"a\"]"))},
    {TEXTS, INPUTS(TEXT("[1]", "[7]"))},
    {TEXTS, INPUTS("{\"name\":\"text\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}")},
    {TEXTS, INPUTS(TEXT("[1]", "[\"a\"]") "," TEXT("[1]", "[\"a\"]"))},
    {TEXTS, INPUTS(TEXT("[1]", "[\"a\"]") "," LENGTHS("[1]", "[1]"))},
    {TEXTS, INPUTS(X("INT32", "[1]", "[1]") "," TEXT("[1]", "[\"a\"]"))},
    {TEXTS, INPUTS("{\"name\":\"z\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}")},
    {TEXTS, "{\"inputs\":[]}"},
    {DECODER, INPUTS(TEXT("[3]", "[\"a b\",\"c\",\"x y z w\"]"))},
    {DECODER, INPUTS(TEXT("[0]", "[]"))},
    {DECODER, INPUTS(X("INT32", "[1]", "[1]"))},
    {DECODER, INPUTS(TEXT("[1]", "[\"a\"]") "," TEXT("[1]", "[\"b\"]"))},
    {DECODER, "{\"inputs\":[]}"},
    /* outputs */
    {VALUES, MORE(ONE, "\"id\":\"a \\\"b\\\"\"")},
    {VALUES, MORE(ONE, "\"id\":7")},
    {VALUES, MORE(ONE, "\"outputs\":[]")},
    {VALUES, MORE(ONE, "\"outputs\":{}")},
    {VALUES, MORE(ONE, "\"outputs\":[{\"name\":\"y\"}]")},
    {VALUES, MORE(ONE, "\"outputs\":[{\"name\":\"label\"}]")},
    {VALUES, MORE(ONE, "\"outputs\":[{}]")},
    {VALUES, MORE(ONE, "\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":true}}]")},
    {VALUES, MORE(ONE, "\"parameters\":{\"binary_data_output\":true}")},
    {VALUES, MORE(X("FP32", "[0,2]", "[]"), "\"parameters\":{\"binary_data_output\":true}")},
    {TEXTS, MORE(TEXT("[0]", "[]"), "\"parameters\":{\"binary_data_output\":true},\"outputs\":[{\"name\":\"label\"}]")},
    {VALUES, MORE(ONE, "\"parameters\":{\"binary_data_output\":true},\"outputs\":[{\"name\":\"y\",\"parameters\":"
                       "{\"binary_data\":false}}]")},
    {TEXTS, MORE(TEXT("[2]", "[\"a b\",\"c\"]"), "\"outputs\":[{\"name\":\"label\"}]")},
    {TEXTS, MORE(TEXT("[2]", "[\"a b\",\"c\"]"), "\"outputs\":[{\"name\":\"y\"}]")},
    {TEXTS, MORE(TEXT("[2]", "[\"a b\",\"c\"]"), "\"outputs\":[{\"name\":\"z\"}]")},
    {TEXTS, MORE(TEXT("[2]", "[\"a b\",\"c\"]"), "\"parameters\":{\"binary_data_output\":true}")},
    {TEXTS, MORE(TEXT("[2]", "[\"a b\",\"c\"]"),
                 "\"outputs\":[{\"name\":\"label\",\"parameters\":{\"binary_data\":true}},{\"name\":\"y\"}]")},
    {DECODER, MORE(TEXT("[2]", "[\"a\",\"b\"]"), "\"parameters\":{\"binary_data_output\":true}")},
    {DECODER, MORE(TEXT("[2]", "[\"a\",\"b\"]"), "\"outputs\":[{\"name\":\"text\"}]")},
    {DECODER, MORE(TEXT("[2]", "[\"a\",\"b\"]"), "\"outputs\":[{\"name\":\"score\"}]")},
    {DECODER, MORE(TEXT("[2]", "[\"a\",\"b\"]"), "\"outputs\":[{\"name\":\"y\"}]")},
    /* parameters */
    {VALUES, INPUTS(X("FP32", "[1,2]", "[3.4028234663852886e38,-3.4028234663852886e38]"))},
    {VALUES, INPUTS(X("FP32", "[1,2]", "[1,3.4028234663852889e38]"))},
    {VALUES, INPUTS(X("FP32", "[1,2]", "[1,-1e39]"))},
    {VALUES, MORE(ONE, "\"parameters\":[]")},
    {VALUES, MORE(ONE, "\"parameters\":{\"timeout\":1}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"sequence_id\":7,\"sequence_start\":true}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"sequence_id\":\"a\",\"sequence_end\":true}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"sequence_id\":0}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"sequence_id\":\"\"}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"sequence_id\":-1}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"sequence_id\":1.5}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"sequence_start\":true}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"sequence_end\":true}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"sequence_id\":7,\"sequence_end\":1}")},
    {VALUES, MORE(ONE, "\"parameters\":{\"binary_data_output\":1}")},
    {VALUES, MORE(X("FP32", "[0,2]", "[]"), "\"parameters\":{\"sequence_id\":7}")},
    {VALUES, MORE(X("FP32", "[2,2]", "[1,2,3,4]") "," LENGTHS("[2]", "[1,1]"), "\"parameters\":{\"sequence_id\":7}")},
};

static void add_binaries(struct sl_buf *out)
{
    const float floats[] = {1, -2.5f, 0.25f};
    const double doubles[] = {INFINITY, 0.1, 3.4e38, -3.5e38};
    const int32_t small[] = {4, 0}, low[] = {-1, 0}, high[] = {70000, -70000};
    const int64_t large[] = {3, 1};
    const int64_t wide[] = {INT64_C(1) << 32 | 3, 1}, wide_length = INT64_C(1) << 32 | 2;
    const char text[] = "\x03\0\0\0a b\x00\0\0\0";
    add_infer(out, VALUES, INPUTS(BINARY("x", "FP32", "[1,2]", "8")), floats, 8);
    add_infer(out, VALUES, INPUTS(BINARY("x", "FP64", "[1,2]", "16")), doubles, 16);
    add_infer(out, VALUES, INPUTS(BINARY("x", "FP64", "[1,2]", "16")), doubles + 1, 16);
    add_infer(out, VALUES, INPUTS(BINARY("x", "FP64", "[1,2]", "16")), doubles + 2, 16);
    add_infer(out, VALUES, INPUTS(BINARY("x", "INT32", "[1,2]", "8")), low, 8);
    add_infer(out, VALUES, INPUTS(BINARY("x", "FP32", "[1,2]", "4")), floats, 8);
    add_infer(out, VALUES, INPUTS(BINARY("x", "FP32", "[1,2]", "-8")), floats, 8);
    add_infer(out, VALUES, INPUTS(BINARY("x", "FP32", "[1,2]", "8")), floats, 7);
    add_infer(out, VALUES, INPUTS(BINARY("x", "FP32", "[1,1]", "4")), floats, 8);
    add_infer(out, VALUES, INPUTS(ONE), floats, 4);
    add_infer(out, ROWS, INPUTS(BINARY("x", "FP32", "[1]", "4")), floats, 8);
    add_infer(out, IDS, INPUTS(BINARY("x", "INT32", "[2]", "8")), small, 8);
    add_infer(out, IDS, INPUTS(BINARY("x", "INT64", "[2]", "16")), large, 16);
    add_infer(out, IDS, INPUTS(BINARY("x", "INT32", "[2]", "8")), low, 8);
    add_infer(out, IDS, INPUTS(BINARY("x", "INT32", "[2]", "8") "," BINARY("lengths", "INT64", "[2]", "16")),
              "\4\0\0\0\0\0\0\0"
              "\2\0\0\0\0\0\0\0"
              "\0\0\0\0\0\0\0\0",
              24);
    add_infer(out, TEXTS, INPUTS(BINARY("text", "BYTES", "[2]", "11")), text, 11);
    add_infer(out, TEXTS, INPUTS(BINARY("text", "BYTES", "[3]", "11")), text, 11);
    add_infer(out, TEXTS, INPUTS(BINARY("text", "BYTES", "[1]", "6")), text, 6);
    add_infer(out, DECODER, INPUTS(BINARY("text", "BYTES", "[2]", "11")), text, 11);
    add_infer(out, TEXTS, INPUTS(BINARY("text", "BYTES", "[1]", "11")), text, 11);
    add_infer(out, DECODER, INPUTS(BINARY("text", "BYTES", "[1]", "11")), text, 11);
    add_infer(out, VALUES, INPUTS(BINARY("x", "FP32", "[1,2]", "12")), floats, 12);
    add_infer(out, VALUES, INPUTS(BINARY("x", "INT32", "[1,2]", "8")), high, 8);
    add_infer(out, TEXTS, INPUTS(BINARY("text", "BYTES", "[2]", "10")), "\1\0\0\0a\1\0\0\0\xff", 10);
    add_infer(out, IDS, INPUTS(BINARY("x", "INT64", "[2]", "16")), wide, 16); /* more than 32 bits */
    add_infer(out, VALUES, INPUTS(BINARY("x", "INT64", "[1,2]", "16")), wide, 16);
    add_infer(out, IDS, INPUTS(X("INT32", "[2]", "[1,2]") "," BINARY("lengths", "INT64", "[1]", "8")), &wide_length, 8);
    add_infer(out, IDS, INPUTS(X("INT64", "[2]", "[4294967297,2]")), "", 0);
}

static void test_infer(void **state)
{
    struct sl_buf out = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++)
        add_infer(&out, bodies[k].kind, bodies[k].body, NULL, 0);
    add_binaries(&out);
    golden_expect("reports/infer.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
    struct sl_job *job = sl_job_create(&models[VALUES], NULL);
    assert_int_equal(sl_infer_read(job, "{}", 2, 3, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "Inference-Header-Content-Length is larger than the body");
    assert_int_equal(sl_infer_read(job, NULL, 0, -1, &err), SEQLSTM_INVALID_ARGUMENT);
    sl_job_destroy(job);
}

/* Of equal probabilities the first one counts; each row has its own. */
static void test_the_likeliest_class_is_the_label(void **state)
{
    static const float rows[] = {0.5f, 0.5f, 0.1f, 0.9f, 0.9f, 0.1f, 0, 0};
    static const int32_t labels[] = {0, 1, 0, 0};
    struct sl_buf out = {0}, expected = {0};
    int64_t json_bytes = 0;
    (void)state;
    struct sl_job *job = sl_job_create(&models[TEXTS], NULL);
    assert_non_null(job);
    job->y = malloc(sizeof rows);
    assert_non_null(job->y);
    memcpy(job->y, rows, sizeof rows);
    job->out_rows = 4;
    job->wants_labels = true;
    sl_infer_write(job, &out, &json_bytes);
    for (int k = 0; k < 4; k++)
        sl_buf_printf(&expected, "%s\"%s\"", k ? "," : "\"data\":[",
                      sl_vocabulary_get_text(models[TEXTS].classes, labels[k], NULL));
    assert_non_null(strstr(sl_buf_text(&out), sl_buf_text(&expected)));
    sl_buf_deinit(&expected);
    sl_buf_deinit(&out);
    sl_job_destroy(job);
}

/* A name of a stream has at most 256 bytes. */
static void test_long_names(void **state)
{
    (void)state;
    for (size_t bytes = 255; bytes <= 257; bytes++) {
        char name[300], body[600];
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_job *job = sl_job_create(&models[VALUES], NULL);
        memset(name, 'n', sizeof name);
        name[bytes] = '\0';
        snprintf(body, sizeof body, "{\"inputs\":[%s],\"parameters\":{\"sequence_id\":\"%s\"}}", ONE, name);
        const seqlstm_status status = sl_infer_read(job, body, strlen(body), -1, &err);
        assert_int_equal(status, bytes <= 256 ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
        if (status == SEQLSTM_OK)
            assert_string_equal(job->stream_id, name);
        sl_job_destroy(job);
    }
}

/* ---- completions -------------------------------------------------------------------------------------------- */

static const char *const continued[] = {
    "[]",
    "{}",
    "{\"model\":7}",
    "{\"model\":\"none\"}",
    "{\"model\":\"values\"}",
    "{\"model\":\"letters\"}",
#define ASK(more) "{\"model\":\"letters\"," more "}"
    ASK("\"prompt\":7"),
    ASK("\"prompt\":\"\""),
    ASK("\"prompt\":\"ab\""),
    ASK("\"prompt\":\"x\""),
    ASK("\"prompt\":[]"),
    ASK("\"prompt\":[0,1]"),
    ASK("\"prompt\":[4]"),
    ASK("\"prompt\":[-1]"),
    ASK("\"prompt\":[1.5]"),
    ASK("\"prompt\":[[0],[1,2]]"),
    ASK("\"prompt\":[\"a\",\"bc\"]"),
    ASK("\"prompt\":[\"a\",[1]]"),
    ASK("\"prompt\":[[]]"),
#define AB(more) ASK("\"prompt\":\"ab\"," more)
    AB("\"max_tokens\":18"),
    AB("\"max_tokens\":19"),
    AB("\"max_tokens\":18,\"echo\":true"),
    AB("\"max_tokens\":19,\"echo\":true"),
    AB("\"max_tokens\":1"),
    AB("\"max_tokens\":0"),
    AB("\"max_tokens\":1.5"),
    AB("\"max_tokens\":null"),
    AB("\"temperature\":0"),
    AB("\"temperature\":100"),
    AB("\"temperature\":100.5"),
    AB("\"temperature\":-0.1"),
    AB("\"temperature\":\"1\""),
    AB("\"top_p\":1"),
    AB("\"top_p\":1.01"),
    AB("\"top_p\":0"),
    AB("\"top_k\":0"),
    AB("\"top_k\":3"),
    AB("\"top_k\":-1"),
    AB("\"n\":2"),
    AB("\"n\":128"),
    AB("\"n\":129"),
    AB("\"n\":0"),
    ASK("\"prompt\":[\"a\",\"b\"],\"n\":64"),
    ASK("\"prompt\":[\"a\",\"b\"],\"n\":65"),
    AB("\"seed\":-5"),
    AB("\"seed\":0.5"),
    AB("\"stop\":\"c\""),
    AB("\"stop\":[\"a\",\"b\",\"c\",\"d\"]"),
    AB("\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]"),
    AB("\"stop\":[]"),
    AB("\"stop\":\"\""),
    AB("\"stop\":[7]"),
    AB("\"stop\":7"),
    AB("\"stream\":true"),
    AB("\"stream\":1"),
    AB("\"stream\":true,\"stream_options\":{\"include_usage\":true}"),
    AB("\"stream\":true,\"stream_options\":{\"include_usage\":1}"),
    AB("\"stream\":true,\"stream_options\":{\"other\":true}"),
    AB("\"stream\":true,\"stream_options\":7"),
    AB("\"stream_options\":{\"include_usage\":true}"),
    AB("\"echo\":true"),
    AB("\"echo\":\"yes\""),
    AB("\"ignore_eos\":true"),
    AB("\"ignore_eos\":0"),
    AB("\"presence_penalty\":0,\"frequency_penalty\":0.0,\"best_of\":1,\"logit_bias\":{}"),
    AB("\"presence_penalty\":0.5"),
    AB("\"frequency_penalty\":-1"),
    AB("\"best_of\":2"),
    AB("\"logit_bias\":{\"1\":2}"),
    AB("\"logprobs\":1"),
    AB("\"suffix\":null"),
};

static void add_completion(struct sl_buf *out, const struct sl_completion *c)
{
    sl_buf_printf(out, "%lld prompts of %lld, most %lld, temperature %g, top_p %g, top_k %lld%s%s%s%s\n",
                  (long long)c->prompt_count, (long long)c->each, (long long)c->most, c->rule.temperature,
                  c->rule.top_p, (long long)c->rule.top_k, c->echo ? ", echo" : "",
                  c->ignores_end ? ", ignores the end" : "", c->in_parts ? ", in parts" : "",
                  c->adds_usage ? ", with usage" : "");
    for (int s = 0; s < c->stop_count; s++)
        sl_buf_printf(out, "stop '%s'\n", c->stops[s]);
    for (int64_t k = 0; k < c->prompt_count * c->each && k < 4; k++) {
        const struct sl_choice *choice = &c->choices[k];
        sl_buf_printf(out, "choice %lld: '%s', fixed %zu, ids", (long long)k, sl_buf_text(&choice->text),
                      choice->fixed);
        for (int64_t i = 0; i < choice->prompt->count; i++)
            sl_buf_printf(out, " %d", choice->prompt->ids[i]);
        sl_buf_append_char(out, '\n');
    }
}

/* Choice k has drawn k + 1 tokens; the first half of each text is told before the rest. */
static void add_answers(struct sl_buf *out, struct sl_job *job)
{
    struct sl_completion *c = job->completion;
    c->created_s = 1700000000;
    for (int64_t k = 0; k < job->count; k++) {
        struct sl_choice *choice = &c->choices[k];
        choice->key = (uint64_t)k + 0xabcdef;
        choice->drawn = k + 1;
        sl_buf_printf(&choice->text, "\"%lld\"\n", (long long)k);
        choice->fixed = choice->text.length_bytes / 2;
        sl_completion_write_event(job, k, out);
        sl_completion_write_event(job, k, out); /* nothing new */
        choice->fixed = choice->text.length_bytes;
        if (k % 2) /* all is told before the reason is known */
            sl_completion_write_event(job, k, out);
        choice->finish = k % 2 ? "stop" : "length";
        sl_completion_write_event(job, k, out);
    }
    sl_completion_write_end(job, out);
    sl_completion_write(job, out);
}

static void test_completions(void **state)
{
    struct sl_buf out = {0};
    (void)state;
    for (size_t k = 0; k < sizeof continued / sizeof *continued; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_job *job = sl_job_create(NULL, NULL);
        assert_non_null(job);
        sl_buf_printf(&out, "== %s\n", continued[k]);
        const seqlstm_status status =
            sl_completion_read(job, continued[k], strlen(continued[k]), find_model, NULL, &err);
        if (status != SEQLSTM_OK) {
            sl_buf_printf(&out, "refused (%s): %s\n", status == SEQLSTM_NOT_FOUND ? "not found" : "wrong", err.message);
            assert_true(status == SEQLSTM_NOT_FOUND || status == SEQLSTM_INVALID_ARGUMENT);
        } else {
            sl_buf_printf(&out, "%lld choices, %lld rows; ", (long long)job->count, (long long)job->rows);
            add_completion(&out, job->completion);
            if (job->count <= 2)
                add_answers(&out, job);
        }
        sl_job_destroy(job);
    }
    golden_expect("reports/completions.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* The same seed gives the same keys, each choice one of its own, and another seed others; without one they differ. */
static void test_seeds(void **state)
{
    static const char *const asked[] = {AB("\"n\":3,\"seed\":7"),
                                        AB("\"n\":3,\"seed\":7"),
                                        AB("\"n\":3,\"seed\":8"),
                                        AB("\"n\":3"),
                                        AB("\"n\":3"),
                                        ASK("\"prompt\":[\"a\",\"b\",\"c\"],\"seed\":9")};
    uint64_t keys[6][3];
    (void)state;
    for (int k = 0; k < 6; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_job *job = sl_job_create(NULL, NULL);
        assert_int_equal(sl_completion_read(job, asked[k], strlen(asked[k]), find_model, NULL, &err), SEQLSTM_OK);
        for (int c = 0; c < 3; c++)
            keys[k][c] = job->completion->choices[c].key;
        sl_job_destroy(job);
    }
    assert_memory_equal(keys[0], keys[1], sizeof keys[0]);
    for (int a = 0; a < 18; a++)
        for (int b = 0; b < a; b++)
            if (a / 3 != 1 || b / 3 != 0)
                assert_true(keys[a / 3][a % 3] != keys[b / 3][b % 3]);
}

/* Where many wait, a worker may begin with a part of those that it ends with their prompts. */
static void test_texts_of_several_tokens_go_on(void **state)
{
    static const char *const asked[] = {AB("\"max_tokens\":1"), AB("\"max_tokens\":2"), AB("\"seed\":1")};
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_job *job = sl_job_create(NULL, NULL);
        assert_int_equal(sl_completion_read(job, asked[k], strlen(asked[k]), find_model, NULL, &err), SEQLSTM_OK);
        assert_int_equal(job->goes_on, k > 0);
        sl_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_of_several_tokens_go_on),
        cmocka_unit_test(test_infer),
        cmocka_unit_test(test_the_likeliest_class_is_the_label),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_completions),
        cmocka_unit_test(test_seeds),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
