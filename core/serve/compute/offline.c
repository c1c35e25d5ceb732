/* SPDX-License-Identifier: Apache-2.0 */
/* See offline.h. */
#include "serve/compute/offline.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/system/interrupt.h"
#include "predict/batches.h"
#include "predict/whole.h"
#include "serve/body/completion_read.h"
#include "serve/body/infer_read.h"
#include "serve/load/bodies.h"
#include "session/session.h"

/* One request as it is computed. */
struct item {
    const void *x; /* [length, features] */
    int64_t length;
};

struct offline {
    struct sl_served_model model;
    struct sl_context *context;
    struct sl_job **jobs; /* [count] */
    int64_t count;
    struct item *items; /* [count] the longest first; of models that write texts none */
    const char **texts; /* [count] of those models */
    size_t *text_bytes;
    int64_t *lengths; /* [count] of the items */
    float *x, *y;     /* of a batch */
};

static const struct sl_served_model *find(void *context, const char *name)
{
    struct offline *offline = context;
    if (strcmp(name, offline->model.name) != 0)
        return NULL;
    sl_served_model_hold(&offline->model);
    return &offline->model;
}

static seqlstm_status read_job(struct offline *offline, const struct sl_buf *request, struct sl_job **out,
                               struct seqlstm_error *err)
{
    static const char text_path[] = "POST /v1/completions ";
    const char *body = strstr(request->data, "\r\n\r\n") + 4;
    const uint64_t bytes = request->length_bytes - (uint64_t)(body - request->data);
    const bool continues = strncmp(request->data, text_path, sizeof text_path - 1) == 0;
    struct sl_job *job = *out = sl_job_create(continues ? NULL : &offline->model, NULL);
    if (job == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a request");
    sl_served_model_hold(job->model);
    return continues ? sl_completion_read(job, body, bytes, find, offline, err)
                     : sl_infer_read(job, body, bytes, -1, err);
}

static int by_length(const void *a, const void *b)
{
    const struct item *one = a, *other = b;
    return one->length > other->length ? -1 : one->length < other->length;
}

static void fill_items(struct offline *offline)
{
    for (int64_t k = 0; k < offline->count; k++) {
        const struct sl_job *job = offline->jobs[k];
        if (job->completion)
            offline->items[k] = (struct item){job->completion->prompts[0].ids, job->completion->prompts[0].count};
        else
            offline->items[k] = (struct item){job->x, job->rows};
        if (job->texts) {
            offline->texts[k] = job->texts[0];
            offline->text_bytes[k] = job->text_bytes[0];
        }
    }
    qsort(offline->items, (size_t)offline->count, sizeof *offline->items, by_length);
    for (int64_t k = 0; k < offline->count; k++)
        offline->lengths[k] = offline->items[k].length;
}

static seqlstm_status make_room(struct offline *offline, struct seqlstm_error *err)
{
    const struct sl_served_model *model = &offline->model;
    const size_t rows = (size_t)(model->sequences * (offline->lengths[0] > 0 ? offline->lengths[0] : 1));
    offline->x = malloc(rows * (size_t)model->input_features * sizeof *offline->x);
    offline->y = malloc(rows * (size_t)model->output_features * sizeof *offline->y);
    if (offline->x == NULL || offline->y == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a batch");
    return SEQLSTM_OK;
}

static seqlstm_status fill(struct offline *offline, const struct sl_load_bodies *bodies, struct seqlstm_error *err)
{
    const size_t count = (size_t)bodies->count;
    offline->jobs = calloc(count, sizeof *offline->jobs);
    offline->items = calloc(count, sizeof *offline->items);
    offline->texts = calloc(count, sizeof *offline->texts);
    offline->text_bytes = calloc(count, sizeof *offline->text_bytes);
    offline->lengths = calloc(count, sizeof *offline->lengths);
    if (!offline->jobs || !offline->items || !offline->texts || !offline->text_bytes || !offline->lengths)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the requests");
    for (; offline->count < bodies->count; offline->count++)
        SEQLSTM_TRY(read_job(offline, &bodies->requests[offline->count], &offline->jobs[offline->count], err));
    fill_items(offline);
    return make_room(offline, err);
}

static seqlstm_status skip_text(void *context, const struct sl_prediction *prediction, struct seqlstm_error *err)
{
    (void)context, (void)prediction, (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status compute_batch(struct offline *offline, int64_t first, struct seqlstm_error *err)
{
    const struct sl_served_model *model = &offline->model;
    const int64_t left = offline->count - first, count = left < model->sequences ? left : model->sequences;
    char *to = (char *)offline->x;
    for (int64_t k = first; k < first + count; k++) {
        const size_t bytes = (size_t)(offline->lengths[k] * model->input_features) * sizeof(float);
        memcpy(to, offline->items[k].x, bytes);
        to += bytes;
    }
    return sl_context_predict(offline->context, offline->x, model->reads_steps ? offline->lengths + first : NULL, count,
                              offline->y, err);
}

/* All requests once. */
static seqlstm_status compute(struct offline *offline, struct seqlstm_error *err)
{
    if (offline->model.decodes)
        return sl_context_predict_texts(offline->context, offline->texts, offline->text_bytes, offline->count,
                                        skip_text, NULL, err);
    for (int64_t first = 0; first < offline->count; first += offline->model.sequences)
        SEQLSTM_TRY(compute_batch(offline, first, err));
    return SEQLSTM_OK;
}

static seqlstm_status measure(struct offline *offline, double seconds, const struct sl_interrupt *interrupt,
                              double *out_rate, struct seqlstm_error *err)
{
    SEQLSTM_TRY(compute(offline, err)); /* it finds everything ready */
    const int64_t began = sl_clock_ns();
    double took = 0;
    int64_t done = 0;
    while (took < seconds) {
        if (sl_interrupt_get_stop(interrupt))
            SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "interrupted");
        SEQLSTM_TRY(compute(offline, err));
        done += offline->count;
        took = (double)(sl_clock_ns() - began) * 1e-9;
    }
    *out_rate = (double)done / took;
    return SEQLSTM_OK;
}

seqlstm_status sl_offline_measure(struct sl_session *session, const struct sl_load_bodies *bodies, double seconds,
                                  const struct sl_interrupt *interrupt, double *out_rate, struct seqlstm_error *err)
{
    struct offline offline = {.count = 0};
    const struct sl_predictor_limits limits = {
        .threads = 1, .measures = true, .chunk_steps = 1}; /* language models are those of streams */
    seqlstm_status status =
        sl_served_model_open(session, sl_session_get_model(session)->name, &limits, &offline.model, err);
    if (status == SEQLSTM_OK)
        status = sl_context_open(offline.model.predictor, &offline.context, err);
    if (status == SEQLSTM_OK)
        status = fill(&offline, bodies, err);
    if (status == SEQLSTM_OK)
        status = measure(&offline, seconds, interrupt, out_rate, err);
    for (int64_t k = 0; offline.jobs && k < bodies->count; k++)
        sl_job_destroy(offline.jobs[k]);
    sl_context_close(offline.context);
    sl_served_model_close(&offline.model);
    free(offline.jobs);
    free(offline.items);
    free(offline.texts);
    free(offline.text_bytes);
    free(offline.lengths);
    free(offline.x);
    free(offline.y);
    return status;
}
