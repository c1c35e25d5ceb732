/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as a table. See explain.h. */
#include <stdio.h>
#include <string.h>

#include "base/op_signature.h"
#include "dispatch/explain.h"

enum { COLUMNS = 4, CELL = 96 };

struct row {
    char cells[COLUMNS][CELL];
};

/* 18688 -> "18,688" */
static void write_count(char *out, size_t bytes, int64_t count)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count);
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < bytes; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
}

static void write_bytes(char *out, size_t bytes, int64_t count)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)count;
    int unit = 0;
    for (; value >= 1000 && unit < 4; unit++)
        value /= 1000;
    snprintf(out, bytes, value < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* The tensor that the call hands on: its first output, or -1. */
static int32_t find_output(const struct sl_graph *graph, const struct sl_node *node)
{
    static const int32_t first_output[SEQLSTM_OP_COUNT] = {
        [SEQLSTM_OP_RECURRENT] = SEQLSTM_RECURRENT_Y, [SEQLSTM_OP_EMBEDDING] = SEQLSTM_EMBEDDING_Y,
        [SEQLSTM_OP_DENSE] = SEQLSTM_DENSE_Y,         [SEQLSTM_OP_ACTIVATION] = SEQLSTM_UNARY_Y,
        [SEQLSTM_OP_DROPOUT] = SEQLSTM_UNARY_Y,       [SEQLSTM_OP_LAYER_NORM] = SEQLSTM_NORM_Y,
        [SEQLSTM_OP_POOL] = SEQLSTM_UNARY_Y,          [SEQLSTM_OP_MERGE] = SEQLSTM_MERGE_Y,
    };
    uint32_t op = node->desc.head.op;
    if (op == SEQLSTM_OP_LOSS || op == SEQLSTM_OP_DENSE_LOSS)
        return -1;
    int32_t slot = first_output[op];
    if (node->slots[slot] >= 0)
        return node->slots[slot];
    if (op == SEQLSTM_OP_RECURRENT)
        for (int32_t s = SEQLSTM_RECURRENT_STATES; s < node->slot_count; s++)
            if (node->slots[s] >= 0 && graph->tensors[node->slots[s]].role != SL_TENSOR_PARAM &&
                graph->tensors[node->slots[s]].role != SL_TENSOR_STATE_IN)
                return node->slots[s];
    return -1;
}

static void fill_row(const struct sl_plan *plan, const struct sl_call *call, struct row *row)
{
    snprintf(row->cells[0], CELL, "%s", call->node->name);
    int32_t output = find_output(plan->graph, call->node);
    if (output >= 0) {
        const struct sl_tensor *tensor = &plan->graph->tensors[output];
        snprintf(row->cells[1], CELL, tensor->axis == SL_AXIS_STEPS ? "[B, T, %lld]" : "[B, %lld]",
                 (long long)tensor->features);
    } else {
        snprintf(row->cells[1], CELL, "loss");
    }
    write_count(row->cells[2], CELL, sl_call_param_elems(plan->graph, call));
    snprintf(row->cells[3], CELL, "%s:%s", sl_backend_get_id(call->backend), call->variant);
}

static bool is_shown(const struct sl_refusal *refusal, bool brief)
{
    return !brief || !(refusal->code & SEQLSTM_REFUSED_OPERATION);
}

static void write_refusals(const struct sl_call *call, bool brief, size_t indent, struct sl_buf *out)
{
    bool first = true;
    for (int32_t r = 0; r < call->refusal_count; r++) {
        const struct sl_refusal *refusal = &call->refusals[r];
        if (!is_shown(refusal, brief))
            continue;
        if (!first) {
            sl_buf_append_char(out, '\n');
            sl_buf_fill(out, ' ', indent);
        }
        first = false;
        sl_buf_printf(out, "%s: ", refusal->backend);
        if (refusal->option[0])
            sl_buf_printf(out, "%s %s, ", refusal->option, refusal->value);
        sl_buf_append_text(out, refusal->reason);
        if (refusal->place.line > 0 && refusal->option[0])
            sl_buf_printf(out, " (%s:%d:%d)", refusal->place.file, refusal->place.line, refusal->place.column);
    }
}

static void write_memory(const struct sl_plan *plan, struct sl_buf *out)
{
    const struct sl_plan_memory *m = &plan->memory;
    const struct sl_envelope *envelope = &plan->graph->facts.envelope;
    char weights[32], gradients[32], optimizer[32], activations[32], workspace[32], peak[32];
    write_bytes(weights, sizeof weights, m->weights_bytes);
    write_bytes(gradients, sizeof gradients, m->gradients_bytes);
    write_bytes(optimizer, sizeof optimizer, m->optimizer_bytes);
    write_bytes(activations, sizeof activations, m->activations_bytes);
    write_bytes(workspace, sizeof workspace, m->workspace_bytes);
    write_bytes(peak, sizeof peak, m->peak_bytes);
    sl_buf_printf(out,
                  "memory  peak %s: weights %s, gradients %s, optimizer %s,\n"
                  "        activations %s, workspace %s\n",
                  peak, weights, gradients, optimizer, activations, workspace);
    if (envelope->steps > 0)
        sl_buf_printf(out, "batch   at most %lld sequences, %lld steps, %lld rows\n",
                      (long long)envelope->sequences, (long long)envelope->steps, (long long)envelope->rows);
    else
        sl_buf_printf(out, "batch   at most %lld rows\n", (long long)envelope->sequences);
}

static bool has_refusals(const struct sl_plan *plan, bool brief)
{
    for (int32_t c = 0; c < plan->call_count; c++)
        for (int32_t r = 0; r < plan->calls[c].refusal_count; r++)
            if (is_shown(&plan->calls[c].refusals[r], brief))
                return true;
    return false;
}

/* The cells of a row and, where any row says why, the reasons. No blanks at the end. */
static void write_row(const struct row *row, const size_t widths[COLUMNS], struct sl_buf *out)
{
    for (int k = 0; k < COLUMNS - 1; k++)
        sl_buf_printf(out, k == 2 ? "%*s  " : "%-*s  ", (int)widths[k], row->cells[k]);
    sl_buf_append_text(out, row->cells[COLUMNS - 1]);
}

void sl_plan_write_table(const struct sl_plan *plan, bool brief, struct sl_buf *out)
{
    static const char *const titles[COLUMNS] = {"layer", "output", "parameters", "runs on"};
    size_t widths[COLUMNS];
    struct row row;
    int64_t params = 0;
    for (int k = 0; k < COLUMNS; k++)
        widths[k] = strlen(titles[k]);
    for (int32_t c = 0; c < plan->call_count; c++) {
        fill_row(plan, &plan->calls[c], &row);
        params += sl_call_param_elems(plan->graph, &plan->calls[c]);
        for (int k = 0; k < COLUMNS; k++)
            if (strlen(row.cells[k]) > widths[k])
                widths[k] = strlen(row.cells[k]);
    }
    size_t indent = 0;
    for (int k = 0; k < COLUMNS; k++) {
        snprintf(row.cells[k], CELL, "%s", titles[k]);
        indent += widths[k] + 2;
    }
    bool reasons = has_refusals(plan, brief);
    size_t last = widths[COLUMNS - 1];
    write_row(&row, widths, out);
    if (reasons)
        sl_buf_printf(out, "%*s  why not an earlier one", (int)(last - strlen(row.cells[COLUMNS - 1])), "");
    sl_buf_append_char(out, '\n');
    for (int32_t c = 0; c < plan->call_count; c++) {
        struct sl_buf why = {0};
        fill_row(plan, &plan->calls[c], &row);
        write_row(&row, widths, out);
        write_refusals(&plan->calls[c], brief, indent, &why);
        if (why.length_bytes)
            sl_buf_printf(out, "%*s  %s", (int)(last - strlen(row.cells[COLUMNS - 1])), "", sl_buf_text(&why));
        sl_buf_append_char(out, '\n');
        sl_buf_deinit(&why);
    }
    char count[32];
    write_count(count, sizeof count, params);
    sl_buf_printf(out, "total   %s parameters\n", count);
    if (!brief)
        write_memory(plan, out);
}
