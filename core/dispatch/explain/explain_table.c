/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as a table. See explain.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "dispatch/plan/capture.h"
#include "dispatch/explain/explain.h"

enum { COLUMNS = 5, CELL = 96 };

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

/* With `digits` significant digits, but at least all digits before the point. */
static void write_time(char *out, size_t bytes, double value, int digits)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int unit = 0, places = digits - 1;
    for (; value >= 1000 && unit < 3; unit++)
        value /= 1000;
    for (double limit = 10; places > 0 && value + 0.5 * pow(10, -places) >= limit; limit *= 10)
        places--;
    snprintf(out, bytes, "%.*f %s", places, value, units[unit]);
}

/* Empty if the cost is only a guess. */
static void write_ns(char *out, size_t bytes, const struct sl_cost *cost)
{
    out[0] = '\0';
    if (cost->source > SL_COST_GUESS)
        write_time(out, bytes, cost->forward_ns + cost->backward_ns, 2);
}

/* The first output of the call that is used; -1: there is none. */
static int32_t find_output(const struct sl_graph *graph, const struct sl_node *node)
{
    static const int32_t first_output[SEQLSTM_OP_COUNT] = {
        [SEQLSTM_OP_RECURRENT] = SEQLSTM_SLOT_RECURRENT_Y,
        [SEQLSTM_OP_EMBEDDING] = SEQLSTM_SLOT_EMBEDDING_Y,
        [SEQLSTM_OP_DENSE] = SEQLSTM_SLOT_DENSE_Y,
        [SEQLSTM_OP_ACTIVATION] = SEQLSTM_SLOT_UNARY_Y,
        [SEQLSTM_OP_DROPOUT] = SEQLSTM_SLOT_UNARY_Y,
        [SEQLSTM_OP_LAYER_NORM] = SEQLSTM_SLOT_LAYER_NORM_Y,
        [SEQLSTM_OP_POOL] = SEQLSTM_SLOT_UNARY_Y,
        [SEQLSTM_OP_MERGE] = SEQLSTM_SLOT_MERGE_Y,
        [SEQLSTM_OP_ATTENTION] = SEQLSTM_SLOT_ATTENTION_CONTEXT,
        [SEQLSTM_OP_GATHER] = SEQLSTM_SLOT_GATHER_Y,
    };
    uint32_t op = node->desc.head.op;
    if (op == SEQLSTM_OP_LOSS || op == SEQLSTM_OP_DENSE_LOSS)
        return -1;
    int32_t slot = first_output[op];
    if (node->slots[slot] >= 0)
        return node->slots[slot];
    if (op == SEQLSTM_OP_RECURRENT)
        for (int32_t s = SEQLSTM_SLOT_RECURRENT_STATES; s < node->slot_count; s++)
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
        snprintf(row->cells[1], CELL,
                 tensor->axis == SL_AXIS_STEPS                                            ? "[B, T, %lld]"
                 : tensor->axis == SL_AXIS_SOURCE_STEPS || tensor->axis == SL_AXIS_MEMORY ? "[B, S, %lld]"
                                                                                          : "[B, %lld]",
                 (long long)tensor->features);
    } else {
        snprintf(row->cells[1], CELL, "loss");
    }
    write_count(row->cells[2], CELL, sl_call_param_elems(plan->graph, call));
    const uint32_t compute = call->node->desc.head.dtype_compute;
    snprintf(row->cells[3], CELL, "%s:%s%s%s", sl_backend_get_id(call->backend), call->variant,
             compute == SEQLSTM_DTYPE_FLOAT32 ? "" : " ",
             compute == SEQLSTM_DTYPE_FLOAT32 ? "" : sl_dtype_name(compute));
    write_ns(row->cells[4], CELL, &call->cost);
}

static bool is_shown(const struct sl_refusal *refusal, bool brief)
{
    return !brief || !(refusal->code & SEQLSTM_BIT_REFUSED_OPERATION);
}

/* "    cpu-onednn refuses peephole true (m.yaml:12:5): reason; without peephole it would be 1.8 times as fast as
 * cpu-blas" where cpu-blas is `chosen`. */
static void write_refusal(const struct sl_refusal *refusal, const char *chosen, struct sl_buf *out)
{
    sl_buf_printf(out, "    %s refuses", refusal->backend);
    if (refusal->option[0])
        sl_buf_printf(out, " %s%s%s", refusal->option, refusal->value[0] ? " " : "", refusal->value);
    if (refusal->place.line > 0 && refusal->option[0])
        sl_buf_printf(out, " (%s:%d:%d)", refusal->place.file, refusal->place.line, refusal->place.column);
    size_t length = strlen(refusal->reason);
    bool stops = length > 0 && refusal->reason[length - 1] == '.';
    sl_buf_printf(out, ": %.*s", (int)(length - stops), refusal->reason);
    if (refusal->speedup >= 1.05)
        sl_buf_printf(out, "; without %s it would be %.1f times as fast as %s", refusal->without, refusal->speedup,
                      chosen);
    else if (refusal->speedup > 0)
        sl_buf_printf(out, "; not faster without %s", refusal->without);
    sl_buf_append_char(out, '\n');
}

static void write_rival(const struct sl_rival *rival, const struct sl_cost *chosen, struct sl_buf *out)
{
    char time[CELL];
    write_ns(time, sizeof time, &rival->cost);
    sl_buf_printf(out, "    %s:%s", rival->backend, rival->variant);
    double ours = chosen->forward_ns + chosen->backward_ns, its = rival->cost.forward_ns + rival->cost.backward_ns;
    if (time[0] && ours > 0 && rival->cost.source == SL_COST_BOUND)
        sl_buf_printf(out, " was not timed: it takes %.0fx or more", its / ours);
    else if (time[0] && ours > 0)
        sl_buf_printf(out, " takes %s, %.2fx", time, its / ours);
    else
        sl_buf_append_text(out, " accepts it too");
    sl_buf_append_char(out, '\n');
}

/* The other backends and variants: first those that refused, then those that would also run it. */
static void write_others(const struct sl_call *call, bool brief, struct sl_buf *out)
{
    for (int32_t r = 0; r < call->refusal_count; r++)
        if (is_shown(&call->refusals[r], brief))
            write_refusal(&call->refusals[r], sl_backend_get_id(call->backend), out);
    for (int32_t r = 0; r < call->rival_count && !brief; r++)
        write_rival(&call->rivals[r], &call->cost, out);
}

static void write_memory(const struct sl_plan *plan, const struct sl_plan_beside *beside, struct sl_buf *out)
{
    struct sl_plan_memory m = sl_plan_sum_memory(plan, beside);
    const struct sl_envelope *envelope = &plan->graph->facts.envelope;
    char weights[32], gradients[32], optimizer[32], activations[32], workspace[32];
    char backends[32], batches[32], decoding[32], checkpoint[32], process[32], peak[32];
    write_bytes(weights, sizeof weights, m.weights_bytes);
    write_bytes(gradients, sizeof gradients, m.gradients_bytes);
    write_bytes(optimizer, sizeof optimizer, m.optimizer_bytes);
    write_bytes(activations, sizeof activations, m.activations_bytes);
    write_bytes(workspace, sizeof workspace, m.workspace_bytes);
    write_bytes(backends, sizeof backends, m.backends_bytes);
    write_bytes(batches, sizeof batches, m.batches_bytes);
    write_bytes(decoding, sizeof decoding, m.decoding_bytes);
    const bool tests = m.test_bytes > m.checkpoint_bytes; /* only the larger of the two is in the peak */
    write_bytes(checkpoint, sizeof checkpoint, tests ? m.test_bytes : m.checkpoint_bytes);
    write_bytes(process, sizeof process, m.process_bytes);
    write_bytes(peak, sizeof peak, m.peak_bytes);
    sl_buf_printf(out,
                  "memory  peak %s: weights %s, gradients %s, optimizer %s,\n"
                  "        activations %s, workspace %s%s%s%s%s, %s %s, program and data %s%s%s\n",
                  peak, weights, gradients, optimizer, activations, workspace,
                  m.backends_bytes > 0 ? ", backends " : "", m.backends_bytes > 0 ? backends : "",
                  m.decoding_bytes > 0 ? ", decoding " : "", m.decoding_bytes > 0 ? decoding : "",
                  tests ? "test at the end" : "checkpoint", checkpoint, process,
                  m.batches_bytes > 0 ? ", batches on devices " : "", m.batches_bytes > 0 ? batches : "");
    if (m.peak_bytes <= m.reached_bytes)
        sl_buf_append_text(out, "        (the peak was reached while reading files and timing backends; "
                                "the run itself needs less)\n");
    if (envelope->steps > 0)
        sl_buf_printf(out, "batch   at most %lld sequence%s, %lld step%s, %lld row%s\n", (long long)envelope->sequences,
                      envelope->sequences == 1 ? "" : "s", (long long)envelope->steps, envelope->steps == 1 ? "" : "s",
                      (long long)envelope->rows, envelope->rows == 1 ? "" : "s");
    else
        sl_buf_printf(out, "batch   at most %lld row%s\n", (long long)envelope->sequences,
                      envelope->sequences == 1 ? "" : "s");
}

static void write_copies(const struct sl_plan *plan, struct sl_buf *out)
{
    int64_t bytes = 0;
    struct sl_copy copies[64];
    int32_t count = sl_plan_list_copies(plan, copies, 64);
    char text[32];
    for (int32_t k = 0; k < count && k < 64; k++)
        bytes += copies[k].bytes;
    write_bytes(text, sizeof text, bytes);
    if (count > 0)
        sl_buf_printf(out, "copies  %d between memories, %s%s a step\n", count, count > 64 ? "over " : "", text);
}

/* "casts   4 between float32 and bfloat16, 8.2 MB a step: lstm_1, lstm_2" */
static void write_casts(const struct sl_plan *plan, struct sl_buf *out)
{
    enum { CASTS = 64 };
    int64_t bytes = 0;
    struct sl_cast casts[CASTS];
    const int32_t count = sl_plan_list_casts(plan, casts, CASTS), listed = count < CASTS ? count : CASTS;
    char text[32];
    if (count == 0)
        return;
    for (int32_t k = 0; k < listed; k++)
        bytes += casts[k].bytes;
    write_bytes(text, sizeof text, bytes);
    const uint32_t type = casts[0].call->node->desc.head.dtype_compute;
    sl_buf_printf(out, "casts   %d between float32 and %s, %s%s a step", count, sl_dtype_name(type),
                  count > CASTS ? "over " : "", text);
    const struct sl_call *last = NULL;
    for (int32_t k = 0; k < listed; k++) {
        if (casts[k].call != last)
            sl_buf_printf(out, "%s%s", last ? ", " : ": ", casts[k].call->node->name);
        last = casts[k].call;
    }
    sl_buf_append_text(out, count > CASTS ? ", …\n" : "\n");
}

/* Training on a device: is a step captured as one graph, and if not, why? */
static void write_capture(const struct sl_plan *plan, struct sl_buf *out)
{
    const struct sl_capture capture = sl_plan_find_capture(plan);
    if (plan->graph->phase != SL_PHASE_TRAIN || !capture.on_device)
        return;
    if (capture.with_update)
        sl_buf_append_text(
            out, "graph   a step and its update are captured when a batch has the same shape as an earlier one\n");
    else if (capture.possible)
        sl_buf_printf(
            out,
            "graph   a step without its update is captured when a batch has the same shape as an earlier one: %s\n",
            capture.reason);
    else
        sl_buf_printf(out, "graph   none, each call is started separately: %s\n", capture.reason);
}

/* The number of parameters, and the time of a step without its update if all of it is known. */
static void write_total(const struct sl_plan *plan, struct sl_buf *out)
{
    char count[32], time[CELL];
    int64_t params = 0;
    struct sl_cost sum = {.source = SL_COST_MEASURED};
    for (int32_t c = 0; c < plan->call_count; c++) {
        const struct sl_cost *cost = &plan->calls[c].cost;
        params += sl_call_param_elems(plan->graph, &plan->calls[c]);
        sum.forward_ns += cost->forward_ns;
        sum.backward_ns += cost->backward_ns;
        if (cost->source < sum.source)
            sum.source = cost->source;
    }
    write_count(count, sizeof count, params);
    write_ns(time, sizeof time, &sum);
    sl_buf_printf(out, "total   %s parameters", count);
    if (time[0])
        sl_buf_printf(out, ", %s for a mean batch (%s)", time, sl_cost_source_get_name(sum.source));
    sl_buf_append_char(out, '\n');
}

/* "steps   2.31 ms for a whole step (measured), 2.40 ms with lstm_1 on cpu-onednn:exclusive" */
static void write_whole_steps(const struct sl_plan *plan, bool brief, struct sl_buf *out)
{
    const struct sl_whole_steps *steps = &plan->whole_steps;
    char chosen[32], other[32];
    if (steps->source == SL_COST_NONE || (brief && !steps->overturned))
        return;
    write_time(chosen, sizeof chosen, steps->chosen_ns, 3);
    write_time(other, sizeof other, steps->other_ns, 3);
    sl_buf_printf(out, "steps   %s for a whole step (%s), %s with ", chosen, sl_cost_source_get_name(steps->source),
                  other);
    for (int32_t k = 0; k < steps->other_count; k++)
        sl_buf_printf(out, "%s%s on %s:%s", k ? ", " : "", steps->other[k].node, steps->other[k].backend,
                      steps->other[k].variant);
    sl_buf_printf(out, "%s\n", steps->overturned ? ", although its operations take less time when run alone" : "");
}

static void write_loop(const struct sl_plan *plan, struct sl_buf *out)
{
    const struct sl_loop *loop = &plan->graph->loop;
    if (loop->count > 0)
        sl_buf_printf(out, "loop    %s to %s run step by step (input feeding); times are those of all steps at once\n",
                      plan->graph->nodes[loop->first].name, plan->graph->nodes[loop->first + loop->count - 1].name);
}

/* Without blanks at the end of the line. */
static void write_row(const struct row *row, const size_t widths[COLUMNS], struct sl_buf *out)
{
    size_t last = COLUMNS - 1;
    while (row->cells[last][0] == '\0')
        last--;
    for (size_t k = 0; k < last; k++)
        sl_buf_printf(out, k == 2 ? "%*s  " : "%-*s  ", (int)widths[k], row->cells[k]);
    if (last == COLUMNS - 1)
        sl_buf_printf(out, "%*s\n", (int)widths[last], row->cells[last]);
    else
        sl_buf_printf(out, "%s\n", row->cells[last]);
}

void sl_plan_write_table(const struct sl_plan *plan, const struct sl_plan_beside *beside, bool brief,
                         struct sl_buf *out)
{
    static const char *const titles[COLUMNS] = {"layer", "output", "parameters", "runs on", "time"};
    size_t widths[COLUMNS];
    struct row row;
    bool timed = false;
    for (int k = 0; k < COLUMNS; k++)
        widths[k] = strlen(titles[k]);
    for (int32_t c = 0; c < plan->call_count; c++) {
        fill_row(plan, &plan->calls[c], &row);
        timed = timed || row.cells[COLUMNS - 1][0];
        for (int k = 0; k < COLUMNS; k++)
            if (strlen(row.cells[k]) > widths[k])
                widths[k] = strlen(row.cells[k]);
    }
    for (int k = 0; k < COLUMNS; k++)
        snprintf(row.cells[k], CELL, "%s", k < COLUMNS - 1 || timed ? titles[k] : "");
    write_row(&row, widths, out);
    for (int32_t c = 0; c < plan->call_count; c++) {
        fill_row(plan, &plan->calls[c], &row);
        write_row(&row, widths, out);
        write_others(&plan->calls[c], brief, out);
    }
    write_total(plan, out);
    write_whole_steps(plan, brief, out);
    write_copies(plan, out);
    write_casts(plan, out);
    write_loop(plan, out);
    write_capture(plan, out);
    if (!brief)
        write_memory(plan, beside, out);
}
