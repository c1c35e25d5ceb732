/* SPDX-License-Identifier: Apache-2.0 */
/* A session of a model file m.yaml in the current folder, which is that of scratch.h. */
#ifndef SL_TESTS_WRITTEN_MODEL_H
#define SL_TESTS_WRITTEN_MODEL_H

#include "ok.h"

#include <stdio.h>

#include "session/session.h"

/* Writes the file; the session has one thread. */
static inline struct sl_session *open_written_model(const char *text)
{
    struct sl_model_request model = {.path = "m.yaml"};
    const struct sl_session_options options = {.model = &model, .threads = 1, .threads_given = true};
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_session *session = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    FILE *file = fopen("m.yaml", "w");
    assert_true(file && fputs(text, file) >= 0);
    fclose(file);
    ok(sl_diagnostics_create(&diagnostics, &err), &err);
    ok(sl_session_open_model(&options, diagnostics, &session, &err), &err);
    sl_diagnostics_destroy(diagnostics);
    return session;
}

#endif
