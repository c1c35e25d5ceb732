/* SPDX-License-Identifier: Apache-2.0 */
/* See checksums.h. */
#include "train/checkpoint/checksums.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/system/log.h"
#include "base/value/hash.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "base/value/path.h"
#include "interop/safetensors.h"

#define CHECKSUMS "checksums.json"
#define SCHEMA    "seqlstm.checksums/1"

enum { CHECKSUMS_LIMIT = 1 << 20, FILE_LIMIT = 1 << 30 };

/* ---- the file -------------------------------------------------------------------------------------------- */

static bool is_checksum(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == SL_HASH_DIGITS && strspn(text, "0123456789abcdef") == SL_HASH_DIGITS;
}

static bool is_sound(const json_t *root)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    json_t *files = json_object_get(root, "files"), *value;
    const char *name;
    if (schema == NULL || strcmp(schema, SCHEMA) != 0 || !json_is_object(files))
        return false;
    json_object_foreach(files, name, value) if (!is_checksum(value)) return false;
    return true;
}

/* The entries, an empty object if there are none. `log`: a file that is damaged is named there. NULL: no memory. */
static json_t *read_entries(const char *folder, const struct sl_log *log)
{
    char *path = sl_path_join(folder, CHECKSUMS), *text = NULL;
    size_t bytes = 0;
    json_t *root = NULL, *files = NULL;
    bool no_memory = false;
    seqlstm_status status = path ? SEQLSTM_OK : SEQLSTM_NO_MEMORY;
    if (path && sl_file_exists(path)) {
        status = sl_file_read(path, CHECKSUMS_LIMIT, &text, &bytes, NULL);
        if (status == SEQLSTM_OK)
            root = sl_json_load(text, bytes, JSON_REJECT_DUPLICATES, NULL, &no_memory);
        if (no_memory)
            status = SEQLSTM_NO_MEMORY;
        if (is_sound(root))
            files = json_incref(json_object_get(root, "files"));
        else if (status != SEQLSTM_NO_MEMORY)
            sl_log_printf(log, SL_LOG_WARN, "%s is damaged: whether the run's files were changed is not known", path);
    }
    json_decref(root);
    free(text);
    free(path);
    return files || status == SEQLSTM_NO_MEMORY ? files : json_object();
}

/* Drops the entries of files that are gone. */
static void prune(const char *folder, json_t *files)
{
    void *next;
    json_t *value;
    const char *name;
    json_object_foreach_safe(files, next, name, value)
    {
        if (!sl_file_is_in(folder, name))
            json_object_del(files, name);
    }
}

/* Takes over `files`. */
static seqlstm_status write_entries(const char *folder, json_t *files, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    char *path = sl_path_join(folder, CHECKSUMS);
    prune(folder, files);
    bool fine = sl_json_append_tree(&buf, json_pack("{s:s, s:o}", "schema", SCHEMA, "files", files), JSON_SORT_KEYS);
    seqlstm_status status = path && fine && !buf.failed ? sl_file_write(path, buf.data, buf.length_bytes, err)
                                                        : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                                                            "no memory for %s", CHECKSUMS);
    sl_buf_deinit(&buf);
    free(path);
    return status;
}

/* ---- writing ----------------------------------------------------------------------------------------------- */

seqlstm_status sl_checksums_forget(const char *folder, const char *name, const char *checksum,
                                   struct seqlstm_error *err)
{
    json_t *files = read_entries(folder, NULL);
    const char *known = json_string_value(json_object_get(files, name));
    if (files == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", CHECKSUMS);
    if (known == NULL || (checksum && strcmp(known, checksum) == 0)) {
        json_decref(files);
        return SEQLSTM_OK;
    }
    json_object_del(files, name);
    return write_entries(folder, files, err);
}

seqlstm_status sl_checksums_note(const char *folder, const char *name, const char *checksum, struct seqlstm_error *err)
{
    json_t *files = read_entries(folder, NULL);
    const char *known = json_string_value(json_object_get(files, name));
    if (known && strcmp(known, checksum) == 0) {
        json_decref(files);
        return SEQLSTM_OK;
    }
    if (files == NULL || json_object_set_new(files, name, json_string(checksum)) != 0) {
        json_decref(files);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", CHECKSUMS);
    }
    return write_entries(folder, files, err);
}

seqlstm_status sl_checksums_note_bytes(const char *folder, const char *name, struct seqlstm_error *err)
{
    char checksum[SL_HASH_TEXT_BYTES], *text = NULL, *path = sl_path_join(folder, name);
    size_t bytes = 0;
    seqlstm_status status = SEQLSTM_OK;
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    if (sl_file_exists(path)) {
        status = sl_file_read(path, FILE_LIMIT, &text, &bytes, err);
        if (status == SEQLSTM_OK)
            status = sl_checksums_note(folder, name, sl_hash_write(sl_crc64(0, text, bytes), checksum), err);
    }
    free(text);
    free(path);
    return status;
}

seqlstm_status sl_checksums_note_weights(const char *folder, const char *name, struct seqlstm_error *err)
{
    struct sl_safetensors *file = NULL;
    char *path = sl_path_join(folder, name);
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    seqlstm_status status = sl_safetensors_open(path, &file, err);
    const char *checksum = status == SEQLSTM_OK ? sl_safetensors_find_text(file, "checksum") : NULL;
    if (checksum)
        status = sl_checksums_note(folder, name, checksum, err);
    sl_safetensors_close(file);
    free(path);
    return status;
}

/* ---- comparing --------------------------------------------------------------------------------------------- */

static void warn(const struct sl_log *log, const char *path)
{
    sl_log_printf(
        log, SL_LOG_WARN,
        "%s was changed after the run had written it (checksums.json has another checksum): results may differ", path);
}

static void compare(const char *folder, const char *name, const json_t *files, const struct sl_log *log)
{
    const char *known = json_string_value(json_object_get(files, name));
    char found[SL_HASH_TEXT_BYTES], *text = NULL, *path = known ? sl_path_join(folder, name) : NULL;
    size_t bytes = 0;
    if (path && !sl_file_exists(path))
        sl_log_printf(log, SL_LOG_INFO, "note: %s was removed after the run had written it", path);
    else if (path && sl_file_read(path, FILE_LIMIT, &text, &bytes, NULL) == SEQLSTM_OK &&
             strcmp(sl_hash_write(sl_crc64(0, text, bytes), found), known) != 0)
        warn(log, path);
    free(text);
    free(path);
}

void sl_checksums_compare(const char *folder, const char *const *names, const struct sl_log *log)
{
    json_t *files = read_entries(folder, log);
    for (; *names; names++)
        compare(folder, *names, files, log);
    json_decref(files);
}

void sl_checksums_compare_weights(const char *folder, const char *path, const struct sl_log *log)
{
    const size_t bytes = strlen(folder);
    struct sl_safetensors *file = NULL;
    if (strncmp(path, folder, bytes) != 0 || sl_safetensors_open(path, &file, NULL) != SEQLSTM_OK)
        return;
    const char *name = path + bytes + strspn(path + bytes, "/");
    json_t *files = read_entries(folder, NULL);
    const char *known = json_string_value(json_object_get(files, name));
    const char *found = sl_safetensors_find_text(file, "checksum");
    if (known && (found == NULL || strcmp(known, found) != 0))
        warn(log, path);
    json_decref(files);
    sl_safetensors_close(file);
}
