/* SPDX-License-Identifier: Apache-2.0 */
/* A run that a server can serve, trained from the text of a model file in the test's scratch folder. */
#ifndef SL_TESTS_SERVED_FIXTURE_H
#define SL_TESTS_SERVED_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ok.h"
#include "scratch.h"
#include "session/session.h"

/* Backends are also searched in `folder`, unless it is NULL. */
static inline void train_session(const char *text, const char *folder, struct sl_diagnostics **diagnostics,
                                 struct sl_session **session)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[256], out[256];
    struct sl_run_result result;
    snprintf(path, sizeof path, "%s", scratch_path("m.yaml"));
    snprintf(out, sizeof out, "%s", scratch_path("run"));
    for (int k = 2; access(out, F_OK) == 0; k++) /* of an earlier session */
        snprintf(out, sizeof out, "%s-%d", scratch_path("run"), k);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    const struct sl_model_request request = {.path = path};
    const struct sl_run_observer observer = {.on_folder = NULL};
    const struct sl_session_options options = {.model = &request,
                                               .backend_folders = &folder,
                                               .backend_folder_count = folder != NULL,
                                               .out_dir = out,
                                               .threads = 1,
                                               .trust = true};
    ok(sl_diagnostics_create(diagnostics, &err), &err);
    ok(sl_session_open_model(&options, *diagnostics, session, &err), &err);
    ok(sl_session_run(*session, &observer, &result, &err), &err);
}

#endif
