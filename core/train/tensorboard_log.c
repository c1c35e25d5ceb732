/* SPDX-License-Identifier: Apache-2.0 */
/* See tensorboard_log.h. */
#include "train/tensorboard_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file_error.h"
#include "base/value/buf.h"
#include "train/tensorboard/event.h"

enum { HOST_BYTES = 65, NAMES_TRIED = 1000, TAG_BYTES = 128 };

struct sl_tensorboard_log {
    int fd;
    char *path;
    struct sl_buf events; /* emptied by each write */
    int64_t told_update;  /* whose learning rate has been written: a report and the end of an epoch may have the same */
};

static double read_wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What has been appended goes to the file. */
static seqlstm_status write_events(struct sl_tensorboard_log *log, struct seqlstm_error *err)
{
    if (log->events.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the events of `%s`", log->path);
    for (size_t done = 0; done < log->events.length_bytes;) {
        ssize_t wrote = write(log->fd, log->events.data + done, log->events.length_bytes - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return sl_file_fail(err, errno, "cannot write", log->path);
        done += (size_t)wrote;
    }
    sl_buf_truncate(&log->events, 0);
    return SEQLSTM_OK;
}

/* TensorBoard reads the files of a folder in the order of their names, which begin with the time. */
static seqlstm_status make_file(struct sl_tensorboard_log *log, const char *folder, struct seqlstm_error *err)
{
    char host[HOST_BYTES] = "";
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        strcpy(host, "host");
    for (int k = 0; k < NAMES_TRIED; k++) {
        struct sl_buf path = {0};
        sl_buf_printf(&path, "%s/events.out.tfevents.%010lld.%s.%ld.%d", folder, (long long)read_wall_time(), host,
                      (long)getpid(), k);
        free(log->path);
        log->path = sl_buf_take(&path, NULL);
        if (log->path == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
        log->fd = open(log->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (log->fd >= 0 || errno != EEXIST)
            break;
    }
    return log->fd >= 0 ? SEQLSTM_OK : sl_file_fail(err, errno, "cannot make", log->path);
}

seqlstm_status sl_tensorboard_log_open(const char *folder, int64_t last_update, struct sl_tensorboard_log **out_log,
                                       struct seqlstm_error *err)
{
    struct sl_tensorboard_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the log for TensorBoard");
    log->fd = -1;
    log->told_update = -1;
    seqlstm_status status = make_file(log, folder, err);
    if (status == SEQLSTM_OK) {
        sl_event_append_version(&log->events, read_wall_time());
        if (last_update > 0)
            sl_event_append_restart(&log->events, read_wall_time(), last_update + 1);
        status = write_events(log, err);
    }
    if (status != SEQLSTM_OK)
        sl_tensorboard_log_close(log);
    else
        *out_log = log;
    return status;
}

static void append(struct sl_tensorboard_log *log, const struct sl_metrics_row *row, const char *tag, double value)
{
    if (isfinite(value))
        sl_event_append_scalar(&log->events, read_wall_time(), row->update, tag, (float)value);
}

seqlstm_status sl_tensorboard_log_append(struct sl_tensorboard_log *log, const struct sl_metrics_row *row,
                                         struct seqlstm_error *err)
{
    const bool epoch = strcmp(row->span, "epoch") == 0;
    for (int32_t m = 0; m < row->values->count; m++) {
        char tag[TAG_BYTES];
        snprintf(tag, sizeof tag, "%s/%s%s", row->values->items[m].name, row->split, epoch ? "_epoch" : "");
        append(log, row, tag, row->values->items[m].value);
    }
    if (strcmp(row->split, "train") == 0 && !epoch)
        append(log, row, "epoch", row->epoch);
    append(log, row, "rows_per_second", row->rows_per_second);
    if (isnan(row->learning_rate) || row->update == log->told_update)
        return write_events(log, err);
    log->told_update = row->update;
    append(log, row, "learning_rate", row->learning_rate);
    append(log, row, "gradient_norm", row->gradient_norm);
    append(log, row, "teacher_forcing", row->teacher_forcing);
    return write_events(log, err);
}

seqlstm_status sl_tensorboard_log_append_params(struct sl_tensorboard_log *log, int64_t update,
                                                const struct sl_params *params, struct seqlstm_error *err)
{
    for (int32_t v = 0; v < params->view_count; v++) {
        const struct sl_param_view *view = &params->views[v];
        sl_event_append_histogram(&log->events, read_wall_time(), update, view->name,
                                  params->values + view->offset_elems, view->elems);
    }
    return write_events(log, err);
}

void sl_tensorboard_log_close(struct sl_tensorboard_log *log)
{
    if (log == NULL)
        return;
    if (log->fd >= 0)
        close(log->fd);
    sl_buf_deinit(&log->events);
    free(log->path);
    free(log);
}
