/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line writes to stderr meanwhile, as text. */
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
    FILE *file;
    int before;
} captured;

static inline void capture_begin(void)
{
    fflush(stderr);
    captured.file = tmpfile();
    assert_non_null(captured.file);
    captured.before = dup(STDERR_FILENO);
    assert_true(captured.before >= 0);
    assert_true(dup2(fileno(captured.file), STDERR_FILENO) >= 0);
}

/* Appends what was written since capture_begin. */
static inline void capture_end(struct sl_buf *out)
{
    char text[4096];
    fflush(stderr);
    assert_true(dup2(captured.before, STDERR_FILENO) >= 0);
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
