/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line writes to stderr or stdout meanwhile, as text. */
#ifndef SL_TESTS_CAPTURED_H
#define SL_TESTS_CAPTURED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/value/buf.h"

static struct {
    FILE *file, *stream;
    int before;
} captured;

static inline void capture_stream(FILE *stream)
{
    fflush(stream);
    captured.stream = stream;
    captured.file = tmpfile();
    assert_non_null(captured.file);
    captured.before = dup(fileno(stream));
    assert_true(captured.before >= 0);
    assert_true(dup2(fileno(captured.file), fileno(stream)) >= 0);
}

static inline void capture_begin(void)
{
    capture_stream(stderr);
}

/* Appends what was written since then. */
static inline void capture_end(struct sl_buf *out)
{
    char text[4096];
    fflush(captured.stream);
    assert_true(dup2(captured.before, fileno(captured.stream)) >= 0);
    close(captured.before);
    rewind(captured.file);
    for (size_t bytes; (bytes = fread(text, 1, sizeof text, captured.file)) > 0;)
        sl_buf_append(out, text, bytes);
    fclose(captured.file);
}

/* Fails the test unless exactly this was written. */
static inline void capture_expect(const char *expected)
{
    struct sl_buf out = {0};
    capture_end(&out);
    if (strcmp(sl_buf_text(&out), expected) != 0)
        fail_msg("got:\n%s\nexpected:\n%s", sl_buf_text(&out), expected);
    sl_buf_deinit(&out);
}

#endif
