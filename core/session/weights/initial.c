/* SPDX-License-Identifier: Apache-2.0 */
/* Initial weights other than drawn ones: pretrained word vectors, and weights of another run. */
#include "session/weights/initial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/error_place.h"
#include "base/value/path.h"
#include "data/text/word_vectors.h"
#include "session/data/check_data.h"
#include "session/finding/finding.h"
#include "session/record/session_record.h"
#include "session/run_files/trusted_files.h"
#include "session/run_folder/run_name.h"
#include "train/checkpoint/weights.h"

/* `weights` of an embedding: fills the rows of the words that the file has. */
static seqlstm_status load_vectors(struct sl_session *session, const struct sl_layer *layer, struct seqlstm_error *err)
{
    const struct sl_vocabulary *vocabulary = sl_session_find_words(session->model, session->state, layer);
    char name[300];
    snprintf(name, sizeof name, "%s.w", layer->name);
    const struct sl_param_view *view = sl_params_find(session->params, name);
    if (view == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "no parameter `%s`", name);
    if (vocabulary == NULL || sl_vocabulary_get_size(vocabulary) != view->rows)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "`weights` are vectors of words, but the data have ids without words");
    int64_t found;
    SEQLSTM_TRY(sl_word_vectors_load(layer->embedding.weights, vocabulary, view->columns,
                                     session->params->values + view->offset_elems, &found, err));
    sl_params_touch(session->params);
    sl_log_printf(session->options.log, found ? SL_LOG_INFO : SL_LOG_WARN, "%s: %lld of %lld words have a vector in %s",
                  layer->name, (long long)found, (long long)view->rows, layer->embedding.weights);
    return SEQLSTM_OK;
}

/* init_from: weights of another run or of a file, by name. */
static seqlstm_status load_run(struct sl_session *session, struct seqlstm_error *err)
{
    const char *from = session->model->train.init_from;
    if (from == NULL)
        return SEQLSTM_OK;
    char *folder = NULL, *path = NULL;
    seqlstm_status status = SEQLSTM_OK;
    if (sl_file_exists(from) && !sl_file_is_folder(from)) {
        path = strdup(from);
    } else {
        SEQLSTM_TRY(sl_run_folder_find(from, NULL, &folder, err));
        status = sl_trusted_files_check(session, folder, err);
        path = sl_path_join(folder, "final.safetensors");
    }
    struct sl_weights_report report;
    if (status == SEQLSTM_OK && path == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a path");
    else if (status == SEQLSTM_OK)
        status =
            sl_weights_load(session->params, path, SL_WEIGHTS_ALLOW_MISSING | SL_WEIGHTS_ALLOW_EXTRA, &report, err);
    if (status == SEQLSTM_OK)
        sl_log_printf(session->options.log, SL_LOG_INFO,
                      "init_from %s: %d parameter%s loaded, %d of this model not in it, %d of it not in this model",
                      path, report.loaded, report.loaded == 1 ? "" : "s", report.missing, report.extra);
    free(path);
    free(folder);
    return status;
}

seqlstm_status sl_session_load_initial(struct sl_session *session, struct seqlstm_error *err)
{
    for (size_t l = 0; l < session->model->layer_count; l++) {
        const struct sl_layer *layer = &session->model->layers[l];
        if (layer->kind != SL_LAYER_EMBEDDING || layer->embedding.weights == NULL)
            continue;
        seqlstm_status loaded = load_vectors(session, layer, err);
        if (loaded != SEQLSTM_OK) {
            struct sl_place place = sl_layer_find_option_place(layer, "weights");
            sl_error_place_set(err, place.file, place.line, place.column);
            return sl_session_add_finding(session, "E0505", NULL, loaded, err);
        }
    }
    seqlstm_status loaded = load_run(session, err);
    return loaded == SEQLSTM_OK ? SEQLSTM_OK : sl_session_add_finding(session, "E0505", "train.init_from", loaded, err);
}
