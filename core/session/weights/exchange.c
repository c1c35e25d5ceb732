/* SPDX-License-Identifier: Apache-2.0 */
/* Exports the weights of a run, and imports weights into a new one, under the names of other programs. Needs no
 * backend. */
#include "session/weights/exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/value/path.h"
#include "interop/foreign.h"
#include "interop/onnx.h"
#include "session/data/read_data.h"
#include "session/finding/finding.h"
#include "session/prepare/decoding.h"
#include "session/record/session_record.h"
#include "session/run_files/new_folder.h"
#include "session/run_folder/setup.h"
#include "session/weights/trained.h"
#include "train/checkpoint/checksums.h"
#include "train/checkpoint/weights.h"

/* The model as a graph, and room for its parameters. Only the widths of the data matter. */
static seqlstm_status make_graph(struct sl_session *session, enum sl_part part, struct sl_graph **out_graph,
                                 struct seqlstm_error *err)
{
    struct sl_data_facts facts = *sl_data_state_get_facts(session->state);
    facts.envelope = (struct sl_envelope){.sequences = 1, .steps = 1, .rows = 1};
    facts.has_weight = false;
    struct sl_graph_request request = {
        .model = session->model, .facts = &facts, .phase = SL_PHASE_PREDICT, .need_output = true, .part = part};
    seqlstm_status status = sl_graph_create(&request, out_graph, err);
    if (status != SEQLSTM_OK)
        return sl_session_add_finding(session, "E0502", "model", status, err);
    if (session->params == NULL)
        status = sl_params_create(*out_graph, false, 0, &session->memory, &session->params, err);
    if (status != SEQLSTM_OK)
        sl_graph_destroy(*out_graph);
    return status;
}

/* Values of each parameter, in the graph's order. Freed with free(). */
static float **point_at_values(const struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_params *params = session->params;
    float **values = malloc(((size_t)params->view_count + 1) * sizeof *values);
    if (values == NULL)
        seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the weights");
    for (int32_t p = 0; values && p < params->view_count; p++)
        values[p] = params->values + params->views[p].offset_elems;
    return values;
}

seqlstm_status sl_session_read_weights(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_graph *graph = NULL;
    SEQLSTM_TRY(sl_session_require_trained(session, err));
    SEQLSTM_TRY(make_graph(session, SL_PART_WHOLE, &graph, err));
    sl_graph_destroy(graph);
    SEQLSTM_TRY(sl_session_load_weights(session, err));
    return sl_params_pull(session->params, err);
}

/* ---- out ------------------------------------------------------------------------------------------------ */

static seqlstm_status write_weights(struct sl_session *session, const struct sl_graph *graph,
                                    enum sl_weights_format format, const char *path, struct sl_buf *notes,
                                    struct seqlstm_error *err)
{
    if (format == SL_WEIGHTS_CANONICAL)
        return sl_weights_save(session->params, path, NULL, 0, err);
    float **values = point_at_values(session, err);
    if (values == NULL)
        return SEQLSTM_NO_MEMORY;
    const float *const *read = (const float *const *)values;
    seqlstm_status status =
        format == SL_WEIGHTS_ONNX
            ? sl_onnx_write(graph, read, path, err)
            : sl_names_export(graph, format == SL_WEIGHTS_PYTORCH ? SL_CONVENTION_PYTORCH : SL_CONVENTION_KERAS, read,
                              path, notes, err);
    free(values);
    return status;
}

int32_t sl_session_name_exports(const struct sl_session *session, enum sl_weights_format format, const char *path,
                                struct sl_buf out_paths[2])
{
    static const char *const parts[] = {"encoder", "decoder"};
    const char *name = strrchr(path, '/'), *ending = strrchr(name ? name : path, '.');
    size_t stem = ending ? (size_t)(ending - path) : strlen(path);
    if (format != SL_WEIGHTS_ONNX || !sl_session_decodes(session)) {
        sl_buf_append_text(&out_paths[0], path);
        return 1;
    }
    for (int p = 0; p < 2; p++)
        sl_buf_printf(&out_paths[p], "%.*s.%s%s", (int)stem, path, parts[p], path + stem);
    return 2;
}

static seqlstm_status export_part(struct sl_session *session, enum sl_part part, enum sl_weights_format format,
                                  const char *path, struct sl_buf *notes, struct seqlstm_error *err)
{
    struct sl_graph *graph = NULL;
    SEQLSTM_TRY(make_graph(session, part, &graph, err));
    seqlstm_status status = sl_session_load_weights(session, err);
    if (status == SEQLSTM_OK)
        status = write_weights(session, graph, format, path, notes, err);
    sl_graph_destroy(graph);
    return status;
}

seqlstm_status sl_session_export(struct sl_session *session, enum sl_weights_format format, const char *path,
                                 struct sl_buf *notes, struct seqlstm_error *err)
{
    static const enum sl_part parts[] = {SL_PART_ENCODER, SL_PART_DECODER};
    struct sl_buf paths[2] = {{0}};
    SEQLSTM_TRY(sl_session_require_trained(session, err));
    seqlstm_status status = SEQLSTM_OK;
    int32_t count = sl_session_name_exports(session, format, path, paths);
    if (paths[0].failed || paths[1].failed)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a path");
    for (int32_t k = 0; k < count && status == SEQLSTM_OK; k++)
        status = export_part(session, count > 1 ? parts[k] : SL_PART_WHOLE, format, sl_buf_text(&paths[k]), notes, err);
    sl_buf_deinit(&paths[0]);
    sl_buf_deinit(&paths[1]);
    return status;
}

/* ---- in ------------------------------------------------------------------------------------------------- */

/* The format of the file. `*out_format` is not AUTO afterwards. */
static seqlstm_status guess_format(const char *path, enum sl_weights_format *out_format, struct seqlstm_error *err)
{
    struct sl_safetensors *file = NULL;
    enum sl_convention convention;
    const char *ending = strrchr(path, '.');
    if (ending && strcmp(ending, ".onnx") == 0) {
        *out_format = SL_WEIGHTS_ONNX;
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(sl_safetensors_open(path, &file, err));
    bool is_foreign = sl_names_guess(file, &convention);
    *out_format = !is_foreign                           ? SL_WEIGHTS_CANONICAL
                  : convention == SL_CONVENTION_PYTORCH ? SL_WEIGHTS_PYTORCH
                                                        : SL_WEIGHTS_KERAS;
    sl_safetensors_close(file);
    return SEQLSTM_OK;
}

static seqlstm_status read_names(const struct sl_graph *graph, const struct sl_import_request *request,
                                 enum sl_convention convention, float *const *values, struct sl_buf *notes,
                                 struct seqlstm_error *err)
{
    struct sl_safetensors *file = NULL;
    SEQLSTM_TRY(sl_safetensors_open(request->path, &file, err));
    seqlstm_status status =
        sl_names_import(graph, convention, file, request->renames, request->rename_count, values, notes, err);
    sl_safetensors_close(file);
    return status;
}

/* A file that does not fit is an error of the data, as for the other formats. */
static seqlstm_status read_canonical(struct sl_session *session, const char *path, struct seqlstm_error *err)
{
    seqlstm_status status = sl_weights_load(session->params, path, 0, NULL, err);
    if (status != SEQLSTM_INVALID_CONFIG)
        return status;
    if (err)
        err->code = SEQLSTM_CORRUPT_DATA;
    return SEQLSTM_CORRUPT_DATA;
}

static seqlstm_status read_weights(struct sl_session *session, const struct sl_graph *graph,
                                   const struct sl_import_request *request, struct sl_buf *notes,
                                   struct seqlstm_error *err)
{
    enum sl_weights_format format = request->format;
    SEQLSTM_TRY(sl_foreign_refuse(request->path, err));
    if (format == SL_WEIGHTS_AUTO)
        SEQLSTM_TRY(guess_format(request->path, &format, err));
    if (request->rename_count && (format == SL_WEIGHTS_ONNX || format == SL_WEIGHTS_CANONICAL))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`--rename` is for the names of PyTorch and Keras");
    if (format == SL_WEIGHTS_CANONICAL)
        return read_canonical(session, request->path, err);
    float **values = point_at_values(session, err);
    if (values == NULL)
        return SEQLSTM_NO_MEMORY;
    seqlstm_status status =
        format == SL_WEIGHTS_ONNX
            ? sl_onnx_read(graph, request->path, values, notes, err)
            : read_names(graph, request, format == SL_WEIGHTS_KERAS ? SL_CONVENTION_KERAS : SL_CONVENTION_PYTORCH,
                         values, notes, err);
    free(values);
    sl_params_touch(session->params); /* also where only some were read */
    return status;
}

/* No model with such weights gives a number. */
static seqlstm_status check_finite(const struct sl_session *session, const char *path, struct seqlstm_error *err)
{
    const struct sl_params *params = session->params;
    for (int32_t v = 0; v < params->view_count; v++)
        for (int64_t i = 0; i < params->views[v].elems; i++)
            if (!isfinite(params->values[params->views[v].offset_elems + i]))
                SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: what becomes `%s` holds values that are not finite", path,
                             params->views[v].name);
    return SEQLSTM_OK;
}

/* Makes a run that holds these weights, as if it had just ended. */
static seqlstm_status write_run(struct sl_session *session, struct seqlstm_error *err)
{
    seqlstm_status status = sl_new_folder_begin(session, err);
    if (status == SEQLSTM_OK)
        status = sl_run_folder_write_setup(session, err);
    char *path = status == SEQLSTM_OK ? sl_path_join(session->folder, "final.safetensors") : NULL;
    struct sl_safetensors_text origin = {"origin", "import"};
    if (status == SEQLSTM_OK)
        status = path ? sl_weights_save(session->params, path, &origin, 1, err)
                      : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a path");
    if (status == SEQLSTM_OK)
        status = sl_checksums_note_weights(session->folder, "final.safetensors", err);
    if (status != SEQLSTM_OK) {
        if (path)
            unlink(path);
        sl_new_folder_discard(session);
    }
    free(path);
    return status;
}

seqlstm_status sl_session_import(struct sl_session *session, const struct sl_import_request *request,
                                 struct sl_buf *notes, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_session_read_data(session, err));
    struct sl_graph *graph = NULL;
    SEQLSTM_TRY(make_graph(session, SL_PART_WHOLE, &graph, err));
    seqlstm_status status = read_weights(session, graph, request, notes, err);
    if (status == SEQLSTM_OK)
        status = check_finite(session, request->path, err);
    if (status == SEQLSTM_OK)
        status = write_run(session, err);
    session->has_weights = status == SEQLSTM_OK;
    sl_graph_destroy(graph);
    return status;
}
