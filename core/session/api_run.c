/* SPDX-License-Identifier: Apache-2.0 */
/* include/seqlstm/run.h on top of sessions. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/run.h>

#include "base/system/file.h"
#include "base/value/buf.h"
#include "base/value/path.h"
#include "exec/params/params.h"
#include "runs/metric_rows.h"
#include "session/api.h"
#include "session/record/session_record.h"
#include "session/run_files/run_lock.h"
#include "session/session.h"

enum { PLAN_LIMIT = 64 << 20 }; /* bytes of plan.json */

/* ---- metrics ---------------------------------------------------------------------------------------------------- */

static seqlstm_status fail_ended(seqlstm_status status, struct seqlstm_error *err)
{
    if (status != SEQLSTM_OK)
        seqlstm_error_set(err, status, __FILE__, __LINE__, "the caller ended it");
    return status;
}

static seqlstm_status write_row(json_t *object, seqlstm_metric_row_fn write, void *context, struct seqlstm_error *err)
{
    json_t *values = json_object_get(object, "metrics"), *value;
    struct seqlstm_metric *metrics = calloc(json_object_size(values) + 1, sizeof *metrics);
    if (metrics == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the metrics");
    struct seqlstm_metric_row row = {.struct_size = (uint32_t)sizeof row,
                                     .update = (int64_t)sl_metric_row_find_number(object, "update"),
                                     .epoch = sl_metric_row_find_number(object, "epoch"),
                                     .seconds = sl_metric_row_find_number(object, "seconds"),
                                     .split = sl_metric_row_get_text(object, "split"),
                                     .interval = sl_metric_row_get_text(object, "span"),
                                     .metrics = metrics};
    const char *name;
    json_object_foreach(values, name, value)
    {
        metrics[row.metric_count].name = name;
        metrics[row.metric_count++].value = sl_metric_row_find_metric(object, name);
    }
    const seqlstm_status status = fail_ended(write(context, &row), err);
    free(metrics);
    return status;
}

seqlstm_status seqlstm_read_metrics(struct seqlstm_session *session, seqlstm_metric_row_fn write, void *context,
                                    struct seqlstm_error *err)
{
    const char *folder = sl_session_get_folder(session->session);
    json_t *rows = folder ? sl_metric_rows_read(folder) : json_array();
    seqlstm_status status = SEQLSTM_OK;
    if (rows == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the metrics");
    for (size_t k = 0; k < json_array_size(rows) && status == SEQLSTM_OK; k++)
        if (json_is_integer(json_object_get(json_array_get(rows, k), "update")))
            status = write_row(json_array_get(rows, k), write, context, err);
    json_decref(rows);
    return sl_api_end(status, err);
}

/* ---- plan and configuration ------------------------------------------------------------------------------------- */

static seqlstm_status read_plan(const char *folder, struct sl_buf *out, bool *out_found, struct seqlstm_error *err)
{
    char *path = folder ? sl_path_join(folder, "plan.json") : NULL, *text = NULL;
    size_t bytes = 0;
    if (folder && path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    *out_found = path && sl_file_is_regular(path);
    const seqlstm_status status = *out_found ? sl_file_read(path, PLAN_LIMIT, &text, &bytes, err) : SEQLSTM_OK;
    if (status == SEQLSTM_OK && *out_found)
        sl_buf_append(out, text, bytes);
    free(text);
    free(path);
    return status;
}

static seqlstm_status find_plan(struct sl_session *session, struct sl_buf *out, struct seqlstm_error *err)
{
    const struct sl_plan *plan = NULL;
    bool found = false;
    SEQLSTM_TRY(read_plan(sl_session_get_folder(session), out, &found, err));
    if (found)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_session_make_plan(session, &plan, err));
    return sl_session_write_plan_json(session, plan, out, err);
}

/* Passes the text on and frees it. */
static seqlstm_status write_text(struct seqlstm_session *session, seqlstm_status status, struct sl_buf *text,
                                 seqlstm_text_fn write, void *context, struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK && text->failed)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the text");
    if (status == SEQLSTM_OK)
        status = fail_ended(write(context, sl_buf_text(text), text->length_bytes), err);
    sl_buf_deinit(text);
    return sl_api_finish(session, status, err);
}

seqlstm_status seqlstm_write_plan(struct seqlstm_session *session, seqlstm_text_fn write, void *context,
                                  struct seqlstm_error *err)
{
    struct sl_buf text = {0};
    const seqlstm_status status = find_plan(session->session, &text, err);
    return write_text(session, status, &text, write, context, err);
}

seqlstm_status seqlstm_write_config(struct seqlstm_session *session, seqlstm_text_fn write, void *context,
                                    struct seqlstm_error *err)
{
    struct sl_buf text = {0};
    const seqlstm_status status = sl_model_write_config(sl_session_get_model(session->session), 0, &text, err);
    return write_text(session, status, &text, write, context, err);
}

/* ---- weights ---------------------------------------------------------------------------------------------------- */

seqlstm_status seqlstm_load_weights(struct seqlstm_session *session, int64_t *out_count, struct seqlstm_error *err)
{
    struct sl_session *inner = session->session;
    SEQLSTM_TRY(sl_api_finish(session, sl_session_read_weights(inner, err), err));
    *out_count = inner->params->view_count;
    return SEQLSTM_OK;
}

seqlstm_status seqlstm_get_weight(struct seqlstm_session *session, int64_t index, struct seqlstm_weight *out_weight,
                                  struct seqlstm_error *err)
{
    const struct sl_params *params = session->session->params;
    const int64_t count = params && session->session->has_weights ? params->view_count : 0;
    if (index < 0 || index >= count)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no weight %lld: %lld are loaded", (long long)index,
                     (long long)count);
    const struct sl_param_view *view = &params->views[index];
    const struct sl_model *model = sl_session_get_model(session->session);
    const struct seqlstm_weight known = {.struct_size = out_weight->struct_size,
                                         .is_trainable = view->trainable,
                                         .name = view->name,
                                         .layer = model->layers[view->layer].name,
                                         .rows = view->rows,
                                         .columns = view->columns,
                                         .values = params->values + view->offset_elems};
    memcpy(out_weight, &known, known.struct_size < sizeof known ? known.struct_size : sizeof known);
    return SEQLSTM_OK;
}

static seqlstm_status find_format(const char *name, bool imports, enum sl_weights_format *out,
                                  struct seqlstm_error *err)
{
    static const char *const names[] = {[SL_WEIGHTS_AUTO] = "auto",
                                        [SL_WEIGHTS_CANONICAL] = "safetensors",
                                        [SL_WEIGHTS_PYTORCH] = "pytorch-names",
                                        [SL_WEIGHTS_KERAS] = "keras-names",
                                        [SL_WEIGHTS_ONNX] = "onnx"};
    for (size_t f = imports ? 0 : 1; f < sizeof names / sizeof *names; f++)
        if (strcmp(name, names[f]) == 0) {
            *out = (enum sl_weights_format)f;
            return SEQLSTM_OK;
        }
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                 "no format `%.100s`, expected %ssafetensors, pytorch-names, keras-names or onnx", name,
                 imports ? "auto, " : "");
}

static seqlstm_status end_exchange(struct seqlstm_session *session, seqlstm_status status, struct sl_buf *notes,
                                   struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK && notes->length_bytes > 0)
        sl_log_printf(&session->log, SL_LOG_WARN, "%s", sl_buf_text(notes));
    sl_buf_deinit(notes);
    return sl_api_finish(session, status, err);
}

seqlstm_status seqlstm_export(struct seqlstm_session *session, const char *format, const char *path,
                              struct seqlstm_error *err)
{
    enum sl_weights_format which = SL_WEIGHTS_AUTO;
    struct sl_buf notes = {0};
    SEQLSTM_TRY(sl_api_end(find_format(format, false, &which, err), err));
    return end_exchange(session, sl_session_export(session->session, which, path, &notes, err), &notes, err);
}

seqlstm_status seqlstm_import(struct seqlstm_session *session, const char *format, const char *path,
                              struct seqlstm_error *err)
{
    struct sl_import_request request = {.path = path};
    struct sl_buf notes = {0};
    SEQLSTM_TRY(sl_api_end(find_format(format, true, &request.format, err), err));
    const seqlstm_status status = sl_session_import(session->session, &request, &notes, err);
    sl_run_lock_release(session->session);
    return end_exchange(session, status, &notes, err);
}
