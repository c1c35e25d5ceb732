/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the name maps: parameters to another framework's tensors and back. */
#include "interop/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/error_place.h"
#include "interop/names_maps.h"

static sl_name_map_fn *const maps[] = {
    [SL_CONVENTION_PYTORCH] = sl_names_map_pytorch, [SL_CONVENTION_KERAS] = sl_names_map_keras};

static int64_t get_height(const struct sl_name_param *p, int32_t blocks_of_param)
{
    return p->param->rows / blocks_of_param;
}

/* The parameter's own blocks are as many as the gates it holds, which the largest index tells. */
static int32_t count_param_blocks(const struct sl_name_tensor *tensor)
{
    int32_t most = 0;
    for (int32_t k = 0; k < tensor->block_count; k++)
        most = tensor->blocks[k].of > most ? tensor->blocks[k].of : most;
    return most + 1;
}

/* "l1.backward.w_h" of a recurrent layer. */
static void parse_recurrent(struct sl_name_param *p)
{
    static const struct {
        const char *word;
        enum sl_name_role role;
    } words[] = {
        {"w_x", SL_NAME_W_X}, {"w_h", SL_NAME_W_H}, {"bias", SL_NAME_BIAS}, {"projection", SL_NAME_PROJECTION}};
    const char *direction = strchr(p->suffix, '.'), *word = strrchr(p->suffix, '.');
    p->l = strtoll(p->suffix + 1, NULL, 10);
    p->is_backward = direction && strncmp(direction, ".backward", strlen(".backward")) == 0;
    p->role = SL_NAME_OTHER;
    for (size_t w = 0; word && w < sizeof words / sizeof *words; w++)
        if (strcmp(word + 1, words[w].word) == 0)
            p->role = words[w].role;
}

static const char *find_prefix(const struct sl_rename *renames, size_t count, const char *ours)
{
    for (size_t r = 0; r < count; r++)
        if (strcmp(renames[r].ours, ours) == 0)
            return renames[r].theirs;
    return ours;
}

static struct sl_name_param parse(const struct sl_graph *graph, int32_t p, const struct sl_rename *renames,
                                  size_t rename_count)
{
    const struct sl_param *param = &graph->params[p];
    struct sl_name_param out = {.param = param, .layer = &graph->model->layers[param->layer]};
    out.prefix = find_prefix(renames, rename_count, out.layer->name);
    out.suffix = param->name + strlen(out.layer->name) + 1;
    bool is_bias = strcmp(out.suffix, "bias") == 0;
    switch (out.layer->kind) {
    case SL_LAYER_LSTM:
    case SL_LAYER_GRU:
    case SL_LAYER_RNN:
        parse_recurrent(&out);
        break;
    case SL_LAYER_LAYER_NORM:
        out.role = is_bias ? SL_NAME_NORM_BIAS : SL_NAME_NORM_GAIN;
        break;
    default:
        out.role = is_bias ? SL_NAME_DENSE_BIAS : SL_NAME_W;
    }
    return out;
}

/* Element of the tensor for row `r` of its column of blocks and column `c`. */
static int64_t get_index(const struct sl_name_tensor *tensor, int64_t rows, int64_t columns, int64_t r, int64_t c)
{
    return tensor->is_transposed ? c * rows + r : r * columns + c;
}

/* ---- out ------------------------------------------------------------------------------------------------ */

struct export
{
    struct sl_arena arena;
    struct sl_safetensors_entry *entries;
    int32_t count;
};

static seqlstm_status add_entry(struct export *x, const char *name, int32_t rank, const int64_t *shape, int64_t elems,
                                float **out_data, struct seqlstm_error *err)
{
    struct sl_safetensors_entry *entry = &x->entries[x->count];
    char *kept = sl_arena_alloc(&x->arena, strlen(name) + 1);
    *out_data = SL_ARENA_ARRAY(&x->arena, float, (size_t)elems);
    if (kept == NULL || *out_data == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for `%s`", name);
    strcpy(kept, name);
    *entry = (struct sl_safetensors_entry){.name = kept, .dtype = SL_SAFETENSORS_F32, .rank = rank, .data = *out_data};
    for (int32_t d = 0; d < rank; d++)
        entry->shape[d] = shape[d];
    x->count++;
    return SEQLSTM_OK;
}

static seqlstm_status export_tensor(struct export *x, const struct sl_name_param *p,
                                    const struct sl_name_tensor *tensor, int32_t param_blocks, const float *values,
                                    struct seqlstm_error *err)
{
    int64_t columns = p->param->columns, height = get_height(p, param_blocks), rows = tensor->block_count * height;
    float *out = NULL;
    SEQLSTM_TRY(add_entry(x, tensor->name, tensor->rank, tensor->shape, rows * columns, &out, err));
    for (int32_t k = 0; k < tensor->block_count; k++)
        for (int64_t r = 0; r < height; r++)
            for (int64_t c = 0; c < columns; c++)
                out[get_index(tensor, rows, columns, k * height + r, c)] =
                    tensor->blocks[k].is_home ? values[(tensor->blocks[k].of * height + r) * columns + c] : 0.0f;
    return SEQLSTM_OK;
}

static int32_t count_blocks(const struct sl_name_tensor *tensors, int32_t count)
{
    int32_t most = 1;
    for (int32_t k = 0; k < count; k++)
        most = count_param_blocks(&tensors[k]) > most ? count_param_blocks(&tensors[k]) : most;
    return most;
}

/* A tensor that the framework does not know keeps its canonical name. */
static seqlstm_status export_unnamed(struct export *x, const struct sl_name_param *p, const float *values,
                                     struct sl_buf *notes, struct seqlstm_error *err)
{
    int64_t shape[2] = {p->param->rows, p->param->columns}, elems = shape[0] * shape[1];
    float *out = NULL;
    SEQLSTM_TRY(add_entry(x, p->param->name, p->param->is_vector ? 1 : 2, shape, elems, &out, err));
    memcpy(out, values, (size_t)elems * sizeof *out);
    sl_buf_printf(notes, "`%s` has no name there and keeps this one\n", p->param->name);
    return SEQLSTM_OK;
}

/* The place of the layer for a message of INVALID_CONFIG. */
static seqlstm_status blame(seqlstm_status status, const struct sl_name_param *p, struct seqlstm_error *err)
{
    if (status == SEQLSTM_INVALID_CONFIG)
        sl_error_place_set(err, p->layer->place.file, p->layer->place.line, p->layer->place.column);
    return status;
}

static seqlstm_status export_all(const struct sl_graph *graph, enum sl_convention convention,
                                 const float *const *values, struct export *x, struct sl_buf *notes,
                                 struct seqlstm_error *err)
{
    for (int32_t i = 0; i < graph->param_count; i++) {
        struct sl_name_param p = parse(graph, i, NULL, 0);
        struct sl_name_tensor tensors[SL_NAME_TENSORS];
        int32_t count = 0;
        SEQLSTM_TRY(blame(maps[convention](&p, tensors, &count, err), &p, err));
        int32_t blocks = count_blocks(tensors, count);
        for (int32_t k = 0; k < count; k++)
            SEQLSTM_TRY(export_tensor(x, &p, &tensors[k], blocks, values[i], err));
        if (count == 0)
            SEQLSTM_TRY(export_unnamed(x, &p, values[i], notes, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_names_export(const struct sl_graph *graph, enum sl_convention convention, const float *const *values,
                               const char *path, struct sl_buf *notes, struct seqlstm_error *err)
{
    struct export x = {0};
    sl_arena_init(&x.arena);
    seqlstm_status status = SEQLSTM_OK;
    x.entries = SL_ARENA_ARRAY(&x.arena, struct sl_safetensors_entry, (size_t)graph->param_count * SL_NAME_TENSORS + 1);
    if (x.entries == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the weights");
    if (status == SEQLSTM_OK)
        status = export_all(graph, convention, values, &x, notes, err);
    if (status == SEQLSTM_OK) {
        struct sl_safetensors_text text = {"format", convention == SL_CONVENTION_PYTORCH ? "pt" : "keras"};
        struct sl_safetensors_content content = {x.entries, x.count, &text, 1, false};
        status = sl_safetensors_write(path, &content, err);
    }
    sl_arena_deinit(&x.arena);
    return status;
}

/* ---- in ------------------------------------------------------------------------------------------------- */

static void list_names(const struct sl_safetensors *file, struct sl_buf *buf)
{
    enum { MOST = 12 };
    int32_t count = sl_safetensors_get_count(file);
    for (int32_t e = 0; e < count && e < MOST; e++)
        sl_buf_printf(buf, "%s%s", e ? ", " : "", sl_safetensors_get_entry(file, e)->name);
    if (count > MOST)
        sl_buf_printf(buf, " and %d more", count - MOST);
}

static seqlstm_status fail_absent(const struct sl_name_param *p, const char *name, const struct sl_safetensors *file,
                                  struct seqlstm_error *err)
{
    struct sl_buf names = {0};
    list_names(file, &names);
    seqlstm_status status = seqlstm_error_set(
        err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
        "the file holds no `%s` for layer `%s`; `--rename THEIRS=%s` gives the file's name of the layer; it has %s",
        name, p->layer->name, p->layer->name, sl_buf_text(&names));
    sl_buf_deinit(&names);
    return status;
}

static seqlstm_status check_shape(const struct sl_safetensors_entry *entry, const struct sl_name_tensor *tensor,
                                  struct seqlstm_error *err)
{
    bool fits = entry->rank == tensor->rank;
    for (int32_t d = 0; fits && d < tensor->rank; d++)
        fits = entry->shape[d] == tensor->shape[d];
    if (fits)
        return SEQLSTM_OK;
    struct sl_buf there = {0};
    for (int32_t d = 0; d < entry->rank; d++)
        sl_buf_printf(&there, "%s%lld", d ? ", " : "", (long long)entry->shape[d]);
    seqlstm_status status =
        tensor->rank == 1
            ? seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                "`%s` is [%s], but the model wants [%lld]", tensor->name, sl_buf_text(&there),
                                (long long)tensor->shape[0])
            : seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                "`%s` is [%s], but the model wants [%lld, %lld]", tensor->name, sl_buf_text(&there),
                                (long long)tensor->shape[0], (long long)tensor->shape[1]);
    sl_buf_deinit(&there);
    return status;
}

static seqlstm_status import_tensor(const struct sl_safetensors_entry *entry, const struct sl_name_param *p,
                                    const struct sl_name_tensor *tensor, int32_t param_blocks, float *values,
                                    struct seqlstm_error *err)
{
    int64_t columns = p->param->columns, height = get_height(p, param_blocks), rows = tensor->block_count * height;
    float *in = malloc((size_t)(rows * columns) * sizeof *in);
    if (in == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for `%s`", tensor->name);
    seqlstm_status status = sl_safetensors_read_float32(entry, in, rows * columns, err);
    for (int32_t k = 0; status == SEQLSTM_OK && k < tensor->block_count; k++)
        for (int64_t r = 0; r < height; r++)
            for (int64_t c = 0; c < columns; c++)
                values[(tensor->blocks[k].of * height + r) * columns + c] +=
                    in[get_index(tensor, rows, columns, k * height + r, c)];
    free(in);
    return status;
}

/* The tensor, under the framework's name or one that it also has: nn.LSTMCell and GRUCell have no `_l0`. */
static const struct sl_safetensors_entry *find_entry(const struct sl_name_param *p, enum sl_convention convention,
                                                     const struct sl_name_tensor *tensor,
                                                     const struct sl_safetensors *file)
{
    const struct sl_safetensors_entry *entry = sl_safetensors_find(file, tensor->name);
    size_t length = strlen(tensor->name);
    if (entry)
        return entry;
    if (convention == SL_CONVENTION_KERAS) {
        int32_t index = sl_names_find_keras(p, tensor, file);
        return index < 0 ? NULL : sl_safetensors_get_entry(file, index);
    }
    if (length > 3 && strcmp(tensor->name + length - 3, "_l0") == 0) {
        char name[SL_NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)(length - 3), tensor->name);
        return sl_safetensors_find(file, name);
    }
    return NULL;
}

static seqlstm_status import_param(const struct sl_name_param *p, enum sl_convention convention,
                                   const struct sl_safetensors *file, float *values, bool *used,
                                   struct seqlstm_error *err)
{
    struct sl_name_tensor tensors[SL_NAME_TENSORS];
    int32_t count = 0;
    SEQLSTM_TRY(blame(maps[convention](p, tensors, &count, err), p, err));
    if (count == 0) {
        snprintf(tensors[0].name, sizeof tensors[0].name, "%s.%s", p->prefix, p->suffix);
        sl_name_tensor_set_whole(&tensors[0], p, false);
        tensors[0].rank = p->param->is_vector ? 1 : 2;
        count = 1;
    }
    memset(values, 0, (size_t)(p->param->rows * p->param->columns) * sizeof *values);
    int32_t blocks = count_blocks(tensors, count);
    for (int32_t k = 0; k < count; k++) {
        const struct sl_safetensors_entry *entry = find_entry(p, convention, &tensors[k], file);
        if (entry == NULL)
            return fail_absent(p, tensors[k].name, file, err);
        for (int32_t e = 0; e < sl_safetensors_get_count(file); e++)
            used[e] = used[e] || sl_safetensors_get_entry(file, e) == entry;
        SEQLSTM_TRY(check_shape(entry, &tensors[k], err));
        SEQLSTM_TRY(import_tensor(entry, p, &tensors[k], blocks, values, err));
    }
    return SEQLSTM_OK;
}

/* Does the tensor belong to the layer that the file calls `prefix`: "prefix.…", "prefix/…" or "prefix_l1/…"? */
static bool is_under(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0)
        return false;
    if (strncmp(name + length, "_l", 2) == 0)
        length += 2 + strspn(name + length + 2, "0123456789");
    return name[length] == '.' || name[length] == '/';
}

/* The state of a random generator is none. */
static bool is_weight(const char *name)
{
    return strstr(name, "seed_generator") == NULL;
}

/* A tensor that no parameter took: refused where it belongs to a layer of the model, which would compute something else
 * without it. */
static seqlstm_status skip(const struct sl_graph *graph, const struct sl_rename *renames, size_t rename_count,
                           const char *name, struct sl_buf *notes, struct seqlstm_error *err)
{
    for (int32_t i = 0; i < graph->param_count; i++) {
        struct sl_name_param p = parse(graph, i, renames, rename_count);
        if (!is_under(name, p.prefix) || !is_weight(name))
            continue;
        seqlstm_error_set(
            err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
            "`%s` of the file belongs to layer `%s`, but the model's layer has no such parameter; set its "
            "options as in the file (`layers`, `use_bias`, `direction`)",
            name, p.layer->name);
        return blame(SEQLSTM_INVALID_CONFIG, &p, err);
    }
    sl_buf_printf(notes, "`%s` of the file is not used\n", name);
    return SEQLSTM_OK;
}

/* ---- names of the whole model ----------------------------------------------------------------------------- */

static bool has_tensors(const struct sl_safetensors *file, const char *prefix)
{
    for (int32_t e = 0; e < sl_safetensors_get_count(file); e++)
        if (is_under(sl_safetensors_get_entry(file, e)->name, prefix))
            return true;
    return false;
}

/* All names of the file begin with the same `bytes` bytes; do they share the next segment, too? Then that many more. */
static size_t extend_outer(const struct sl_safetensors *file, size_t bytes)
{
    const char *first = NULL;
    size_t end = bytes;
    for (int32_t e = 0; e < sl_safetensors_get_count(file); e++) {
        const char *name = sl_safetensors_get_entry(file, e)->name;
        if (!is_weight(name))
            continue;
        if (first == NULL) {
            end += strcspn(name + bytes, "./");
            if (name[end++] == '\0')
                return bytes;
            first = name;
        } else if (strncmp(name, first, end) != 0) {
            return bytes;
        }
    }
    return end;
}

/* `prefix`, or what the file has instead: Keras writes the model's name before those of its layers, PyTorch those of
 * modules around the model (`sequential/lstm_1`, `module.lstm_1`). NULL: no memory. */
static const char *complete_prefix(struct sl_arena *arena, const struct sl_safetensors *file, const char *prefix)
{
    int32_t e = 0;
    while (e < sl_safetensors_get_count(file) && !is_weight(sl_safetensors_get_entry(file, e)->name))
        e++;
    if (e == sl_safetensors_get_count(file) || has_tensors(file, prefix))
        return prefix;
    for (size_t was = 0, outer = extend_outer(file, 0); outer > was; was = outer, outer = extend_outer(file, outer)) {
        size_t bytes = outer + strlen(prefix) + 1;
        char *longer = sl_arena_alloc(arena, bytes);
        if (longer == NULL)
            return NULL;
        snprintf(longer, bytes, "%.*s%s", (int)outer, sl_safetensors_get_entry(file, e)->name, prefix);
        if (has_tensors(file, longer))
            return longer;
    }
    return prefix;
}

/* What the file calls each layer of the model. */
static seqlstm_status find_prefixes(struct sl_arena *arena, const struct sl_graph *graph,
                                    const struct sl_safetensors *file, const struct sl_rename *renames,
                                    size_t rename_count, struct sl_rename **out, struct seqlstm_error *err)
{
    const struct sl_model *model = graph->model;
    *out = SL_ARENA_ARRAY(arena, struct sl_rename, model->layer_count + 1);
    for (size_t i = 0; *out && i < model->layer_count; i++) {
        const char *ours = model->layers[i].name;
        const char *theirs = complete_prefix(arena, file, find_prefix(renames, rename_count, ours));
        (*out)[i] = (struct sl_rename){theirs, ours};
        if (theirs == NULL)
            *out = NULL;
    }
    if (*out == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the names");
    return SEQLSTM_OK;
}

seqlstm_status sl_names_import(const struct sl_graph *graph, enum sl_convention convention,
                               const struct sl_safetensors *file, const struct sl_rename *renames, size_t rename_count,
                               float *const *values, struct sl_buf *notes, struct seqlstm_error *err)
{
    for (size_t r = 0; r < rename_count; r++)
        if (sl_model_find_layer(graph->model, renames[r].ours) == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`--rename %s=%s`: the model has no layer `%s`",
                         renames[r].theirs, renames[r].ours, renames[r].ours);
    int32_t count = sl_safetensors_get_count(file);
    size_t layer_count = graph->model->layer_count;
    struct sl_rename *layers = NULL;
    struct sl_arena arena;
    sl_arena_init(&arena);
    seqlstm_status status = find_prefixes(&arena, graph, file, renames, rename_count, &layers, err);
    bool *used = calloc((size_t)count + 1, sizeof *used);
    if (status == SEQLSTM_OK && used == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the names");
    for (int32_t i = 0; i < graph->param_count && status == SEQLSTM_OK; i++) {
        struct sl_name_param p = parse(graph, i, layers, layer_count);
        status = import_param(&p, convention, file, values[i], used, err);
    }
    for (int32_t e = 0; e < count && status == SEQLSTM_OK; e++)
        if (!used[e])
            status = skip(graph, layers, layer_count, sl_safetensors_get_entry(file, e)->name, notes, err);
    free(used);
    sl_arena_deinit(&arena);
    return status;
}

bool sl_names_guess(const struct sl_safetensors *file, enum sl_convention *out_convention)
{
    static const struct {
        const char *mark;
        enum sl_convention convention;
    } marks[] = {{".weight", SL_CONVENTION_PYTORCH},
                 {"/kernel", SL_CONVENTION_KERAS},
                 {"/embeddings", SL_CONVENTION_KERAS},
                 {"/gamma", SL_CONVENTION_KERAS}};
    for (int32_t e = 0; e < sl_safetensors_get_count(file); e++)
        for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
            if (strstr(sl_safetensors_get_entry(file, e)->name, marks[m].mark)) {
                *out_convention = marks[m].convention;
                return true;
            }
    return false;
}
