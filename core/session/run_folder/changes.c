/* SPDX-License-Identifier: Apache-2.0 */
/* See changes.h. */
#include "session/run_folder/changes.h"

#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "model/load/entries.h"
#include "session/record/session_record.h"

enum { SHOWN = 20 };

static seqlstm_status split(struct sl_arena *arena, const struct sl_model *model, struct sl_config_entries *out,
                            struct seqlstm_error *err)
{
    struct sl_buf text = {0};
    seqlstm_status status = sl_model_write_config(model, 0, &text, err);
    if (status == SEQLSTM_OK && (text.data == NULL || !sl_config_entries_read(arena, text.data, out)))
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                   "no memory to compare the configuration with that of the run");
    sl_buf_deinit(&text);
    return status;
}

static bool begins_with(const char *path, const char *prefix)
{
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

/* Is the key read by training alone? The others of `train` say what an evaluation measures: without a valid split the
 * metrics of training. */
static bool is_of_training(const struct sl_model *model, const char *path)
{
    static const char *const sections[] = {"train.", "parallel.", "output."};
    static const char *const measured[] = {"train.validate.metrics", "train.loss.type", "train.loss.ignore",
                                           "train.loss.delta", "train.task"};
    if (begins_with(path, "train.metrics"))
        return model->data.splits[SL_SPLIT_VALID].origin != SL_SOURCE_NONE;
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        if (begins_with(path, measured[i]))
            return false;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (begins_with(path, sections[i]))
            return true;
    return false;
}

struct review {
    const struct sl_session *session;
    size_t count;
    const char *idle; /* the first key that has no effect; NULL: none */
};

/* `was`, `is`: NULL where the key is not set. */
static void note(struct review *review, const char *path, const char *was, const char *is)
{
    if (review->idle == NULL && is_of_training(review->session->model, path))
        review->idle = path;
    if (review->count++ < SHOWN)
        sl_log_printf(review->session->options.log, SL_LOG_INFO, "changed %s: %s -> %s", path, was ? was : "(not set)",
                      is ? is : "(not set)");
}

static void compare(struct review *review, const struct sl_config_entries *old, const struct sl_config_entries *new)
{
    for (size_t i = 0; i < new->count; i++) {
        const char *was = sl_config_entries_find(old, new->items[i].path);
        if (was == NULL || !sl_config_entries_is_same(was, new->items[i].value))
            note(review, new->items[i].path, was, new->items[i].value);
    }
    for (size_t i = 0; i < old->count; i++)
        if (sl_config_entries_find(new, old->items[i].path) == NULL)
            note(review, old->items[i].path, old->items[i].value, NULL);
    if (review->count > SHOWN)
        sl_log_printf(review->session->options.log, SL_LOG_INFO, "and %zu more changes", review->count - SHOWN);
}

seqlstm_status sl_session_review_changes(const struct sl_session *session, const struct sl_model *before,
                                         size_t *out_changes, struct seqlstm_error *err)
{
    struct sl_arena arena;
    struct sl_config_entries old = {0}, new = {0};
    struct review review = {.session = session};
    sl_arena_init(&arena);
    seqlstm_status status = split(&arena, before, &old, err);
    if (status == SEQLSTM_OK)
        status = split(&arena, session->model, &new, err);
    if (status == SEQLSTM_OK)
        compare(&review, &old, &new);
    if (status == SEQLSTM_OK && session->options.trained && review.idle)
        status = seqlstm_error_set(err, SEQLSTM_INVALID_ARGUMENT, __FILE__, __LINE__,
                                   "`%s` belongs to the training of this run, which is over: leave it out, or train on "
                                   "with it by `seqlstm resume RUN --set %s=…`",
                                   review.idle, review.idle);
    sl_arena_deinit(&arena);
    *out_changes = review.count;
    return status;
}
