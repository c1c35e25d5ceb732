/* SPDX-License-Identifier: Apache-2.0 */
/* See models.h. */
#include "serve/models.h"

#include <stdlib.h>
#include <string.h>

#include "serve/server.h"
#include "session/session.h"

enum { CHUNK_STEPS = 32 };
enum { SEQUENCES = 64, ROWS = 4096 }; /* of a batch, by default */

/* ---- versions ---------------------------------------------------------------------------------------------- */

/* The padding of a batch is as many sequences again, and at most as many rows. Decoders pad within their limits. */
static bool adds_padding(const struct sl_models *models, const struct sl_session *session)
{
    return models->made->batching == SL_BATCHING_PADDED && sl_session_get_model(session)->encoder_count == 0;
}

static void add_padding(const struct sl_session *session, struct sl_predictor_limits *limits)
{
    const int64_t steps = limits->steps > 0 ? limits->steps : sl_session_get_longest(session);
    limits->sequences = 2 * (limits->sequences > 0 ? limits->sequences : SEQUENCES);
    limits->rows = 2 * (steps > ROWS ? steps : ROWS);
}

static seqlstm_status open_version(const struct sl_models *models, int slot, struct sl_session *session,
                                   struct sl_served_model **out_model, struct seqlstm_error *err)
{
    const struct sl_server_request *made = models->made;
    struct sl_served_model *model = calloc(1, sizeof *model);
    struct sl_predictor_limits limits = {.sequences = made->sequences,
                                         .steps = made->steps,
                                         .threads = made->threads,
                                         .stream_steps = CHUNK_STEPS,
                                         .chunk_steps = CHUNK_STEPS,
                                         .measures = !made->reproducible,
                                         .reproducible = made->reproducible};
    const bool pads = adds_padding(models, session);
    if (model == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a model");
    if (pads)
        add_padding(session, &limits);
    const seqlstm_status status = sl_served_model_open(session, made->names[slot], &limits, model, err);
    if (status != SEQLSTM_OK) {
        sl_served_model_close(model);
        free(model);
        return status;
    }
    model->sequences /= pads ? 2 : 1;
    model->slot = slot;
    *out_model = model;
    return SEQLSTM_OK;
}

static void close_version(const struct sl_models *models, struct sl_served_model *model)
{
    if (model == NULL)
        return;
    sl_served_model_close(model);
    if (model->session)
        models->made->close(models->made->follow_context, model->session);
    free(model);
}

seqlstm_status sl_models_open(const struct sl_models *models, int slot, struct sl_session *session,
                              struct sl_served_model **out_model, struct seqlstm_error *err)
{
    const seqlstm_status status = open_version(models, slot, session, out_model, err);
    if (status == SEQLSTM_OK)
        (*out_model)->session = session;
    else
        models->made->close(models->made->follow_context, session);
    return status;
}

/* ---- the newest -------------------------------------------------------------------------------------------- */

seqlstm_status sl_models_init(struct sl_models *models, const struct sl_server_request *made, struct seqlstm_error *err)
{
    *models = (struct sl_models){.made = made};
    models->newest = calloc((size_t)made->count, sizeof *models->newest);
    if (models->newest == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a server");
    pthread_mutex_init(&models->lock, NULL);
    for (int m = 0; m < made->count; m++)
        SEQLSTM_TRY(open_version(models, m, made->sessions[m], &models->newest[m], err));
    return SEQLSTM_OK;
}

void sl_models_deinit(struct sl_models *models)
{
    if (models->newest == NULL)
        return;
    for (int m = 0; m < models->made->count; m++)
        close_version(models, models->newest[m]);
    while (models->older) {
        struct sl_served_model *model = models->older;
        models->older = model->next;
        close_version(models, model);
    }
    pthread_mutex_destroy(&models->lock);
    free(models->newest);
    models->newest = NULL;
}

const struct sl_served_model *const *sl_models_lock(struct sl_models *models)
{
    pthread_mutex_lock(&models->lock);
    return (const struct sl_served_model *const *)models->newest;
}

void sl_models_unlock(struct sl_models *models)
{
    pthread_mutex_unlock(&models->lock);
}

const struct sl_served_model *sl_models_find(struct sl_models *models, const char *name)
{
    const struct sl_served_model *found = NULL, *const *newest = sl_models_lock(models);
    for (int m = 0; m < models->made->count && found == NULL; m++)
        if (strcmp(newest[m]->name, name) == 0)
            found = newest[m];
    sl_served_model_hold(found);
    sl_models_unlock(models);
    return found;
}

const struct sl_served_model *sl_models_find_path(struct sl_models *models, const char *path, const char **out_rest)
{
    static const char prefix[] = "/v2/models/", version[] = "/versions/1";
    const struct sl_served_model *found = NULL, *const * newest;
    if (strncmp(path, prefix, sizeof prefix - 1) != 0)
        return NULL;
    path += sizeof prefix - 1;
    newest = sl_models_lock(models);
    for (int m = 0; m < models->made->count && found == NULL; m++) {
        const size_t bytes = strlen(newest[m]->name);
        if (strncmp(path, newest[m]->name, bytes) != 0 || (path[bytes] != '\0' && path[bytes] != '/'))
            continue;
        found = newest[m];
        *out_rest = path + bytes;
        if (strncmp(*out_rest, version, sizeof version - 1) == 0)
            *out_rest += sizeof version - 1;
    }
    sl_served_model_hold(found);
    sl_models_unlock(models);
    return found;
}

/* ---- replacing --------------------------------------------------------------------------------------------- */

void sl_models_put_aside(struct sl_models *models, struct sl_served_model *model)
{
    model->next = models->older;
    models->older = model;
    sl_served_model_release(model);
}

void sl_models_replace(struct sl_models *models, struct sl_served_model *model)
{
    pthread_mutex_lock(&models->lock);
    struct sl_served_model *before = models->newest[model->slot];
    models->newest[model->slot] = model;
    pthread_mutex_unlock(&models->lock);
    sl_models_put_aside(models, before);
}

int sl_models_count_older(struct sl_models *models, int slot, int workers)
{
    int count = 0;
    for (struct sl_served_model **at = &models->older; *at;) {
        struct sl_served_model *model = *at;
        const long long uses = atomic_load(&model->uses->count);
        if (model->slot == slot && uses == 0) {
            *at = model->next;
            close_version(models, model);
            continue;
        }
        if (model->slot == slot && uses <= workers)
            atomic_store(&model->uses->over, true);
        count += model->slot == slot;
        at = &model->next;
    }
    return count;
}
