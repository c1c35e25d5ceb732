/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a backend as one line of JSON. Workers send it. */
#ifndef SL_CONFORMANCE_RECORD_LINE_H
#define SL_CONFORMANCE_RECORD_LINE_H

#include "base/memory/arena.h"
#include "registry/record.h"

/* With the newline; the caller frees it with free(). NULL: no memory. `record` may be NULL if `status` is an error. */
char *sl_record_line_print(const struct sl_backend_record *record, seqlstm_status status, const char *message);

/* Reads the parts of the record that the report needs. Errors: the status in the line, with its message; INTERNAL if
 * it is no such line; NO_MEMORY. */
seqlstm_status sl_record_line_parse(const char *line, struct sl_arena *arena, struct sl_backend_record *out_record,
                                    struct seqlstm_error *err);

#endif
