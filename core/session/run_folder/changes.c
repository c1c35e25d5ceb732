/* SPDX-License-Identifier: Apache-2.0 */
/* See changes.h. */
#include "session/run_folder/changes.h"

#include <stdint.h>
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

enum {
    TRAIN = 1 << SL_RUN_USE_ALL,
    BENCH = 1 << SL_RUN_USE_BENCH,
    EVALUATE = 1 << SL_RUN_USE_EVALUATE,
    PLAN = 1 << SL_RUN_USE_PLAN,
    QUANTIZE = 1 << SL_RUN_USE_QUANTIZE,
    SERVE = 1 << SL_RUN_USE_SERVE,
    EXPORT = 1 << SL_RUN_USE_EXPORT,
    MEASURE = BENCH | PLAN | QUANTIZE | EVALUATE,
    PREDICT = 1 << SL_RUN_USE_PREDICT | SERVE
};

/* What reads the keys that begin so; the first that fits holds. All others are always read. Some of `train` say what an
 * evaluation measures. */
static const struct {
    const char *prefix;
    uint32_t readers;
} sections[] = {
    {"name", TRAIN | BENCH | SERVE | EXPORT},
    {"train.validate.metrics", TRAIN | MEASURE},
    {"train.loss.type", TRAIN | MEASURE | PREDICT},
    {"train.loss.ignore", TRAIN | MEASURE},
    {"train.loss.delta", TRAIN | MEASURE},
    {"train.task", TRAIN | MEASURE | PREDICT},
    {"train.", TRAIN},
    {"parallel.", TRAIN},
    {"output.", TRAIN},
    {"log.", TRAIN},
    {"data.shuffle", TRAIN},
    {"data.valid.", TRAIN | MEASURE},
    {"data.test.", TRAIN | MEASURE},
    {"data.batch", TRAIN | MEASURE | PREDICT},
    {"decode.", TRAIN | MEASURE | PREDICT},
    {"dispatch.", TRAIN | MEASURE | PREDICT},
    {"device", TRAIN | MEASURE | PREDICT},
};

/* Does a split have data that are made from the seed of the model? */
static bool generates_data(const struct sl_model *model)
{
    for (int split = 0; split < SL_SPLIT_COUNT; split++) {
        const struct sl_source *source = &model->data.splits[split];
        if (source->origin != SL_SOURCE_NONE && source->type == SL_SOURCE_GENERATOR && !source->has_seed)
            return true;
    }
    return false;
}

/* What is timed is a sample of the data, which the seed chooses. */
static uint32_t get_readers_of_seed(const struct sl_model *model)
{
    const uint32_t drawn = model->decode.temperature > 0 ? EVALUATE | PREDICT : 0;
    return TRAIN | BENCH | PLAN | QUANTIZE | drawn | (generates_data(model) ? EVALUATE : 0);
}

static uint32_t get_readers(const struct sl_model *model, const char *path)
{
    if (strcmp(path, "seed") == 0)
        return get_readers_of_seed(model);
    if (begins_with(path, "train.metrics")) /* without a valid split, an evaluation measures those of training */
        return model->data.splits[SL_SPLIT_VALID].origin != SL_SOURCE_NONE ? TRAIN : TRAIN | MEASURE;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (begins_with(path, sections[i].prefix))
            return sections[i].readers;
    return UINT32_MAX;
}

struct review {
    const struct sl_session *session;
    const struct sl_model *before;
    size_t count;
    const char *idle; /* the first key that is not read; NULL: none */
};

/* Was the key given with this change, and is no default that follows from another one? */
static bool is_said(const struct review *review, const char *path)
{
    const struct sl_model *model = review->session->model;
    for (size_t i = 0; i < model->places.count; i++)
        if (strcmp(model->places.items[i].path, path) == 0)
            return true;
    const struct sl_place now = sl_model_find_place(model, path), then = sl_model_find_place(review->before, path);
    return now.line != then.line || now.column != then.column || (now.line > 0 && strcmp(now.file, then.file) != 0);
}

/* `was`, `is`: NULL where the key is not set. */
static void note(struct review *review, const char *path, const char *was, const char *is)
{
    if (review->idle == NULL && !(get_readers(review->session->model, path) & 1u << review->session->options.use) &&
        (is == NULL || is_said(review, path)))
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
        sl_log_printf(review->session->options.log, SL_LOG_INFO, "and %zu more change%s", review->count - SHOWN,
                      review->count == SHOWN + 1 ? "" : "s");
}

static seqlstm_status refuse(const struct sl_session *session, const char *path, struct seqlstm_error *err)
{
    static const char *const uses[SL_RUN_USE_COUNT] = {"a training",    "a benchmark", "a plan",   "a quantization",
                                                       "an evaluation", "predictions", "a server", "an export"};
    if (get_readers(session->model, path) != TRAIN)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`%s` has no effect on %s: leave it out", path,
                     uses[session->options.use]);
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                 "`%s` belongs to the training of this run, which is over: leave it out, or train on with it by "
                 "`seqlstm resume RUN --set %s=…`",
                 path, path);
}

seqlstm_status sl_session_review_changes(const struct sl_session *session, const struct sl_model *before,
                                         size_t *out_changes, struct seqlstm_error *err)
{
    struct sl_arena arena;
    struct sl_config_entries old = {0}, new = {0};
    struct review review = {.session = session, .before = before};
    sl_arena_init(&arena);
    seqlstm_status status = split(&arena, before, &old, err);
    if (status == SEQLSTM_OK)
        status = split(&arena, session->model, &new, err);
    if (status == SEQLSTM_OK)
        compare(&review, &old, &new);
    if (status == SEQLSTM_OK && review.idle)
        status = refuse(session, review.idle, err);
    sl_arena_deinit(&arena);
    *out_changes = review.count;
    return status;
}
