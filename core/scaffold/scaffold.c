/* SPDX-License-Identifier: Apache-2.0 */
/* Copies templates into a new folder. */
#include "scaffold/scaffold.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/backend.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/backend_id.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "scaffold/templates.h"

static const char *const kinds[] = {"language_model", "classify", "tag",        "regress",
                                    "forecast",       "seq2seq",  "autoencoder"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static seqlstm_status check_id(const char *id, struct seqlstm_error *err)
{
    if (!sl_backend_id_is_valid(id))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "`%.60s` cannot be the name of a backend: expected a lower-case letter, then lower-case letters, "
                     "digits and dashes, at most %d characters",
                     id, SEQLSTM_MAX_ID_BYTES - 1);
    if (strcmp(id, "reference") == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`reference` is the name of the backend that is built in");
    return SEQLSTM_OK;
}

/* Creates the folder; one that exists must be empty. *out_made: it did not exist. */
static seqlstm_status make_folder(const char *folder, bool *out_made, struct seqlstm_error *err)
{
    bool empty = true;
    *out_made = !sl_file_exists(folder);
    if (!*out_made) {
        DIR *stream = opendir(folder);
        if (!stream)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`%.300s` exists and is not a folder that can be read (%s)",
                         folder, strerror(errno));
        for (const struct dirent *entry; empty && (entry = readdir(stream)) != NULL;)
            empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        closedir(stream);
    }
    if (!empty)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "the folder `%.300s` exists and is not empty; nothing was written (--dir names another one)",
                     folder);
    return sl_file_make_folders(folder, err);
}

/* Appends the text with every @NAME@ replaced. */
static void fill(const char *text, const char *name, struct sl_buf *out)
{
    static const char mark[] = "@NAME@";
    for (const char *next; (next = strstr(text, mark)) != NULL; text = next + sizeof mark - 1) {
        sl_buf_append(out, text, (size_t)(next - text));
        sl_buf_append_text(out, name);
    }
    sl_buf_append_text(out, text);
}

static seqlstm_status write_template(const struct sl_template *t, const char *name, const char *path,
                                     struct seqlstm_error *err)
{
    struct sl_buf text = {0};
    fill(t->text, name, &text);
    seqlstm_status rc = path && !text.failed ? sl_file_write(path, text.data, text.length_bytes, err)
                                             : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                                                 "no memory for `%s`", t->name);
    sl_buf_deinit(&text);
    return rc;
}

/* Removes the files up to `last`, which may be there though it could not be written to the disk, and the folder if it
 * is new, so that the user can try again. */
static void remove_set(const char *set, const char *folder, bool made, const struct sl_template *last)
{
    const size_t prefix = strlen(set);
    for (const struct sl_template *t = sl_templates; t <= last; t++) {
        char *path = strncmp(t->name, set, prefix) == 0 ? sl_path_join(folder, t->name + prefix) : NULL;
        if (path)
            (void)remove(path);
        free(path);
    }
    if (made)
        (void)remove(folder);
}

/* Writes every template below `set` ("backend/") into the folder. */
static seqlstm_status write_set(const char *set, const char *name, const char *folder, struct sl_buf *out_files,
                                struct seqlstm_error *err)
{
    size_t prefix = strlen(set);
    bool made;
    SEQLSTM_TRY(make_folder(folder, &made, err));
    for (const struct sl_template *t = sl_templates; t->name; t++) {
        if (strncmp(t->name, set, prefix) != 0)
            continue;
        char *path = sl_path_join(folder, t->name + prefix);
        seqlstm_status rc = write_template(t, name, path, err);
        if (rc == SEQLSTM_OK)
            sl_buf_printf(out_files, "%s\n", path);
        free(path);
        if (rc != SEQLSTM_OK) {
            remove_set(set, folder, made, t);
            return rc;
        }
    }
    if (out_files->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the names of the files");
    return SEQLSTM_OK;
}

seqlstm_status sl_scaffold_backend(const char *id, const char *folder, struct sl_buf *out_files,
                                   struct seqlstm_error *err)
{
    SEQLSTM_TRY(check_id(id, err));
    return write_set("backend/", id, folder, out_files, err);
}

seqlstm_status sl_scaffold_model(const char *kind, const char *folder, struct sl_buf *out_files,
                                 struct seqlstm_error *err)
{
    char set[64], all[128] = "";
    size_t n = 0, length = 0;
    while (n < KINDS && strcmp(kinds[n], kind) != 0)
        n++;
    if (n == KINDS) {
        const char *near = sl_text_closest(kind, kinds, KINDS);
        for (n = 0; n < KINDS; n++)
            length += (size_t)sl_text_snprintf(all + length, sizeof all - length, "%s%s", n ? ", " : "", kinds[n]);
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "no such kind of model: `%.60s`%s%s%s; there are %s", kind,
                     near ? " (did you mean `" : "", near ? near : "", near ? "`?)" : "", all);
    }
    sl_text_snprintf(set, sizeof set, "model/%s/", kind);
    return write_set(set, kind, folder, out_files, err);
}
