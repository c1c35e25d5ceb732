/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a comparison: the table for people (80 columns), and seqlstm.ab/1. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "compare/ab/ab.h"

static double worst_of(const struct sl_ab_layer *layer)
{
    return fmax(layer->verdict_a.worst, layer->verdict_b.worst);
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

static int name_width(const struct sl_ab_report *report)
{
    int width = 10;
    for (int32_t l = 0; l < report->layer_count; l++)
        width = (int)strlen(report->layers[l].node->name) > width ? (int)strlen(report->layers[l].node->name) : width;
    return width;
}

/* Prints milliseconds with four digits. */
static void print_ms(struct sl_buf *out, double ns)
{
    double ms = 1e-6 * ns;
    if (ns <= 0) {
        sl_buf_append_text(out, "         –");
        return;
    }
    sl_buf_printf(out, "  %8.*f", ms < 9.9995 ? 4 : ms < 99.995 ? 3 : ms < 999.95 ? 2 : 1, ms);
}

static void print_interval(struct sl_buf *out, const struct sl_interval *interval)
{
    if (interval->rounds == 0)
        sl_buf_append_text(out, "       –                 ");
    else if (interval->rounds < SL_INTERVAL_ROUNDS_LEAST)
        sl_buf_printf(out, "  %6.3f  too few rounds", interval->ratio);
    else
        sl_buf_printf(out, "  %6.3f  %6.3f … %-6.3f", interval->ratio, interval->low, interval->high);
}

static void print_share(struct sl_buf *out, double gflop, double ns, double peak)
{
    if (gflop > 0 && ns > 0 && peak > 0)
        sl_buf_printf(out, " %3.0f %%", 100 * gflop * 1e9 / ns / peak);
    else
        sl_buf_append_text(out, "     –");
}

static void print_row(const struct sl_ab_report *report, int width, const char *name, double a_ns, double b_ns,
                      double gflop, const struct sl_interval *interval, struct sl_buf *out)
{
    sl_buf_printf(out, "%-*s", width, name);
    print_ms(out, a_ns);
    print_ms(out, b_ns);
    print_interval(out, interval);
    sl_buf_append_char(out, ' ');
    print_share(out, gflop, a_ns, report->peak_gflops);
    print_share(out, gflop, b_ns, report->peak_gflops);
}

static void print_head(const struct sl_ab_report *report, struct sl_buf *out)
{
    const struct sl_compare_side_facts *facts[2] = {&report->a, &report->b};
    const char *texts[2] = {report->a_text, report->b_text};
    for (int i = 0; i < 2; i++)
        sl_buf_printf(out, "%c  %s (%s %s)\n", 'A' + i, texts[i], facts[i]->id, facts[i]->version);
    sl_buf_printf(out, "%s, %d batch%s of up to %lld sequence%s and %lld row%s, %d thread%s\n",
                  report->graph->phase == SL_PHASE_TRAIN ? "training" : "inference", report->batches,
                  report->batches == 1 ? "" : "es", (long long)report->sequences, report->sequences == 1 ? "" : "s",
                  (long long)report->rows, report->rows == 1 ? "" : "s", report->threads,
                  report->threads == 1 ? "" : "s");
    if (report->separate)
        sl_buf_printf(out, "each side in a process of its own: %s\n", report->separate);
    sl_buf_append_char(out, '\n');
}

static void print_times(const struct sl_ab_report *report, struct sl_buf *out)
{
    int width = name_width(report);
    sl_buf_printf(out, "%-*s  %8s  %8s  %6s  %2.0f %% interval     of peak\n", width, "layer", "A, ms", "B, ms",
                  "B / A", 100 * report->confidence);
    for (int32_t l = 0; l < report->layer_count; l++) {
        const struct sl_ab_layer *layer = &report->layers[l];
        print_row(report, width, layer->node->name, layer->a_ns, layer->b_ns, layer->gflop, &layer->interval, out);
        sl_buf_append_text(out, layer->compared ? "\n" : "  both\n");
    }
    print_row(report, width, "whole step", report->a_ns, report->b_ns, report->gflop, &report->step, out);
    sl_buf_append_char(out, '\n');
}

static void print_choices(const struct sl_ab_report *report, struct sl_buf *out)
{
    int32_t common = 0;
    for (int32_t l = 0; l < report->layer_count; l++) {
        const struct sl_ab_layer *layer = &report->layers[l];
        if (layer->compared)
            continue;
        sl_buf_printf(out, "%s%s: %s on both sides; %s\n", common++ ? "" : "\n", layer->node->name, layer->a,
                      layer->refused);
    }
}

static void print_numbers(const struct sl_ab_report *report, struct sl_buf *out)
{
    double worst = 0;
    for (int32_t l = 0; l < report->layer_count; l++)
        worst = fmax(worst, worst_of(&report->layers[l]));
    for (int32_t l = 0; l < report->layer_count; l++)
        for (int i = 0; i < 2; i++) {
            const struct sl_ab_layer *layer = &report->layers[l];
            const struct sl_compare_side_verdict *verdict = i ? &layer->verdict_b : &layer->verdict_a;
            if (verdict->failed)
                sl_buf_printf(out, "%s on %c, %s: %s\n", layer->node->name, 'A' + i, i ? layer->b : layer->a,
                              verdict->detail);
        }
    if (!report->numeric_ok) {
        sl_buf_append_text(out, "The numbers are wrong, so nothing was timed.\n");
        return;
    }
    sl_buf_printf(out, "Numbers: errors of at most %.2g tolerances; %s differ by %.2g (relative)\n", worst,
                  report->graph->phase == SL_PHASE_TRAIN ? "all gradients" : "outputs", report->difference);
}

static void print_verdict(const struct sl_ab_report *report, struct sl_buf *out)
{
    const struct sl_interval *step = &report->step;
    if (step->rounds < SL_INTERVAL_ROUNDS_LEAST)
        sl_buf_printf(out, "Time: %lld round%s too few for an interval; give more --seconds\n", (long long)step->rounds,
                      step->rounds == 1 ? " is" : "s are");
    else if (step->low > 1)
        sl_buf_printf(out, "Time: B takes %.3f times as long as A (%lld rounds)\n", step->ratio,
                      (long long)step->rounds);
    else if (step->high < 1)
        sl_buf_printf(out, "Time: B is %.3f times as fast as A (%lld rounds)\n", 1 / step->ratio,
                      (long long)step->rounds);
    else
        sl_buf_printf(out, "Time: no difference was found (%lld rounds)\n", (long long)step->rounds);
}

void sl_ab_report_print_table(const struct sl_ab_report *report, struct sl_buf *out)
{
    print_head(report, out);
    if (report->timed)
        print_times(report, out);
    print_choices(report, out);
    sl_buf_append_text(out, report->timed ? "\n" : "");
    print_numbers(report, out);
    if (report->timed)
        print_verdict(report, out);
}

/* ---- JSON --------------------------------------------------------------------------------------------------- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *write_times(double a_ns, double b_ns, double gflop, double peak, const struct sl_interval *interval)
{
    bool timed = interval->rounds > 0;
    double a = a_ns > 0 ? gflop * 1e9 / a_ns : 0, b = b_ns > 0 ? gflop * 1e9 / b_ns : 0;
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:{s:o,s:o},s:{s:o,s:o}}", "ratio",
                     timed ? number(interval->ratio) : json_null(), "low", timed ? number(interval->low) : json_null(),
                     "high", timed ? number(interval->high) : json_null(), "a_ns", timed ? number(a_ns) : json_null(),
                     "b_ns", timed ? number(b_ns) : json_null(), "gflops", "a", number(a), "b", number(b),
                     "fraction_of_peak", "a", number(peak > 0 ? a / peak : 0), "b", number(peak > 0 ? b / peak : 0));
}

static json_t *write_layer(const struct sl_ab_report *report, const struct sl_ab_layer *layer)
{
    json_t *object = write_times(layer->a_ns, layer->b_ns, layer->gflop, report->peak_gflops, &layer->interval);
    json_t *head =
        json_pack("{s:s,s:s,s:s,s:s,s:b,s:o,s:o,s:o,s:s?,s:b}", "name", layer->node->name, "op",
                  sl_op_name(layer->node->desc.head.op), "a", layer->a, "b", layer->b, "compared", layer->compared,
                  "error_over_tolerance", layer->compared ? number(worst_of(layer)) : json_null(), "a_error",
                  layer->compared ? number(layer->verdict_a.worst) : json_null(), "b_error",
                  layer->compared ? number(layer->verdict_b.worst) : json_null(), "refused", layer->refused,
                  "numeric_ok", !layer->verdict_a.failed && !layer->verdict_b.failed);
    if (!object || json_object_update(head, object) != 0) {
        json_decref(head);
        head = NULL;
    }
    json_decref(object);
    return head;
}

static json_t *write_side(const struct sl_compare_side_facts *facts, const char *text)
{
    return json_pack("{s:s,s:s,s:s,s:s}", "said", text, "id", facts->id, "version", facts->version, "file",
                     facts->file);
}

seqlstm_status sl_ab_report_print_json(const struct sl_ab_report *report, struct sl_buf *out, struct seqlstm_error *err)
{
    json_t *layers = json_array();
    for (int32_t l = 0; l < report->layer_count; l++)
        layers = sl_json_add(layers, write_layer(report, &report->layers[l]));
    json_t *step = write_times(report->a_ns, report->b_ns, report->gflop, report->peak_gflops, &report->step);
    json_t *root = json_pack(
        "{s:s,s:o,s:o,s:s,s:i,s:{s:I,s:I,s:i},s:s?,s:f,s:I,s:I,s:o,s:o,s:b,s:{s:o,s:o,s:o},s:o}", "schema",
        "seqlstm.ab/1", "a", write_side(&report->a, report->a_text), "b", write_side(&report->b, report->b_text),
        "phase", report->graph->phase == SL_PHASE_TRAIN ? "train" : "infer", "threads", report->threads, "batch",
        "sequences", (json_int_t)report->sequences, "rows", (json_int_t)report->rows, "batches", report->batches,
        "separate", report->separate, "confidence", report->confidence, "rounds", (json_int_t)report->step.rounds,
        "rounds_per_draw", (json_int_t)report->step.block, "step", step, "layers", layers, "numeric_ok",
        report->numeric_ok, "difference", "relative", report->timed ? number(report->difference) : json_null(),
        "loss_a", report->timed ? number(report->loss_a) : json_null(), "loss_b",
        report->timed ? number(report->loss_b) : json_null(), "peak_gflops",
        report->timed ? number(report->peak_gflops) : json_null());
    if (!sl_json_append_tree(out, root, 0))
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report's JSON");
    return SEQLSTM_OK;
}
