/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether two backends need separate processes. Each is loaded alone in a process that lists the files
 * which it maps. The list is a text: for each file its path, soname and Build-ID, each ending with a zero. */
#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"
#include "compare/side/remote_link.h"
#include "compare/side/remote_side.h"

struct file_list {
    struct sl_backend_file *files;
    int32_t count;
};

/* Finds a library (not one of the plugins, which come first) with the same soname and different contents. */
static const char *find_conflict(struct sl_arena *arena, const struct file_list *a, const struct file_list *b)
{
    for (int32_t i = 1; i < a->count; i++)
        for (int32_t k = 1; k < b->count; k++) {
            const struct sl_backend_file *one = &a->files[i], *other = &b->files[k];
            if (one->soname[0] && strcmp(one->soname, other->soname) == 0 && strcmp(one->path, other->path) != 0 &&
                (!one->build_id[0] || strcmp(one->build_id, other->build_id) != 0))
                return sl_arena_printf(arena, "A needs %s as %s, B needs %s", one->path, one->soname, other->path);
        }
    return NULL;
}

/* Reads the files of a reply; their texts stay in the link's room. */
static seqlstm_status read_files(struct sl_arena *arena, const struct sl_remote_link *link, struct file_list *out_list,
                                 struct seqlstm_error *err)
{
    const char *text = link->room, *end = text + link->reply_bytes;
    int32_t texts = 0;
    for (const char *at = text; at < end; at++)
        texts += *at == 0;
    if (texts % 3 != 0 || (end > text && end[-1] != 0))
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the list of files of side %c is incomplete", link->name);
    out_list->count = texts / 3;
    out_list->files = SL_ARENA_ARRAY(arena, struct sl_backend_file, (size_t)out_list->count + 1);
    if (!out_list->files)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for lists of files");
    for (int32_t f = 0; f < out_list->count; f++) {
        const char *soname = text + strlen(text) + 1, *build_id = soname + strlen(soname) + 1;
        out_list->files[f] = (struct sl_backend_file){.path = text, .soname = soname, .build_id = build_id};
        text = build_id + strlen(build_id) + 1;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_remote_find_reason(const char *const *worker, bool forced, struct sl_arena *arena,
                                     const char **out_reason, struct seqlstm_error *err)
{
    struct sl_remote_link links[2] = {{.pid = 0}, {.pid = 0}};
    struct file_list lists[2] = {{.count = 0}, {.count = 0}};
    seqlstm_status status = SEQLSTM_OK;
    *out_reason = forced ? "asked for" : NULL;
    for (int i = 0; i < 2 && status == SEQLSTM_OK && !forced; i++) {
        status = sl_remote_link_open(worker, i ? "probe-b" : "probe-a", i ? 'B' : 'A', &links[i], err);
        if (status == SEQLSTM_OK)
            status = sl_remote_link_ask(&links[i], (struct sl_remote_head){.what = SL_REMOTE_FILES}, NULL, 0, err);
        if (status == SEQLSTM_OK)
            status = read_files(arena, &links[i], &lists[i], err);
    }
    if (status == SEQLSTM_OK && !forced)
        *out_reason = find_conflict(arena, &lists[0], &lists[1]);
    for (int i = 0; i < 2; i++)
        sl_remote_link_close(&links[i]);
    return status;
}

/* ---- in the child ------------------------------------------------------------------------------------------- */

seqlstm_status sl_remote_answer_probe(const struct sl_backend *backend, seqlstm_status status,
                                      struct seqlstm_error *err)
{
    const struct sl_backend_record *record = backend ? sl_backend_get_record(backend) : NULL;
    struct sl_remote_head head;
    struct sl_buf texts = {0};
    for (uint32_t f = 0; record && f < record->file_count; f++) {
        const struct sl_backend_file *file = &record->files[f];
        sl_buf_append(&texts, file->path, strlen(file->path) + 1);
        sl_buf_append(&texts, file->soname, strlen(file->soname) + 1);
        sl_buf_append(&texts, file->build_id, strlen(file->build_id) + 1);
    }
    if (texts.failed && status == SEQLSTM_OK)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for lists of files");
    if (sl_remote_receive(&head, sizeof head))
        sl_remote_reply(status, texts.data, texts.length_bytes, NULL, 0, err);
    sl_buf_deinit(&texts);
    return SEQLSTM_OK;
}
