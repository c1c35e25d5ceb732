/* SPDX-License-Identifier: Apache-2.0 */
/* See mapped_files.h. */
#include "registry/mapped_files.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "registry/objects.h"

struct note {
    struct note *next;
    char *plugin, *path, *soname, *build_id;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct note *notes; /* newest first; never freed, as the libraries are never unmapped */

static bool has_path(const struct sl_backend_file *files, uint32_t count, const char *path)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(files[i].path, path) == 0)
            return true;
    return false;
}

static void free_note(struct note *note)
{
    if (note == NULL)
        return;
    free(note->plugin);
    free(note->path);
    free(note->soname);
    free(note->build_id);
    free(note);
}

static bool keep_note(const char *plugin, const struct sl_backend_file *file)
{
    struct note *note = calloc(1, sizeof *note);
    if (note) {
        note->plugin = strdup(plugin);
        note->path = strdup(file->path);
        note->soname = strdup(file->soname);
        note->build_id = strdup(file->build_id);
    }
    if (!note || !note->plugin || !note->path || !note->soname || !note->build_id) {
        free_note(note);
        return false;
    }
    pthread_mutex_lock(&lock);
    note->next = notes;
    notes = note;
    pthread_mutex_unlock(&lock);
    return true;
}

void sl_mapped_files_begin(struct sl_mapped_files *mapped, struct sl_arena *arena)
{
    *mapped = (struct sl_mapped_files){.arena = arena};
    if (sl_objects_list(arena, &mapped->files, &mapped->count, NULL) != SEQLSTM_OK)
        mapped->files = NULL;
}

seqlstm_status sl_mapped_files_end(const struct sl_mapped_files *mapped, struct sl_backend_record *record,
                                   struct seqlstm_error *err)
{
    struct sl_backend_file *now;
    uint32_t count = 0, extra = 0;
    if (record->file_count == 0)
        return SEQLSTM_OK; /* built in */
    if (!mapped->files)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while opening %s", record->file);
    const char *plugin = record->files[0].path;
    SEQLSTM_TRY(sl_objects_list(mapped->arena, &now, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (!has_path(mapped->files, mapped->count, now[i].path) && !keep_note(plugin, &now[i]))
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while opening %s", record->file);
    struct sl_backend_file *files =
        SL_ARENA_ARRAY(mapped->arena, struct sl_backend_file, record->file_count + count + 1);
    if (!files)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while opening %s", record->file);
    memcpy(files, record->files, record->file_count * sizeof *files);
    pthread_mutex_lock(&lock);
    for (const struct note *note = notes; note && extra < count; note = note->next)
        if (strcmp(note->plugin, plugin) == 0 && !has_path(files, record->file_count + extra, note->path)) {
            files[record->file_count + extra++] =
                (struct sl_backend_file){.path = note->path, .soname = note->soname, .build_id = note->build_id};
        }
    pthread_mutex_unlock(&lock);
    record->files = files;
    record->file_count += extra;
    return SEQLSTM_OK;
}
