/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep as a table, as sentences and as seqlstm.bench/1. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "base/value/text.h"
#include "compare/sweep/sweep_report.h"

void sl_sweep_print_candidate(const struct sl_sweep_candidate *candidate, struct sl_buf *out)
{
    sl_buf_printf(out, "%s, %d thread%s", candidate->name, candidate->threads, candidate->threads == 1 ? "" : "s");
}

static double rows_per_s(const struct sl_sweep_batch *batch, const struct sl_sweep_cell *cell)
{
    return cell->rounds > 0 ? (double)batch->rows / (1e-9 * cell->step_ns) : 0;
}

static double share_of_peak(const struct sl_sweep_report *report, const struct sl_sweep_batch *batch, int32_t c)
{
    double peak = report->candidates[c].peak_gflops;
    return peak > 0 && batch->cells[c].rounds > 0 ? batch->gflop / (1e-9 * batch->cells[c].step_ns) / peak : 0;
}

int32_t sl_sweep_count_loans(const struct sl_sweep_report *report, int32_t c)
{
    const struct sl_sweep_candidate *candidates = report->candidates;
    for (int32_t before = 0; before < c; before++)
        if (!candidates[before].excluded && strcmp(candidates[before].name, candidates[c].name) == 0)
            return 0;
    return candidates[c].excluded ? 0 : candidates[c].loan_count;
}

void sl_sweep_print_loan(const struct sl_sweep_candidate *candidate, int32_t l, struct sl_buf *out)
{
    const struct sl_sweep_loan *loan = &candidate->loans[l];
    sl_buf_printf(out, "%s: %s runs on %s:%s; %s", candidate->name, loan->layer, loan->id, loan->variant, loan->reason);
}

/* ---- sentences ---------------------------------------------------------------------------------------------- */

static void print_segments(const struct sl_sweep_report *report, const char *between, struct sl_buf *out)
{
    int32_t begin = 0;
    for (int32_t b = 0; b < report->batch_count; b++) {
        const struct sl_sweep_batch *now = &report->batches[b];
        bool last = b + 1 == report->batch_count;
        if (!last && report->batches[b + 1].winner == now->winner)
            continue;
        if (now->winner < 0)
            return;
        sl_buf_append_text(out, begin > 0 ? between : "");
        sl_sweep_print_candidate(&report->candidates[now->winner], out);
        if (begin == 0 && last)
            sl_buf_append_text(out, ": fastest at every batch size");
        else if (last)
            sl_buf_printf(out, ": fastest from batch %lld on", (long long)report->batches[begin].batch);
        else if (begin == b)
            sl_buf_printf(out, ": fastest at batch %lld", (long long)now->batch);
        else if (begin == 0)
            sl_buf_printf(out, ": fastest up to batch %lld", (long long)now->batch);
        else
            sl_buf_printf(out, ": fastest from batch %lld to %lld", (long long)report->batches[begin].batch,
                          (long long)now->batch);
        begin = b + 1;
    }
}

void sl_sweep_print_sentence(const struct sl_sweep_report *report, struct sl_buf *out)
{
    print_segments(report, "; ", out);
    if (report->batch_count > 0 && report->batches[0].winner >= 0)
        sl_buf_append_char(out, '.');
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

/* Three digits and a unit: "812 k", "1.23 M". */
static void print_rate(double rate, char out[16])
{
    double scaled = rate >= 1e6 ? rate / 1e6 : rate >= 1e3 ? rate / 1e3 : rate;
    const char *unit = rate >= 1e6 ? " M" : rate >= 1e3 ? " k" : "";
    if (rate <= 0)
        sl_text_snprintf(out, 16, "–");
    else
        sl_text_snprintf(out, 16, "%.*f%s", scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0, scaled, unit);
}

/* Right-aligned; a character may have several bytes. */
static void print_cell(struct sl_buf *out, int width, const char *text, bool wins)
{
    int columns = 0;
    for (const char *p = text; *p; p++)
        columns += (*p & 0xC0) != 0x80;
    sl_buf_fill(out, ' ', (size_t)(width > columns ? width - columns : 0));
    sl_buf_append_text(out, text);
    sl_buf_append_char(out, wins ? '*' : ' ');
}

enum { CELL = 12 };

static void print_heads(const struct sl_sweep_report *report, struct sl_buf *out)
{
    sl_buf_append_text(out, " batch");
    for (int32_t c = 0; c < report->candidate_count; c++) {
        char name[CELL];
        if (report->candidates[c].excluded)
            continue;
        sl_text_snprintf(name, sizeof name, "%.*s", CELL - 2, report->candidates[c].name);
        print_cell(out, CELL - 1, name, false);
    }
    sl_buf_append_text(out, "   * step     of\n      ");
    for (int32_t c = 0; c < report->candidate_count; c++) {
        char threads[CELL + 4];
        if (report->candidates[c].excluded)
            continue;
        sl_text_snprintf(threads, sizeof threads, "%d thread%s", report->candidates[c].threads,
                         report->candidates[c].threads == 1 ? "" : "s");
        print_cell(out, CELL - 1, threads, false);
    }
    sl_buf_append_text(out, "       ms   peak\n");
}

static void print_batch(const struct sl_sweep_report *report, const struct sl_sweep_batch *batch, struct sl_buf *out)
{
    sl_buf_printf(out, "%6lld", (long long)batch->batch);
    for (int32_t c = 0; c < report->candidate_count; c++) {
        char rate[16];
        if (report->candidates[c].excluded)
            continue;
        print_rate(rows_per_s(batch, &batch->cells[c]), rate);
        print_cell(out, CELL - 1, rate, c == batch->winner);
    }
    if (batch->winner >= 0)
        sl_buf_printf(out, "%9.3f  %3.0f %%", 1e-6 * batch->cells[batch->winner].step_ns,
                      100 * share_of_peak(report, batch, batch->winner));
    sl_buf_append_char(out, '\n');
}

static void print_excluded(const struct sl_sweep_report *report, struct sl_buf *out)
{
    for (int32_t c = 0; c < report->candidate_count; c++) {
        const struct sl_sweep_candidate *candidate = &report->candidates[c];
        if (!candidate->excluded)
            continue;
        sl_buf_append_text(out, "not timed: ");
        sl_sweep_print_candidate(candidate, out);
        sl_buf_printf(out, ": %s%s\n", candidate->failed ? "its numbers are wrong: " : "", candidate->excluded);
    }
    if (report->skipped_from > 0)
        sl_buf_printf(out, "not timed: batch %lld and above; --seconds gives more time\n",
                      (long long)report->skipped_from);
}

static void print_loans(const struct sl_sweep_report *report, struct sl_buf *out)
{
    for (int32_t c = 0; c < report->candidate_count; c++)
        for (int32_t l = 0; l < sl_sweep_count_loans(report, c); l++) {
            sl_sweep_print_loan(&report->candidates[c], l, out);
            sl_buf_append_char(out, '\n');
        }
}

void sl_sweep_print_table(const struct sl_sweep_report *report, struct sl_buf *out)
{
    sl_buf_printf(out, "%s of %s, steps of sequences per second\n\n",
                  report->phase == SL_PHASE_TRAIN ? "training" : "inference", report->model->name);
    if (report->batch_count > 0)
        print_heads(report, out);
    for (int32_t b = 0; b < report->batch_count; b++)
        print_batch(report, &report->batches[b], out);
    sl_buf_append_char(out, '\n');
    print_segments(report, "\n", out);
    sl_buf_append_char(out, '\n');
    print_loans(report, out);
    print_excluded(report, out);
}

/* ---- JSON --------------------------------------------------------------------------------------------------- */

static json_t *list_rows(const struct sl_sweep_report *report)
{
    json_t *rows = json_array();
    for (int32_t b = 0; b < report->batch_count; b++)
        for (int32_t c = 0; c < report->candidate_count; c++) {
            const struct sl_sweep_batch *batch = &report->batches[b];
            const struct sl_sweep_cell *cell = &batch->cells[c];
            const struct sl_sweep_candidate *candidate = &report->candidates[c];
            if (cell->rounds == 0)
                continue;
            rows = sl_json_add(
                rows, json_pack("{s:I,s:I,s:s,s:s,s:i,s:f,s:f,s:f,s:i,s:f,s:f,s:f,s:b}", "batch",
                                (json_int_t)batch->batch, "rows", (json_int_t)batch->rows, "backend", candidate->name,
                                "device", candidate->device, "threads", candidate->threads, "step_ns", cell->step_ns,
                                "low_ns", cell->low_ns, "high_ns", cell->high_ns, "rounds", cell->rounds, "rows_per_s",
                                rows_per_s(batch, cell), "gflops", batch->gflop / (1e-9 * cell->step_ns),
                                "fraction_of_peak", share_of_peak(report, batch, c), "wins", batch->winner == c));
        }
    return rows;
}

static json_t *list_loans(const struct sl_sweep_report *report)
{
    json_t *list = json_array();
    for (int32_t c = 0; c < report->candidate_count; c++)
        for (int32_t l = 0; l < sl_sweep_count_loans(report, c); l++) {
            const struct sl_sweep_loan *loan = &report->candidates[c].loans[l];
            list = sl_json_add(list, json_pack("{s:s,s:s,s:{s:s,s:s},s:s}", "backend", report->candidates[c].name,
                                               "layer", loan->layer, "runs_on", "backend", loan->id, "variant",
                                               loan->variant, "reason", loan->reason));
        }
    return list;
}

static json_t *list_excluded(const struct sl_sweep_report *report)
{
    json_t *list = json_array();
    for (int32_t c = 0; c < report->candidate_count; c++)
        if (report->candidates[c].excluded)
            list = sl_json_add(list, json_pack("{s:s,s:i,s:s,s:b}", "backend", report->candidates[c].name, "threads",
                                               report->candidates[c].threads, "reason", report->candidates[c].excluded,
                                               "numeric_ok", !report->candidates[c].failed));
    return list;
}

seqlstm_status sl_sweep_print_json(const struct sl_sweep_report *report, struct sl_buf *out, struct seqlstm_error *err)
{
    struct sl_buf sentence = {0};
    sl_sweep_print_sentence(report, &sentence);
    json_t *crossover =
        report->crossover > 0 ? json_pack("{s:I}", "batch", (json_int_t)report->crossover) : json_null();
    json_t *root = json_pack("{s:s,s:s,s:s,s:o,s:o,s:s,s:o,s:o,s:o,s:b}", "schema", "seqlstm.bench/1", "model",
                             report->model->name, "phase", report->phase == SL_PHASE_TRAIN ? "train" : "infer", "rows",
                             list_rows(report), "crossover", crossover, "sentence", sl_buf_text(&sentence), "loans",
                             list_loans(report), "excluded", list_excluded(report), "skipped_from",
                             report->skipped_from > 0 ? json_integer(report->skipped_from) : json_null(), "numeric_ok",
                             report->failures == 0);
    const bool fine = sl_json_append_tree(out, root, 0) && !sentence.failed;
    sl_buf_deinit(&sentence);
    if (!fine)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report's JSON");
    return SEQLSTM_OK;
}

void sl_sweep_report_destroy(struct sl_sweep_report *report)
{
    if (!report)
        return;
    sl_arena_deinit(&report->arena);
    free(report);
}
