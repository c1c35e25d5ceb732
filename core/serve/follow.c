/* SPDX-License-Identifier: Apache-2.0 */
/* See follow.h. */
#include "serve/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "serve/server.h"
#include "session/session.h"

enum { NAP_NS = 20000000, NAPS = 10 };

/* Versions of a model that streams keep, beside the newest one: there are no more, so that memory stays bounded. */
enum { OLDER_MOST = 4 };

seqlstm_status sl_follower_init(struct sl_follower *follower, const struct sl_server_request *made,
                                struct seqlstm_error *err)
{
    *follower = (struct sl_follower){.seen = calloc((size_t)made->count, sizeof *follower->seen)};
    if (follower->seen == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a server");
    for (int m = 0; m < made->count; m++)
        follower->seen[m] = sl_session_sign_weights(made->sessions[m]);
    return SEQLSTM_OK;
}

void sl_follower_deinit(struct sl_follower *follower)
{
    free(follower->seen);
    follower->seen = NULL;
}

static void tell(const struct sl_follower *follower, int slot, const char *what, const char *why)
{
    const struct sl_server_request *made = follower->models->made;
    char text[1024];
    snprintf(text, sizeof text, "%s: %s%s%s", made->names[slot], what, why[0] ? ": " : "", why);
    made->tell(made->follow_context, text);
}

static bool has_same_form(const struct sl_served_model *a, const struct sl_served_model *b)
{
    return a->reads_ids == b->reads_ids && a->reads_steps == b->reads_steps && a->reads_text == b->reads_text &&
           a->decodes == b->decodes && a->gives_steps == b->gives_steps && a->streams == b->streams &&
           a->continues == b->continues && a->input_features == b->input_features &&
           a->input_classes == b->input_classes && a->output_features == b->output_features &&
           (a->classes == NULL) == (b->classes == NULL);
}

/* What clients would notice of another version but better answers; NULL: nothing. */
static const char *find_difference(const struct sl_served_model *a, const struct sl_served_model *b)
{
    if (!has_same_form(a, b))
        return "its inputs or outputs are others";
    if (!sl_vocabulary_is_same(sl_data_state_find_vocabulary(a->state), sl_data_state_find_vocabulary(b->state)) ||
        !sl_vocabulary_is_same(sl_data_state_find_source_vocabulary(a->state),
                               sl_data_state_find_source_vocabulary(b->state)))
        return "its vocabulary is another";
    if (!sl_vocabulary_is_same(sl_data_state_find_classes(a->state), sl_data_state_find_classes(b->state)))
        return "its classes are others";
    return NULL;
}

static seqlstm_status prepare(struct sl_follower *follower, struct sl_served_model *model, struct seqlstm_error *err)
{
    const struct sl_server_request *made = follower->models->made;
    const struct sl_served_model *const *newest = sl_models_lock(follower->models);
    const char *difference = find_difference(newest[model->slot], model);
    sl_models_unlock(follower->models);
    if (difference)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s now; start the server again", difference);
    for (int w = 0; w < made->workers; w++)
        SEQLSTM_TRY(sl_worker_add(&follower->workers[w], model, err));
    return SEQLSTM_OK;
}

static seqlstm_status take_over(struct sl_follower *follower, int slot, struct seqlstm_error *err)
{
    const struct sl_server_request *made = follower->models->made;
    struct sl_session *session = NULL;
    struct sl_served_model *model = NULL;
    SEQLSTM_TRY(made->reopen(made->follow_context, made->sessions[slot], &session, err));
    SEQLSTM_TRY(sl_models_open(follower->models, slot, session, &model, err));
    const seqlstm_status status = prepare(follower, model, err);
    if (status != SEQLSTM_OK) {
        sl_models_put_aside(follower->models, model);
        return status;
    }
    sl_models_replace(follower->models, model);
    return SEQLSTM_OK;
}

static void look(struct sl_follower *follower, int slot)
{
    const struct sl_server_request *made = follower->models->made;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int older = sl_models_count_older(follower->models, slot, made->workers);
    const uint64_t sign = sl_session_sign_weights(made->sessions[slot]);
    if (older > 0)
        sl_job_queue_wake(&follower->serving->queue); /* workers let go of what is over */
    if (sign == follower->seen[slot] || older >= OLDER_MOST)
        return;
    follower->seen[slot] = sign;
    if (take_over(follower, slot, &err) != SEQLSTM_OK) {
        tell(follower, slot, "newer weights are not taken over", err.message);
        return;
    }
    sl_counters_note_followed(&follower->serving->counters);
    tell(follower, slot, "newer weights are taken over", "");
}

static void *follow(void *context)
{
    struct sl_follower *follower = context;
    const struct timespec nap = {.tv_nsec = NAP_NS};
    for (int64_t n = 1; !atomic_load(&follower->ends); n++) {
        nanosleep(&nap, NULL);
        for (int m = 0; n % NAPS == 0 && m < follower->models->made->count; m++)
            look(follower, m);
    }
    return NULL;
}

seqlstm_status sl_follower_start(struct sl_follower *follower, struct sl_models *models, struct sl_serving *serving,
                                 struct sl_worker *workers, struct seqlstm_error *err)
{
    follower->models = models;
    follower->serving = serving;
    follower->workers = workers;
    if (pthread_create(&follower->thread, NULL, follow, follower) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "a thread cannot be started");
    follower->started = true;
    return SEQLSTM_OK;
}

void sl_follower_end(struct sl_follower *follower)
{
    if (!follower->started)
        return;
    atomic_store(&follower->ends, true);
    pthread_join(follower->thread, NULL);
    follower->started = false;
}
