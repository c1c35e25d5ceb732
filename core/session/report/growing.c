/* SPDX-License-Identifier: Apache-2.0 */
/* See growing.h. */
#include "session/report/growing.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory/arena.h"
#include "base/system/file.h"
#include "base/value/chart.h"
#include "base/value/html.h"
#include "base/value/path.h"
#include "runs/metric_rows.h"
#include "runs/run_facts.h"
#include "session/report/curves.h"
#include "session/report/report.h"

enum { REPORT_MOST = 1 << 26 };

/* Appends report.html; false: there is none. */
static bool append_report(const char *folder, struct sl_buf *out)
{
    char *path = sl_path_join(folder, "report.html"), *text = NULL;
    size_t bytes = 0;
    const bool found =
        path && sl_file_exists(path) && sl_file_read(path, REPORT_MOST, &text, &bytes, NULL) == SEQLSTM_OK;
    if (found)
        sl_buf_append(out, text, bytes);
    free(text);
    free(path);
    return found;
}

static void write_state(const struct sl_run_facts *run, struct sl_buf *out)
{
    sl_buf_printf(out, "<p>%s", sl_run_state_get_name(run->state));
    if (!isnan(run->epochs))
        sl_html_append_number(out, ", epoch %.4g", run->epochs);
    if (run->updates >= 0)
        sl_buf_printf(out, ", update %lld", (long long)run->updates);
    if (!isnan(run->seconds))
        sl_html_append_number(out, ", %.4g seconds", run->seconds);
    sl_buf_append_text(out, "</p>\n");
}

void sl_report_write_growing(const char *folder, struct sl_buf *out)
{
    struct sl_arena arena = {0};
    struct sl_run_facts run;
    const bool known = sl_run_facts_read(&arena, folder, folder, &run);
    if (!known || run.state == SL_RUN_LIVE || !append_report(folder, out)) {
        json_t *rows = sl_metric_rows_read(folder);
        struct sl_buf styles = {0};
        sl_buf_printf(&styles, "%s%s", sl_chart_style, sl_report_style);
        sl_html_begin_page(out, sl_buf_text(&styles), "%s", folder);
        sl_buf_append_text(out, "<h1>");
        sl_html_append_text(out, folder);
        sl_buf_append_text(out, "</h1>\n");
        if (known)
            write_state(&run, out);
        sl_report_write_curves(out, rows, 0);
        sl_html_end_page(out);
        out->failed = out->failed || styles.failed || rows == NULL;
        sl_buf_deinit(&styles);
        json_decref(rows);
    }
    sl_arena_deinit(&arena);
}
