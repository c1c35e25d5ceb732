/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals of an ONNX file. Each names the node of the file and the place in the model file. */
#include <stdio.h>
#include <string.h>

#include "interop/import/onnx_match.h"
#include "base/value/error_place.h"
#include "interop/onnx_cell.h"

enum { NODE_TEXT = 256 };

const char *sl_onnx_describe_node(const struct sl_onnx_node *node, char *text, size_t bytes)
{
    if (node == NULL)
        snprintf(text, bytes, "an input of the file");
    else if (*node->name)
        snprintf(text, bytes, "%s `%s`", node->op, node->name);
    else
        snprintf(text, bytes, "%s (output `%s`)", node->op, sl_onnx_node_get_output(node, 0));
    return text;
}

seqlstm_status sl_onnx_match_set_place(const struct sl_onnx_match *m, const struct sl_node *ours, uint32_t option)
{
    struct sl_option_place place = sl_graph_find_option(m->graph, ours, option);
    if (place.place.line > 0)
        sl_error_place_set(m->err, place.place.file, place.place.line, place.place.column);
    return SEQLSTM_INVALID_CONFIG;
}

seqlstm_status sl_onnx_match_fail_option(const struct sl_onnx_match *m, const struct sl_node *ours,
                                         const struct sl_onnx_node *theirs, uint32_t option, const char *key,
                                         const char *what)
{
    seqlstm_error_set(m->err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                      "layer `%s`: the file's %s has %s, which the model's `%s` does not say", ours->name, theirs->op,
                      what, key);
    return sl_onnx_match_set_place(m, ours, option);
}

/* Operators with weights on both sides. */
static void list_operators(const struct sl_onnx_match *m, struct sl_buf *out)
{
    static const char *const ops[] = {"LSTM", "GRU", "RNN", "LayerNormalization"};
    sl_buf_append_text(out, "; operators with weights are, in the model:");
    for (int32_t n = 0; n < m->graph->node_count; n++) {
        const struct sl_node *node = &m->graph->nodes[n];
        uint32_t op = node->desc.head.op;
        if (op == SEQLSTM_OP_RECURRENT)
            sl_buf_printf(out, " %s", sl_onnx_cell_get(&node->desc.recurrent)->op);
        else if (op == SEQLSTM_OP_EMBEDDING || op == SEQLSTM_OP_DENSE || op == SEQLSTM_OP_LAYER_NORM)
            sl_buf_append_text(out, op == SEQLSTM_OP_DENSE       ? " MatMul"
                                    : op == SEQLSTM_OP_EMBEDDING ? " Gather"
                                                                 : " LayerNormalization");
    }
    sl_buf_append_text(out, "; in the file:");
    for (int32_t n = 0; n < m->lift->file->node_count; n++) {
        const struct sl_onnx_node *node = &m->lift->file->nodes[n];
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            if (strcmp(node->op, ops[k]) == 0)
                sl_buf_printf(out, " %s", ops[k]);
        for (int32_t t = 0; t < m->lift->term_count; t++)
            if (m->lift->terms[t].node == node &&
                (m->lift->terms[t].kind == SL_ONNX_TERM_PRODUCT || m->lift->terms[t].kind == SL_ONNX_TERM_EMBEDDING))
                sl_buf_append_text(out, m->lift->terms[t].kind == SL_ONNX_TERM_PRODUCT ? " MatMul" : " Gather");
    }
}

/* The file has `theirs` where the model has `what`. */
seqlstm_status sl_onnx_match_fail_place(const struct sl_onnx_match *m, const struct sl_onnx_node *theirs,
                                        const struct sl_node *ours, const char *what)
{
    char text[NODE_TEXT], name[NODE_TEXT];
    struct sl_buf lists = {0};
    list_operators(m, &lists);
    snprintf(name, sizeof name, "layer `%s`", ours ? ours->name : "");
    seqlstm_error_set(
        m->err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
        "%s: the model is another network than the file: where it has %s%s, the file has %s; describe it in "
        "the model file, or remove it from the file%s",
        m->path, ours ? name : "its input", what, sl_onnx_describe_node(theirs, text, sizeof text),
        sl_buf_text(&lists));
    sl_buf_deinit(&lists);
    return ours ? sl_onnx_match_set_place(m, ours, SEQLSTM_OPTION_KIND) : SEQLSTM_INVALID_CONFIG;
}

seqlstm_status sl_onnx_match_fail_opaque(const struct sl_onnx_match *m, const struct sl_onnx_value *value)
{
    char text[NODE_TEXT];
    if (value->via == NULL)
        SEQLSTM_FAIL(m->err, SEQLSTM_INVALID_CONFIG, "%s: `%s` cannot be imported: %s", m->path,
                     value->input ? value->input : "a constant", value->reason ? value->reason : "it is not read");
    SEQLSTM_FAIL(m->err, SEQLSTM_INVALID_CONFIG, "%s: %s cannot be imported: %s", m->path,
                 sl_onnx_describe_node(value->via, text, sizeof text),
                 value->reason ? value->reason : "no layer of a model file computes it");
}

/* The node to name if features are not what the model needs. */
const struct sl_onnx_node *sl_onnx_match_get_culprit(const struct sl_onnx_match *m,
                                                     const struct sl_onnx_features *theirs)
{
    const struct sl_onnx_term *whole = sl_onnx_lift_get_whole(m->lift, theirs);
    if (whole)
        return whole->node;
    return theirs->via || theirs->count == 0 ? theirs->via : m->lift->terms[theirs->list[0].term].node;
}
