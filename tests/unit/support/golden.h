/* SPDX-License-Identifier: Apache-2.0 */
/* A text compared as a whole with a file below tests/fixtures. With SEQLSTM_UPDATE set the file is written instead:
 * look at the difference.
 */
#ifndef SL_TESTS_GOLDEN_H
#define SL_TESTS_GOLDEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"

static inline char *golden_path(const char *name)
{
    char *path;
    assert_non_null(getenv("SEQLSTM_SOURCE"));
    assert_true(asprintf(&path, "%s/tests/fixtures/%s", getenv("SEQLSTM_SOURCE"), name) > 0);
    return path;
}

/* The text of the file; to be freed. */
static inline char *golden_read(const char *name)
{
    enum { BYTES_MOST = 4 << 20 };
    char *path = golden_path(name), *text;
    assert_int_equal(sl_file_read(path, BYTES_MOST, &text, NULL, NULL), SEQLSTM_OK);
    free(path);
    return text;
}

/* Lines that begin with `title` say where in the file a difference is. Both texts are changed. */
static inline void golden_compare(const char *path, const char *title, char *now, char *then)
{
    const char *a, *b, *block = "";
    for (int line = 1;; line++) {
        a = strsep(&now, "\n");
        b = strsep(&then, "\n");
        if (a == NULL || b == NULL)
            break;
        if (strncmp(b, title, strlen(title)) == 0)
            block = b;
        if (strcmp(a, b) != 0)
            fail_msg("%s:%d: %s\n  expected  %.800s\n  now       %.800s", path, line, block, b, a);
    }
    if (a != NULL || b != NULL)
        fail_msg("%s: %s\n  expected  %.800s\n  now       %.800s", path, block, b ? b : "(end)", a ? a : "(end)");
}

static inline void golden_expect(const char *name, const char *title, const char *text)
{
    char *path = golden_path(name), *now = strdup(text), *then;
    if (getenv("SEQLSTM_UPDATE") != NULL)
        assert_int_equal(sl_file_write(path, text, strlen(text), NULL), SEQLSTM_OK);
    then = golden_read(name);
    golden_compare(path, title, now, then);
    free(then);
    free(now);
    free(path);
}

#endif
