/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of models that a test writes, and of the runs that they make in its scratch folder, with all that they log.
 */
#ifndef TEST_OPENED_RUN_H
#define TEST_OPENED_RUN_H

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/buf.h"
#include "ok.h"
#include "scratch.h"
#include "session/session.h"

struct opened_run {
    struct sl_session *session;
    struct sl_diagnostics *diagnostics;
    struct sl_session_options options;
    struct sl_model_request request;
    struct sl_log log;
    struct sl_interrupt interrupt;
    struct seqlstm_error err;
    struct sl_buf said; /* `level: message` of each line but those of details; the scratch folder is /x */
    char model[256], out[256];
};

static inline void put_file(const char *name, const char *text)
{
    assert_int_equal(sl_file_write(scratch_path(name), text, strlen(text), NULL), SEQLSTM_OK);
}

/* The text of a file of the scratch folder, "" if there is none; to be freed. */
static inline char *get_file(const char *name)
{
    enum { BYTES_MOST = 1 << 20 };
    char *text = NULL;
    return sl_file_read(scratch_path(name), BYTES_MOST, &text, NULL, NULL) == SEQLSTM_OK ? text : strdup("");
}

static inline bool file_says(const char *name, const char *part)
{
    char *text = get_file(name);
    const bool found = strstr(text, part) != NULL;
    free(text);
    return found;
}

/* The same text, where the scratch folder is /x; valid until the next call. */
static inline const char *hide_scratch(const char *text)
{
    static char hidden[8192];
    size_t used = 0;
    for (const char *at = strstr(text, scratch_folder); at; at = strstr(text, scratch_folder)) {
        used += (size_t)snprintf(hidden + used, sizeof hidden - used, "%.*s/x", (int)(at - text), text);
        assert_true(used < sizeof hidden);
        text = at + strlen(scratch_folder);
    }
    assert_true(strlen(text) < sizeof hidden - used);
    strcpy(hidden + used, text);
    return hidden;
}

static inline int scratch_remove_folder(const char *name)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch_path(name));
    return system(command);
}

static inline void note_said(void *context, enum sl_log_level level, const char *message)
{
    static const char *const levels[] = {"error", "warning", "info"};
    if (level <= SL_LOG_INFO)
        sl_buf_printf(context, "%s: %s\n", levels[level], hide_scratch(message));
}

/* `name`: of the run folder. */
static inline void prepare_run(struct opened_run *run, const char *name)
{
    *run = (struct opened_run){.err = SEQLSTM_ERROR_INIT};
    run->log = (struct sl_log){.write = note_said, .context = &run->said, .level = SL_LOG_INFO};
    snprintf(run->out, sizeof run->out, "%s", scratch_path(name));
    run->options = (struct sl_session_options){
        .model = &run->request, .threads = 1, .log = &run->log, .interrupt = &run->interrupt};
    ok(sl_diagnostics_create(&run->diagnostics, &run->err), &run->err);
}

/* A session of a model, whose run would be the folder of that name. */
static inline void open_text(struct opened_run *run, const char *name, const char *text)
{
    prepare_run(run, name);
    put_file("m.yaml", text);
    snprintf(run->model, sizeof run->model, "%s", scratch_path("m.yaml"));
    run->request.path = run->model;
    run->options.out_dir = run->out;
    if (sl_session_open_model(&run->options, run->diagnostics, &run->session, &run->err) != SEQLSTM_OK) {
        ok(sl_diagnostics_render(run->diagnostics, false, &run->said, NULL), &run->err);
        fail_msg("%s", sl_buf_text(&run->said));
    }
}

static inline void open_to_read(struct opened_run *run, const char *name)
{
    prepare_run(run, name);
    ok(sl_session_open_run(run->out, &run->options, run->diagnostics, &run->session, &run->err), &run->err);
}

/* The run of that name, with changes of its configuration. */
static inline void open_to_go_on(struct opened_run *run, const char *name, const struct sl_override *changes,
                                 size_t count)
{
    prepare_run(run, name);
    run->request.overrides = changes;
    run->request.override_count = count;
    run->options.writes = true;
    ok(sl_session_open_run(run->out, &run->options, run->diagnostics, &run->session, &run->err), &run->err);
}

static inline seqlstm_status train_run(struct opened_run *run, struct sl_run_result *result)
{
    const struct sl_run_observer observer = {.on_folder = NULL};
    return sl_session_run(run->session, &observer, result, &run->err);
}

static inline void close_run(struct opened_run *run)
{
    sl_session_close(run->session);
    sl_diagnostics_destroy(run->diagnostics);
    sl_buf_deinit(&run->said);
}

#endif
