/* SPDX-License-Identifier: Apache-2.0 */
/* Prints findings as text with the source line and carets, and as JSON.
 *
 * A column counts characters; the picture must line up on a terminal, so that tabs, wide and combining
 * characters are measured, and control characters are never sent to it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"
#include "base/value/json_write.h"
#include "base/value/text.h"
#include "model/yaml/diagnostics_private.h"

#define RED    "\033[1;31m"
#define YELLOW "\033[1;33m"
#define BLUE   "\033[1;34m"
#define BOLD   "\033[1m"
#define RESET  "\033[0m"

enum {
    TAB_COLUMNS = 4,
    WINDOW = 140, /* characters of a source line that are shown */
    BEFORE = 60   /* number of them before the caret, if the line is longer */
};

/* A finding and its position in the output. */
struct ranked {
    const struct sl_diagnostic *finding;
    size_t file_rank;
    size_t arrival;
};

static int compare_sizes(size_t a, size_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = compare_sizes(a->file_rank, b->file_rank);
    if (order == 0)
        order = compare_sizes((size_t)a->finding->place.line, (size_t)b->finding->place.line);
    if (order == 0)
        order = compare_sizes((size_t)a->finding->place.column, (size_t)b->finding->place.column);
    return order ? order : compare_sizes(a->arrival, b->arrival);
}

/* All findings in order; NULL: no memory. Freed by the caller. */
static struct ranked *sort_findings(const struct sl_diagnostics *diagnostics)
{
    struct ranked *sorted = malloc((diagnostics->finding_count + 1) * sizeof *sorted);
    if (sorted == NULL)
        return NULL;
    for (size_t i = 0; i < diagnostics->finding_count; i++) {
        const struct sl_diagnostic *finding = &diagnostics->findings[i];
        const struct sl_source_file *file = sl_diagnostics_find_file(diagnostics, finding->place.file);
        size_t rank = file ? (size_t)(file - diagnostics->files) : diagnostics->file_count;
        sorted[i] = (struct ranked){finding, rank, i};
    }
    qsort(sorted, diagnostics->finding_count, sizeof *sorted, compare_ranked);
    return sorted;
}

/* Bytes of the line break at `text`, 0 if none: LF, CR LF, CR, and the three that YAML 1.1 adds and
 * libyaml counts as lines: NEL, LS, PS. */
static size_t line_break(const char *text, size_t left)
{
    if (text[0] == '\n')
        return 1;
    if (text[0] == '\r')
        return left > 1 && text[1] == '\n' ? 2 : 1;
    if (left > 1 && memcmp(text, "\xc2\x85", 2) == 0)
        return 2;
    if (left > 2 && (memcmp(text, "\xe2\x80\xa8", 3) == 0 || memcmp(text, "\xe2\x80\xa9", 3) == 0))
        return 3;
    return 0;
}

/* The text of line `line` (from 1) without its break; false: there is none. */
static bool find_line(const struct sl_source_file *file, int line, const char **out_text, size_t *out_bytes)
{
    size_t at = 0, bytes = file->text_bytes;
    const char *text = file->text;
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        at = 3;
    for (int current = 1;; current++) {
        size_t begin = at, skip = 0;
        while (at < bytes && (skip = line_break(text + at, bytes - at)) == 0)
            at++;
        if (current == line) {
            *out_text = text + begin;
            *out_bytes = at - begin;
            return true;
        }
        if (at >= bytes)
            return false;
        at += skip;
    }
}

/* Columns that a character takes on a terminal. */
static int character_width(uint32_t c)
{
    static const struct {
        uint32_t first, last;
        int width;
    } ranges[] = {
        {0x0300, 0x036f, 0}, {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},   {0xfe00, 0xfe0f, 0}, {0x1100, 0x115f, 2},
        {0x2e80, 0xa4cf, 2}, {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe30, 0xfe6f, 2}, {0xff00, 0xff60, 2},
        {0xffe0, 0xffe6, 2}, {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return ranges[i].width;
    return 1;
}

/* Appends one character of a source line, made safe for a terminal, and returns its columns. */
static int append_character(struct sl_buf *out, const char *text, size_t bytes, uint32_t c)
{
    if (c == '\t') {
        sl_buf_fill(out, ' ', TAB_COLUMNS);
        return TAB_COLUMNS;
    }
    if (bytes == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
        (c >= 0x2066 && c <= 0x2069)) {
        sl_buf_append_text(out, "\xef\xbf\xbd");
        return 1;
    }
    sl_buf_append(out, text, bytes);
    return character_width(c);
}

/* Appends the shown part of a line; returns in columns where the carets start and how many. */
static void append_source(struct sl_buf *out, const char *text, size_t bytes, const struct sl_place *place,
                          int *out_indent, int *out_carets)
{
    int first = 1;
    if (place->column > WINDOW - BEFORE / 2)
        first = place->column - BEFORE;
    int indent = 0, carets = 0, last_visible = 0;
    if (first > 1) {
        sl_buf_append_text(out, "...");
        indent = 3;
    }
    size_t end = bytes;
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t'))
        end--;
    int number = 1;
    for (size_t at = 0; at < end; number++) {
        uint32_t c = 0;
        size_t step = sl_text_utf8_decode(text + at, end - at, &c);
        if (number >= first && number < first + WINDOW) {
            int width = append_character(out, text + at, step, c);
            if (number < place->column)
                indent += width;
            else if (number < place->column + place->length)
                carets += width;
            last_visible = number;
        }
        at += step ? step : 1;
    }
    if (last_visible && last_visible < number - 1)
        sl_buf_append_text(out, "...");
    *out_indent = indent;
    *out_carets = carets > 0 ? carets : 1;
}

static int count_digits(int value)
{
    int digits = 1;
    for (; value >= 10; value /= 10)
        digits++;
    return digits;
}

static void append_snippet(const struct sl_diagnostics *diagnostics, const struct sl_diagnostic *finding, int gutter,
                           bool color, struct sl_buf *out)
{
    const char *blue = color ? BLUE : "", *reset = color ? RESET : "";
    bool is_error = sl_diagnostic_get_severity(finding) == SL_SEVERITY_ERROR;
    const char *strong = !color ? "" : is_error ? RED : YELLOW;
    const struct sl_source_file *file = sl_diagnostics_find_file(diagnostics, finding->place.file);
    const char *text;
    size_t bytes;
    if (file == NULL || !find_line(file, finding->place.line, &text, &bytes))
        return;
    sl_buf_printf(out, "%*s %s|%s\n", gutter, "", blue, reset);
    sl_buf_printf(out, "%s%*d |%s ", blue, gutter, finding->place.line, reset);
    int indent, carets;
    append_source(out, text, bytes, &finding->place, &indent, &carets);
    sl_buf_printf(out, "\n%*s %s|%s ", gutter, "", blue, reset);
    sl_buf_fill(out, ' ', (size_t)indent);
    sl_buf_append_text(out, strong);
    sl_buf_fill(out, '^', (size_t)carets);
    if (finding->label != NULL)
        sl_buf_printf(out, " %s", finding->label);
    sl_buf_printf(out, "%s\n", reset);
}

static void append_finding(const struct sl_diagnostics *diagnostics, const struct sl_diagnostic *finding, bool color,
                           struct sl_buf *out)
{
    const char *blue = color ? BLUE : "", *bold = color ? BOLD : "", *reset = color ? RESET : "";
    bool is_error = sl_diagnostic_get_severity(finding) == SL_SEVERITY_ERROR;
    const char *strong = !color ? "" : is_error ? RED : YELLOW;
    const struct sl_place *place = &finding->place;
    int gutter = place->line > 0 ? count_digits(place->line) : 1;
    sl_buf_printf(out, "%s%s[%s]%s%s: ", strong, is_error ? "error" : "warning", finding->code, reset, bold);
    sl_diagnostics_write_text(diagnostics, finding->message, out);
    sl_buf_printf(out, "%s\n", reset);
    if (place->file != NULL && place->line > 0)
        sl_buf_printf(out, "%*s%s-->%s %s:%d:%d\n", gutter, "", blue, reset, place->file, place->line, place->column);
    else if (place->file != NULL)
        sl_buf_printf(out, "%*s%s-->%s %s\n", gutter, "", blue, reset, place->file);
    if (place->line > 0)
        append_snippet(diagnostics, finding, gutter, color, out);
    const char *const titles[] = {"help", "note"}, *const texts[] = {finding->help, finding->note};
    for (int i = 0; i < 2; i++) {
        if (texts[i] == NULL)
            continue;
        sl_buf_printf(out, "%*s %s=%s %s%s%s: ", gutter, "", blue, reset, bold, titles[i], reset);
        sl_diagnostics_write_text(diagnostics, texts[i], out);
        sl_buf_append_char(out, '\n');
    }
    sl_buf_append_char(out, '\n');
}

seqlstm_status sl_diagnostics_render(const struct sl_diagnostics *diagnostics, bool color, struct sl_buf *out,
                                     struct seqlstm_error *err)
{
    struct ranked *sorted = sort_findings(diagnostics);
    if (sorted == NULL || diagnostics->failed) {
        free(sorted);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the diagnostics");
    }
    for (size_t i = 0; i < diagnostics->finding_count; i++)
        append_finding(diagnostics, sorted[i].finding, color, out);
    free(sorted);
    size_t all = diagnostics->counts[0] + diagnostics->counts[1];
    if (all > diagnostics->finding_count)
        sl_buf_printf(out, "and %zu more\n\n", all - diagnostics->finding_count);
    if (out->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the diagnostics");
    return SEQLSTM_OK;
}

static void append_member(const struct sl_diagnostics *diagnostics, struct sl_buf *out, const char *key,
                          const char *text)
{
    struct sl_buf shown;
    sl_buf_init(&shown);
    if (text != NULL)
        sl_diagnostics_write_text(diagnostics, text, &shown);
    sl_buf_printf(out, ", \"%s\": ", key);
    sl_json_append_string(out, text == NULL ? NULL : sl_buf_text(&shown));
    out->failed = out->failed || shown.failed;
    sl_buf_deinit(&shown);
}

seqlstm_status sl_diagnostics_write_json(const struct sl_diagnostics *diagnostics, struct sl_buf *out,
                                         struct seqlstm_error *err)
{
    struct ranked *sorted = sort_findings(diagnostics);
    if (sorted == NULL || diagnostics->failed) {
        free(sorted);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the diagnostics");
    }
    sl_buf_append_char(out, '[');
    for (size_t i = 0; i < diagnostics->finding_count; i++) {
        const struct sl_diagnostic *finding = sorted[i].finding;
        bool is_error = sl_diagnostic_get_severity(finding) == SL_SEVERITY_ERROR;
        sl_buf_printf(out, "%s{\"severity\": \"%s\"", i ? ",\n " : "", is_error ? "error" : "warning");
        append_member(diagnostics, out, "code", finding->code);
        append_member(diagnostics, out, "file", finding->place.file);
        sl_buf_printf(out, ", \"line\": %d, \"column\": %d, \"length\": %d", finding->place.line, finding->place.column,
                      finding->place.length);
        append_member(diagnostics, out, "message", finding->message);
        append_member(diagnostics, out, "label", finding->label);
        append_member(diagnostics, out, "help", finding->help);
        append_member(diagnostics, out, "note", finding->note);
        sl_buf_append_char(out, '}');
    }
    sl_buf_append_char(out, ']');
    free(sorted);
    if (out->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the diagnostics");
    return SEQLSTM_OK;
}
