/* SPDX-License-Identifier: Apache-2.0 */
/* Data and model, held against each other without a backend. */
#include "session/data/check_data.h"

#include "base/system/file.h"
#include "data/batch/batcher.h"
#include "data/text/word_vectors.h"
#include "graph/graph.h"
#include "session/data/notes.h"
#include "session/data/read_data.h"
#include "session/finding/finding.h"
#include "session/record/session_record.h"
#include "train/class_weight.h"
#include "train/metrics/metric.h"

/* Records of a generator do not depend on their number: a few of them show what all are like. */
static void shrink_generators(struct sl_model *model)
{
    for (int s = 0; s < SL_SPLIT_COUNT; s++)
        if (model->data.splits[s].origin == SL_SOURCE_FROM_TRAIN)
            return;
    for (int s = 0; s < SL_SPLIT_COUNT; s++) {
        struct sl_source *source = &model->data.splits[s];
        int64_t enough = model->data.batch_size > 0 ? model->data.batch_size : 1;
        if (source->type == SL_SOURCE_GENERATOR && source->size > enough)
            source->size = enough;
    }
}

seqlstm_status sl_session_check_metrics(struct sl_session *session, const struct sl_data_state *state,
                                        struct seqlstm_error *err)
{
    const struct sl_train_config *train = &session->model->train;
    seqlstm_status status = sl_metric_check(&train->metrics, state, err);
    if (status != SEQLSTM_OK)
        return sl_session_add_finding(session, "E0502", "train.metrics", status, err);
    status = sl_metric_check(&train->validate.metrics, state, err);
    return status == SEQLSTM_OK ? status : sl_session_add_finding(session, "E0502", "train.validate", status, err);
}

/* The batches of a split, as training and evaluation make them. */
static seqlstm_status check_batches(struct sl_session *session, enum sl_split split, const struct sl_dataset *data,
                                    struct sl_envelope *out, struct seqlstm_error *err)
{
    bool stream = session->model->data.batching.unit == SL_UNIT_STREAM;
    struct sl_batcher *batcher = NULL;
    struct sl_batcher_request request = {.phase = split == SL_SPLIT_TRAIN ? SL_BATCHING_TRAIN : SL_BATCHING_EVALUATE,
                                         .seed = session->model->seed,
                                         .batch_size = stream && split == SL_SPLIT_TEST};
    seqlstm_status status = sl_batcher_open(data, &request, &batcher, err);
    if (status != SEQLSTM_OK)
        return sl_session_add_finding(session, "E0501", "data", status, err);
    *out = sl_batcher_envelope(batcher);
    sl_batcher_close(batcher);
    return SEQLSTM_OK;
}

static seqlstm_status check_graph(struct sl_session *session, const struct sl_data_state *state,
                                  const struct sl_envelope *envelope, struct seqlstm_error *err)
{
    struct sl_data_facts facts = *sl_data_state_get_facts(state);
    struct sl_graph *graph = NULL;
    facts.envelope = *envelope;
    const struct sl_graph_request request = {.model = session->model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    seqlstm_status status = sl_graph_create(&request, &graph, err);
    sl_graph_destroy(graph);
    return status == SEQLSTM_OK ? status : sl_session_add_finding(session, "E0502", "model", status, err);
}

const struct sl_vocabulary *sl_session_find_words(const struct sl_model *model, const struct sl_data_state *state,
                                                  const struct sl_layer *layer)
{
    bool source = model->encoder_count > 0 && layer->side == SL_SIDE_ENCODER;
    return source ? sl_data_state_find_source_vocabulary(state) : sl_data_state_find_vocabulary(state);
}

/* Files of word vectors that exist: those that do not have findings of their own. */
static seqlstm_status check_vectors(struct sl_session *session, const struct sl_data_state *state,
                                    struct seqlstm_error *err)
{
    for (size_t l = 0; l < session->model->layer_count; l++) {
        const struct sl_layer *layer = &session->model->layers[l];
        const struct sl_vocabulary *words = sl_session_find_words(session->model, state, layer);
        const char *path = layer->kind == SL_LAYER_EMBEDDING ? layer->embedding.weights : NULL;
        int64_t found;
        if (path == NULL || words == NULL || !sl_file_exists(path))
            continue;
        seqlstm_status status = sl_word_vectors_load(path, words, layer->embedding.dim, NULL, &found, err);
        if (status == SEQLSTM_OK)
            continue;
        sl_session_add_finding_at(session, "E0505", sl_layer_find_option_place(layer, "weights"),
                                  err ? err->message : "");
        return status;
    }
    return SEQLSTM_OK;
}

/* Keeps the first error. */
static void keep_first(seqlstm_status *first, struct seqlstm_error *err, seqlstm_status status,
                       const struct seqlstm_error *other)
{
    if (*first != SEQLSTM_OK || status == SEQLSTM_OK)
        return;
    *first = status;
    if (err)
        *err = *other;
}

/* All faults of the model against the training split. */
static seqlstm_status check_model(struct sl_session *session, const struct sl_data_state *state,
                                  const struct sl_dataset *data, struct seqlstm_error *err)
{
    struct seqlstm_error other = SEQLSTM_ERROR_INIT;
    struct sl_envelope envelope = {0};
    seqlstm_status first = check_batches(session, SL_SPLIT_TRAIN, data, &envelope, err);
    if (first == SEQLSTM_OK)
        first = check_graph(session, state, &envelope, err);
    keep_first(&first, err, sl_session_check_metrics(session, state, &other), &other);
    seqlstm_status status = sl_class_weights_check(session->model, state, &other);
    if (status != SEQLSTM_OK)
        sl_session_add_finding(session, "E0502", "train.class_weight", status, &other);
    keep_first(&first, err, status, &other);
    keep_first(&first, err, check_vectors(session, state, &other), &other);
    return first;
}

/* One split; *state is learned from the first. */
static seqlstm_status check_split(struct sl_session *session, const struct sl_model *model, enum sl_split split,
                                  struct sl_data_state **state, struct seqlstm_error *err)
{
    struct sl_dataset *data = NULL;
    struct sl_envelope envelope;
    seqlstm_status status = split == SL_SPLIT_TRAIN ? sl_dataset_open_train(model, &data, state, err)
                                                    : sl_dataset_open(model, split, *state, &data, err);
    if (status != SEQLSTM_OK)
        return sl_session_add_data_finding(session, split, sl_session_blame_data(status, err), err);
    sl_session_note_split(session, split, data);
    status = split == SL_SPLIT_TRAIN ? check_model(session, *state, data, err)
                                     : check_batches(session, split, data, &envelope, err);
    sl_dataset_close(data);
    return status;
}

seqlstm_status sl_session_check_data(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_model model = *session->model;
    struct seqlstm_error other = SEQLSTM_ERROR_INIT;
    struct sl_data_state *state = NULL;
    shrink_generators(&model);
    seqlstm_status first = check_split(session, &model, SL_SPLIT_TRAIN, &state, err);
    for (int s = SL_SPLIT_VALID; state && s < SL_SPLIT_COUNT; s++)
        if (sl_dataset_has_split(&model, (enum sl_split)s))
            keep_first(&first, err, check_split(session, &model, (enum sl_split)s, &state, &other), &other);
    sl_data_state_destroy(state);
    return first;
}
