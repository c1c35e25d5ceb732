/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says of itself and its models. */
#ifndef SL_SERVE_PAGES_H
#define SL_SERVE_PAGES_H

#include "base/value/buf.h"
#include "serve/job/counters.h"
#include "serve/job/served_model.h"

/* Metadata of the server and of a model in the Open Inference Protocol. */
void sl_pages_write_server(struct sl_buf *out);
void sl_pages_write_model(const struct sl_served_model *model, struct sl_buf *out);

/* The models as OpenAI's /v1/models lists them, and one of them. */
void sl_pages_write_list(const struct sl_served_model *const *models, int count, struct sl_buf *out);
void sl_pages_write_entry(const struct sl_served_model *model, struct sl_buf *out);

/* The status page: HTML without scripts. */
void sl_pages_write_status(const struct sl_served_model *const *models, int count, struct sl_counters *counters,
                           const struct sl_counter_gauges *gauges, double seconds, struct sl_buf *out);

#endif
