/* SPDX-License-Identifier: Apache-2.0 */
/* One HTML file without script or network: a table for each map, a row for each output token, a column for each input
 * token. The stronger the colour of a field, the larger its weight. */
#include "cli/output/attention_page.h"

#include "base/value/html.h"
#include "base/value/text.h"

static const char style[] =
    ":root{--heat:#0b5cad}@media(prefers-color-scheme:dark){:root{--heat:#7cc0ff}}\n"
    "h2{margin:2.2rem 0 .2rem}table{margin:.6rem 0}\n"
    "th{color:var(--ink);font-weight:400;padding:0;text-align:center;white-space:nowrap}"
    "tr th:first-child{text-align:right;padding-right:.6rem}\n"
    "thead th{vertical-align:bottom;padding:0 0 .4rem}thead span{writing-mode:vertical-rl;transform:rotate(180deg)}\n"
    "tbody td{border:1px solid var(--grid);padding:0;width:1.7rem;min-width:1.7rem;height:1.7rem}\n"
    "i{display:block;height:1.7rem;background:var(--heat)}\n";

static void write_token(struct sl_buf *out, const char *before, const char *token, const char *behind)
{
    sl_buf_append_text(out, before);
    sl_html_append_text(out, token);
    sl_buf_append_text(out, behind);
}

/* [targets, sources] of one layer. */
static void write_map(struct sl_buf *out, const struct sl_prediction_attention *attention, const float *weights)
{
    sl_buf_append_text(out, "<div class=\"scroll\"><table><thead><tr><th></th>");
    for (int64_t s = 0; s < attention->source_count; s++)
        write_token(out, "<th><span>", attention->source[s], "</span></th>");
    sl_buf_append_text(out, "</tr></thead><tbody>\n");
    for (int64_t t = 0; t < attention->target_count; t++) {
        write_token(out, "<tr><th>", attention->target[t], "</th>");
        for (int64_t s = 0; s < attention->source_count; s++) {
            char text[64];
            double weight = (double)weights[t * attention->source_count + s];
            sl_text_snprintf(text, sizeof text,
                             weight >= 0.005 ? "<td title=\"%.2f\"><i style=\"opacity:%.2f\">" : "<td title=\"%.2f\">",
                             weight, weight);
            sl_buf_append_text(out, text);
            sl_buf_append_text(out, weight >= 0.005 ? "</i></td>" : "</td>");
        }
        sl_buf_append_text(out, "</tr>\n");
    }
    sl_buf_append_text(out, "</tbody></table></div>\n");
}

static void write_text(struct sl_buf *out, const struct sl_prediction_text *text)
{
    const struct sl_prediction_attention *attention = &text->attention;
    char score[32];
    sl_text_snprintf(score, sizeof score, "%.3f", text->score);
    sl_buf_append_text(out, "<p>");
    sl_html_append_bytes(out, text->text, text->bytes);
    sl_buf_printf(out, " (score %s)</p>\n", score);
    for (int32_t k = 0; k < attention->layer_count; k++) {
        if (attention->layer_count > 1)
            write_token(out, "<p>", attention->layers[k], "</p>\n");
        write_map(out, attention, attention->weights + k * attention->target_count * attention->source_count);
    }
}

void cli_attention_page_begin(struct sl_buf *out, const char *model)
{
    sl_html_begin_page(out, style, "%s: attention", model);
    write_token(out, "<h1>", model, ": attention weights</h1>\n");
    sl_buf_append_text(out,
                       "<p>One row for each output token, one column for each input token. The weights of a row sum "
                       "to 1; a stronger colour means a larger weight.</p>\n");
}

void cli_attention_page_add(struct sl_buf *out, const struct sl_prediction *prediction)
{
    sl_buf_printf(out, "<h2>%lld: ", (long long)prediction->record);
    if (prediction->input)
        sl_html_append_bytes(out, prediction->input, prediction->input_bytes);
    sl_buf_append_text(out, "</h2>\n");
    for (int32_t k = 0; k < prediction->text_count; k++)
        write_text(out, &prediction->texts[k]);
}

void cli_attention_page_end(struct sl_buf *out)
{
    sl_html_end_page(out);
}
