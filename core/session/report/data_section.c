/* SPDX-License-Identifier: Apache-2.0 */
/* See data_section.h. */
#include "session/report/data_section.h"

#include <stdlib.h>

#include "base/value/html.h"
#include "data/dataset/census.h"
#include "session/record/session_record.h"

enum { CLASSES_SHOWN = 30 };

const char sl_data_section_style[] =
    ".counts td.share{width:min(24rem,40vw);text-align:left}.counts i{height:.8rem;background:var(--train)}\n";

/* A row with a bar as long as its share of the largest. */
static void write_row(const char *name, int64_t count, int64_t most, int64_t all, struct sl_buf *out)
{
    sl_buf_append_text(out, "<tr><td>");
    sl_html_append_text(out, name);
    sl_buf_printf(out, "</td><td>%lld</td>", (long long)count);
    sl_html_append_number(out, "<td>%.1f %%</td>", all > 0 ? 100 * (double)count / (double)all : 0);
    sl_html_append_number(out, "<td class=\"share\"><i style=\"width:%.1f%%\"></i></td></tr>\n",
                          most > 0 ? 100 * (double)count / (double)most : 0);
}

static void write_lengths(const struct sl_lengths *lengths, struct sl_buf *out)
{
    int64_t most = 0;
    for (int b = 0; b < lengths->bin_count; b++)
        most = lengths->bins[b].records > most ? lengths->bins[b].records : most;
    sl_buf_printf(out, "<h2>Lengths</h2>\n<p>%lld training sequence%s of %lld to %lld step%s, ",
                  (long long)lengths->records, lengths->records == 1 ? "" : "s",
                  (long long)sl_lengths_get_shortest(lengths), (long long)sl_lengths_get_longest(lengths),
                  sl_lengths_get_longest(lengths) == 1 ? "" : "s");
    sl_html_append_number(out, "mean %.1f", sl_lengths_get_mean(lengths));
    sl_buf_append_text(out, "</p>\n<div class=\"scroll\"><table class=\"counts\"><tr><th>steps</th><th>sequences</th>"
                            "<th>share</th><th></th></tr>\n");
    for (int b = 0; b < lengths->bin_count; b++) {
        struct sl_buf name = {0};
        sl_buf_printf(&name, lengths->bins[b].first == lengths->bins[b].last ? "%lld" : "%lld to %lld",
                      (long long)lengths->bins[b].first, (long long)lengths->bins[b].last);
        write_row(sl_buf_text(&name), lengths->bins[b].records, most, lengths->records, out);
        out->failed = out->failed || name.failed;
        sl_buf_deinit(&name);
    }
    sl_buf_append_text(out, "</table></div>\n");
}

static void write_classes(const struct sl_vocabulary *names, const int64_t *counts, int64_t classes, struct sl_buf *out)
{
    int64_t most = 0, all = 0;
    for (int64_t c = 0; c < classes; c++) {
        most = counts[c] > most ? counts[c] : most;
        all += counts[c];
    }
    sl_buf_append_text(out,
                       "<h2>Class balance</h2>\n<p>Targets of the training data.</p>\n<div class=\"scroll\"><table "
                       "class=\"counts\"><tr><th>class</th><th>targets</th><th>share</th><th></th></tr>\n");
    for (int64_t c = 0; c < classes && c < CLASSES_SHOWN; c++)
        write_row(sl_vocabulary_get_text(names, (int32_t)c, NULL), counts[c], most, all, out);
    sl_buf_append_text(out, "</table></div>\n");
    if (classes > CLASSES_SHOWN)
        sl_buf_printf(out, "<p>and %lld more class%s</p>\n", (long long)classes - CLASSES_SHOWN,
                      classes == CLASSES_SHOWN + 1 ? "" : "es");
}

void sl_data_section_write(const struct sl_session *session, struct sl_buf *out)
{
    struct sl_lengths lengths = {0};
    int64_t *counts = NULL, classes = 0;
    if (!session->train_data)
        return;
    seqlstm_status status = SEQLSTM_NOT_FOUND;
    if (session->model->data.batching.unit == SL_UNIT_SEQUENCE && session->train.graph->facts.longest > 1)
        status = sl_census_take_lengths(session->train_data, &lengths, NULL);
    if (status == SEQLSTM_OK)
        write_lengths(&lengths, out);
    out->failed = out->failed || status == SEQLSTM_NO_MEMORY;
    status = sl_census_count_classes(session->train_data, &counts, &classes, NULL);
    if (status == SEQLSTM_OK && counts)
        write_classes(sl_data_state_find_classes(session->state), counts, classes, out);
    out->failed = out->failed || status == SEQLSTM_NO_MEMORY;
    free(counts);
    sl_lengths_deinit(&lengths);
}
