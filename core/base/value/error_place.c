/* SPDX-License-Identifier: Apache-2.0 */
/* See error_place.h. */
#include "base/value/error_place.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char ellipsis[] = "…";
enum { ELLIPSIS_BYTES = sizeof ellipsis - 1 };

static bool is_inside_character(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Bytes of the end of `path` that are kept: at most `most`, and of these the name of the file or two thirds. */
static size_t count_kept_at_end(const char *path, size_t bytes, size_t most)
{
    const char *slash = strrchr(path, '/');
    const size_t name = slash ? bytes - (size_t)(slash - path) : bytes, share = most - most / 3;
    size_t kept = name > share ? name : share;
    kept = kept < most ? kept : most;
    while (kept > 0 && is_inside_character(path[bytes - kept]))
        kept--;
    return kept;
}

void sl_error_place_write(const char *file, int line, int column, char *out, size_t capacity_bytes)
{
    char numbers[32] = "";
    const char *path = file ? file : "";
    if (line > 0)
        snprintf(numbers, sizeof numbers, ":%d:%d", line, column);
    const size_t bytes = strlen(path), tail = strlen(numbers) + 1;
    const size_t room = capacity_bytes > tail ? capacity_bytes - tail : 0;
    if (bytes <= room || room < ELLIPSIS_BYTES) {
        snprintf(out, capacity_bytes, "%s%s", path, numbers);
        return;
    }
    const size_t end = count_kept_at_end(path, bytes, room - ELLIPSIS_BYTES);
    size_t begin = room - ELLIPSIS_BYTES - end;
    while (begin > 0 && is_inside_character(path[begin]))
        begin--;
    snprintf(out, capacity_bytes, "%.*s%s%s%s", (int)begin, path, ellipsis, path + bytes - end, numbers);
}

void sl_error_place_set(struct seqlstm_error *err, const char *file, int line, int column)
{
    if (err)
        sl_error_place_write(file, line, column, err->where, sizeof err->where);
}
