/* SPDX-License-Identifier: Apache-2.0 */
/* See failure.h. */
#include "dispatch/failure.h"

#include <stdio.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "base/value/buf.h"
#include "base/value/error_place.h"
#include "dispatch/plan/refusal.h"

enum { REASONS = 3, REASONS_BYTES = 360 }; /* of backends, which fit into a message */

static const char reference_hint[] = "; use --set 'backends=[reference]', which runs every model, but is slow";

/* `place`, or that of the node's layer. `node` may be NULL. */
static seqlstm_status fail_at(const struct sl_graph *graph, const struct sl_node *node, struct sl_place place,
                              const char *text, struct seqlstm_error *err)
{
    if (place.line == 0 && node && node->layer >= 0)
        place = graph->model->layers[node->layer].place;
    seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__, "%s", text);
    if (place.line > 0)
        sl_error_place_set(err, place.file, place.line, place.column);
    return SEQLSTM_UNAVAILABLE;
}

/* Is cpu-blas missing, although the model does not leave it out? */
static bool lacks_blas(const struct sl_graph *graph, const struct sl_registry *registry)
{
    const uint32_t count = sl_registry_get_record_count(registry);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(sl_registry_get_record(registry, i)->id, "cpu-blas") == 0)
            return false;
    return graph->model->all_backends;
}

static void advise_blas(struct sl_buf *text)
{
    sl_buf_append_text(text,
                       "; cpu-blas was not found: it is built if OpenBLAS is installed (Debian: libopenblas-dev)");
}

/* How many bytes of a text to show: all, or at most so many, which end with a word. */
static int count_shown(const char *text, int most)
{
    int shown = most;
    if (strnlen(text, (size_t)most + 1) <= (size_t)most)
        return (int)strlen(text);
    while (shown > 0 && text[shown] != ' ')
        shown--;
    return shown > 0 ? shown : most;
}

seqlstm_status sl_failure_no_backend(const struct sl_graph *graph, const struct sl_registry *registry,
                                     struct seqlstm_error *err)
{
    const uint32_t found = sl_registry_get_record_count(registry), count = found < REASONS ? found : REASONS;
    struct sl_buf text = {0};
    for (uint32_t i = 0; i < count; i++) {
        const struct sl_backend_record *record = sl_registry_get_record(registry, i);
        const char *name = record->id[0] ? record->id : record->file;
        const char *reason = record->reason ? record->reason : "no reason was given";
        const int shown = count_shown(reason, REASONS_BYTES / (int)count);
        sl_buf_printf(&text, "; `%.60s`: %.*s%s", name, shown, reason, reason[shown] ? " …" : "");
    }
    if (lacks_blas(graph, registry))
        advise_blas(&text);
    seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__,
                      "no backend is loaded%s%s%s; `seqlstm backends -v` shows where backends were looked for",
                      sl_buf_text(&text), reference_hint,
                      graph->model->all_backends ? "" : ", or leave `backends` out to use all that are found");
    sl_buf_deinit(&text);
    const struct sl_model *model = graph->model;
    if (model->backend_count > 0 && model->backends[0].place.line > 0)
        sl_error_place_set(err, model->backends[0].place.file, model->backends[0].place.line,
                           model->backends[0].place.column);
    return SEQLSTM_UNAVAILABLE;
}

seqlstm_status sl_failure_fallback(const struct sl_graph *graph, const struct sl_call *call, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    sl_buf_printf(&buf, "`%s` falls back to %s, and `dispatch.fallback: error` forbids it: ", call->node->name,
                  sl_backend_get_id(call->backend));
    sl_refusals_write(&buf, call->refusals, call->refusal_count);
    seqlstm_status status =
        fail_at(graph, call->node, call->refusals[0].place, buf.failed ? "a layer falls back" : buf.data, err);
    sl_buf_deinit(&buf);
    return status;
}

seqlstm_status sl_failure_refused(const struct sl_graph *graph, const struct sl_registry *registry,
                                  const struct sl_subgraph *subgraph, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    const char *name = subgraph->node->name, *op = sl_op_name(subgraph->node->desc.head.op);
    if (subgraph->pin && subgraph->pin_place.line == 0)
        sl_buf_printf(&buf, "the stored plan gives `%s` (%s) to `%s`, which does not run it: ", name, op,
                      subgraph->pin);
    else if (subgraph->pin)
        sl_buf_printf(&buf, "`%s` (%s) is pinned to `%s`, which does not run it: ", name, op, subgraph->pin);
    else
        sl_buf_printf(&buf, "no listed backend runs `%s` (%s): ", name, op);
    sl_refusals_write(&buf, subgraph->refusals, subgraph->refusal_count);
    if (subgraph->pin == NULL && lacks_blas(graph, registry)) {
        advise_blas(&buf);
        sl_buf_append_text(&buf, reference_hint);
    }
    const struct sl_refusal *first = subgraph->refusal_count > 0 ? &subgraph->refusals[0] : NULL;
    struct sl_place place = subgraph->pin_place;
    if (first && (place.line == 0 || first->option[0] != '\0'))
        place = first->place;
    seqlstm_status status = fail_at(graph, subgraph->node->layer >= 0 ? subgraph->node : NULL, place,
                                    buf.failed ? "no listed backend runs an operation of the model" : buf.data, err);
    sl_buf_deinit(&buf);
    return status;
}
