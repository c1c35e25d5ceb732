/* SPDX-License-Identifier: Apache-2.0 */
/* Writes summary.json. */
#include "session/run_folder/summary.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/system/file.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "base/value/path.h"
#include "session/record/session_record.h"
#include "session/run_folder/run_folder.h"

#define SUMMARY       "summary.json"
#define SUMMARY_LIMIT ((size_t)1 << 24)

static json_t *metrics_object(const struct sl_metric_values *values)
{
    json_t *object = json_object();
    for (int32_t m = 0; m < values->count; m++)
        object = sl_json_put(object, values->items[m].name,
                             isfinite(values->items[m].value) ? json_real(values->items[m].value) : json_null());
    return object;
}

/* Adds how those metrics were computed that have a signature. */
static json_t *put_signatures(json_t *root, const struct sl_metric_values *values)
{
    json_t *object = json_object();
    for (int32_t m = 0; m < values->count; m++)
        if (values->items[m].signature)
            object = sl_json_put(object, values->items[m].name, json_string(values->items[m].signature));
    if (json_object_size(object) > 0 || object == NULL)
        return sl_json_put(root, "signatures", object);
    json_decref(object);
    return root;
}

/* A finished run is only evaluated again: its summary keeps what it says about training. */
static seqlstm_status keep_training(const struct sl_session *session, json_t *root, struct seqlstm_error *err)
{
    static const char *const kept[] = {"seconds", "training_seconds", "waiting", "graphs", "idle", "layers"};
    char *path = sl_path_join(session->folder, SUMMARY), *text = NULL;
    size_t bytes = 0;
    json_t *before = NULL;
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    const seqlstm_status status =
        sl_file_exists(path) ? sl_file_read(path, SUMMARY_LIMIT, &text, &bytes, err) : SEQLSTM_OK;
    bool no_memory = false;
    if (text)
        before = sl_json_load(text, bytes, 0, NULL, &no_memory);
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        if (json_object_get(before, kept[k]) && json_object_set(root, kept[k], json_object_get(before, kept[k])) != 0)
            no_memory = true;
    json_decref(before);
    free(text);
    free(path);
    if (no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", SUMMARY);
    return status;
}

seqlstm_status sl_run_folder_write_summary(struct sl_session *session, const struct sl_run_result *result,
                                           struct seqlstm_error *err)
{
    json_t *metrics = json_object(), *layers = json_array();
    metrics = sl_json_put(metrics, "train", metrics_object(&result->train.train));
    if (result->train.has_valid)
        metrics = sl_json_put(metrics, "valid", metrics_object(&result->train.valid));
    if (result->has_test)
        metrics = sl_json_put(metrics, "test", metrics_object(&result->test));
    int32_t count;
    const struct sl_exec_timing *timing = sl_exec_get_timing(session->train.exec, &count);
    for (int32_t c = 0; c < count; c++) {
        const struct sl_call *call = &session->train.plan->calls[c];
        layers = sl_json_add(layers, json_pack("{s:s,s:s,s:s,s:I}", "name", call->node->name, "backend",
                                               sl_backend_get_id(call->backend), "variant", call->variant, "rows",
                                               (json_int_t)timing[c].rows));
    }
    const struct sl_exec_captures *captures = sl_exec_get_captures(session->train.exec);
    const struct sl_train_result *train = &result->train;
    json_t *root = json_pack(
        "{s:s,s:s,s:o,s:f,s:f,s:I,s:I,s:I,s:f,s:{s:f,s:f},s:{s:I,s:I,s:I,s:I,s:o},s:{s:f,s:I},s:o}", "schema",
        "seqlstm.summary/1", "end", sl_train_end_get_name(train->end), "metrics", metrics, "seconds", result->seconds,
        "training_seconds", train->progress.seconds, "tokens", (json_int_t)train->progress.tokens, "updates",
        (json_int_t)train->progress.updates, "overflows", (json_int_t)train->overflows, "epochs",
        train->progress.epochs, "waiting", "seconds", train->wait_seconds, "share", train->wait_share, "graphs",
        "captured", (json_int_t)captures->captured, "launched", (json_int_t)captures->launched, "uncaptured",
        (json_int_t)captures->uncaptured, "ahead", (json_int_t)captures->ahead, "refusal",
        captures->refusal[0] ? json_string(captures->refusal) : json_null(), "idle", "seconds",
        captures->idle_ns * 1e-9, "gaps", (json_int_t)captures->gaps, "layers", layers);
    if (root && (result->has_test || train->has_valid))
        root = put_signatures(root, result->has_test ? &result->test : &train->valid);
    if (root && train->restored && train->best_update > 0)
        root =
            sl_json_put(root, "restored",
                        json_pack("{s:I,s:f}", "update", (json_int_t)train->best_update, "epochs", train->best_epochs));
    if (root && train->end == SL_END_DIVERGED)
        root = sl_json_put(root, "reason", json_string(train->reason));
    seqlstm_status status = root && train->made == 0 ? keep_training(session, root, err) : SEQLSTM_OK;
    struct sl_buf buf = {0};
    if (!sl_json_append_tree(&buf, root, JSON_REAL_PRECISION(9)))
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", SUMMARY);
    status = sl_run_folder_write_buf(session->folder, SUMMARY, &buf, status, err);
    sl_buf_deinit(&buf);
    return status;
}
