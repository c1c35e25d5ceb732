/* SPDX-License-Identifier: Apache-2.0 */
/* Reads weights from an ONNX file into a model that describes the same network. The file is lifted (onnx_lift.h) and
 * matched with the model (onnx_match.h); then the constants of the pairs are copied. */
#include <stdlib.h>
#include <string.h>

#include "interop/onnx.h"
#include "interop/onnx_cell.h"
#include "interop/import/onnx_match.h"

struct reading {
    struct sl_onnx_match match;
    float *const *values;
    bool *is_written; /* by parameter of the graph */
};

/* ---- weights ------------------------------------------------------------------------------------------------ */

/* Writes a parameter. If it is tied and another operation has written it before, the numbers must be the same. */
static seqlstm_status write_param(const struct reading *r, const struct sl_node *ours, int32_t slot,
                                  const struct sl_onnx_node *theirs, const float *values, int64_t rows, int64_t columns)
{
    int32_t owner = r->match.graph->tensors[ours->slots[slot]].owner;
    const struct sl_param *param = &r->match.graph->params[owner];
    size_t bytes = (size_t)(rows * columns) * sizeof *values;
    char text[256];
    sl_onnx_describe_node(theirs, text, sizeof text);
    if (param->rows != rows || param->columns != columns)
        SEQLSTM_FAIL(r->match.err, SEQLSTM_CORRUPT_DATA,
                     "%s: %s has [%lld, %lld] weights, but layer `%s` wants [%lld, %lld]", r->match.path, text,
                     (long long)rows, (long long)columns, ours->name, (long long)param->rows,
                     (long long)param->columns);
    if (r->is_written[owner] && memcmp(r->values[owner], values, bytes) != 0)
        SEQLSTM_FAIL(r->match.err, SEQLSTM_INVALID_CONFIG,
                     "%s: layer `%s` shares `%s` with another layer (`tie`), but %s of the file has other weights",
                     r->match.path, ours->name, param->name, text);
    memcpy(r->values[owner], values, bytes);
    r->is_written[owner] = true;
    return SEQLSTM_OK;
}

static float *make_floats(const struct reading *r, int64_t count)
{
    float *made = SL_ARENA_ARRAY(r->match.lift->arena, float, (size_t)count + 1);
    if (made == NULL)
        seqlstm_error_set(r->match.err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for %s", r->match.path);
    return made;
}

/* Adds ONNX's blocks of H rows to the model's. An absent tensor counts as zeros. */
static seqlstm_status read_blocks(const struct reading *r, const struct sl_node *ours, int32_t d, int32_t which,
                                  int32_t weights, const int32_t *of, int32_t count, int64_t columns)
{
    const struct sl_onnx_pair *pair = &r->match.pairs[ours - r->match.graph->nodes];
    const struct sl_onnx_cell_use *use = &r->match.lift->cells[pair->cells[d] - 1];
    const struct sl_onnx_constant *in = use->weights[weights];
    int32_t directions = ours->desc.recurrent.direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    int32_t slot = SEQLSTM_SLOT_RECURRENT_PARAM(directions, d, which);
    const struct sl_param *param = &r->match.graph->params[r->match.graph->tensors[ours->slots[slot]].owner];
    int64_t block = ours->desc.recurrent.hidden * columns;
    float *out = make_floats(r, param->rows * param->columns);
    if (out == NULL)
        return SEQLSTM_NO_MEMORY;
    for (int32_t k = 0; in && k < count; k++)
        for (int64_t e = 0; e < block; e++)
            out[of[k] * block + e] += in->floats[(pair->directions[d] * count + k) * block + e];
    return write_param(r, ours, slot, use->node, out, param->rows, param->columns);
}

static seqlstm_status read_recurrent(const struct reading *r, const struct sl_node *ours)
{
    const struct seqlstm_recurrent_desc *desc = &ours->desc.recurrent;
    const struct sl_onnx_cell *cell = sl_onnx_cell_get(desc);
    for (int32_t d = 0; d < (desc->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1); d++) {
        if (r->match.pairs[ours - r->match.graph->nodes].cells[d] == 0)
            continue;
        SEQLSTM_TRY(read_blocks(r, ours, d, SEQLSTM_PARAM_W_X, 0, cell->weight, cell->gates, desc->input));
        SEQLSTM_TRY(read_blocks(r, ours, d, SEQLSTM_PARAM_W_H, 1, cell->weight, cell->gates, desc->hidden));
        if (desc->options & SEQLSTM_BIT_RECURRENT_USE_BIAS)
            SEQLSTM_TRY(read_blocks(r, ours, d, SEQLSTM_PARAM_BIAS, 2, cell->bias, 2 * cell->gates, 1));
        if (desc->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE)
            SEQLSTM_TRY(read_blocks(r, ours, d, SEQLSTM_PARAM_PEEPHOLE, 3, sl_onnx_peephole_order, 3, 1));
    }
    return SEQLSTM_OK;
}

/* A table as it is, or transposed. */
static seqlstm_status read_table(const struct reading *r, const struct sl_node *ours, int32_t slot,
                                 const struct sl_onnx_term *term, bool is_turned)
{
    int64_t rows = term->table.shape[is_turned], columns = term->table.shape[!is_turned];
    float *out = make_floats(r, rows * columns);
    if (out == NULL)
        return SEQLSTM_NO_MEMORY;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < columns; c++)
            out[row * columns + c] =
                (float)sl_onnx_constant_get(&term->table, is_turned ? c * rows + row : row * columns + c);
    return write_param(r, ours, slot, term->node, out, rows, columns);
}

static seqlstm_status read_dense(const struct reading *r, const struct sl_node *ours, const struct sl_onnx_pair *pair)
{
    const struct sl_onnx_term *product = &r->match.lift->terms[pair->term - 1];
    SEQLSTM_TRY(read_table(r, ours, SEQLSTM_SLOT_DENSE_W, product, true));
    if (!(ours->desc.dense.options & SEQLSTM_BIT_DENSE_USE_BIAS))
        return SEQLSTM_OK;
    const float *bias = pair->bias ? r->match.lift->terms[pair->bias - 1].vectors[0] : make_floats(r, product->width);
    if (bias == NULL)
        return SEQLSTM_NO_MEMORY;
    return write_param(r, ours, SEQLSTM_SLOT_DENSE_BIAS, product->node, bias, product->width, 1);
}

static seqlstm_status read_norm(const struct reading *r, const struct sl_node *ours, const struct sl_onnx_term *term)
{
    SEQLSTM_TRY(write_param(r, ours, SEQLSTM_SLOT_LAYER_NORM_GAIN, term->node, term->vectors[0], term->width, 1));
    return write_param(r, ours, SEQLSTM_SLOT_LAYER_NORM_BIAS, term->node, term->vectors[1], term->width, 1);
}

static seqlstm_status read_weights(const struct reading *r)
{
    const struct sl_graph *graph = r->match.graph;
    for (int32_t n = 0; n < graph->node_count; n++) {
        const struct sl_node *ours = &graph->nodes[n];
        const struct sl_onnx_pair *pair = &r->match.pairs[n];
        const struct sl_onnx_term *term = pair->term ? &r->match.lift->terms[pair->term - 1] : NULL;
        if (ours->desc.head.op == SEQLSTM_OP_RECURRENT)
            SEQLSTM_TRY(read_recurrent(r, ours));
        else if (term && ours->desc.head.op == SEQLSTM_OP_DENSE)
            SEQLSTM_TRY(read_dense(r, ours, pair));
        else if (term && ours->desc.head.op == SEQLSTM_OP_EMBEDDING)
            SEQLSTM_TRY(read_table(r, ours, SEQLSTM_SLOT_EMBEDDING_W, term, false));
        else if (term && ours->desc.head.op == SEQLSTM_OP_LAYER_NORM)
            SEQLSTM_TRY(read_norm(r, ours, term));
    }
    for (int32_t p = 0; p < graph->param_count; p++)
        if (!r->is_written[p])
            SEQLSTM_FAIL(r->match.err, SEQLSTM_INVALID_CONFIG, "%s: nothing in the file stands for `%s` of the model",
                         r->match.path, graph->params[p].name);
    return SEQLSTM_OK;
}

/* ---- readings of the input ------------------------------------------------------------------------------------ */

static bool is_initializer(const struct sl_onnx_file *file, const char *name)
{
    for (int32_t t = 0; t < file->tensor_count; t++)
        if (strcmp(file->tensors[t].name, name) == 0)
            return true;
    return false;
}

/* The model's only input; NULL: it also has a source. */
static const struct sl_tensor *find_input(const struct sl_graph *graph)
{
    const struct sl_tensor *found = NULL;
    for (int32_t t = 0; t < graph->tensor_count; t++) {
        if (graph->tensors[t].role == SL_TENSOR_SOURCE)
            return NULL;
        if (graph->tensors[t].role == SL_TENSOR_INPUT)
            found = &graph->tensors[t];
    }
    return found;
}

/* Ways to read the dimensions of an input of that rank: b, t, f for batch, time, features. Without a rank: all. */
static int32_t list_roles(const struct sl_tensor *input, int32_t rank, const char **out)
{
    static const char *const vectors[] = {"bf", "f"}, *const ids[] = {"bt", "tb", "t"};
    static const char *const numbers[] = {"btf", "tbf", "tf"}, *const single[] = {"btf", "tbf", "bt", "tb", "tf", "t"};
    static const char *const id[] = {"b", "bf"};
    bool is_ids = input->dtype == SEQLSTM_DTYPE_INT32, on_steps = sl_axis_is_steps(input->axis);
    bool is_single = input->features == 1 && !is_ids;
    const char *const *all = on_steps ? (is_ids ? ids : is_single ? single : numbers) : is_ids ? id : vectors;
    int32_t count = on_steps ? (is_single ? 6 : 3) : 2, used = 0;
    for (int32_t k = 0; k < count; k++)
        if (rank < 0 ? k < 2 : (int32_t)strlen(all[k]) == rank)
            out[used++] = all[k];
    return used;
}

/* Does the file's input have that type and width? */
static bool fits(const struct sl_onnx_port *port, const char *roles, const struct sl_tensor *input)
{
    enum { FLOAT = 1, INT32 = 6, INT64 = 7, DOUBLE = 11 };
    bool is_int = port->type == INT32 || port->type == INT64, is_float = port->type == FLOAT || port->type == DOUBLE;
    bool wants_int = input->dtype == SEQLSTM_DTYPE_INT32;
    if (port->type && (wants_int ? !is_int : !is_float))
        return false;
    for (int32_t d = 0; d < port->rank; d++)
        if (roles[d] == 'f' && port->dims[d] >= 0 && port->dims[d] != input->features)
            return false;
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

/* Outputs of the file; where it declares none: values that no node reads. */
static int32_t list_outputs(const struct sl_onnx_file *file, const char **out, int32_t most)
{
    int32_t count = 0;
    for (int32_t k = 0; k < file->output_count && count < most; k++)
        out[count++] = file->outputs[k].name;
    for (int32_t n = 0; n < file->node_count && file->output_count == 0 && count < most; n++) {
        const char *name = sl_onnx_node_get_output(&file->nodes[n], 0);
        bool is_read = *name == '\0';
        for (int32_t i = 0; i < file->node_count; i++)
            for (int32_t k = 0; k < file->nodes[i].input_count; k++)
                is_read = is_read || strcmp(file->nodes[i].inputs[k], name) == 0;
        if (!is_read)
            out[count++] = name;
    }
    return count;
}

static void forget(struct reading *r, size_t notes)
{
    memset(r->match.pairs, 0, ((size_t)r->match.graph->node_count + 1) * sizeof *r->match.pairs);
    sl_buf_truncate(r->match.notes, notes);
    for (int32_t t = 0; t < r->match.lift->term_count; t++)
        r->match.lift->terms[t].is_used = false;
}

/* Matches the model with one of the file's outputs. The other outputs may not depend on anything else. */
static seqlstm_status match_outputs(struct reading *r)
{
    enum { OUTPUTS_MAX = 256 };
    const char *names[OUTPUTS_MAX];
    int32_t count = list_outputs(r->match.lift->file, names, OUTPUTS_MAX), chosen = -1;
    struct seqlstm_error first = SEQLSTM_ERROR_INIT;
    seqlstm_status status = SEQLSTM_OK;
    size_t notes = r->match.notes->length_bytes;
    for (int32_t k = 0; k < count && chosen < 0; k++) {
        const struct sl_onnx_value *value = sl_onnx_lift_find(r->match.lift, names[k]);
        forget(r, notes);
        if (value == NULL)
            continue;
        status = sl_onnx_match_output(&r->match, value);
        chosen = status == SEQLSTM_OK ? k : -1;
        if (chosen < 0 && first.code == SEQLSTM_OK)
            first = *r->match.err;
    }
    if (count == 0)
        SEQLSTM_FAIL(r->match.err, SEQLSTM_CORRUPT_DATA, "%s: damaged ONNX file: its graph has no output",
                     r->match.path);
    if (chosen < 0 && first.code == SEQLSTM_OK)
        SEQLSTM_FAIL(r->match.err, SEQLSTM_CORRUPT_DATA, "%s: damaged ONNX file: nothing gives its output `%s` a value",
                     r->match.path, names[0]);
    if (chosen < 0) {
        *r->match.err = first;
        return first.code;
    }
    for (int32_t k = 0; k < count; k++)
        if (k != chosen)
            SEQLSTM_TRY(sl_onnx_match_extra_output(&r->match, names[k]));
    return SEQLSTM_OK;
}

/* Tries one way to read the input. */
static seqlstm_status try_reading(struct reading *r, struct sl_onnx_file *file, const struct sl_onnx_port *port,
                                  const char *roles, const struct sl_tensor *input, bool *out_has_order_error)
{
    struct sl_onnx_lift lift = {.arena = &file->arena, .file = file};
    lift.reading = (struct sl_onnx_reading){.input = port,
                                            .rank = (int32_t)strlen(roles),
                                            .features = input->features,
                                            .is_ids = input->dtype == SEQLSTM_DTYPE_INT32};
    memcpy(lift.reading.roles, roles, strlen(roles));
    SEQLSTM_TRY(sl_onnx_lift_file(&lift, r->match.path, r->match.err));
    *out_has_order_error = lift.has_order_error;
    r->match.lift = &lift;
    r->match.pairs = SL_ARENA_ARRAY(lift.arena, struct sl_onnx_pair, (size_t)r->match.graph->node_count + 1);
    r->is_written = SL_ARENA_ARRAY(lift.arena, bool, (size_t)r->match.graph->param_count + 1);
    if (r->match.pairs == NULL || r->is_written == NULL)
        SEQLSTM_FAIL(r->match.err, SEQLSTM_NO_MEMORY, "no memory for %s", r->match.path);
    SEQLSTM_TRY(match_outputs(r));
    return read_weights(r);
}

/* Tries all inputs that may be the model's, and all ways to read each. Of the errors, the first one is reported that
 * is no swap of batch and time. */
static seqlstm_status read_file(struct reading *r, struct sl_onnx_file *file)
{
    enum { ROLES = 6 };
    const struct sl_tensor *input = find_input(r->match.graph);
    struct seqlstm_error kept = SEQLSTM_ERROR_INIT;
    bool has_kept = false, kept_is_order = false;
    size_t notes = r->match.notes->length_bytes;
    if (input == NULL)
        SEQLSTM_FAIL(
            r->match.err, SEQLSTM_INVALID_CONFIG,
            "%s: a model of an encoder and a decoder cannot be imported from an ONNX file; import weights under "
            "their names",
            r->match.path);
    struct sl_onnx_port implied = {.name = "", .rank = -1}; /* of a file that declares none */
    if (file->node_count && file->input_count == 0)
        implied.name = sl_onnx_node_get_input(&file->nodes[0], strcmp(file->nodes[0].op, "Gather") == 0);
    for (int32_t k = 0; k < (file->input_count ? file->input_count : 1); k++) {
        const struct sl_onnx_port *port = file->input_count ? &file->inputs[k] : &implied;
        const char *roles[ROLES];
        int32_t count = is_initializer(file, port->name) ? 0 : list_roles(input, port->rank, roles);
        for (int32_t a = 0; a < count; a++) {
            bool has_order_error = false;
            if (!fits(port, roles[a], input))
                continue;
            sl_buf_truncate(r->match.notes, notes);
            seqlstm_status status = try_reading(r, file, port, roles[a], input, &has_order_error);
            if (file->arena.failed) /* nothing that was not found counts then */
                SEQLSTM_FAIL(r->match.err, SEQLSTM_NO_MEMORY, "no memory for %s", r->match.path);
            if (status == SEQLSTM_OK)
                return status;
            if (!has_kept || (kept_is_order && !has_order_error))
                kept = *r->match.err;
            kept_is_order = has_kept ? kept_is_order && has_order_error : has_order_error;
            has_kept = true;
        }
    }
    sl_buf_truncate(r->match.notes, notes);
    if (!has_kept)
        SEQLSTM_FAIL(r->match.err, SEQLSTM_INVALID_CONFIG, "%s: no input of the file is the model's, which has %lld %s",
                     r->match.path, (long long)input->features,
                     input->dtype == SEQLSTM_DTYPE_INT32 ? "token ids" : "features");
    *r->match.err = kept;
    return kept.code;
}

seqlstm_status sl_onnx_read(const struct sl_graph *graph, const char *path, float *const *values, struct sl_buf *notes,
                            struct seqlstm_error *err)
{
    struct sl_onnx_file *file = NULL;
    struct seqlstm_error own = SEQLSTM_ERROR_INIT;
    SEQLSTM_TRY(sl_onnx_file_open(path, &file, err));
    struct reading r = {.match = {.graph = graph, .path = path, .notes = notes, .err = err ? err : &own},
                        .values = values};
    seqlstm_status status = read_file(&r, file);
    sl_onnx_file_close(file);
    return status;
}
