/* SPDX-License-Identifier: Apache-2.0 */
/* include/seqlstm/seqlstm.h on top of sessions: opening, closing, messages. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "base/profilers/profilers.h"
#include "base/value/buf.h"
#include "base/value/error_place.h"
#include "base/value/json_tree.h"
#include "base/value/printable.h"
#include "model/explain.h"
#include "model/yaml/diagnostics.h"
#include "session/api.h"
#include "session/session.h"

const char *seqlstm_get_version(void)
{
    return SL_VERSION;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

seqlstm_status sl_api_end(seqlstm_status status, struct seqlstm_error *err)
{
    char shown[sizeof err->message];
    if (status == SEQLSTM_OK || err == NULL || err->struct_size < sizeof *err)
        return status;
    sl_printable_copy(shown, sizeof shown, err->message, strlen(err->message), "\n\t");
    memcpy(err->message, shown, strlen(shown) + 1);
    sl_printable_copy(shown, sizeof err->where, err->where, strlen(err->where), "");
    memcpy(err->where, shown, strlen(shown) + 1);
    return status;
}

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    struct seqlstm_session *s = context;
    struct sl_buf shown = {0};
    if (level == SL_LOG_STATUS) /* what a terminal shows for a moment */
        return;
    sl_printable_append(&shown, message, strlen(message), "\n\t");
    s->log_fn(s->log_context, (int32_t)level + 1, shown.failed ? "no memory for a message" : sl_buf_text(&shown));
    sl_buf_deinit(&shown);
}

/* The place of the first error that was found: a file, or a line of it. */
static void copy_place(const struct sl_diagnostics *diagnostics, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    bool no_memory;
    json_t *all = sl_diagnostics_write_json(diagnostics, &buf, NULL) == SEQLSTM_OK
                      ? sl_json_load(sl_buf_text(&buf), buf.length_bytes, 0, NULL, &no_memory)
                      : NULL;
    for (size_t k = 0; k < json_array_size(all); k++) {
        json_t *finding = json_array_get(all, k);
        const char *file = json_string_value(json_object_get(finding, "file"));
        const char *severity = json_string_value(json_object_get(finding, "severity"));
        const long long line = json_integer_value(json_object_get(finding, "line"));
        if (file == NULL || severity == NULL || strcmp(severity, "error") != 0)
            continue;
        sl_error_place_set(err, file, (int)line, (int)json_integer_value(json_object_get(finding, "column")));
        break;
    }
    json_decref(all);
    sl_buf_deinit(&buf);
}

/* The findings are more precise than "2 errors"; other messages name paths as the user wrote them. */
static void explain(const struct seqlstm_session *s, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    struct seqlstm_error ignored = SEQLSTM_ERROR_INIT;
    if (sl_diagnostics_count(s->diagnostics, SL_SEVERITY_ERROR) > 0) {
        if (sl_diagnostics_render(s->diagnostics, false, &buf, &ignored) != SEQLSTM_OK)
            sl_buf_truncate(&buf, 0);
        copy_place(s->diagnostics, err);
    } else {
        sl_diagnostics_write_text(s->diagnostics, err->message, &buf);
    }
    if (!buf.failed && buf.length_bytes > 0)
        sl_printable_copy(err->message, sizeof err->message, buf.data, buf.length_bytes, "\n\t");
    sl_buf_deinit(&buf);
}

static void log_warnings(struct seqlstm_session *s)
{
    struct sl_buf buf = {0};
    if (sl_diagnostics_count(s->diagnostics, SL_SEVERITY_WARNING) > 0 &&
        sl_diagnostics_render(s->diagnostics, false, &buf, NULL) == SEQLSTM_OK)
        sl_log_printf(&s->log, SL_LOG_WARN, "%s", sl_buf_text(&buf));
    sl_buf_deinit(&buf);
}

seqlstm_status sl_api_finish(struct seqlstm_session *session, seqlstm_status status, struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK)
        log_warnings(session);
    else if (err && err->struct_size >= sizeof *err)
        explain(session, err);
    sl_diagnostics_forget(session->diagnostics);
    return sl_api_end(status, err);
}

const char *seqlstm_find_error_code(const struct seqlstm_error *err)
{
    static const char prefix[] = "error[";
    const struct sl_explanation *found = NULL;
    char code[8];
    if (strncmp(err->message, prefix, sizeof prefix - 1) == 0) {
        snprintf(code, sizeof code, "%.5s", err->message + sizeof prefix - 1);
        found = sl_explain_find(code);
    }
    return found ? found->code : sl_explain_get_code(err->code);
}

const char *seqlstm_explain(const char *code)
{
    const struct sl_explanation *found = sl_explain_find(code);
    return found ? found->text : NULL;
}

/* ---- data in memory --------------------------------------------------------------------------------------------- */

static seqlstm_status fill(struct sl_api_memory *memory, const struct seqlstm_file *file, struct seqlstm_error *err)
{
    const char *from = file->bytes;
    memory->fd = memfd_create("seqlstm", MFD_CLOEXEC);
    for (size_t left = memory->fd < 0 ? 0 : file->size; left > 0;) {
        const ssize_t written = write(memory->fd, from, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the %zu bytes of `memory:%.200s`", file->size,
                         file->name);
        from += written;
        left -= (size_t)written;
    }
    if (memory->fd < 0)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "cannot make a file in memory for `memory:%.200s`: %s", file->name,
                     strerror(errno));
    snprintf(memory->path, sizeof memory->path, "/proc/self/fd/%d", memory->fd);
    return SEQLSTM_OK;
}

static seqlstm_status take_files(struct seqlstm_session *s, const struct seqlstm_options *options,
                                 struct seqlstm_error *err)
{
    s->memory = calloc((size_t)options->file_count + 1, sizeof *s->memory);
    s->memory_data = calloc((size_t)options->file_count + 1, sizeof *s->memory_data);
    if (s->memory == NULL || s->memory_data == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the session");
    for (uint32_t i = 0; i < options->file_count; i++) {
        s->memory_count = i + 1;
        SEQLSTM_TRY(fill(&s->memory[i], &options->files[i], err));
        s->memory_data[i] = (struct sl_memory_data){options->files[i].name, s->memory[i].path};
    }
    s->request.memory = s->memory_data;
    s->request.memory_count = s->memory_count;
    return SEQLSTM_OK;
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static seqlstm_status take_overrides(struct seqlstm_session *s, const struct seqlstm_options *options,
                                     struct seqlstm_error *err)
{
    s->overrides = calloc((size_t)options->override_count + 1, sizeof *s->overrides);
    if (s->overrides == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the session");
    for (uint32_t i = 0; i < options->override_count; i++)
        s->overrides[i] = (struct sl_override){.origin = "override", .assignment = options->overrides[i]};
    s->request.overrides = s->overrides;
    s->request.override_count = options->override_count;
    return SEQLSTM_OK;
}

static seqlstm_status take_options(struct seqlstm_session *s, const struct seqlstm_options *options,
                                   struct seqlstm_error *err)
{
    const uint32_t unknown = options->flags & ~(uint32_t)SEQLSTM_OPEN_TRUST;
    if (unknown != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the options have flags that this library does not know: %#x; use a newer library", unknown);
    if (options->reserved0 != 0 || options->reserved1 != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the options have `%s` %lld, expected 0",
                     options->reserved0 != 0 ? "reserved0" : "reserved1",
                     options->reserved0 != 0 ? (long long)options->reserved0 : (long long)options->reserved1);
    s->options.backend_folders = options->backend_folders;
    s->options.backend_folder_count = options->folder_count;
    s->options.forced_backend = options->backend;
    s->options.out_dir = options->out_dir;
    s->options.threads = options->threads;
    s->options.threads_given = options->threads > 0;
    s->options.trust = (options->flags & SEQLSTM_OPEN_TRUST) != 0;
    s->stop = options->stop;
    s->log_fn = options->log;
    s->log_context = options->context;
    if (options->log)
        s->log = (struct sl_log){.write = write_log, .context = s, .level = SL_LOG_DEBUG};
    return take_overrides(s, options, err);
}

/* Options of an earlier version are shorter. */
static struct seqlstm_options copy_options(const struct seqlstm_options *options)
{
    struct seqlstm_options copy = SEQLSTM_OPTIONS_INIT;
    if (options)
        memcpy(&copy, options, options->struct_size < sizeof copy ? options->struct_size : sizeof copy);
    return copy;
}

static seqlstm_status prepare(const char *path, const struct seqlstm_options *given,
                              struct seqlstm_session **out_session, struct seqlstm_error *err)
{
    const struct seqlstm_options options = copy_options(given);
    struct seqlstm_session *s = calloc(1, sizeof *s);
    sl_profilers_attach();
    if (s == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the session");
    s->request.path = path;
    s->options.model = &s->request;
    s->options.log = &s->log;
    s->options.interrupt = &s->interrupt;
    seqlstm_status status = take_options(s, &options, err);
    if (status == SEQLSTM_OK)
        status = take_files(s, &options, err);
    if (status == SEQLSTM_OK)
        status = sl_diagnostics_create(&s->diagnostics, err);
    if (status != SEQLSTM_OK) {
        seqlstm_close(s);
        return sl_api_end(status, err);
    }
    *out_session = s;
    return SEQLSTM_OK;
}

/* Hands out the session, or closes it after an error. */
static seqlstm_status end_open(struct seqlstm_session *s, seqlstm_status status, struct seqlstm_session **out_session,
                               struct seqlstm_error *err)
{
    sl_api_finish(s, status, err);
    if (status == SEQLSTM_OK)
        *out_session = s;
    else
        seqlstm_close(s);
    return status;
}

seqlstm_status seqlstm_open_model(const char *path, const struct seqlstm_options *options,
                                  struct seqlstm_session **out_session, struct seqlstm_error *err)
{
    struct seqlstm_session *s = NULL;
    SEQLSTM_TRY(prepare(path, options, &s, err));
    return end_open(s, sl_session_open_model(&s->options, s->diagnostics, &s->session, err), out_session, err);
}

seqlstm_status seqlstm_open_text(const char *name, const char *text, size_t bytes,
                                 const struct seqlstm_options *options, struct seqlstm_session **out_session,
                                 struct seqlstm_error *err)
{
    struct seqlstm_session *s = NULL;
    SEQLSTM_TRY(prepare(name, options, &s, err));
    s->request.text = text;
    s->request.text_bytes = bytes;
    const seqlstm_status status = sl_session_open_model(&s->options, s->diagnostics, &s->session, err);
    s->request.text = NULL;
    return end_open(s, status, out_session, err);
}

seqlstm_status seqlstm_open_run(const char *run, const struct seqlstm_options *options,
                                struct seqlstm_session **out_session, struct seqlstm_error *err)
{
    struct seqlstm_session *s = NULL;
    SEQLSTM_TRY(prepare(NULL, options, &s, err));
    return end_open(s, sl_session_open_run(run, &s->options, s->diagnostics, &s->session, err), out_session, err);
}

void seqlstm_close(struct seqlstm_session *session)
{
    if (session == NULL)
        return;
    sl_session_close(session->session);
    if (session->diagnostics)
        sl_diagnostics_destroy(session->diagnostics);
    for (uint32_t i = 0; i < session->memory_count; i++)
        if (session->memory[i].fd >= 0)
            close(session->memory[i].fd);
    free(session->memory);
    free(session->memory_data);
    free(session->overrides);
    free(session);
}

const char *seqlstm_get_folder(const struct seqlstm_session *session)
{
    return sl_session_get_folder(session->session);
}
