/* SPDX-License-Identifier: Apache-2.0 */
/* One request for predictions, from its parsed input to its output. */
#ifndef SL_SERVE_JOB_H
#define SL_SERVE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/http.h"
#include "serve/served_model.h"

struct sl_job {
    struct seqlstm_http_request *request;
    const struct sl_served_model *model;
    struct sl_job *next; /* in the queue */
    int64_t queued_ns;

    char *id;         /* of the client, given back; NULL: none */
    void *x;          /* [rows, input_features] float, or [rows] int32_t */
    int64_t *lengths; /* [count]; NULL for models without steps */
    int64_t count;    /* sequences, or rows without steps */
    int64_t rows;     /* steps of all of them */

    float *y; /* [out_rows, output_features] */
    int64_t out_rows;
    bool wants_y, wants_labels;   /* which outputs; labels only where classes have names */
    bool binary_y, binary_labels; /* after the JSON instead of in it */
};

/* NULL: no memory. */
struct sl_job *sl_job_create(const struct sl_served_model *model, struct seqlstm_http_request *request);
/* NULL is fine. The request must have been answered. */
void sl_job_destroy(struct sl_job *job);

#endif
