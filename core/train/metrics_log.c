/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.jsonl: appends whole lines; on opening, cuts what was written after the checkpoint.
 *
 * Lines are in the order of their updates, so what is removed is the end of the file: it is cut in place, and after a
 * crash while cutting the next opening cuts the rest.
 */
#include "train/metrics_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/value/buf.h"
#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/system/log.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"

struct sl_metrics_log {
    int fd;
    char *path;
    struct sl_buf line;
};

static seqlstm_status fail(const char *action, const char *path, int number, struct seqlstm_error *err)
{
    char reason[128];
    const char *text = strerror_r(number, reason, sizeof reason);
    seqlstm_error_set(err, SEQLSTM_IO, __FILE__, __LINE__, "cannot %s `%s`: %s", action, path, text);
    if (err && err->struct_size >= sizeof *err)
        err->native_code = number;
    return SEQLSTM_IO;
}

/* The last updates whose rows stay. */
struct limits {
    int64_t update;
    int64_t validation;
};

/* Is the line a whole row within the limits? `*out_sound`: it is a row. */
static bool line_stays(const char *line, size_t bytes, const struct limits *limits, double *seconds, bool *out_sound,
                       bool *out_no_memory)
{
    json_t *row = sl_json_load(line, bytes, JSON_REJECT_DUPLICATES, NULL, out_no_memory);
    json_t *update = json_object_get(row, "update"), *time = json_object_get(row, "seconds");
    const char *span = json_string_value(json_object_get(row, "span"));
    int64_t last = span && strcmp(span, "validation") == 0 ? limits->validation : limits->update;
    *out_sound = json_is_integer(update) && json_integer_value(update) >= 0;
    bool stays = *out_sound && json_integer_value(update) <= last;
    if (stays && json_is_number(time))
        *seconds = fmax(*seconds, json_number_value(time));
    json_decref(row);
    return stays;
}

/* Bytes of the lines that stay. A line without an end is what a killed process leaves; any other that is no row was
 * written by something else. */
static seqlstm_status measure(const char *path, const struct sl_file_map *map, const struct limits *limits,
                              double *seconds, const struct sl_log *log, size_t *out_kept, struct seqlstm_error *err)
{
    size_t kept = 0, line = 1;
    bool sound = true, no_memory = false;
    for (; kept < map->size_bytes; line++) {
        const char *begin = map->data + kept, *end = memchr(begin, '\n', map->size_bytes - kept);
        if (!end || !line_stays(begin, (size_t)(end - begin), limits, seconds, &sound, &no_memory))
            break;
        kept = (size_t)(end - map->data) + 1;
    }
    if (no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to read `%s`", path);
    if (!sound)
        sl_log_printf(log, SL_LOG_WARN, "%s:%zu: this is no row of metrics: it is removed, and what follows it", path,
                      line);
    *out_kept = kept;
    return SEQLSTM_OK;
}

/* A file with a second name (a hard link) is replaced by a copy, so that the other one is not changed. */
static seqlstm_status separate(const char *path, const struct sl_file_map *map, struct seqlstm_error *err)
{
    struct stat info;
    if (map->size_bytes == 0 || fstat(map->fd, &info) != 0 || info.st_nlink < 2)
        return SEQLSTM_OK;
    return sl_file_write(path, map->data, map->size_bytes, err);
}

seqlstm_status sl_metrics_log_open(const char *path, int64_t last_update, int64_t last_validation,
                                   const struct sl_log *messages, struct sl_metrics_log **out_log, double *out_seconds,
                                   struct seqlstm_error *err)
{
    struct limits limits = {last_update, last_validation};
    double seconds = 0;
    size_t kept = 0;
    if (sl_file_exists(path)) {
        struct sl_file_map map;
        SEQLSTM_TRY(sl_file_map_open(path, &map, err));
        seqlstm_status status = measure(path, &map, &limits, &seconds, messages, &kept, err);
        if (status == SEQLSTM_OK)
            status = separate(path, &map, err);
        sl_file_map_close(&map);
        SEQLSTM_TRY(status);
    }
    struct sl_metrics_log *log = calloc(1, sizeof *log);
    char *copy = strdup(path);
    if (!log || !copy) {
        free(log);
        free(copy);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to open `%s`", path);
    }
    log->path = copy;
    log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->fd < 0 || ftruncate(log->fd, (off_t)kept) != 0) {
        seqlstm_status status = fail("open", path, errno, err);
        sl_metrics_log_close(log);
        return status;
    }
    *out_log = log;
    if (out_seconds)
        *out_seconds = seconds;
    return SEQLSTM_OK;
}

static void put_optional(struct sl_buf *line, const char *key, double value)
{
    if (isnan(value))
        return;
    sl_buf_printf(line, ",\"%s\":", key);
    sl_json_append_number(line, value);
}

static void put_row(struct sl_buf *line, const struct sl_metrics_row *row)
{
    sl_buf_printf(line, "{\"update\":%" PRId64 ",\"epoch\":", row->update);
    sl_json_append_number(line, row->epoch);
    /* Microseconds: a small model's update on a GPU takes a few hundred. */
    sl_buf_append_text(line, ",\"seconds\":");
    sl_json_append_number(line, round(row->seconds * 1e6) / 1e6);
    sl_buf_printf(line, ",\"split\":\"%s\",\"span\":\"%s\"", row->split, row->span);
    put_optional(line, "learning_rate", row->learning_rate);
    put_optional(line, "teacher_forcing", row->teacher_forcing);
    put_optional(line, "gradient_norm", row->gradient_norm);
    put_optional(line, "rows_per_second", row->rows_per_second);
    sl_buf_append_text(line, ",\"metrics\":{");
    for (int32_t i = 0; i < row->values->count; i++) {
        sl_buf_printf(line, "%s\"%s\":", i ? "," : "", row->values->items[i].name);
        sl_json_append_number(line, row->values->items[i].value);
    }
    sl_buf_append_text(line, "}}\n");
}

seqlstm_status sl_metrics_log_append(struct sl_metrics_log *log, const struct sl_metrics_row *row,
                                     struct seqlstm_error *err)
{
    sl_buf_truncate(&log->line, 0);
    put_row(&log->line, row);
    if (log->line.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a row of `%s`", log->path);
    for (size_t done = 0; done < log->line.length_bytes;) {
        ssize_t wrote = write(log->fd, log->line.data + done, log->line.length_bytes - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return fail("write", log->path, errno, err);
        done += (size_t)wrote;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_metrics_log_sync(struct sl_metrics_log *log, struct seqlstm_error *err)
{
    /* EINVAL: a pipe or a device, which needs no syncing. */
    if (fsync(log->fd) != 0 && errno != EINVAL)
        return fail("write", log->path, errno, err);
    return SEQLSTM_OK;
}

void sl_metrics_log_close(struct sl_metrics_log *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    sl_buf_deinit(&log->line);
    free(log->path);
    free(log);
}
