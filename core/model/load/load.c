/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a model: file, includes, overlays and flags into one tree, the tree into structs; then checks
 * the structs. */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "base/value/path.h"
#include "model/load/doc_merge.h"
#include "model/load/overlay.h"
#include "model/yaml/diagnostics_private.h"
#include "model/read/sections.h"

static seqlstm_status no_memory(struct seqlstm_error *err, const char *path)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to load the model %s", path);
}

/* A model file is a map; so is an overlay. */
static bool check_root(struct sl_diagnostics *diagnostics, const struct sl_node *root)
{
    if (root->kind == SL_NODE_MAP)
        return true;
    sl_diagnostics_addf(diagnostics, "E0101", root->place, "a model file is a map, not %s",
                        sl_node_kind_get_name(root->kind));
    return false;
}

/* Merges overlays and flags into *root. What cannot be read is reported and left out. */
static seqlstm_status apply_request(const struct sl_model_request *request, struct sl_arena *arena,
                                    struct sl_diagnostics *diagnostics, struct sl_node **root,
                                    struct seqlstm_error *err)
{
    static const struct sl_place command_line;
    seqlstm_status first = SEQLSTM_OK;
    for (size_t i = 0; i < request->overlay_count; i++) {
        struct sl_node *overlay = NULL;
        seqlstm_status status =
            sl_doc_load(arena, request->overlays[i], &command_line, true, diagnostics, &overlay, err);
        if (status == SEQLSTM_NO_MEMORY)
            return status;
        first = first == SEQLSTM_OK ? status : first;
        if (overlay == NULL || !check_root(diagnostics, overlay) || *root == NULL)
            continue;
        *root = sl_doc_overlay(arena, sl_site_top, *root, overlay);
        if (*root == NULL)
            return no_memory(err, request->overlays[i]);
    }
    for (size_t i = 0; i < request->override_count && *root != NULL; i++)
        SEQLSTM_TRY(sl_doc_assign(arena, *root, request->overrides[i].origin, request->overrides[i].assignment,
                                  diagnostics, err));
    return first;
}

/* Sets the default name: the file name without folder and extension, with `_` for characters that a name cannot have.
 */
static void set_default_name(struct sl_reader *reader, struct sl_node *root, const char *path)
{
    const char *file = sl_path_name(path);
    const char *dot = strrchr(file, '.');
    size_t length = dot != NULL && dot != file ? (size_t)(dot - file) : strlen(file);
    char *name = sl_reader_alloc(reader, length + 2, 1);
    if (name == NULL || sl_node_find(root, "name") != NULL)
        return;
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        char c = file[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool other = (c >= '0' && c <= '9') || c == '-' || c == '.';
        if (used == 0 && !letter)
            name[used++] = '_';
        if (used > 0 && (letter || other || name[used - 1] != '_'))
            name[used++] = letter || other ? c : '_';
        else if (letter)
            name[used++] = c;
    }
    struct sl_node *node = sl_reader_set_default(reader, root, "name", used ? name : "model");
    if (node != NULL && sl_node_is_null(node)) /* of null.yaml */
        node->quoted = true;
}

/* `model: {encoder: …, decoder: …}` */
static bool has_sides(const struct sl_node *root)
{
    const struct sl_node *model = sl_node_find(root, "model");
    return model != NULL && model->kind == SL_NODE_MAP && sl_node_find(model, "encoder") != NULL;
}

static void read_model(struct sl_reader *reader, struct sl_node *root, struct sl_model *model)
{
    set_default_name(reader, root, model->path);
    model->data.pairs = has_sides(root); /* data are read first, and some are pairs only for such a model */
    sl_reader_read_section(reader, &sl_section_top, root, model);
    model->all_backends = model->backend_count == 0;
    if (!reader->no_memory)
        sl_model_check_data(reader, root, model);
    if (!reader->no_memory)
        sl_model_check_train(reader, root, model);
    if (!reader->no_memory)
        sl_model_check_decode(reader, root, model);
    if (!reader->no_memory)
        sl_model_check_top(reader, root, model);
    if (!reader->no_memory)
        sl_model_check_parallel(reader, root, model);
    model->places = sl_places_collect(reader, root);
    model->document = root;
}

/* From the merged tree to the model; on failure, the caller keeps everything. */
static seqlstm_status build(struct sl_model *model, const struct sl_model_request *request, struct sl_node *root,
                            struct sl_diagnostics *diagnostics, struct seqlstm_error *err)
{
    struct sl_reader reader = {.arena = model->arena, .diagnostics = diagnostics};
    reader.saved = request && request->saved ? request->path : NULL;
    reader.memory = request ? request->memory : NULL;
    reader.memory_count = request ? request->memory_count : 0;
    if (root != NULL && check_root(diagnostics, root))
        read_model(&reader, root, model);
    if (reader.no_memory || sl_diagnostics_has_failed(diagnostics))
        return no_memory(err, model->path);
    if (sl_diagnostics_count(diagnostics, SL_SEVERITY_ERROR) == 0)
        return SEQLSTM_OK;
    struct sl_buf count = {0};
    sl_diagnostics_write_count(diagnostics, model->path, &count);
    seqlstm_status status =
        count.failed ? no_memory(err, model->path)
                     : seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__, "%s", sl_buf_text(&count));
    sl_buf_deinit(&count);
    return status;
}

static struct sl_model *create(const char *path)
{
    struct sl_arena arena;
    sl_arena_init(&arena);
    struct sl_arena *kept = SL_ARENA_NEW(&arena, struct sl_arena);
    struct sl_model *model = kept ? SL_ARENA_NEW(&arena, struct sl_model) : NULL;
    const char *copy = model ? sl_arena_strdup(&arena, path) : NULL;
    if (copy == NULL) {
        sl_arena_deinit(&arena);
        return NULL;
    }
    *kept = arena; /* the arena lives in its own memory */
    model->arena = kept;
    model->path = copy;
    return model;
}

void sl_model_destroy(struct sl_model *model)
{
    if (model == NULL)
        return;
    struct sl_arena arena = *model->arena;
    sl_arena_deinit(&arena);
}

/* Removes what saved configurations of earlier versions hold, and this version has no more. */
static void drop_former_keys(struct sl_node *root)
{
    struct sl_node *log = sl_node_find(root, "log");
    if (log != NULL && log->kind == SL_NODE_MAP)
        sl_node_remove(log, "tensorboard"); /* it was false; now `output.tensorboard` */
}

seqlstm_status sl_model_load(const struct sl_model_request *request, struct sl_diagnostics *diagnostics,
                             struct sl_model **out, struct seqlstm_error *err)
{
    static const struct sl_place command_line;
    struct sl_node *root = NULL;
    struct sl_model *model = create(request->path);
    if (model == NULL)
        return no_memory(err, request->path);
    seqlstm_status status =
        sl_doc_load(model->arena, request->path, &command_line, !request->saved, diagnostics, &root, err);
    if (status == SEQLSTM_OK && request->saved && root != NULL)
        drop_former_keys(root);
    if (status == SEQLSTM_OK)
        status = apply_request(request, model->arena, diagnostics, &root, err);
    if (status == SEQLSTM_OK)
        status = build(model, request, root, diagnostics, err);
    if (status == SEQLSTM_OK)
        *out = model;
    else
        sl_model_destroy(model);
    return status;
}

seqlstm_status sl_model_load_text(const char *name, const char *text, size_t text_bytes,
                                  const struct sl_model_request *request, struct sl_diagnostics *diagnostics,
                                  struct sl_model **out, struct seqlstm_error *err)
{
    struct sl_node *root = NULL;
    struct sl_model *model = create(name);
    if (model == NULL)
        return no_memory(err, name);
    seqlstm_status status = sl_doc_load_text(model->arena, model->path, text, text_bytes, diagnostics, &root, err);
    if (status == SEQLSTM_OK && request != NULL)
        status = apply_request(request, model->arena, diagnostics, &root, err);
    if (status == SEQLSTM_OK)
        status = build(model, request, root, diagnostics, err);
    if (status == SEQLSTM_OK)
        *out = model;
    else
        sl_model_destroy(model);
    return status;
}
