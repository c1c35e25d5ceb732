/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints of a run's data files (sources.json), by which resume and eval notice that a file has changed.
 *
 *   {"schema": "seqlstm.sources/1", "files": [{"split", "path", "bytes", "mtime_ns", "crc64"}]}
 */
#include "session/run_folder/sources.h"

#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "base/system/file.h"
#include "base/system/log.h"
#include "base/value/hash.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "data/dataset/fingerprint.h"
#include "session/record/session_record.h"
#include "session/run_folder/run_folder.h"

#define SOURCES       "sources.json"
#define SOURCES_LIMIT ((size_t)1 << 20)

seqlstm_status sl_sources_write(const struct sl_session *session, struct seqlstm_error *err)
{
    json_t *list = json_array();
    seqlstm_status status = SEQLSTM_OK;
    for (int split = 0; split < SL_SPLIT_COUNT && status == SEQLSTM_OK; split++) {
        struct sl_data_file files[SL_DATA_FILE_COUNT];
        int count = sl_source_list_files(&session->model->data.splits[split], files);
        for (int i = 0; i < count; i++) {
            struct sl_fingerprint found;
            char crc[SL_HASH_TEXT_BYTES];
            const seqlstm_status computed = sl_fingerprint_compute(files[i].path, &found, NULL);
            if (computed == SEQLSTM_NO_MEMORY)
                list = sl_json_add(list, NULL);
            if (computed != SEQLSTM_OK)
                continue; /* reported when the split is read */
            sl_hash_write(found.crc64, crc);
            list = sl_json_add(list,
                               json_pack("{s:s, s:s, s:I, s:I, s:s}", "split", sl_split_get_name((enum sl_split)split),
                                         "path", files[i].path, "bytes", (json_int_t)found.size_bytes, "mtime_ns",
                                         (json_int_t)found.mtime_ns, "crc64", crc));
        }
    }
    json_t *root = json_pack("{s:s, s:o}", "schema", "seqlstm.sources/1", "files", list);
    struct sl_buf buf = {0};
    if (!sl_json_append_tree(&buf, root, 0))
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", SOURCES);
    status = buf.failed ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for %s", SOURCES)
                        : sl_run_folder_write(session->folder, SOURCES, buf.data, buf.length_bytes, err);
    sl_buf_deinit(&buf);
    return status;
}

/* Warns if the file has changed. A file with the same size and time is not read, and counts as unchanged. */
static void compare(const struct sl_session *session, const char *path, const json_t *stored)
{
    const char *crc = json_string_value(json_object_get(stored, "crc64"));
    json_int_t bytes = json_integer_value(json_object_get(stored, "bytes"));
    json_int_t mtime = json_integer_value(json_object_get(stored, "mtime_ns"));
    struct sl_fingerprint now;
    char now_crc[SL_HASH_TEXT_BYTES];
    if (!crc || sl_fingerprint_peek(path, &now, NULL) != SEQLSTM_OK ||
        (now.size_bytes == bytes && now.mtime_ns == mtime))
        return;
    if (now.size_bytes == bytes) {
        if (sl_fingerprint_compute(path, &now, NULL) != SEQLSTM_OK)
            return;
        sl_hash_write(now.crc64, now_crc);
        if (strcmp(crc, now_crc) == 0)
            return;
    }
    sl_log_printf(session->options.log, SL_LOG_WARN,
                  "%s has changed since this run read it (%lld bytes then, %lld now): results are not comparable", path,
                  (long long)bytes, (long long)now.size_bytes);
}

void sl_sources_check(const struct sl_session *session, enum sl_split split)
{
    struct sl_data_file files[SL_DATA_FILE_COUNT];
    size_t bytes = 0;
    int count = sl_source_list_files(&session->model->data.splits[split], files);
    char *path = session->is_run ? sl_path_join(session->folder, SOURCES) : NULL, *text = NULL;
    json_t *root = NULL;
    bool no_memory;
    if (path && sl_file_exists(path) && sl_file_read(path, SOURCES_LIMIT, &text, &bytes, NULL) == SEQLSTM_OK)
        root = sl_json_load(text, bytes, 0, NULL, &no_memory);
    const json_t *list = json_object_get(root, "files");
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *stored = json_array_get(list, k);
            const char *name = json_string_value(json_object_get(stored, "path"));
            if (name && strcmp(name, files[i].path) == 0) {
                compare(session, files[i].path, stored);
                break;
            }
        }
    }
    json_decref(root);
    free(text);
    free(path);
}
