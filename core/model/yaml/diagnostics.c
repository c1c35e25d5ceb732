/* SPDX-License-Identifier: Apache-2.0 */
/* Collects findings and keeps the texts that they point into. They are printed in diagnostics_render.c. */
#include "model/yaml/diagnostics.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "model/yaml/diagnostics_private.h"

seqlstm_status sl_diagnostics_create(struct sl_diagnostics **out, struct seqlstm_error *err)
{
    struct sl_diagnostics *diagnostics = calloc(1, sizeof *diagnostics);
    if (diagnostics == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the diagnostics");
    sl_arena_init(&diagnostics->arena);
    *out = diagnostics;
    return SEQLSTM_OK;
}

void sl_diagnostics_destroy(struct sl_diagnostics *diagnostics)
{
    if (diagnostics == NULL)
        return;
    sl_arena_deinit(&diagnostics->arena);
    free(diagnostics->findings);
    free(diagnostics->files);
    free(diagnostics->paths);
    free(diagnostics);
}

/* Makes room for one more element; false: no memory. */
static bool make_room(void **items, size_t count, size_t *capacity, size_t element_bytes)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity ? 2 * *capacity : 16;
    void *moved = realloc(*items, larger * element_bytes);
    if (moved == NULL)
        return false;
    *items = moved;
    *capacity = larger;
    return true;
}

/* A copy with escapes in place of control characters, which a quoted key may contain and a terminal would execute. */
static const char *keep(struct sl_diagnostics *diagnostics, const char *text)
{
    if (text == NULL)
        return NULL;
    const char *copy = sl_arena_strdup_printable(&diagnostics->arena, text);
    if (copy == NULL)
        diagnostics->failed = true;
    return copy;
}

const struct sl_source_file *sl_diagnostics_find_file(const struct sl_diagnostics *diagnostics, const char *name)
{
    for (size_t i = 0; name != NULL && i < diagnostics->file_count; i++)
        if (strcmp(diagnostics->files[i].name, name) == 0)
            return &diagnostics->files[i];
    return NULL;
}

void sl_diagnostics_add_file(struct sl_diagnostics *diagnostics, const char *file, const char *text, size_t text_bytes)
{
    void *files = diagnostics->files;
    struct sl_source_file added = {.name = keep(diagnostics, file)}; /* as the places of findings have it */
    struct sl_source_file *known = (struct sl_source_file *)sl_diagnostics_find_file(diagnostics, added.name);
    char *copy = sl_arena_alloc(&diagnostics->arena, text_bytes + 1);
    if (added.name == NULL || copy == NULL) {
        diagnostics->failed = true;
        return;
    }
    memcpy(copy, text, text_bytes);
    added.text = copy;
    added.text_bytes = text_bytes;
    if (known != NULL) {
        *known = added;
        return;
    }
    if (!make_room(&files, diagnostics->file_count, &diagnostics->file_capacity, sizeof added)) {
        diagnostics->failed = true;
        return;
    }
    diagnostics->files = files;
    diagnostics->files[diagnostics->file_count++] = added;
}

void sl_diagnostics_add_path(struct sl_diagnostics *diagnostics, const char *absolute, const char *written)
{
    void *paths = diagnostics->paths;
    for (size_t i = 0; i < diagnostics->path_count; i++)
        if (strcmp(diagnostics->paths[i].absolute, absolute) == 0)
            return;
    struct sl_written_path added = {sl_arena_strdup(&diagnostics->arena, absolute),
                                    sl_arena_strdup(&diagnostics->arena, written)};
    if (added.absolute == NULL || added.written == NULL ||
        !make_room(&paths, diagnostics->path_count, &diagnostics->path_capacity, sizeof added)) {
        diagnostics->failed = true;
        return;
    }
    diagnostics->paths = paths;
    diagnostics->paths[diagnostics->path_count++] = added;
}

static bool is_letter(char c)
{
    return c != 0 && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", c) != NULL;
}

/* Whether a path may end before `text`: `/a/b` is not in `/a/b.old`, but in `/a/b.`, `/a/b:3` and `/a/b/c`. */
static bool ends_path(const char *text)
{
    return !is_letter(text[0]) && (text[0] != '.' || !is_letter(text[1]));
}

/* The longest path that `text` begins with; NULL: none. */
static const struct sl_written_path *find_path(const struct sl_diagnostics *diagnostics, const char *text)
{
    const struct sl_written_path *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < diagnostics->path_count; i++) {
        const size_t length = strlen(diagnostics->paths[i].absolute);
        if (length > longest && strncmp(text, diagnostics->paths[i].absolute, length) == 0 &&
            ends_path(text + length)) {
            found = &diagnostics->paths[i];
            longest = length;
        }
    }
    return found;
}

void sl_diagnostics_write_text(const struct sl_diagnostics *diagnostics, const char *text, struct sl_buf *out)
{
    for (char before = ' '; *text != 0; before = text[-1]) {
        const bool begins = *text == '/' && !is_letter(before) && before != '.';
        const struct sl_written_path *found = begins ? find_path(diagnostics, text) : NULL;
        if (found == NULL) {
            sl_buf_append_char(out, *text++);
        } else {
            sl_buf_append_text(out, found->written);
            text += strlen(found->absolute);
        }
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_known(const struct sl_diagnostics *diagnostics, const struct sl_diagnostic *finding)
{
    for (size_t i = 0; i < diagnostics->finding_count; i++) {
        const struct sl_diagnostic *old = &diagnostics->findings[i];
        if (strcmp(old->code, finding->code) == 0 && old->place.line == finding->place.line &&
            old->place.column == finding->place.column && same_text(old->place.file, finding->place.file) &&
            same_text(old->message, finding->message))
            return true;
    }
    return false;
}

void sl_diagnostics_add(struct sl_diagnostics *diagnostics, const struct sl_diagnostic *finding)
{
    /* A file with very many errors must not take quadratic time: beyond the limit, findings are only counted. */
    bool room = diagnostics->finding_count < SL_DIAGNOSTICS_KEPT;
    if (room && is_known(diagnostics, finding))
        return;
    diagnostics->counts[sl_diagnostic_get_severity(finding)]++;
    if (!room)
        return;
    void *findings = diagnostics->findings;
    if (!make_room(&findings, diagnostics->finding_count, &diagnostics->finding_capacity, sizeof *finding)) {
        diagnostics->failed = true;
        return;
    }
    diagnostics->findings = findings;
    struct sl_diagnostic copy = {
        .code = keep(diagnostics, finding->code),
        .place = finding->place,
        .message = keep(diagnostics, finding->message),
        .label = keep(diagnostics, finding->label),
        .help = keep(diagnostics, finding->help),
        .note = keep(diagnostics, finding->note),
    };
    copy.place.file = keep(diagnostics, finding->place.file);
    if (copy.code == NULL || copy.message == NULL) {
        diagnostics->failed = true;
        return;
    }
    diagnostics->findings[diagnostics->finding_count++] = copy;
}

void sl_diagnostics_addf(struct sl_diagnostics *diagnostics, const char *code, struct sl_place place,
                         const char *format, ...)
{
    struct sl_buf message;
    sl_buf_init(&message);
    va_list args;
    va_start(args, format);
    sl_buf_vprintf(&message, format, args);
    va_end(args);
    if (message.failed)
        diagnostics->failed = true;
    struct sl_diagnostic finding = {.code = code, .place = place, .message = sl_buf_text(&message)};
    sl_diagnostics_add(diagnostics, &finding);
    sl_buf_deinit(&message);
}

void sl_diagnostics_forget(struct sl_diagnostics *diagnostics)
{
    diagnostics->finding_count = 0;
    memset(diagnostics->counts, 0, sizeof diagnostics->counts);
}

void sl_diagnostics_cut(struct sl_diagnostics *diagnostics, size_t count)
{
    for (; diagnostics->finding_count > count; diagnostics->finding_count--)
        diagnostics->counts[sl_diagnostic_get_severity(&diagnostics->findings[diagnostics->finding_count - 1])]--;
}

size_t sl_diagnostics_count(const struct sl_diagnostics *diagnostics, enum sl_severity severity)
{
    return diagnostics->counts[severity];
}

static bool has_error(const struct sl_diagnostics *diagnostics, const char *file)
{
    for (size_t i = 0; i < diagnostics->finding_count; i++) {
        const struct sl_diagnostic *finding = &diagnostics->findings[i];
        if (sl_diagnostic_get_severity(finding) == SL_SEVERITY_ERROR && same_text(finding->place.file, file))
            return true;
    }
    return false;
}

void sl_diagnostics_write_count(const struct sl_diagnostics *diagnostics, const char *file, struct sl_buf *out)
{
    const size_t errors = sl_diagnostics_count(diagnostics, SL_SEVERITY_ERROR);
    const char *last = NULL;
    sl_buf_printf(out, "%zu error%s in ", errors, errors == 1 ? "" : "s");
    size_t before = 0;
    for (size_t f = 0; f < diagnostics->file_count; f++) {
        if (!has_error(diagnostics, diagnostics->files[f].name))
            continue;
        if (last)
            sl_buf_printf(out, "%s%s", before++ ? ", " : "", last);
        last = diagnostics->files[f].name;
    }
    sl_buf_printf(out, "%s%s", before ? " and " : "", last ? last : file);
}

bool sl_diagnostics_has_failed(const struct sl_diagnostics *diagnostics)
{
    return diagnostics->failed;
}

enum sl_severity sl_diagnostic_get_severity(const struct sl_diagnostic *finding)
{
    return finding->code[0] == 'W' ? SL_SEVERITY_WARNING : SL_SEVERITY_ERROR;
}
