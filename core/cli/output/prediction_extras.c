/* SPDX-License-Identifier: Apache-2.0 */
/* See prediction_extras.h. `step` and `token` are no columns of a file: the number of a step in its sequence, from 1,
 * and the token that it reads. */
#include "cli/output/prediction_extras.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/json_write.h"
#include "cli/output/fields.h"
#include "data/dataset/dataset.h"

static bool is_own(const char *name)
{
    return strcmp(name, "step") == 0 || strcmp(name, "token") == 0;
}

int cli_extras_init(struct cli_prediction_extras *extras, struct cli_context *cli)
{
    const char *said = cli_get(cli, "columns");
    *extras = (struct cli_prediction_extras){.probabilities = cli_has(cli, "probabilities")};
    if (!said)
        return CLI_OK;
    extras->list = strdup(said);
    if (!extras->list)
        return cli_fail_memory(cli, "the columns");
    for (char *at = extras->list, *end; at; at = end) {
        end = strchr(at, ',');
        if (end)
            *end++ = 0;
        if (!*at || extras->count == 64)
            return cli_usage_error(cli, "`--columns %s`: expected up to 64 names separated by commas, as in id,date",
                                   said);
        extras->names[extras->count++] = at;
        if (!is_own(at))
            extras->passed[extras->columns.count++] = at;
    }
    extras->columns.items = extras->passed;
    return CLI_OK;
}

void cli_extras_deinit(struct cli_prediction_extras *extras)
{
    free(extras->list);
    extras->list = NULL;
}

seqlstm_status cli_extras_check(const struct cli_prediction_extras *extras, const struct sl_data_state *state,
                                struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = state ? sl_data_state_get_facts(state) : NULL;
    if (!facts)
        return SEQLSTM_OK;
    const bool decodes = facts->source.kind != SL_FIELD_NONE;
    if (extras->probabilities && (decodes || facts->target.kind != SL_FIELD_IDS))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`--probabilities` is for models that predict classes; this one %s",
                     decodes ? "writes texts" : "predicts values");
    if (extras->count > 0 && decodes)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "`--columns` is for models that predict classes or values; this one writes texts; use "
                     "`--with-input`");
    return SEQLSTM_OK;
}

/* ---- csv -------------------------------------------------------------------------------------------------------- */

static bool has_field(const struct sl_buf *header, const struct sl_buf *field)
{
    if (field->length_bytes == 0)
        return false;
    for (const char *at = sl_buf_text(header); (at = strstr(at, sl_buf_text(field))); at++)
        if ((at == sl_buf_text(header) || at[-1] == ',') && strchr(",", at[field->length_bytes]))
            return true;
    return false;
}

/* No two columns have one name: a target beside its prediction is `NAME_input`. */
static void write_name(struct sl_buf *header, const char *name)
{
    struct sl_buf field = {0}, free_name = {0};
    sl_buf_append_text(&free_name, name);
    cli_write_csv_text(&field, name, strlen(name));
    while (!free_name.failed && !field.failed && has_field(header, &field)) {
        sl_buf_append_text(&free_name, "_input");
        sl_buf_deinit(&field);
        cli_write_csv_text(&field, sl_buf_text(&free_name), sl_buf_text_bytes(&free_name));
    }
    sl_buf_append_char(header, ',');
    cli_write_csv_text(header, sl_buf_text(&free_name), sl_buf_text_bytes(&free_name));
    header->failed = header->failed || field.failed || free_name.failed;
    sl_buf_deinit(&field);
    sl_buf_deinit(&free_name);
}

void cli_extras_write_header(const struct cli_prediction_extras *extras, const struct sl_vocabulary *classes,
                             struct sl_buf *out)
{
    for (int32_t c = 0; extras->probabilities && classes && c < sl_vocabulary_get_size(classes); c++) {
        size_t bytes;
        const char *name = sl_vocabulary_get_text(classes, c, &bytes);
        sl_buf_append_text(out, ",p_");
        cli_write_csv_text(out, name, bytes);
    }
    for (int32_t k = 0; k < extras->count; k++)
        write_name(out, extras->names[k]);
}

/* The token of a row: the words of a text, if it has as many as the prediction has rows. */
static const char *find_token(const struct sl_prediction *p, int64_t row, size_t *out_bytes)
{
    static const char blanks[] = " \t\r\n";
    const char *at = p->input, *end = p->input ? at + p->input_bytes : NULL, *found = NULL;
    size_t found_bytes = 0;
    int64_t count = 0;
    while (at < end) {
        while (at < end && strchr(blanks, *at))
            at++;
        const char *begin = at;
        while (at < end && !strchr(blanks, *at))
            at++;
        if (at > begin && count++ == row) {
            found = begin;
            found_bytes = (size_t)(at - begin);
        }
    }
    *out_bytes = count == p->rows ? found_bytes : 0;
    return count == p->rows ? found : NULL;
}

/* The text of column k in a row; NULL: there is none. `number` has room for a step. */
static const char *find_text(const struct cli_prediction_extras *extras, const struct sl_prediction *p, int32_t k,
                             int64_t row, char number[24], size_t *out_bytes)
{
    const int64_t last = p->data ? sl_dataset_get_file_steps(p->data, p->record) - 1 : 0;
    const int64_t step = p->on_steps || last < 0 ? row : last;
    size_t column = 0;
    *out_bytes = 0;
    if (strcmp(extras->names[k], "token") == 0)
        return p->on_steps ? find_token(p, row, out_bytes) : NULL;
    if (strcmp(extras->names[k], "step") == 0) {
        *out_bytes = (size_t)snprintf(number, 24, "%lld", (long long)step + 1);
        return number;
    }
    while (extras->passed[column] != extras->names[k])
        column++;
    return p->data ? sl_dataset_find_cell(p->data, p->record, step, column, out_bytes) : NULL;
}

void cli_extras_write_csv(const struct cli_prediction_extras *extras, const struct sl_prediction *p, int64_t row,
                          struct sl_buf *out)
{
    char number[24];
    for (int64_t c = 0; extras->probabilities && p->classes && c < p->features; c++) {
        sl_buf_append_char(out, ',');
        cli_write_number(out, p->values[row * p->features + c]);
    }
    for (int32_t k = 0; k < extras->count; k++) {
        size_t bytes;
        const char *text = find_text(extras, p, k, row, number, &bytes);
        sl_buf_append_char(out, ',');
        cli_write_csv_text(out, text ? text : "", bytes);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

void cli_extras_write_json_probabilities(const struct cli_prediction_extras *extras, const struct sl_prediction *p,
                                         const float *row, struct sl_buf *out)
{
    if (!extras->probabilities || !p->classes)
        return;
    sl_buf_append_text(out, ", \"probabilities\": {");
    for (int64_t c = 0; c < p->features; c++) {
        size_t bytes;
        const char *name = sl_vocabulary_get_text(p->classes, (int32_t)c, &bytes);
        sl_buf_append_text(out, c ? ", " : "");
        sl_json_append_text(out, name, bytes);
        sl_buf_append_text(out, ": ");
        cli_write_json_number(out, row[c]);
    }
    sl_buf_append_char(out, '}');
}

void cli_extras_write_json_columns(const struct cli_prediction_extras *extras, const struct sl_prediction *p,
                                   struct sl_buf *out)
{
    char number[24];
    if (extras->count == 0)
        return;
    sl_buf_append_text(out, ", \"columns\": [");
    for (int64_t r = 0; r < p->rows; r++) {
        sl_buf_append_text(out, r ? ", {" : "{");
        for (int32_t k = 0; k < extras->count; k++) {
            size_t bytes;
            const char *text = find_text(extras, p, k, r, number, &bytes);
            sl_buf_append_text(out, k ? ", " : "");
            sl_json_append_string(out, extras->names[k]);
            sl_buf_append_text(out, ": ");
            if (text == number)
                sl_buf_append_text(out, number);
            else if (text)
                sl_json_append_text(out, text, bytes);
            else
                sl_buf_append_text(out, "null");
        }
        sl_buf_append_char(out, '}');
    }
    sl_buf_append_char(out, ']');
}
