/* SPDX-License-Identifier: Apache-2.0 */
/* The documents that make a model: a file with what it includes below it, and single values of flags on top
 * (overlay.h says how they merge). */
#ifndef SL_MODEL_LOAD_DOC_MERGE_H
#define SL_MODEL_LOAD_DOC_MERGE_H

#include <seqlstm/status.h>

#include "model/yaml/doc.h"

/* Merges one `path=value` into `base`, a map. `origin` names the flag. Errors of the path and the value go to
 * `diagnostics`. */
seqlstm_status sl_doc_assign(struct sl_arena *arena, struct sl_node *base, const char *origin, const char *assignment,
                             struct sl_diagnostics *diagnostics, struct seqlstm_error *err);

/* Reads a file (at most SL_DOC_MAX_BYTES) and what it includes, one level deep. `*out` is NULL after
 * an error in the content; an unreadable file is a diagnostic and the status of the failure. `from` is
 * the place that names the file (line 0: the command line). `includes` false: a file that includes others is an error.
 */
seqlstm_status sl_doc_load(struct sl_arena *arena, const char *path, const struct sl_place *from, bool includes,
                           struct sl_diagnostics *diagnostics, struct sl_node **out, struct seqlstm_error *err);

/* The same for a text; `file` is its name. */
seqlstm_status sl_doc_load_text(struct sl_arena *arena, const char *file, const char *text, size_t text_bytes,
                                struct sl_diagnostics *diagnostics, struct sl_node **out, struct seqlstm_error *err);

#endif
