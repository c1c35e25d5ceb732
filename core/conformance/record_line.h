/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a backend as one line of JSON, in which a worker of the conformance kit reports it. */
#ifndef SL_CONFORMANCE_RECORD_LINE_H
#define SL_CONFORMANCE_RECORD_LINE_H

#include "base/memory/arena.h"
#include "registry/record.h"

/* With the newline, to be freed with free(); NULL: out of memory. `record` may be NULL where `status` is an error. */
char *sl_record_line_print(const struct sl_backend_record *record, seqlstm_status status, const char *message);

/* What the report of the kit needs of the record. Errors: the status of the line, with its message; INTERNAL if it is
 * no such line; NO_MEMORY. */
seqlstm_status sl_record_line_parse(const char *line, struct sl_arena *arena, struct sl_backend_record *out_record,
                                    struct seqlstm_error *err);

#endif
