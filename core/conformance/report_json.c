/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance report as JSON, schema seqlstm.conformance/1. */
#include <math.h>

#include "base/value/text.h"
#include "conformance/conformance.h"

static void append_string(struct sl_buf *out, const char *text)
{
    sl_buf_append_char(out, '"');
    for (const unsigned char *p = (const unsigned char *)(text ? text : ""); *p; p++) {
        if (*p == '"' || *p == '\\') {
            sl_buf_append_char(out, '\\');
            sl_buf_append_char(out, (char)*p);
        } else if (*p < 0x20) {
            sl_buf_printf(out, "\\u%04x", *p);
        } else {
            sl_buf_append_char(out, (char)*p);
        }
    }
    sl_buf_append_char(out, '"');
}

static void append_member(struct sl_buf *out, const char *key, const char *text)
{
    sl_buf_printf(out, "\"%s\": ", key);
    append_string(out, text);
}

static void append_backend(struct sl_buf *out, const struct sl_backend_record *record)
{
    sl_buf_append_text(out, "  \"backend\": {");
    append_member(out, "id", record->id);
    sl_buf_append_text(out, ", ");
    append_member(out, "version", record->version);
    sl_buf_append_text(out, ", ");
    append_member(out, "file", record->file);
    sl_buf_append_text(out, ", ");
    append_member(out, "build", record->build);
    sl_buf_append_text(out, ", ");
    append_member(out, "build_id", record->file_count ? record->files[0].build_id : "");
    sl_buf_printf(out, ", \"abi\": \"%u.%u\", ", record->abi_major, record->abi_minor_needed);
    append_member(out, "device", record->device_count ? record->devices[0].name : "");
    sl_buf_append_text(out, ", ");
    append_member(out, "device_class", record->device_count ? record->devices[0].device_class : "");
    sl_buf_append_text(out, "},\n");
}

static void append_result(struct sl_buf *out, const struct sl_conformance_result *r)
{
    char worst[SL_TEXT_NUMBER_BYTES];
    sl_text_print_float64(worst, r->check.worst);
    sl_buf_append_text(out, "    {");
    append_member(out, "case", r->name);
    sl_buf_append_text(out, ", ");
    append_member(out, "level", sl_level_name(r->level));
    sl_buf_append_text(out, ", ");
    append_member(out, "verdict", sl_verdict_name(r->check.verdict));
    sl_buf_printf(out, ", \"error_over_tolerance\": %s, ", isfinite(r->check.worst) ? worst : "null");
    append_member(out, "variant", r->check.variant);
    sl_buf_append_text(out, ", ");
    append_member(out, "reason", r->check.detail);
    sl_buf_printf(out, ", \"ms\": %.3f}", (double)r->took_ns / 1e6);
}

/* "bench": [...], if cases were to be timed. */
static void append_times(struct sl_buf *out, const struct sl_conformance_report *report)
{
    uint32_t count;
    const struct sl_case_time *times = sl_conformance_report_get_times(report, &count);
    if (!sl_conformance_report_is_timed(report))
        return;
    sl_buf_append_text(out, ",\n  \"bench\": [");
    for (uint32_t i = 0; i < count; i++) {
        const struct sl_case_time *t = &times[i];
        const double values[] = {t->median_ns,     t->spread, t->interval.ratio, t->interval.low,
                                 t->interval.high, t->gflops, t->fraction};
        static const char *const names[] = {"median_ns", "spread", "ratio",           "low",
                                            "high",      "gflops", "fraction_of_peak"};
        char number[SL_TEXT_NUMBER_BYTES];
        sl_buf_append_text(out, i ? ",\n    {" : "\n    {");
        append_member(out, "case", t->name);
        sl_buf_append_text(out, ", ");
        append_member(out, "variant", t->variant);
        for (int v = 0; v < 7; v++) {
            sl_text_print_float64(number, values[v]);
            sl_buf_printf(out, ", \"%s\": %s", names[v], isfinite(values[v]) ? number : "null");
        }
        sl_buf_printf(out, ", \"rounds\": %lld}", (long long)t->interval.rounds);
    }
    sl_buf_append_text(out, count ? "\n  ]" : "]");
}

void sl_conformance_report_print_json(const struct sl_conformance_report *report, struct sl_buf *out)
{
    uint32_t count = sl_conformance_report_get_size(report);
    sl_buf_append_text(out, "{\n  \"schema\": \"seqlstm.conformance/1\",\n");
    append_backend(out, sl_conformance_report_get_record(report));
    sl_buf_append_text(out, "  \"totals\": {");
    for (int v = 0; v < SL_VERDICT_COUNT; v++)
        sl_buf_printf(out, "%s\"%s\": %u", v ? ", " : "", sl_verdict_name((enum sl_verdict)v),
                      sl_conformance_report_get_count(report, (enum sl_verdict)v));
    sl_buf_append_text(out, "},\n  \"cases\": [\n");
    for (uint32_t i = 0; i < count; i++) {
        append_result(out, sl_conformance_report_get(report, i));
        sl_buf_append_text(out, i + 1 < count ? ",\n" : "\n");
    }
    sl_buf_append_text(out, "  ]");
    append_times(out, report);
    sl_buf_append_text(out, "\n}\n");
}
