/* SPDX-License-Identifier: Apache-2.0 */
/* Weights out of an ONNX file into a model that describes the same network. Nodes that carry weights are matched with
 * the model's operations in order; what their attributes say must be what the model says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/onnx.h"
#include "interop/onnx_cell.h"
#include "interop/onnx_file.h"

/* A constant as some node sees it. */
struct constant {
    const struct sl_onnx_tensor *tensor; /* NULL: none */
    bool is_transposed;                  /* of rank 2, on the way to the node */
};

struct reading {
    const struct sl_graph *graph;
    const struct sl_onnx_file *file;
    const char *path;
    float *const *values;
    struct sl_buf *notes;
    struct seqlstm_error *err;
};

/* One matched pair. */
struct pair {
    const struct reading *r;
    const struct sl_node *ours;
    const struct sl_onnx_node *theirs;
};

/* Follows nodes that only change a tensor's shape or name back to a constant. */
static struct constant resolve(const struct sl_onnx_file *file, const char *name)
{
    enum { HOPS = 8 };
    struct constant none = {NULL, false}, found = none;
    for (int hop = 0; hop < HOPS && name && *name; hop++) {
        found.tensor = sl_onnx_file_find_tensor(file, name);
        if (found.tensor)
            return found;
        const struct sl_onnx_node *writer = sl_onnx_file_find_writer(file, name);
        if (writer == NULL || writer->input_count == 0)
            return none;
        if (strcmp(writer->op, "Transpose") == 0)
            found.is_transposed = !found.is_transposed;
        else if (strcmp(writer->op, "Identity") && strcmp(writer->op, "Unsqueeze") && strcmp(writer->op, "Squeeze"))
            return none;
        name = writer->inputs[0];
    }
    return none;
}

static const char *get_input(const struct sl_onnx_node *node, int32_t k)
{
    return k < node->input_count ? node->inputs[k] : "";
}

/* ---- errors ------------------------------------------------------------------------------------------------- */

static seqlstm_status fail_option(const struct pair *p, uint32_t option, const char *key, const char *theirs)
{
    struct sl_option_place place = sl_graph_find_option(p->r->graph, p->ours, option);
    seqlstm_error_set(p->r->err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                      "layer `%s`: the file's %s has %s, which the model's `%s` does not say", p->ours->name,
                      p->theirs->op, theirs, key);
    if (p->r->err && place.place.line > 0)
        snprintf(p->r->err->where, sizeof p->r->err->where, "%s:%d:%d", place.place.file, place.place.line,
                 place.place.column);
    return SEQLSTM_INVALID_CONFIG;
}

static seqlstm_status fail_tensor(const struct pair *p, const char *what, const struct sl_onnx_tensor *tensor,
                                  int64_t elems)
{
    if (tensor == NULL)
        SEQLSTM_FAIL(p->r->err, SEQLSTM_CORRUPT_DATA, "%s: %s of %s `%s` is not a constant of the file", p->r->path,
                     what, p->theirs->op, p->theirs->name);
    if (tensor->values == NULL)
        SEQLSTM_FAIL(p->r->err, SEQLSTM_CORRUPT_DATA, "%s: `%s` is not float32", p->r->path, tensor->name);
    SEQLSTM_FAIL(p->r->err, SEQLSTM_CORRUPT_DATA,
                 "%s: %s of %s `%s` has %lld numbers, but layer `%s` wants %lld: another width", p->r->path, what,
                 p->theirs->op, p->theirs->name, (long long)tensor->elems, p->ours->name, (long long)elems);
}

/* ---- recurrent ---------------------------------------------------------------------------------------------- */

static bool is_same_activation(const struct seqlstm_activation *ours, const struct seqlstm_activation *theirs)
{
    const struct sl_onnx_activation *named = sl_onnx_activation_get(theirs->kind);
    bool ours_is_none = ours->kind == SEQLSTM_ACT_NONE;
    if (ours_is_none ? theirs->kind != SEQLSTM_ACT_AFFINE : theirs->kind != ours->kind)
        return false;
    return (!named->has_alpha || (ours_is_none ? 1.0f : ours->alpha) == theirs->alpha) &&
           (!named->has_beta || (ours_is_none ? 0.0f : ours->beta) == theirs->beta);
}

/* ONNX's list has f, g, h of each direction; alpha and beta are taken by those that have one, in turn. */
static seqlstm_status check_activations(const struct pair *p, const struct sl_onnx_cell *cell, int32_t directions)
{
    static const char *const defaults[] = {"Sigmoid", "Tanh", "Tanh"};
    static const uint32_t options[] = {SEQLSTM_OPTION_RECURRENT_ACTIVATION, SEQLSTM_OPTION_ACTIVATION,
                                       SEQLSTM_OPTION_OUTPUT_ACTIVATION};
    static const char *const keys[] = {"recurrent_activation", "activation", "output_activation"};
    const struct sl_onnx_attribute *names = sl_onnx_node_find_attribute(p->theirs, "activations");
    const struct sl_onnx_attribute *alphas = sl_onnx_node_find_attribute(p->theirs, "activation_alpha");
    const struct sl_onnx_attribute *betas = sl_onnx_node_find_attribute(p->theirs, "activation_beta");
    int32_t at = 0, alpha = 0, beta = 0;
    for (int32_t d = 0; d < directions; d++)
        for (int32_t place = cell->first_place; place <= cell->last_place; place++, at++) {
            struct seqlstm_activation theirs;
            const char *name = names && at < names->count ? names->texts[at] : defaults[place];
            char text[96];
            if (!sl_onnx_activation_find(name, &theirs))
                return fail_option(p, options[place], keys[place], "an activation that ONNX does not have");
            const struct sl_onnx_activation *named = sl_onnx_activation_get(theirs.kind);
            if (named->has_alpha && alphas && alpha < alphas->count)
                theirs.alpha = alphas->floats[alpha++];
            if (named->has_beta && betas && beta < betas->count)
                theirs.beta = betas->floats[beta++];
            if (is_same_activation(&p->ours->desc.recurrent.activations[place][d], &theirs))
                continue;
            snprintf(text, sizeof text, "%s (alpha %g, beta %g)", name, (double)theirs.alpha, (double)theirs.beta);
            return fail_option(p, options[place], keys[place], text);
        }
    return SEQLSTM_OK;
}

static seqlstm_status check_attributes(const struct pair *p, const struct sl_onnx_cell *cell, int32_t directions)
{
    const struct seqlstm_recurrent_desc *desc = &p->ours->desc.recurrent;
    const struct sl_onnx_attribute *direction = sl_onnx_node_find_attribute(p->theirs, "direction");
    const struct sl_onnx_attribute *clip = sl_onnx_node_find_attribute(p->theirs, "clip");
    const struct sl_onnx_attribute *coupled = sl_onnx_node_find_attribute(p->theirs, "input_forget");
    const struct sl_onnx_attribute *before = sl_onnx_node_find_attribute(p->theirs, "linear_before_reset");
    static const char *const words[] = {"forward", "reverse", "bidirectional"};
    const char *said = direction && direction->text ? direction->text : "forward";
    char text[64];
    if (strcmp(said, words[desc->direction]) != 0) {
        snprintf(text, sizeof text, "direction %s", said);
        return fail_option(p, SEQLSTM_OPTION_DIRECTION, "direction", text);
    }
    if ((clip ? clip->f : 0.0f) != desc->gate_clip) {
        snprintf(text, sizeof text, "clip %g", clip ? (double)clip->f : 0.0);
        return fail_option(p, SEQLSTM_OPTION_GATE_CLIP, "gate_clip", text);
    }
    if ((coupled && coupled->i) != ((desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES) != 0))
        return fail_option(p, SEQLSTM_OPTION_COUPLED_GATES, "coupled_gates",
                           coupled && coupled->i ? "input_forget 1" : "input_forget 0");
    if (desc->cell == SEQLSTM_CELL_GRU &&
        (before && before->i) != ((desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER) != 0))
        return fail_option(p, SEQLSTM_OPTION_RESET_AFTER, "reset_after",
                           before && before->i ? "linear_before_reset 1" : "linear_before_reset 0");
    if (resolve(p->r->file, get_input(p->theirs, 3)).tensor && !(desc->options & SEQLSTM_BIT_RECURRENT_USE_BIAS))
        return fail_option(p, SEQLSTM_OPTION_USE_BIAS, "use_bias", "biases");
    if (resolve(p->r->file, get_input(p->theirs, 7)).tensor && !(desc->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE))
        return fail_option(p, SEQLSTM_OPTION_PEEPHOLE, "peephole", "peepholes");
    return check_activations(p, cell, directions);
}

/* Adds ONNX's blocks of H rows to ours. An absent tensor is zeros where `is_optional`. */
static seqlstm_status read_blocks(const struct pair *p, int32_t input, const char *what, int32_t which,
                                  const int32_t *of, int32_t count, int64_t columns, bool is_optional)
{
    const struct seqlstm_recurrent_desc *desc = &p->ours->desc.recurrent;
    int32_t directions = desc->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    int64_t block = desc->hidden * columns, elems = directions * count * block;
    const struct sl_onnx_tensor *tensor = resolve(p->r->file, get_input(p->theirs, input)).tensor;
    for (int32_t d = 0; d < directions; d++) {
        int32_t slot = p->ours->slots[SEQLSTM_SLOT_RECURRENT_PARAM(directions, d, which)];
        int32_t owner = p->r->graph->tensors[slot].owner;
        const struct sl_param *param = &p->r->graph->params[owner];
        float *out = p->r->values[owner];
        memset(out, 0, (size_t)(param->rows * param->columns) * sizeof *out);
        if (tensor == NULL && is_optional)
            continue;
        if (tensor == NULL || tensor->values == NULL || tensor->elems != elems)
            return fail_tensor(p, what, tensor, elems);
        const float *in = tensor->values + d * count * block;
        for (int32_t k = 0; k < count; k++)
            for (int64_t e = 0; e < block; e++)
                out[of[k] * block + e] += in[k * block + e];
    }
    return SEQLSTM_OK;
}

/* A model begins with zeros: other constants are refused, what is computed is taken for zeros, as PyTorch's is. */
static seqlstm_status check_states(const struct pair *p)
{
    for (int32_t input = 5; input <= 6; input++) {
        const struct sl_onnx_tensor *state = resolve(p->r->file, get_input(p->theirs, input)).tensor;
        for (int64_t e = 0; state && state->values && e < state->elems; e++)
            if (state->values[e] != 0.0f)
                return fail_option(p, SEQLSTM_OPTION_STATES, "initial_state", "an initial state that is not zero");
        if (state == NULL && sl_onnx_file_find_writer(p->r->file, get_input(p->theirs, input)))
            sl_buf_printf(p->r->notes, "`%s` of the file computes its initial state; it is taken for zeros\n",
                          p->theirs->name);
    }
    return SEQLSTM_OK;
}

static seqlstm_status read_recurrent(const struct pair *p)
{
    const struct seqlstm_recurrent_desc *desc = &p->ours->desc.recurrent;
    const struct sl_onnx_cell *cell = sl_onnx_cell_get(desc);
    int32_t directions = desc->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    if (desc->projection || desc->cell_clip > 0 || desc->zoneout_cell > 0 || desc->zoneout_hidden > 0 ||
        (desc->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM))
        return fail_option(p, SEQLSTM_OPTION_CELL, "type", "no projection, cell_clip, zoneout and layer_norm");
    SEQLSTM_TRY(check_attributes(p, cell, directions));
    SEQLSTM_TRY(check_states(p));
    SEQLSTM_TRY(read_blocks(p, 1, "W", SEQLSTM_PARAM_W_X, cell->weight, cell->gates, desc->input, false));
    SEQLSTM_TRY(read_blocks(p, 2, "R", SEQLSTM_PARAM_W_H, cell->weight, cell->gates, desc->hidden, false));
    if (desc->options & SEQLSTM_BIT_RECURRENT_USE_BIAS)
        SEQLSTM_TRY(read_blocks(p, 3, "B", SEQLSTM_PARAM_BIAS, cell->bias, 2 * cell->gates, 1, true));
    if (desc->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE)
        SEQLSTM_TRY(read_blocks(p, 7, "P", SEQLSTM_PARAM_PEEPHOLE, sl_onnx_peephole_order, 3, 1, true));
    return SEQLSTM_OK;
}

/* ---- dense, embedding, layer norm ------------------------------------------------------------------------------ */

/* Fills the parameter of a slot; a parameter that another operation owns too (a tied one) is written twice alike. */
static seqlstm_status read_matrix(const struct pair *p, int32_t slot, const char *what, struct constant from)
{
    int32_t owner = p->r->graph->tensors[p->ours->slots[slot]].owner;
    const struct sl_param *param = &p->r->graph->params[owner];
    int64_t rows = param->rows, columns = param->columns, elems = rows * columns;
    if (from.tensor == NULL || from.tensor->values == NULL || from.tensor->elems != elems)
        return fail_tensor(p, what, from.tensor, elems);
    bool fits = columns == 1 || (from.tensor->rank == 2 && from.tensor->shape[from.is_transposed] == rows);
    if (!fits)
        SEQLSTM_FAIL(p->r->err, SEQLSTM_CORRUPT_DATA, "%s: %s of %s `%s` is not [%lld, %lld]", p->r->path, what,
                     p->theirs->op, p->theirs->name, (long long)rows, (long long)columns);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            p->r->values[owner][r * columns + c] =
                from.tensor->values[from.is_transposed ? c * rows + r : r * columns + c];
    return SEQLSTM_OK;
}

/* The vector that an Add behind `output` adds. */
static struct constant find_added(const struct sl_onnx_file *file, const char *output)
{
    struct constant none = {NULL, false};
    for (int32_t n = 0; output && n < file->node_count; n++) {
        const struct sl_onnx_node *node = &file->nodes[n];
        if (strcmp(node->op, "Add") != 0 || node->input_count != 2)
            continue;
        for (int k = 0; k < 2; k++)
            if (strcmp(node->inputs[k], output) == 0)
                return resolve(file, node->inputs[1 - k]);
    }
    return none;
}

/* Gemm is alpha A' B' + beta C; a dense layer is that with 1, 1 and A as it is. */
static seqlstm_status check_gemm(const struct pair *p)
{
    const struct sl_onnx_attribute *alpha = sl_onnx_node_find_attribute(p->theirs, "alpha");
    const struct sl_onnx_attribute *beta = sl_onnx_node_find_attribute(p->theirs, "beta");
    const struct sl_onnx_attribute *transposed = sl_onnx_node_find_attribute(p->theirs, "transA");
    if ((alpha && alpha->f != 1.0f) || (beta && beta->f != 1.0f) || (transposed && transposed->i))
        return fail_option(p, SEQLSTM_OPTION_KIND, "type", "an alpha, beta or transA of its own");
    return SEQLSTM_OK;
}

static seqlstm_status read_dense(const struct pair *p)
{
    bool is_gemm = strcmp(p->theirs->op, "Gemm") == 0;
    if (is_gemm)
        SEQLSTM_TRY(check_gemm(p));
    const struct sl_onnx_attribute *transposed = sl_onnx_node_find_attribute(p->theirs, "transB");
    struct constant w = resolve(p->r->file, get_input(p->theirs, 1));
    struct constant bias =
        is_gemm ? resolve(p->r->file, get_input(p->theirs, 2)) : find_added(p->r->file, p->theirs->output);
    if (!(is_gemm && transposed && transposed->i)) /* the product wants [I, O], we keep [O, I] */
        w.is_transposed = !w.is_transposed;
    SEQLSTM_TRY(read_matrix(p, SEQLSTM_SLOT_DENSE_W, "the matrix", w));
    if (p->ours->desc.dense.options & SEQLSTM_BIT_DENSE_USE_BIAS)
        return read_matrix(p, SEQLSTM_SLOT_DENSE_BIAS, "the bias", bias);
    return bias.tensor ? fail_option(p, SEQLSTM_OPTION_USE_BIAS, "use_bias", "a bias") : SEQLSTM_OK;
}

static seqlstm_status read_norm(const struct pair *p)
{
    const struct sl_onnx_attribute *epsilon = sl_onnx_node_find_attribute(p->theirs, "epsilon");
    const struct sl_onnx_attribute *axis = sl_onnx_node_find_attribute(p->theirs, "axis");
    char text[64];
    if ((epsilon ? epsilon->f : 1e-5f) != p->ours->desc.layer_norm.epsilon) {
        snprintf(text, sizeof text, "epsilon %g", epsilon ? (double)epsilon->f : 1e-5);
        return fail_option(p, SEQLSTM_OPTION_KIND, "epsilon", text);
    }
    if (axis && axis->i != -1) {
        snprintf(text, sizeof text, "axis %lld", (long long)axis->i);
        return fail_option(p, SEQLSTM_OPTION_KIND, "type", text);
    }
    SEQLSTM_TRY(read_matrix(p, SEQLSTM_SLOT_LAYER_NORM_GAIN, "the gain", resolve(p->r->file, get_input(p->theirs, 1))));
    return read_matrix(p, SEQLSTM_SLOT_LAYER_NORM_BIAS, "the bias", resolve(p->r->file, get_input(p->theirs, 2)));
}

/* ---- matching ------------------------------------------------------------------------------------------------- */

static const char *get_kind(const struct sl_node *node)
{
    switch (node->desc.head.op) {
    case SEQLSTM_OP_RECURRENT:
        return sl_onnx_cell_get(&node->desc.recurrent)->op;
    case SEQLSTM_OP_EMBEDDING:
        return "Gather";
    case SEQLSTM_OP_DENSE:
        return "MatMul";
    case SEQLSTM_OP_LAYER_NORM:
        return "LayerNormalization";
    default:
        return NULL;
    }
}

/* NULL: a node without weights. */
static const char *find_kind(const struct sl_onnx_file *file, const struct sl_onnx_node *node)
{
    static const char *const recurrent[] = {"LSTM", "GRU", "RNN", "LayerNormalization"};
    for (size_t k = 0; k < sizeof recurrent / sizeof *recurrent; k++)
        if (strcmp(node->op, recurrent[k]) == 0)
            return recurrent[k];
    bool is_gather = strcmp(node->op, "Gather") == 0;
    if (!is_gather && strcmp(node->op, "MatMul") && strcmp(node->op, "Gemm"))
        return NULL;
    struct constant w = resolve(file, get_input(node, is_gather ? 0 : 1));
    if (w.tensor == NULL || w.tensor->rank != 2 || w.tensor->values == NULL)
        return NULL;
    return is_gather ? "Gather" : "MatMul";
}

static seqlstm_status fail_match(const struct reading *r)
{
    struct sl_buf ours = {0}, theirs = {0};
    for (int32_t n = 0; n < r->graph->node_count; n++)
        if (get_kind(&r->graph->nodes[n]))
            sl_buf_printf(&ours, " %s", get_kind(&r->graph->nodes[n]));
    for (int32_t n = 0; n < r->file->node_count; n++)
        if (find_kind(r->file, &r->file->nodes[n]))
            sl_buf_printf(&theirs, " %s", find_kind(r->file, &r->file->nodes[n]));
    seqlstm_status status =
        seqlstm_error_set(r->err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                          "the model is another network than the file: operators with weights are, in the model:%s; in "
                          "the file:%s",
                          sl_buf_text(&ours), theirs.length_bytes ? sl_buf_text(&theirs) : " none");
    sl_buf_deinit(&ours);
    sl_buf_deinit(&theirs);
    return status;
}

static seqlstm_status read_pair(const struct pair *p)
{
    switch (p->ours->desc.head.op) {
    case SEQLSTM_OP_RECURRENT:
        return read_recurrent(p);
    case SEQLSTM_OP_EMBEDDING:
        return read_matrix(p, SEQLSTM_SLOT_EMBEDDING_W, "the table", resolve(p->r->file, get_input(p->theirs, 0)));
    case SEQLSTM_OP_DENSE:
        return read_dense(p);
    default:
        return read_norm(p);
    }
}

static seqlstm_status read_all(const struct reading *r)
{
    int32_t at = 0;
    for (int32_t n = 0; n < r->graph->node_count; n++) {
        struct pair p = {r, &r->graph->nodes[n], NULL};
        const char *kind = get_kind(p.ours), *found = NULL;
        if (kind == NULL)
            continue;
        while (at < r->file->node_count && (found = find_kind(r->file, &r->file->nodes[at])) == NULL)
            at++;
        if (found == NULL || strcmp(kind, found) != 0)
            return fail_match(r);
        p.theirs = &r->file->nodes[at++];
        SEQLSTM_TRY(read_pair(&p));
    }
    for (; at < r->file->node_count; at++)
        if (find_kind(r->file, &r->file->nodes[at]))
            return fail_match(r);
    return SEQLSTM_OK;
}

seqlstm_status sl_onnx_read(const struct sl_graph *graph, const char *path, float *const *values, struct sl_buf *notes,
                            struct seqlstm_error *err)
{
    struct sl_onnx_file *file = NULL;
    SEQLSTM_TRY(sl_onnx_file_open(path, &file, err));
    struct reading r = {graph, file, path, values, notes, err};
    seqlstm_status status = read_all(&r);
    sl_onnx_file_close(file);
    return status;
}
