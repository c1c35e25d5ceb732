/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance report as JUnit XML, which most CI services display. */
#include "base/value/html.h"
#include "conformance/conformance.h"

static void append_case(struct sl_buf *out, const struct sl_conformance_result *r)
{
    enum sl_verdict v = r->check.verdict;
    sl_buf_printf(out, "    <testcase classname=\"%s\" name=\"", sl_level_name(r->level));
    sl_html_append_text(out, r->name);
    sl_buf_printf(out, "\" time=\"%.6f\"", (double)r->took_ns / 1e9);
    if (v == SL_VERDICT_PASS) {
        sl_buf_append_text(out, "/>\n");
        return;
    }
    const char *element = v == SL_VERDICT_CRASH ? "error" : sl_verdict_is_bad(v) ? "failure" : "skipped";
    sl_buf_printf(out, "><%s message=\"", element);
    sl_html_append_text(out, r->check.detail);
    sl_buf_append_text(out, "\"/></testcase>\n");
}

void sl_conformance_report_print_junit(const struct sl_conformance_report *report, struct sl_buf *out)
{
    uint32_t size = sl_conformance_report_get_size(report);
    sl_buf_append_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"");
    sl_html_append_text(out, sl_conformance_report_get_record(report)->id);
    sl_buf_printf(out, "\" tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\">\n", size,
                  sl_conformance_report_count_bad(report) - sl_conformance_report_get_count(report, SL_VERDICT_CRASH),
                  sl_conformance_report_get_count(report, SL_VERDICT_CRASH),
                  sl_conformance_report_get_count(report, SL_VERDICT_SKIP) +
                      sl_conformance_report_get_count(report, SL_VERDICT_UNSUPPORTED) +
                      sl_conformance_report_get_count(report, SL_VERDICT_XFAIL));
    for (uint32_t i = 0; i < size; i++)
        append_case(out, sl_conformance_report_get(report, i));
    sl_buf_append_text(out, "  </testsuite>\n</testsuites>\n");
}
