/* SPDX-License-Identifier: Apache-2.0 */
/* See lines.h. */
#include "session/predict/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/value/buf.h"
#include "base/value/text.h"
#include "predict/batches.h"
#include "predict/stream.h"
#include "session/evaluate/clipping.h"
#include "session/predict/predictor.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"

enum { LINE_MOST = 1 << 20, STEPS = 1024 };

/* Lines of a descriptor, each as soon as it is there. */
struct reader {
    const struct sl_session *session;
    const char *name;
    int descriptor;
    struct sl_buf buf;
    size_t begin; /* of the next line in buf */
    int64_t line; /* number of the present one, from 1 */
    bool ended;
};

struct lines {
    struct reader reader;
    struct sl_context *context;
    struct sl_stream *stream;
    const struct sl_predictor *predictor;
    sl_prediction_fn *write;
    void *write_context;
    float *x, *y;
    int64_t *columns; /* [inputs] the field of the line that holds an input */
    int64_t fields;   /* of a line; without a line of names the inputs and no other */
    int64_t steps;    /* most tokens of a text */
    int64_t written;
};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static seqlstm_status read_more(struct reader *r, struct seqlstm_error *err)
{
    char part[4096];
    const ssize_t got = read(r->descriptor, part, sizeof part);
    if (sl_interrupt_get_stop(r->session->options.interrupt))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "stopped");
    if (got < 0 && errno != EINTR)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "%s: %s", r->name, strerror(errno));
    r->ended = got == 0;
    if (got > 0)
        sl_buf_append(&r->buf, part, (size_t)got);
    if (r->buf.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a line of %s", r->name);
    return SEQLSTM_OK;
}

/* The next line without its end, valid until the next call; *out_text NULL: there is none. */
static seqlstm_status next_line(struct reader *r, const char **out_text, size_t *out_bytes, struct seqlstm_error *err)
{
    for (;;) {
        const size_t left = r->buf.length_bytes - r->begin;
        const char *text = left ? r->buf.data + r->begin : "";
        const char *end = left ? memchr(text, '\n', left) : NULL;
        const size_t bytes = end ? (size_t)(end - text) : left;
        *out_text = NULL;
        if (bytes > LINE_MOST)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the line is longer than %d bytes", r->name,
                         (long long)r->line + 1, LINE_MOST);
        if (end || (r->ended && left > 0)) {
            r->begin += bytes + (end != NULL);
            r->line++;
            *out_bytes = bytes > 0 && text[bytes - 1] == '\r' ? bytes - 1 : bytes;
            *out_text = text;
            return SEQLSTM_OK;
        }
        if (r->ended)
            return SEQLSTM_OK;
        if (r->begin > 0) { /* the rest of the buffer moves to its front */
            memmove(r->buf.data, r->buf.data + r->begin, left);
            sl_buf_truncate(&r->buf, left);
            r->begin = 0;
        }
        SEQLSTM_TRY(read_more(r, err));
    }
}

/* ---- texts ------------------------------------------------------------------------------------------------------ */

static seqlstm_status write_text(void *context, const struct sl_prediction *prediction, struct seqlstm_error *err)
{
    struct lines *lines = context;
    struct sl_prediction numbered = *prediction;
    numbered.record = lines->written++;
    return lines->write(lines->write_context, &numbered, err);
}

/* Of CoNLL a text has a token in each line; here blanks separate them. Changes the buffer of the reader. */
static size_t split_tokens(const struct lines *lines, const char *text, size_t bytes)
{
    char *to = (char *)(uintptr_t)text;
    size_t kept = 0;
    if (lines->reader.session->model->data.splits[SL_SPLIT_TRAIN].type != SL_SOURCE_CONLL)
        return bytes;
    for (size_t k = 0; k < bytes; k++)
        if (text[k] != ' ')
            to[kept++] = text[k];
        else if (kept > 0 && to[kept - 1] != '\n')
            to[kept++] = '\n';
    return kept > 0 && to[kept - 1] == '\n' ? kept - 1 : kept;
}

static seqlstm_status predict_text(struct lines *lines, const char *text, size_t bytes, struct seqlstm_error *err)
{
    bytes = split_tokens(lines, text, bytes);
    const seqlstm_status status = sl_context_predict_texts(lines->context, &text, &bytes, 1, write_text, lines, err);
    if (status == SEQLSTM_INVALID_ARGUMENT)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the line is blank, or has more than %lld tokens",
                     lines->reader.name, (long long)lines->reader.line, (long long)lines->steps);
    return status;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* Field `f` of the line; false: there is none. */
static bool find_field(const char *text, size_t bytes, char delimiter, int64_t f, const char **out, size_t *out_bytes)
{
    const char *end = text + bytes;
    for (int64_t at = 0;; at++) {
        const char *stop = memchr(text, delimiter, (size_t)(end - text));
        *out = text;
        *out_bytes = (size_t)((stop ? stop : end) - text);
        if (at == f)
            return true;
        if (stop == NULL)
            return false;
        text = stop + 1;
    }
}

static char get_delimiter(const struct lines *lines)
{
    const struct sl_source *source = &lines->reader.session->model->data.splits[SL_SPLIT_TRAIN];
    return source->type == SL_SOURCE_TSV ? '\t' : ',';
}

static int64_t count_fields(const char *text, size_t bytes, char delimiter)
{
    int64_t count = 1;
    for (size_t k = 0; k < bytes; k++)
        count += text[k] == delimiter;
    return count;
}

/* Is it a line of names? Then finds where each input stands. */
static seqlstm_status read_names(struct lines *lines, const char *text, size_t bytes, bool *out_names,
                                 struct seqlstm_error *err)
{
    const struct sl_string_list inputs = sl_data_state_get_input_names(lines->reader.session->state);
    const char delimiter = get_delimiter(lines), *field;
    size_t field_bytes;
    double value;
    find_field(text, bytes, delimiter, 0, &field, &field_bytes);
    *out_names = inputs.count > 0 && !sl_text_parse_float64(field, field_bytes, &value);
    lines->fields = *out_names ? count_fields(text, bytes, delimiter)
                               : sl_data_state_get_facts(lines->reader.session->state)->input.features;
    for (size_t i = 0; *out_names && i < inputs.count; i++) {
        int64_t f = 0;
        while (find_field(text, bytes, delimiter, f, &field, &field_bytes) &&
               !(field_bytes == strlen(inputs.items[i]) && memcmp(field, inputs.items[i], field_bytes) == 0))
            f++;
        if (f == lines->fields)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the line is no row of numbers, and names no input `%s`",
                         lines->reader.name, (long long)lines->reader.line, inputs.items[i]);
        lines->columns[i] = f;
    }
    return SEQLSTM_OK;
}

static seqlstm_status read_row(struct lines *lines, const char *text, size_t bytes, struct seqlstm_error *err)
{
    const int64_t inputs = sl_data_state_get_facts(lines->reader.session->state)->input.features;
    const char delimiter = get_delimiter(lines), *field;
    const int64_t fields = count_fields(text, bytes, delimiter);
    size_t field_bytes;
    if (fields != lines->fields)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the line has %lld field%s, expected %lld%s",
                     lines->reader.name, (long long)lines->reader.line, (long long)fields, fields == 1 ? "" : "s",
                     (long long)lines->fields,
                     fields > inputs && lines->fields == inputs ? "; use a first line that names them" : "");
    for (int64_t i = 0; i < inputs; i++) {
        double value = 0;
        find_field(text, bytes, delimiter, lines->columns[i], &field, &field_bytes);
        if (!sl_text_parse_float64(field, field_bytes, &value))
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: field %lld, \"%.*s\", is no number", lines->reader.name,
                         (long long)lines->reader.line, (long long)lines->columns[i] + 1,
                         (int)(field_bytes > 40 ? 40 : field_bytes), field);
        lines->x[i] = (float)value;
    }
    return SEQLSTM_OK;
}

static seqlstm_status predict_step(struct lines *lines, const char *text, size_t bytes, struct seqlstm_error *err)
{
    static const bool none[1] = {false};
    bool names = false;
    if (bytes == 0) {
        sl_stream_reset(lines->stream);
        return SEQLSTM_OK;
    }
    if (lines->fields == 0)
        SEQLSTM_TRY(read_names(lines, text, bytes, &names, err));
    if (names)
        return SEQLSTM_OK;
    SEQLSTM_TRY(read_row(lines, text, bytes, err));
    SEQLSTM_TRY(sl_stream_step(lines->context, lines->stream, lines->x, 1, lines->y, err));
    const struct sl_prediction prediction = {.record = lines->written++,
                                             .input = text,
                                             .input_bytes = bytes,
                                             .rows = 1,
                                             .features = sl_predictor_get_features(lines->predictor),
                                             .values = lines->y,
                                             .none = none,
                                             .classes = sl_predictor_gives_values(lines->predictor)
                                                            ? NULL
                                                            : sl_data_state_find_classes(lines->reader.session->state)};
    return lines->write(lines->write_context, &prediction, err);
}

/* ---- all lines -------------------------------------------------------------------------------------------------- */

static seqlstm_status open_stream(struct lines *lines, struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = sl_data_state_get_facts(lines->reader.session->state);
    SEQLSTM_TRY(sl_stream_open(lines->predictor, &lines->stream, err));
    if (facts->input.kind != SL_FIELD_VALUES)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the model reads one stream of tokens; use `seqlstm generate`");
    lines->x = calloc((size_t)facts->input.features + 1, sizeof *lines->x);
    lines->y = calloc((size_t)sl_predictor_get_features(lines->predictor) + 1, sizeof *lines->y);
    lines->columns = calloc((size_t)facts->input.features + 1, sizeof *lines->columns);
    if (lines->x == NULL || lines->y == NULL || lines->columns == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a row");
    for (int64_t i = 0; i < facts->input.features; i++)
        lines->columns[i] = i;
    return SEQLSTM_OK;
}

static seqlstm_status run(struct lines *lines, struct seqlstm_error *err)
{
    const bool texts = sl_predictor_reads_texts(lines->predictor);
    const char *text;
    size_t bytes;
    if (!texts)
        SEQLSTM_TRY(open_stream(lines, err));
    for (;;) {
        SEQLSTM_TRY(next_line(&lines->reader, &text, &bytes, err));
        if (text == NULL)
            return SEQLSTM_OK;
        SEQLSTM_TRY(texts ? predict_text(lines, text, bytes, err) : predict_step(lines, text, bytes, err));
    }
}

/* Values that layers in int8 clip are counted, as predict does. */
static seqlstm_status watch(struct lines *lines, struct sl_clipping *clipping, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_clipping_init(clipping, sl_session_find_quantization(lines->reader.session), err));
    for (int use = 0; use < SL_USE_COUNT; use++) {
        struct sl_exec *exec;
        if (sl_predictor_find_graph(lines->predictor, (enum sl_predictor_use)use) == NULL)
            continue;
        SEQLSTM_TRY(sl_context_provide_exec(lines->context, (enum sl_predictor_use)use, &exec, err));
        sl_clipping_watch(clipping, exec);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_session_predict_lines(struct sl_session *session, const char *path, sl_prediction_fn *write,
                                        void *context, struct seqlstm_error *err)
{
    const int64_t longest = sl_session_get_longest(session);
    const struct sl_predictor_limits limits = {.sequences = 1, .steps = longest > STEPS ? longest : STEPS};
    const bool standard = strcmp(path, "-") == 0;
    struct sl_predictor *predictor = NULL;
    struct sl_clipping clipping = {0};
    struct lines lines = {.reader = {.session = session, .name = standard ? "standard input" : path, .descriptor = -1},
                          .write = write,
                          .write_context = context,
                          .steps = limits.steps};
    SEQLSTM_TRY(sl_session_open_predictor(session, &limits, &predictor, err));
    lines.predictor = predictor;
    seqlstm_status status = sl_context_open(predictor, &lines.context, err);
    if (status == SEQLSTM_OK)
        status = watch(&lines, &clipping, err);
    lines.reader.descriptor = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (status == SEQLSTM_OK && lines.reader.descriptor < 0)
        status = seqlstm_error_set(err, errno == ENOENT ? SEQLSTM_NOT_FOUND : SEQLSTM_IO, __FILE__, __LINE__, "%s: %s",
                                   path, strerror(errno));
    if (status == SEQLSTM_OK)
        status = run(&lines, err);
    if (!standard && lines.reader.descriptor >= 0)
        close(lines.reader.descriptor);
    sl_clipping_warn(&clipping, session);
    sl_clipping_deinit(&clipping);
    sl_buf_deinit(&lines.reader.buf);
    free(lines.x);
    free(lines.y);
    free(lines.columns);
    sl_stream_close(lines.stream);
    sl_context_close(lines.context);
    sl_predictor_destroy(predictor);
    return status;
}
