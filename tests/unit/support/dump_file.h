/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of texts, compared as a whole with tests/fixtures/dumps/NAME.txt.
 *
 * `== TITLE` begins a case and is followed by its text; what comes of it follows, with `|` before each line. With
 * SEQLSTM_UPDATE set it is written instead of compared: look at the difference.
 */
#ifndef SL_TESTS_DUMP_FILE_H
#define SL_TESTS_DUMP_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/buf.h"

enum { DUMP_FILE_MOST = 4 << 20 };

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

static inline void expect_same_dump(const char *path, char *now, char *then)
{
    const char *title = "";
    char *a, *b;
    for (int line = 1; (a = strsep(&now, "\n")) != NULL && (b = strsep(&then, "\n")) != NULL; line++) {
        if (strncmp(b, "== ", 3) == 0)
            title = b;
        if (strcmp(a, b) != 0)
            fail_msg("%s:%d: %s\n  expected  %.800s\n  now       %.800s", path, line, title, b, a);
    }
    assert_true(a == NULL && then == NULL);
}

static inline void compare_dumps(const char *name, dump_case_fn *make)
{
    struct sl_buf path = {0}, now = {0};
    char *text, *then;
    sl_buf_printf(&path, "%s/tests/fixtures/dumps/%s.txt", getenv("SEQLSTM_SOURCE"), name);
    assert_int_equal(sl_file_read(sl_buf_text(&path), DUMP_FILE_MOST, &text, NULL, NULL), SEQLSTM_OK);
    then = strdup(text);
    replay_dumps(&now, text, make);
    if (getenv("SEQLSTM_UPDATE") != NULL)
        assert_int_equal(sl_file_write(sl_buf_text(&path), now.data, now.length_bytes, NULL), SEQLSTM_OK);
    else
        expect_same_dump(sl_buf_text(&path), now.data, then);
    free(then);
    free(text);
    sl_buf_deinit(&path);
    sl_buf_deinit(&now);
}

#endif
