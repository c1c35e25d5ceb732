/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a language model. */
#ifndef SL_SESSION_PREDICT_GENERATE_H
#define SL_SESSION_PREDICT_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

struct sl_session;

struct sl_generate_request {
    const char *prompt; /* UTF-8; "" or NULL: from the beginning */
    int64_t length;     /* tokens to draw */
    double temperature; /* > 0; 1: as learned */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    uint64_t seed;
    bool stop_at_eos;
};

/* Called with each part of the text as it is drawn. */
typedef seqlstm_status sl_text_fn(void *context, const char *text, size_t bytes, struct seqlstm_error *err);

/* Samples from a language model. INVALID_CONFIG when the run is none. */
seqlstm_status sl_session_generate(struct sl_session *session, const struct sl_generate_request *request,
                                   sl_text_fn *write, void *context, struct seqlstm_error *err);

#endif
