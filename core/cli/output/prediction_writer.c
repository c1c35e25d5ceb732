/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions and embeddings on stdout. */
#include "cli/output/prediction_writer.h"

#include <math.h>
#include <string.h>

#include "base/value/json_write.h"
#include "base/value/printable.h"
#include "base/value/text.h"
#include "cli/output/fields.h"
#include "interop/npy_write.h"

/* The most likely class of one row; -1: the row holds no numbers, since nothing could be predicted. */
static int64_t find_best(const float *row, int64_t features)
{
    int64_t best = 0;
    for (int64_t c = 1; c < features; c++)
        if (row[c] > row[best])
            best = c;
    return isnan(row[best]) ? -1 : best;
}

static void write_tokens(struct sl_buf *buf, const char *key, const char *const *tokens, int64_t count)
{
    sl_buf_printf(buf, "\"%s\": [", key);
    for (int64_t k = 0; k < count; k++) {
        sl_buf_append_text(buf, k ? ", " : "");
        sl_json_append_string(buf, tokens[k]);
    }
    sl_buf_append_char(buf, ']');
}

/* , "attention": {"source": […], "target": […], "layers": [{"name": "attention_1", "weights": [[…], …]}]} */
static void write_attention(struct sl_buf *buf, const struct sl_prediction_attention *a)
{
    const float *weight = a->weights;
    sl_buf_append_text(buf, ", \"attention\": {");
    write_tokens(buf, "source", a->source, a->source_count);
    sl_buf_append_text(buf, ", ");
    write_tokens(buf, "target", a->target, a->target_count);
    sl_buf_append_text(buf, ", \"layers\": [");
    for (int32_t k = 0; k < a->layer_count; k++) {
        sl_buf_append_text(buf, k ? ", {\"name\": " : "{\"name\": ");
        sl_json_append_string(buf, a->layers[k]);
        sl_buf_append_text(buf, ", \"weights\": [");
        for (int64_t t = 0; t < a->target_count; t++) {
            sl_buf_append_text(buf, t ? ", [" : "[");
            for (int64_t s = 0; s < a->source_count; s++) {
                sl_buf_append_text(buf, s ? ", " : "");
                cli_write_json_number(buf, *weight++);
            }
            sl_buf_append_char(buf, ']');
        }
        sl_buf_append_text(buf, "]}");
    }
    sl_buf_append_text(buf, "]}");
}

/* {"record": 3, "text": "…", "score": -0.2}; with more than one: "texts": [{"text": …, "score": …}, …] */
static void write_texts_jsonl(struct cli_prediction_writer *w, const struct sl_prediction *p)
{
    struct sl_buf *buf = &w->buf;
    bool several = p->text_count != 1;
    sl_buf_append_text(buf, several ? ", \"texts\": [" : ", ");
    for (int32_t k = 0; k < p->text_count; k++) {
        sl_buf_append_text(buf, !several ? "" : k ? ", {" : "{");
        sl_buf_append_text(buf, "\"text\": ");
        sl_json_append_text(buf, p->texts[k].text, p->texts[k].bytes);
        sl_buf_append_text(buf, ", \"score\": ");
        cli_write_json_number(buf, (float)p->texts[k].score);
        if (p->texts[k].attention.layer_count > 0)
            write_attention(buf, &p->texts[k].attention);
        sl_buf_append_text(buf, several ? "}" : "");
    }
    sl_buf_append_text(buf, several ? "]}\n" : "}\n");
}

static void write_jsonl(struct cli_prediction_writer *w, const struct sl_prediction *p)
{
    struct sl_buf *buf = &w->buf;
    sl_buf_printf(buf, "{\"record\": %lld", (long long)p->record);
    if (w->with_input && p->input) {
        sl_buf_append_text(buf, ", \"input\": ");
        sl_json_append_text(buf, p->input, p->input_bytes);
    }
    if (p->texts) {
        write_texts_jsonl(w, p);
        return;
    }
    sl_buf_append_text(buf, p->classes ? ", \"predictions\": [" : ", \"values\": [");
    for (int64_t r = 0; r < p->rows; r++) {
        const float *row = p->values + r * p->features;
        sl_buf_append_text(buf, r ? ", " : "");
        if (p->classes) {
            int64_t best = find_best(row, p->features);
            size_t bytes = 0;
            const char *name = best < 0 ? NULL : sl_vocabulary_get_text(p->classes, (int32_t)best, &bytes);
            sl_buf_append_text(buf, "{\"class\": ");
            if (name)
                sl_json_append_text(buf, name, bytes);
            else
                sl_buf_append_text(buf, "null");
            sl_buf_append_text(buf, ", \"probability\": ");
            cli_write_json_number(buf, best < 0 ? NAN : row[best]);
            cli_extras_write_json_probabilities(&w->extras, p, row, buf);
            sl_buf_append_char(buf, '}');
            continue;
        }
        sl_buf_append_char(buf, '[');
        for (int64_t f = 0; f < p->features; f++) {
            sl_buf_append_text(buf, f ? ", " : "");
            cli_write_json_number(buf, row[f]);
        }
        sl_buf_append_char(buf, ']');
    }
    sl_buf_append_char(buf, ']');
    cli_extras_write_json_columns(&w->extras, p, buf);
    sl_buf_append_text(buf, "}\n");
}

/* A text between tabs: what would end the field or the line is an escape. */
static void append_field(struct sl_buf *buf, const char *text, size_t bytes)
{
    sl_printable_append(buf, text, bytes, "");
}

/* text: one line per text, with record and score if a record has several. csv: record, rank, score, text. */
static void write_texts(struct cli_prediction_writer *w, const struct sl_prediction *p)
{
    struct sl_buf *buf = &w->buf;
    bool csv = w->format == CLI_PREDICTION_CSV;
    for (int32_t k = 0; k < p->text_count; k++) {
        const struct sl_prediction_text *t = &p->texts[k];
        if (csv)
            sl_buf_printf(buf, "%lld,%d,", (long long)p->record, k + 1);
        else if (p->text_count > 1)
            sl_buf_printf(buf, "%lld\t", (long long)p->record);
        if (csv || p->text_count > 1) {
            cli_write_number(buf, (float)t->score);
            sl_buf_append_char(buf, csv ? ',' : '\t');
        }
        if (csv)
            cli_write_csv_text(buf, t->text, t->bytes);
        else
            append_field(buf, t->text, t->bytes);
        if (w->with_input && p->input) {
            sl_buf_append_char(buf, csv ? ',' : '\t');
            if (csv)
                cli_write_csv_text(buf, p->input, p->input_bytes);
            else
                append_field(buf, p->input, p->input_bytes);
        }
        sl_buf_append_char(buf, '\n');
    }
}

/* text: one line per record. csv: one line per row, record number first. */
static void write_plain(struct cli_prediction_writer *w, const struct sl_prediction *p)
{
    struct sl_buf *buf = &w->buf;
    bool csv = w->format == CLI_PREDICTION_CSV;
    for (int64_t r = 0; r < p->rows; r++) {
        const float *row = p->values + r * p->features;
        if (csv)
            sl_buf_printf(buf, "%lld,", (long long)p->record);
        else if (r)
            sl_buf_append_char(buf, ' ');
        if (p->classes) {
            int64_t best = find_best(row, p->features);
            size_t bytes = 0;
            const char *name = best < 0 ? "" : sl_vocabulary_get_text(p->classes, (int32_t)best, &bytes);
            if (csv)
                cli_write_csv_text(buf, name, bytes);
            else
                append_field(buf, name, bytes);
            if (csv || p->rows == 1) {
                sl_buf_append_text(buf, csv ? "," : "\t");
                cli_write_number(buf, best < 0 ? NAN : row[best]);
            }
        } else {
            for (int64_t f = 0; f < p->features; f++) {
                sl_buf_append_text(buf, f ? (csv ? "," : "\t") : "");
                cli_write_number(buf, row[f]);
            }
        }
        if (csv) {
            cli_extras_write_csv(&w->extras, p, r, buf);
            if (w->with_input && p->input) {
                sl_buf_append_char(buf, ',');
                cli_write_csv_text(buf, p->input, p->input_bytes);
            }
            sl_buf_append_char(buf, '\n');
        }
    }
    if (csv)
        return;
    if (w->with_input && p->input) {
        sl_buf_append_char(buf, '\t');
        append_field(buf, p->input, p->input_bytes);
    }
    sl_buf_append_char(buf, '\n');
}

/* npy holds all outputs, including the probabilities of all classes. All records need the same number of rows. */
static seqlstm_status collect(struct cli_prediction_writer *w, const struct sl_prediction *p, struct seqlstm_error *err)
{
    if (w->records == 0) {
        w->rows = p->rows;
        w->features = p->features;
    }
    if (p->rows != w->rows)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "record %lld has %lld steps, but the first has %lld: npy needs equal lengths; use --format jsonl",
                     (long long)p->record, (long long)p->rows, (long long)w->rows);
    sl_buf_append(&w->buf, p->values, (size_t)(p->rows * p->features) * sizeof(float));
    w->records++;
    if (w->buf.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %lld predictions", (long long)w->records);
    return SEQLSTM_OK;
}

/* The shape is [N, features], or [N, T, features] if records have several rows. */
static seqlstm_status write_npy(struct cli_prediction_writer *w, struct seqlstm_error *err)
{
    int64_t shape[3] = {w->records, w->rows, w->features};
    if (w->rows <= 1)
        shape[1] = w->features;
    struct sl_buf header = {0};
    sl_npy_append_header(&header, w->rows <= 1 ? 2 : 3, shape);
    seqlstm_status status = header.failed ? SEQLSTM_NO_MEMORY : cli_put(header.data, header.length_bytes, false, err);
    sl_buf_deinit(&header);
    if (status == SEQLSTM_NO_MEMORY)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the header");
    SEQLSTM_TRY(status);
    return cli_put(sl_buf_text(&w->buf), w->buf.length_bytes, false, err);
}

static void write_values_header(struct cli_prediction_writer *w, int64_t features)
{
    sl_buf_append_text(&w->buf, "record");
    for (int64_t f = 0; f < features; f++)
        sl_buf_printf(&w->buf, ",value_%lld", (long long)f + 1);
    sl_buf_append_text(&w->buf, w->with_input ? ",input\n" : "\n");
}

/* Texts come from probabilities that the decoder has checked. A row without a prediction is no fault of the model. */
static bool is_sound(const struct sl_prediction *p)
{
    for (int64_t i = 0; p->texts == NULL && i < p->rows * p->features; i++)
        if (!isfinite(p->values[i]) && !(p->none && p->none[i / p->features]))
            return false;
    return true;
}

/* Once: nothing is written for an input that cannot be read. */
static seqlstm_status write_header(struct cli_prediction_writer *w, struct seqlstm_error *err)
{
    if (w->header.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the names of the columns");
    if (w->header.length_bytes > 0)
        SEQLSTM_TRY(cli_put_text(sl_buf_text(&w->header), w->header.length_bytes, false, err));
    sl_buf_truncate(&w->header, 0);
    return SEQLSTM_OK;
}

seqlstm_status cli_prediction_writer_add(void *context, const struct sl_prediction *prediction,
                                         struct seqlstm_error *err)
{
    struct cli_prediction_writer *w = context;
    w->written++;
    w->unsound += !is_sound(prediction);
    if (w->format == CLI_PREDICTION_NPY && prediction->texts)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "npy cannot hold texts; use --format text, csv or jsonl");
    if (w->format == CLI_PREDICTION_NPY)
        return collect(w, prediction, err);
    sl_buf_truncate(&w->buf, 0);
    SEQLSTM_TRY(write_header(w, err));
    if (w->format == CLI_PREDICTION_CSV && !w->has_begun)
        write_values_header(w, prediction->features);
    w->has_begun = true;
    if (w->format == CLI_PREDICTION_JSONL)
        write_jsonl(w, prediction);
    else if (prediction->texts)
        write_texts(w, prediction);
    else
        write_plain(w, prediction);
    if (w->buf.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a prediction");
    return cli_put_text(sl_buf_text(&w->buf), w->buf.length_bytes, false, err);
}

seqlstm_status cli_prediction_writer_check(const struct cli_prediction_writer *writer,
                                           const struct sl_data_state *state, struct seqlstm_error *err)
{
    if (writer->with_input && state && sl_data_state_get_facts(state)->source.kind == SL_FIELD_NONE &&
        sl_data_state_get_facts(state)->input.kind == SL_FIELD_VALUES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "`--with-input` repeats texts, but this model reads numbers; records are numbered in the order of "
                     "the inputs");
    return cli_extras_check(&writer->extras, state, err);
}

/* A window has each target `horizon` times: load+1, load+2, … */
static void write_target_names(struct sl_buf *buf, struct sl_string_list names, int64_t features)
{
    int64_t columns = (int64_t)names.count;
    for (int64_t f = 0; f < features; f++) {
        sl_buf_append_char(buf, ',');
        if (columns == 0 || features % columns != 0)
            sl_buf_printf(buf, "value_%lld", (long long)f + 1);
        else
            cli_write_csv_text(buf, names.items[f % columns], strlen(names.items[f % columns]));
        if (columns > 0 && features > columns && features % columns == 0)
            sl_buf_printf(buf, "+%lld", (long long)(f / columns) + 1);
    }
}

void cli_prediction_writer_begin(struct cli_prediction_writer *writer, const struct sl_data_state *state)
{
    writer->has_begun = true;
    if (writer->format != CLI_PREDICTION_CSV)
        return;
    const struct sl_data_facts *facts = sl_data_state_get_facts(state);
    struct sl_buf *buf = &writer->header;
    sl_buf_append_text(buf, "record");
    if (facts->source.kind != SL_FIELD_NONE)
        sl_buf_append_text(buf, ",rank,score,text");
    else if (facts->target.kind == SL_FIELD_IDS)
        sl_buf_append_text(buf, ",class,probability");
    else
        write_target_names(buf, sl_data_state_get_target_names(state), facts->target.features);
    cli_extras_write_header(&writer->extras, sl_data_state_find_classes(state), buf);
    sl_buf_append_text(buf, writer->with_input ? ",input\n" : "\n");
}

int cli_prediction_writer_init(struct cli_prediction_writer *writer, struct cli_context *cli,
                               enum cli_prediction_format default_format)
{
    static const char *const names[] = {"text", "csv", "jsonl", "npy"};
    const char *said = cli_get(cli, "format");
    int format = 0;
    while (said && format < 4 && strcmp(said, names[format]))
        format++;
    if (format == 4)
        return cli_usage_error(cli, "`--format %s`: expected text, csv, jsonl or npy", said);
    *writer = (struct cli_prediction_writer){.format = said        ? (enum cli_prediction_format)format
                                                       : cli->json ? CLI_PREDICTION_JSONL
                                                                   : default_format,
                                             .with_input = cli_has(cli, "with-input")};
    int code = cli_extras_init(&writer->extras, cli);
    const bool has_extras = writer->extras.count > 0 || writer->extras.probabilities;
    if (code != CLI_OK)
        return code;
    if (has_extras && !said && !cli->json)
        writer->format = CLI_PREDICTION_CSV;
    if (has_extras &&
        (writer->format == CLI_PREDICTION_TEXT || (writer->extras.count > 0 && writer->format == CLI_PREDICTION_NPY)))
        return cli_usage_error(cli, "`--%s` writes csv or jsonl, not `--format %s`",
                               writer->extras.count > 0 ? "columns" : "probabilities", said);
    if (writer->format == CLI_PREDICTION_NPY && writer->with_input)
        return cli_usage_error(cli, "`--with-input` cannot be combined with `--format npy`");
    return CLI_OK;
}

void cli_prediction_writer_deinit(struct cli_prediction_writer *writer)
{
    sl_buf_deinit(&writer->buf);
    sl_buf_deinit(&writer->header);
    cli_extras_deinit(&writer->extras);
}

seqlstm_status cli_prediction_writer_end(struct cli_prediction_writer *writer, struct seqlstm_error *err)
{
    if (writer->format == CLI_PREDICTION_NPY)
        SEQLSTM_TRY(write_npy(writer, err));
    SEQLSTM_TRY(write_header(writer, err)); /* of an empty input */
    SEQLSTM_TRY(cli_put("", 0, true, err));
    if (writer->unsound > 0)
        SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "the model gives values that are not finite numbers for %lld of %lld inputs",
                     (long long)writer->unsound, (long long)writer->written);
    return SEQLSTM_OK;
}
