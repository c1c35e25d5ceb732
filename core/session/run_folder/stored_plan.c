/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a stored plan back, and reports where this run does not follow it. */
#include "session/run_folder/stored_plan.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/batch/pieces.h"
#include "base/operation/cost_json.h"
#include "base/system/cpu.h"
#include "base/system/file.h"
#include "base/value/json_tree.h"
#include "dispatch/plan/refusal.h"
#include "session/record/session_record.h"

enum { PLAN_LIMIT = 64 << 20 };

static seqlstm_status read_choice(const char *path, size_t i, const json_t *layer, struct sl_arena *arena,
                                  struct sl_plan_choice *choice, struct seqlstm_error *err)
{
    const char *name = json_string_value(json_object_get(layer, "name"));
    const char *backend = json_string_value(json_object_get(layer, "backend"));
    const char *variant = json_string_value(json_object_get(layer, "variant"));
    if (!name || !backend || !variant)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: layer %zu has no name, backend or variant", path, i);
    choice->node = sl_arena_strdup(arena, name);
    choice->backend = sl_arena_strdup(arena, backend);
    choice->variant = sl_arena_strdup(arena, variant);
    if (!choice->node || !choice->backend || !choice->variant)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
    return SEQLSTM_OK;
}

static seqlstm_status read_layers(const char *path, enum sl_phase phase, json_t *layers, struct sl_arena *arena,
                                  struct sl_choices *out, struct seqlstm_error *err)
{
    size_t i;
    json_t *layer;
    json_array_foreach(layers, i, layer)
    {
        SEQLSTM_TRY(read_choice(path, i, layer, arena, &out->items[out->count], err));
        out->items[out->count++].phase = phase;
    }
    return SEQLSTM_OK;
}

/* The layers of an encoder and a decoder that runs step by step, if the plan has them. */
static seqlstm_status read_pair(const char *path, const json_t *pair, struct sl_arena *arena, struct sl_choices *out,
                                struct seqlstm_error *err)
{
    json_t *layers = json_object_get(pair, "layers");
    out->items = SL_ARENA_ARRAY(arena, struct sl_plan_choice, json_array_size(layers) + 1);
    if (out->items == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
    return read_layers(path, SL_PHASE_PREDICT, layers, arena, out, err);
}

/* The layers of training, and if the plan has them those of evaluation, decoding and scheduled sampling. */
static seqlstm_status read_phases(const char *path, const json_t *root, struct sl_stored_plan *out,
                                  struct seqlstm_error *err)
{
    json_t *train = json_object_get(root, "layers");
    json_t *evaluate = json_object_get(json_object_get(root, "evaluate"), "layers");
    const char *phase = json_string_value(json_object_get(root, "phase"));
    if (phase != NULL && strcmp(phase, "train") != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s: the plan of a saved run's evaluation, expected one of training "
                     "(seqlstm plan model.yaml --json)",
                     path);
    if (!json_is_array(train))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: no array \"layers\", expected a plan of this program", path);
    struct sl_arena *arena = &out->arena;
    out->phases.items =
        SL_ARENA_ARRAY(arena, struct sl_plan_choice, json_array_size(train) + json_array_size(evaluate) + 1);
    if (out->phases.items == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
    SEQLSTM_TRY(read_layers(path, SL_PHASE_TRAIN, train, arena, &out->phases, err));
    SEQLSTM_TRY(read_layers(path, SL_PHASE_EVALUATE, evaluate, arena, &out->phases, err));
    SEQLSTM_TRY(read_pair(path, json_object_get(root, "decoding"), arena, &out->decoding, err));
    return read_pair(path, json_object_get(root, "sampling"), arena, &out->sampling, err);
}

/* Absent or null: nothing was compared. */
static seqlstm_status read_whole_steps(const char *path, const json_t *steps, enum sl_phase phase,
                                       struct sl_arena *arena, struct sl_whole_steps *out, struct seqlstm_error *err)
{
    json_t *layer, *other = json_object_get(steps, "other");
    const json_t *step_ns = json_object_get(steps, "step_ns"), *other_ns = json_object_get(steps, "other_step_ns");
    const json_t *overturned = json_object_get(steps, "overturned");
    size_t i;
    if (steps == NULL || json_is_null(steps))
        return SEQLSTM_OK;
    if (!json_is_integer(step_ns) || !json_is_integer(other_ns) || !json_is_boolean(overturned) ||
        !json_is_array(other))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: \"whole_steps\" lacks step_ns, other_step_ns, overturned or other",
                     path);
    struct sl_plan_choice *choices = SL_ARENA_ARRAY(arena, struct sl_plan_choice, json_array_size(other) + 1);
    if (choices == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
    json_array_foreach(other, i, layer)
    {
        SEQLSTM_TRY(read_choice(path, i, layer, arena, &choices[i], err));
        choices[i].phase = phase;
    }
    *out = (struct sl_whole_steps){.source = SL_COST_STORED,
                                   .chosen_ns = (double)json_integer_value(step_ns),
                                   .other_ns = (double)json_integer_value(other_ns),
                                   .other = choices,
                                   .other_count = (int32_t)i,
                                   .overturned = json_boolean_value(overturned)};
    return SEQLSTM_OK;
}

const struct sl_whole_steps *sl_stored_plan_find_whole_steps(const struct sl_stored_plan *stored, enum sl_phase phase)
{
    const struct sl_whole_steps *steps = phase == SL_PHASE_TRAIN      ? &stored->train
                                         : phase == SL_PHASE_EVALUATE ? &stored->evaluate
                                                                      : NULL;
    return steps && steps->source != SL_COST_NONE ? steps : NULL;
}

/* Plans of older versions have neither threads nor devices. */
static seqlstm_status read_threads(const char *path, const json_t *root, struct sl_stored_plan *out,
                                   struct seqlstm_error *err)
{
    const json_t *threads = json_object_get(root, "threads");
    if (threads == NULL)
        return SEQLSTM_OK;
    json_int_t count = json_integer_value(threads);
    if (count < 1 || count > SL_POOL_MEMBERS_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: \"threads\" is not a number from 1 to %d", path,
                     SL_POOL_MEMBERS_MOST);
    out->threads = (int32_t)count;
    return SEQLSTM_OK;
}

/* {"parallel": {"pieces": 8}} */
static seqlstm_status read_pieces(const char *path, const json_t *root, struct sl_stored_plan *out,
                                  struct seqlstm_error *err)
{
    const json_t *pieces = json_object_get(json_object_get(root, "parallel"), "pieces");
    const json_int_t count = json_integer_value(pieces);
    if (pieces == NULL)
        return SEQLSTM_OK;
    if (count < 1 || count > SL_PIECES_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: \"pieces\" is not a number from 1 to %d", path, SL_PIECES_MOST);
    out->pieces = (int32_t)count;
    return SEQLSTM_OK;
}

static seqlstm_status read_devices(const char *path, const json_t *root, struct sl_stored_plan *out,
                                   struct seqlstm_error *err)
{
    const json_t *devices = json_object_get(root, "devices");
    out->devices = SL_ARENA_ARRAY(&out->arena, struct sl_plan_device, json_array_size(devices) + 1);
    if (out->devices == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const char *backend = json_string_value(json_object_get(device, "backend"));
        const char *class = json_string_value(json_object_get(device, "class"));
        const char *name = json_string_value(json_object_get(device, "name"));
        if (!backend || !class)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: device %zu has no backend or class", path, i);
        struct sl_plan_device *entry = &out->devices[out->device_count++];
        entry->backend = sl_arena_strdup(&out->arena, backend);
        entry->device_class = sl_arena_strdup(&out->arena, class);
        entry->name = sl_arena_strdup(&out->arena, name ? name : "");
        if (!entry->backend || !entry->device_class || !entry->name)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
    }
    return SEQLSTM_OK;
}

static seqlstm_status read_batching(const char *path, const json_t *batching, struct sl_stored_plan *out,
                                    struct seqlstm_error *err)
{
    const json_t *edges = json_object_get(batching, "edges");
    out->edges = SL_ARENA_ARRAY(&out->arena, int64_t, json_array_size(edges) + 1);
    if (out->edges == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
    for (size_t i = 0; i < json_array_size(edges); i++) {
        json_int_t edge = json_integer_value(json_array_get(edges, i));
        if (edge < 0 || edge > INT32_MAX || (i > 0 && edge <= out->edges[i - 1]))
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: edge %zu of \"batching\" does not ascend", path, i);
        out->edges[out->edge_count++] = edge;
    }
    return sl_step_cost_from_json(path, json_object_get(batching, "step_cost"), &out->cost, err);
}

seqlstm_status sl_stored_plan_read(const char *path, struct sl_stored_plan *out, struct seqlstm_error *err)
{
    char *text = NULL;
    size_t bytes;
    SEQLSTM_TRY(sl_file_read(path, PLAN_LIMIT, &text, &bytes, err));
    seqlstm_status status = sl_stored_plan_parse(path, text, bytes, out, err);
    free(text);
    return status;
}

seqlstm_status sl_stored_plan_parse(const char *path, const char *text, size_t bytes, struct sl_stored_plan *out,
                                    struct seqlstm_error *err)
{
    json_error_t why;
    bool no_memory;
    json_t *root = sl_json_load(text, bytes, JSON_REJECT_DUPLICATES, &why, &no_memory);
    if (no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", path);
    if (root == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%d:%d: %s", path, why.line, why.column, why.text);
    seqlstm_status status = read_phases(path, root, out, err);
    if (status == SEQLSTM_OK)
        status = read_threads(path, root, out, err);
    if (status == SEQLSTM_OK)
        status = read_pieces(path, root, out, err);
    if (status == SEQLSTM_OK)
        status = read_devices(path, root, out, err);
    if (status == SEQLSTM_OK)
        status =
            read_whole_steps(path, json_object_get(root, "whole_steps"), SL_PHASE_TRAIN, &out->arena, &out->train, err);
    if (status == SEQLSTM_OK)
        status = read_whole_steps(path, json_object_get(json_object_get(root, "evaluate"), "whole_steps"),
                                  SL_PHASE_EVALUATE, &out->arena, &out->evaluate, err);
    if (status == SEQLSTM_OK)
        status = read_batching(path, json_object_get(root, "batching"), out, err);
    json_decref(root);
    return status;
}

int32_t sl_stored_plan_choose_threads(const struct sl_session *session)
{
    const struct sl_log *log = session->options.log;
    int32_t stored = session->replay ? session->stored.threads : 0, said = session->options.threads;
    if (stored == 0)
        return said;
    int32_t usual = said ? said : sl_cpu_count(), most = sl_cpu_count_logical();
    if (!session->options.threads_given) {
        if (stored != usual)
            sl_log_printf(log, SL_LOG_INFO, "%d thread%s, as in the stored plan; --threads changes that", stored,
                          stored == 1 ? "" : "s");
        if (stored > most)
            sl_log_printf(log, SL_LOG_WARN, "the stored plan's %d threads share %d processor%s here", stored, most,
                          most == 1 ? "" : "s");
        return stored;
    }
    if (stored != usual)
        sl_log_printf(log, SL_LOG_WARN,
                      "%d thread%s instead of the stored plan's %d: the same batches and masks, but not the same bits",
                      usual, usual == 1 ? "" : "s", stored);
    return said;
}

void sl_stored_plan_compare_devices(const struct sl_session *session)
{
    for (int32_t d = 0; session->replay && d < session->stored.device_count; d++) {
        const struct sl_plan_device *was = &session->stored.devices[d];
        const struct sl_backend *backend = sl_registry_find_backend(session->registry, was->backend);
        uint32_t device;
        if (backend == NULL || !sl_backend_find_device(backend, &device))
            continue; /* reported when the plan is made */
        const struct seqlstm_device_info *is = sl_backend_get_device(backend, device);
        if (strcmp(was->device_class, is->device_class) != 0 || (was->name[0] && strcmp(was->name, is->name) != 0))
            sl_log_printf(session->options.log, SL_LOG_WARN,
                          "%s computes on %s (%s); the stored plan is of %s (%s): not the same bits", was->backend,
                          is->name, is->device_class, was->name[0] ? was->name : "another device", was->device_class);
    }
}
