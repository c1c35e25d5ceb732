/* SPDX-License-Identifier: Apache-2.0 */
/* Writes new folders from templates: a backend that builds and passes the conformance tests, or a model that runs. */
#ifndef SL_SCAFFOLD_SCAFFOLD_H
#define SL_SCAFFOLD_SCAFFOLD_H

#include <seqlstm/status.h>

#include "base/value/buf.h"

/* Writes the meson project of a backend with this id. Creates `folder`, which may exist if it is empty. Appends the
 * names of the files to `out_files`, one per line. Errors: INVALID_CONFIG (the id is not valid or is taken; the folder
 * is not empty), IO, NO_MEMORY. After an error it removes the files that it has written. */
seqlstm_status sl_scaffold_backend(const char *id, const char *folder, struct sl_buf *out_files,
                                   struct seqlstm_error *err);

/* Writes a model file of the given kind, with a small sample of its data. The same errors; INVALID_CONFIG also if the
 * kind is unknown. */
seqlstm_status sl_scaffold_model(const char *kind, const char *folder, struct sl_buf *out_files,
                                 struct seqlstm_error *err);

#endif
