/* SPDX-License-Identifier: Apache-2.0 */
/* See bodies.h. */
#include "serve/load/bodies.h"

#include <stdlib.h>

#include <seqlstm/philox.h>

#include "base/value/json_write.h"
#include "data/dataset/dataset.h"
#include "session/data/read_data.h"
#include "session/prepare/decoding.h"
#include "session/session.h"

/* What the requests are made of. */
struct source {
    const struct sl_model *model;
    const struct sl_data_facts *facts;
    const struct sl_dataset *data;
    bool decodes, continues; /* texts are translated, or continued */
    uint64_t seed;
};

static uint64_t draw(const struct source *source, int64_t request, uint32_t number, int64_t below)
{
    return seqlstm_mix64(source->seed, (uint64_t)request, number) % (uint64_t)(below > 0 ? below : 1);
}

enum { STEPS_MOST = 256 };

#define LINE_NUMBER UINT32_MAX /* of the draw of a line; those of tokens count from 1 */

static int64_t limit(int64_t length, int64_t most)
{
    return length < 1 ? 1 : length < most ? length : most;
}

/* Of a running text, which is one record, a line that was drawn; without lines the steps of training. */
static int64_t get_length(const struct source *source, int64_t request, int64_t record)
{
    const int64_t length = sl_dataset_get_length(source->data, record), bptt = source->model->data.batching.bptt;
    if (source->model->data.batching.unit != SL_UNIT_STREAM)
        return limit(length, STEPS_MOST);
    const int64_t line = sl_dataset_get_next_line(source->data, record, draw(source, request, LINE_NUMBER, length));
    return line > 0 ? limit(line, STEPS_MOST) : limit(length, bptt > 0 ? bptt : STEPS_MOST);
}

static void append_text(const struct source *source, int64_t record, struct sl_buf *out)
{
    size_t bytes = 0;
    const char *text = sl_dataset_find_text(source->data, record, &bytes);
    sl_buf_append_text(out, "{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[");
    sl_json_append_text(out, text ? text : "", bytes);
    sl_buf_append_text(out, "]}]}");
}

static void append_values(const struct source *source, int64_t request, int64_t rows, struct sl_buf *out)
{
    const bool ids = source->facts->input.kind == SL_FIELD_IDS;
    const int64_t features = ids ? 1 : source->facts->input.features;
    sl_buf_printf(out, "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"%s\",\"shape\":[%lld%s", ids ? "INT32" : "FP32",
                  (long long)rows, ids ? "" : ",");
    if (!ids)
        sl_buf_printf(out, "%lld", (long long)features);
    sl_buf_append_text(out, "],\"data\":[");
    for (int64_t k = 0; k < rows * features; k++) {
        const uint64_t number = draw(source, request, (uint32_t)k + 1, ids ? source->facts->input.classes : 1000);
        sl_buf_printf(out, ids ? "%s%llu" : "%s0.%03llu", k > 0 ? "," : "", (unsigned long long)number);
    }
    sl_buf_append_text(out, "]}]}");
}

/* A language model reads the prompt and answers with one token: probabilities of all tokens would be far longer. */
static void append_prompt(const struct source *source, const char *name, int64_t request, int64_t tokens,
                          struct sl_buf *out)
{
    sl_buf_append_text(out, "{\"model\":");
    sl_json_append_string(out, name);
    sl_buf_append_text(out, ",\"max_tokens\":1,\"temperature\":0,\"prompt\":[");
    for (int64_t k = 0; k < tokens; k++)
        sl_buf_printf(out, "%s%llu", k > 0 ? "," : "",
                      (unsigned long long)draw(source, request, (uint32_t)k + 1, source->facts->input.classes));
    sl_buf_append_text(out, "]}");
}

static void append_request(const struct source *source, const char *name, const char *host, int64_t request,
                           struct sl_load_bodies *bodies)
{
    const int64_t record = (int64_t)draw(source, request, 0, sl_dataset_get_records(source->data));
    const int64_t steps = source->facts->input.on_steps ? get_length(source, request, record) : 1;
    struct sl_buf body = {0}, *out = &bodies->requests[request];
    if (source->decodes)
        append_text(source, record, &body);
    else if (source->continues)
        append_prompt(source, name, request, steps, &body);
    else
        append_values(source, request, steps, &body);
    bodies->lengths[request] = source->decodes ? sl_dataset_get_source_length(source->data, record) : steps;
    bodies->steps += bodies->lengths[request];
    sl_buf_append_text(out, "POST ");
    if (source->continues)
        sl_buf_append_text(out, "/v1/completions");
    else
        sl_buf_printf(out, "/v2/models/%s/infer", name);
    sl_buf_printf(out, " HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", host,
                  body.length_bytes);
    sl_buf_append(out, body.data, body.length_bytes);
    out->failed = out->failed || body.failed;
    sl_buf_deinit(&body);
}

static seqlstm_status fill(struct sl_load_bodies *bodies, const struct source *source, const char *name,
                           const char *host, struct seqlstm_error *err)
{
    if (sl_dataset_get_records(source->data) < 1)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the data hold no record to ask for");
    size_t bytes;
    if (source->decodes && sl_dataset_find_text(source->data, 0, &bytes) == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the model reads no texts, and so cannot be asked over HTTP");
    for (int64_t k = 0; k < bodies->count; k++) {
        append_request(source, name, host, k, bodies);
        if (bodies->requests[k].failed)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the requests");
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_load_bodies_init(struct sl_load_bodies *bodies, struct sl_session *session, const char *name,
                                   const char *host, int64_t count, uint64_t seed, struct seqlstm_error *err)
{
    const struct sl_model *model = sl_session_get_model(session);
    struct sl_dataset *data = NULL;
    const bool tests = model->data.splits[SL_SPLIT_TEST].origin != SL_SOURCE_NONE;
    SEQLSTM_TRY(sl_session_open_split(session, tests ? SL_SPLIT_TEST : SL_SPLIT_TRAIN, &data, err));
    const struct source source = {.model = model,
                                  .facts = sl_data_state_get_facts(sl_session_find_data_state(session)),
                                  .data = data,
                                  .decodes = sl_session_decodes(session),
                                  .continues = model->train.task == SL_TASK_LANGUAGE_MODEL &&
                                               sl_data_state_find_vocabulary(sl_session_find_data_state(session)),
                                  .seed = seed};
    *bodies = (struct sl_load_bodies){.count = count,
                                      .requests = calloc((size_t)count, sizeof *bodies->requests),
                                      .lengths = calloc((size_t)count, sizeof *bodies->lengths)};
    const seqlstm_status status =
        bodies->requests && bodies->lengths
            ? fill(bodies, &source, name, host, err)
            : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the requests");
    sl_dataset_close(data);
    return status;
}

void sl_load_bodies_deinit(struct sl_load_bodies *bodies)
{
    for (int64_t k = 0; bodies->requests && k < bodies->count; k++)
        sl_buf_deinit(&bodies->requests[k]);
    free(bodies->requests);
    free(bodies->lengths);
    *bodies = (struct sl_load_bodies){.count = 0};
}
