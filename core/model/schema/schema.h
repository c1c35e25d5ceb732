/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of the model file as documents: JSON Schema for editors, the table of
 * docs/model-file.md. Both come from the option tables that the loader itself reads with
 * (schema_table.h). */
#ifndef SL_MODEL_SCHEMA_SCHEMA_H
#define SL_MODEL_SCHEMA_SCHEMA_H

#include <seqlstm/status.h>

struct sl_buf;

/* Appends the JSON Schema (draft 2020-12) of a model file. */
seqlstm_status sl_schema_write_json(struct sl_buf *out, struct seqlstm_error *err);

/* Appends one Markdown table per section: key, value, default, meaning. */
seqlstm_status sl_schema_write_markdown(struct sl_buf *out, struct seqlstm_error *err);

#endif
