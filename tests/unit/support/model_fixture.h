/* SPDX-License-Identifier: Apache-2.0 */
/* Loading models from texts in the tests of core/model. */
#ifndef SL_TESTS_MODEL_FIXTURE_H
#define SL_TESTS_MODEL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "model/yaml/diagnostics.h"
#include "model/model.h"

struct loaded {
    struct sl_model *model; /* NULL: refused */
    struct sl_diagnostics *diagnostics;
    struct sl_buf text; /* what would be printed */
    seqlstm_status status;
    struct seqlstm_error error;
};

static inline struct loaded load_text(const char *name, const char *text, size_t bytes,
                                      const struct sl_model_request *request)
{
    struct loaded l = {.error = SEQLSTM_ERROR_INIT};
    assert_int_equal(sl_diagnostics_create(&l.diagnostics, &l.error), SEQLSTM_OK);
    l.status = sl_model_load_text(name, text, bytes, request, l.diagnostics, &l.model, &l.error);
    assert_int_equal(sl_diagnostics_render(l.diagnostics, false, &l.text, NULL), SEQLSTM_OK);
    assert_true((l.model != NULL) == (l.status == SEQLSTM_OK));
    return l;
}

static inline struct loaded load(const char *text)
{
    return load_text("m.yaml", text, strlen(text), NULL);
}

static inline void unload(struct loaded *l)
{
    sl_model_destroy(l->model);
    sl_diagnostics_destroy(l->diagnostics);
    sl_buf_deinit(&l->text);
}

/* A model that loads without a word; fails the test otherwise. */
static inline struct loaded load_clean(const char *text)
{
    struct loaded l = load(text);
    assert_string_equal(sl_buf_text(&l.text), "");
    assert_int_equal(l.status, SEQLSTM_OK);
    return l;
}

/* Fails unless the text is refused, and `message` stands in what is printed. */
static inline void assert_refused(const char *text, const char *message)
{
    struct loaded l = load(text);
    if (l.status == SEQLSTM_OK || strstr(sl_buf_text(&l.text), message) == NULL)
        fail_msg("wanted `%s`, got status %d and\n%s", message, (int)l.status, sl_buf_text(&l.text));
    unload(&l);
}

#endif
