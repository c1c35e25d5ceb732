/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of runs:
 *
 *   runs/NAME/001/  config.yaml  data.json  plan.json  metrics.jsonl  summary.json  final.safetensors
 *                   report.html
 *                   checkpoints/update-000000001234.safetensors
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/value/buf.h"
#include "base/system/file.h"
#include "session/session_private.h"

#define SUMMARY       "summary.json"
#define SUMMARY_LIMIT ((size_t)1 << 24)

static bool is_empty_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return false;
    bool empty = true;
    for (struct dirent *entry; empty && (entry = readdir(folder)) != NULL;)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(folder);
    return empty;
}

/* `pattern` with {name} and {run} replaced. NULL: no memory. */
static char *fill_pattern(const char *pattern, const char *name, int run)
{
    struct sl_buf buf = {0};
    for (const char *p = pattern; *p;) {
        if (strncmp(p, "{name}", 6) == 0) {
            sl_buf_append_text(&buf, name);
            p += 6;
        } else if (strncmp(p, "{run}", 5) == 0) {
            sl_buf_printf(&buf, "%03d", run);
            p += 5;
        } else {
            sl_buf_append_char(&buf, *p++);
        }
    }
    return sl_buf_take(&buf, NULL);
}

static seqlstm_status refuse_folder(const char *path, struct seqlstm_error *err)
{
    const char *what = "the run folder is not empty, and holds no run; name another one (--out)";
    if (sl_run_folder_holds_weights(path))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s: the run folder is not empty; `seqlstm resume %s` goes on with it", path, path);
    if (sl_run_folder_is_run(path))
        what = "a run without weights is there, which failed or has only begun; remove it, or name another (--out)";
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: %s", path, what);
}

/* A folder of exactly this name that did not exist, or was empty and is said by the user. */
static seqlstm_status take_folder(const char *path, bool said, bool *out_taken, struct seqlstm_error *err)
{
    *out_taken = false;
    char *parent = sl_path_folder(path);
    if (parent == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    seqlstm_status status = sl_file_make_folders(parent, err);
    free(parent);
    SEQLSTM_TRY(status);
    if (mkdir(path, 0777) == 0 || (said && errno == EEXIST && is_empty_folder(path))) {
        *out_taken = true;
        return SEQLSTM_OK;
    }
    if (errno == EEXIST)
        return SEQLSTM_OK;
    int code = errno;
    seqlstm_error_set(err, SEQLSTM_IO, __FILE__, __LINE__, "%s: cannot make the run folder: %s", path, strerror(code));
    if (err)
        err->native_code = code;
    return SEQLSTM_IO;
}

seqlstm_status sl_run_folder_make(const struct sl_model *model, const char *out_dir, char **out_folder,
                                  struct seqlstm_error *err)
{
    bool taken, numbered = out_dir == NULL && strstr(model->output.dir, "{run}") != NULL;
    for (int run = 1; run < 1000000; run++) {
        char *path = out_dir ? strdup(out_dir) : fill_pattern(model->output.dir, model->name, run);
        if (path == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
        seqlstm_status status = take_folder(path, !numbered, &taken, err);
        if (status == SEQLSTM_OK && taken) {
            *out_folder = path;
            return SEQLSTM_OK;
        }
        if (status == SEQLSTM_OK && !numbered)
            status = refuse_folder(path, err);
        free(path);
        if (status != SEQLSTM_OK)
            return status;
    }
    SEQLSTM_FAIL(err, SEQLSTM_IO, "%s: there are a million runs already", model->output.dir);
}

seqlstm_status sl_run_folder_write(const char *folder, const char *name, const void *data, size_t bytes,
                                   struct seqlstm_error *err)
{
    char *path = sl_path_join(folder, name);
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    seqlstm_status status = sl_file_write(path, data, bytes, err);
    free(path);
    return status;
}

static seqlstm_status write_buf(const char *folder, const char *name, const struct sl_buf *buf, seqlstm_status status,
                                struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK && buf->failed)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for %s", name);
    return status == SEQLSTM_OK ? sl_run_folder_write(folder, name, buf->data, buf->length_bytes, err) : status;
}

seqlstm_status sl_run_folder_write_config(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    seqlstm_status status =
        write_buf(session->folder, "config.yaml", &buf, sl_model_write_config(session->model, 0, &buf, err), err);
    sl_buf_deinit(&buf);
    return status;
}

seqlstm_status sl_run_folder_write_setup(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    seqlstm_status status = SEQLSTM_OK;
    if (!session->is_run)
        status = sl_run_folder_write_config(session, err);
    if (status == SEQLSTM_OK && session->state)
        status = write_buf(session->folder, "data.json", &buf, sl_data_state_write(session->state, &buf, err), err);
    sl_buf_deinit(&buf);
    if (status == SEQLSTM_OK && !session->is_run && session->train_data)
        status = sl_sources_write(session, err);
    if (status == SEQLSTM_OK && session->train.plan) {
        status = sl_session_write_plan_json(session, session->train.plan, &buf, err);
        status = write_buf(session->folder, "plan.json", &buf, status, err);
    }
    sl_buf_deinit(&buf);
    return status;
}

static json_t *metrics_object(const struct sl_metric_values *values)
{
    json_t *object = json_object();
    for (int32_t m = 0; m < values->count; m++)
        json_object_set_new(object, values->items[m].name,
                            values->items[m].value == values->items[m].value ? json_real(values->items[m].value)
                                                                             : json_null());
    return object;
}

/* How the metrics that need one were computed; none: NULL. */
static json_t *signatures_object(const struct sl_metric_values *values)
{
    json_t *object = NULL;
    for (int32_t m = 0; m < values->count; m++) {
        if (values->items[m].signature == NULL)
            continue;
        if (object == NULL)
            object = json_object();
        json_object_set_new(object, values->items[m].name, json_string(values->items[m].signature));
    }
    return object;
}

/* A run that had ended is only evaluated again: what its summary says of the training stays. */
static void keep_training(const struct sl_session *session, json_t *root)
{
    static const char *const kept[] = {"seconds", "training_seconds", "waiting", "graphs", "layers"};
    char *path = sl_path_join(session->folder, SUMMARY), *text = NULL;
    size_t bytes = 0;
    json_t *before = NULL;
    if (path && sl_file_exists(path) && sl_file_read(path, SUMMARY_LIMIT, &text, &bytes, NULL) == SEQLSTM_OK)
        before = json_loadb(text, bytes, 0, NULL);
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        if (json_object_get(before, kept[k]))
            json_object_set(root, kept[k], json_object_get(before, kept[k]));
    json_decref(before);
    free(text);
    free(path);
}

seqlstm_status sl_run_folder_write_summary(struct sl_session *session, const struct sl_run_result *result,
                                           struct seqlstm_error *err)
{
    json_t *metrics = json_object(), *layers = json_array();
    json_object_set_new(metrics, "train", metrics_object(&result->train.train));
    if (result->train.has_valid)
        json_object_set_new(metrics, "valid", metrics_object(&result->train.valid));
    if (result->has_test)
        json_object_set_new(metrics, "test", metrics_object(&result->test));
    int32_t count;
    const struct sl_exec_timing *timing = sl_exec_get_timing(session->train.exec, &count);
    for (int32_t c = 0; c < count; c++) {
        const struct sl_call *call = &session->train.plan->calls[c];
        json_array_append_new(layers, json_pack("{s:s,s:s,s:s,s:I}", "name", call->node->name, "backend",
                                                sl_backend_get_id(call->backend), "variant", call->variant, "rows",
                                                (json_int_t)timing[c].rows));
    }
    const struct sl_exec_captures *captures = sl_exec_get_captures(session->train.exec);
    const struct sl_train_result *train = &result->train;
    json_t *root = json_pack("{s:s,s:s,s:o,s:f,s:f,s:I,s:I,s:I,s:f,s:{s:f,s:f},s:{s:I,s:I,s:o},s:o}", "schema",
                             "seqlstm.summary/1", "end", sl_train_end_get_name(train->end), "metrics", metrics,
                             "seconds", result->seconds, "training_seconds", train->progress.seconds, "tokens",
                             (json_int_t)train->progress.tokens, "updates", (json_int_t)train->progress.updates,
                             "overflows", (json_int_t)train->overflows, "epochs", train->progress.epochs, "waiting",
                             "seconds", train->wait_seconds, "share", train->wait_share, "graphs", "captured",
                             (json_int_t)captures->captured, "launched", (json_int_t)captures->launched, "refusal",
                             captures->refusal[0] ? json_string(captures->refusal) : json_null(), "layers", layers);
    json_t *signatures = result->has_test          ? signatures_object(&result->test)
                         : result->train.has_valid ? signatures_object(&result->train.valid)
                                                   : NULL;
    if (root && signatures)
        json_object_set(root, "signatures", signatures);
    json_decref(signatures);
    if (root && train->made == 0)
        keep_training(session, root);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (text == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", SUMMARY);
    struct sl_buf buf = {0};
    sl_buf_append_text(&buf, text);
    sl_buf_append_char(&buf, '\n');
    free(text);
    seqlstm_status status = write_buf(session->folder, SUMMARY, &buf, SEQLSTM_OK, err);
    sl_buf_deinit(&buf);
    return status;
}
