/* SPDX-License-Identifier: Apache-2.0 */
/* What fakes of a test were asked for, line by line. A test sets `story[0]` to 0 where it begins. */
#ifndef SL_TESTS_UNIT_SERVE_STORY_H
#define SL_TESTS_UNIT_SERVE_STORY_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char story[4000];

static inline void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void tell(const char *format, ...)
{
    const size_t at = strlen(story);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(story + at, sizeof story - at, format, arguments);
    va_end(arguments);
}

#endif
