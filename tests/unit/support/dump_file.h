/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of texts, compared as a whole with tests/fixtures/dumps/NAME.txt; see golden.h.
 *
 * `== TITLE` begins a case and is followed by its text; what comes of it follows, with `|` before each line.
 */
#ifndef SL_TESTS_DUMP_FILE_H
#define SL_TESTS_DUMP_FILE_H

#include "golden.h"

#include "base/value/buf.h"

/* Appends lines that come of the text. */
typedef void dump_case_fn(struct sl_buf *out, const char *title, const char *text);

static inline void end_dump_case(struct sl_buf *now, const char *title, struct sl_buf *text, dump_case_fn *make)
{
    struct sl_buf made = {0};
    if (title == NULL)
        return;
    make(&made, title, sl_buf_text(text));
    char *rest = made.data, *line;
    while (rest && (line = strsep(&rest, "\n")) != NULL)
        if (*line != '\0')
            sl_buf_printf(now, "| %s\n", line);
    sl_buf_deinit(&made);
    sl_buf_truncate(text, 0);
}

static inline void replay_dumps(struct sl_buf *now, char *file, dump_case_fn *make)
{
    struct sl_buf text = {0};
    const char *title = NULL;
    char *line;
    while ((line = strsep(&file, "\n")) != NULL) {
        if (*line == '|' || (file == NULL && *line == '\0'))
            continue;
        if (strncmp(line, "== ", 3) == 0) {
            end_dump_case(now, title, &text, make);
            title = line + 3;
        } else {
            sl_buf_printf(&text, "%s\n", line);
        }
        sl_buf_printf(now, "%s\n", line);
    }
    end_dump_case(now, title, &text, make);
    sl_buf_deinit(&text);
}

static inline void compare_dumps(const char *name, dump_case_fn *make)
{
    struct sl_buf now = {0};
    char file[64], *text;
    snprintf(file, sizeof file, "dumps/%s.txt", name);
    text = golden_read(file);
    replay_dumps(&now, text, make);
    golden_expect(file, "== ", sl_buf_text(&now));
    free(text);
    sl_buf_deinit(&now);
}

#endif
