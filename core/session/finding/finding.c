/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that occur after the model was checked (data, graph, backends, plan), as findings with a place in the model
 * file. Lower layers give the place as "file:line:column" in `where`, or not at all; here it becomes a place in
 * the user's text again. */
#include "session/finding/finding.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/error_place.h"
#include "session/record/session_record.h"

enum { WHERE_BYTES = sizeof((struct seqlstm_error *)0)->where };

/* Cuts ":number" off the end; -1: there is none. */
static int cut_number(char *text)
{
    char *colon = strrchr(text, ':');
    if (colon == NULL || colon[1] == '\0' || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return -1;
    int number = atoi(colon + 1);
    *colon = '\0';
    return number;
}

/* What `where` says. */
struct wanted {
    const char *where;
    int line, column;
};

/* Is `line` and `column` in the file of the place what `where` says? A long path may be shortened there. */
static bool is_said(const struct wanted *wanted, const char *file)
{
    char text[WHERE_BYTES];
    if (file == NULL)
        return false;
    sl_error_place_write(file, wanted->line, wanted->column, text, sizeof text);
    return strcmp(text, wanted->where) == 0;
}

static bool is_at(const struct sl_place *place, const struct wanted *wanted)
{
    return place->line == wanted->line && place->column == wanted->column && is_said(wanted, place->file);
}

/* The file that `where` says, with its whole path; `otherwise`: no value of the model stands in it. */
static const char *find_file(const struct sl_model *model, const struct wanted *wanted, const char *otherwise)
{
    for (size_t i = 0; i < model->places.count; i++)
        if (is_said(wanted, model->places.items[i].value.file))
            return model->places.items[i].value.file;
    return otherwise;
}

/* "file:line:column" as a place, with the length that the model has stored for it. `text` holds `where`; it is cut, and
 * becomes part of the result. Line 0: it is no place in the user's files. */
static struct sl_place read_place(const struct sl_model *model, const char *where, char *text)
{
    struct sl_place place = {.length = 1};
    place.column = cut_number(text);
    place.line = cut_number(text);
    if (place.column < 1 || place.line < 1)
        return (struct sl_place){0};
    const struct wanted wanted = {where, place.line, place.column};
    for (size_t i = 0; i < model->places.count; i++) {
        if (is_at(&model->places.items[i].value, &wanted))
            return model->places.items[i].value;
        if (is_at(&model->places.items[i].key, &wanted))
            return model->places.items[i].key;
    }
    for (size_t l = 0; l < model->layer_count; l++)
        if (is_at(&model->layers[l].place, &wanted))
            return model->layers[l].place;
    place.file = find_file(model, &wanted, text);
    return place;
}

struct sl_place sl_session_find_value(const struct sl_session *session, const char *key)
{
    const struct sl_model *model = session->model;
    for (size_t i = 0; i < model->places.count; i++)
        if (strcmp(model->places.items[i].path, key) == 0)
            return model->places.items[i].value;
    return sl_model_find_place(model, key);
}

void sl_session_add_finding_at(struct sl_session *session, const char *code, struct sl_place place, const char *text)
{
    char message[sizeof((struct seqlstm_error *)0)->message];
    snprintf(message, sizeof message, "%s", text);
    struct sl_diagnostic finding = {.code = code, .place = place, .message = message};
    char *help = strstr(message, "; use ");
    if (help) {
        *help = '\0';
        finding.help = help + 2;
    }
    sl_diagnostics_add(session->diagnostics, &finding);
}

seqlstm_status sl_session_add_finding(struct sl_session *session, const char *code, const char *key,
                                      seqlstm_status status, const struct seqlstm_error *err)
{
    bool users = status == SEQLSTM_INVALID_CONFIG || status == SEQLSTM_CORRUPT_DATA || status == SEQLSTM_NOT_FOUND ||
                 status == SEQLSTM_UNSUPPORTED || status == SEQLSTM_UNAVAILABLE;
    if (!users || session->diagnostics == NULL || err == NULL)
        return status;
    char text[WHERE_BYTES];
    snprintf(text, sizeof text, "%s", err->where);
    struct sl_place place = read_place(session->model, err->where, text);
    if (place.line == 0 && key)
        place = sl_session_find_value(session, key);
    sl_session_add_finding_at(session, code, place, err->message);
    return status;
}

seqlstm_status sl_session_add_data_finding(struct sl_session *session, enum sl_split split, seqlstm_status status,
                                           const struct seqlstm_error *err)
{
    const struct sl_source *source = &session->model->data.splits[split];
    struct sl_data_file files[SL_DATA_FILE_COUNT];
    int count = sl_source_list_files(source, files);
    char key[64];
    snprintf(key, sizeof key, "data.%s", sl_split_get_name(split));
    for (int f = 0; err && f < count; f++) /* the file that the message names */
        if (strstr(err->message, files[f].path))
            snprintf(key, sizeof key, "data.%s.%s", sl_split_get_name(split), files[f].key);
    return sl_session_add_finding(session, "E0501", key, status, err);
}

/* A missing data file is an error of the data, like a broken one. */
seqlstm_status sl_session_blame_data(seqlstm_status status, struct seqlstm_error *err)
{
    if (status != SEQLSTM_NOT_FOUND && status != SEQLSTM_IO)
        return status;
    if (err)
        err->code = SEQLSTM_CORRUPT_DATA;
    return SEQLSTM_CORRUPT_DATA;
}
