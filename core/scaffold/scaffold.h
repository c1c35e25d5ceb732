/* SPDX-License-Identifier: Apache-2.0 */
/* Folders to start from: a backend that builds and conforms, a model that runs. */
#ifndef SL_SCAFFOLD_SCAFFOLD_H
#define SL_SCAFFOLD_SCAFFOLD_H

#include <seqlstm/status.h>

#include "base/value/buf.h"

/* A meson project of a backend with this id. `folder` is made; it may exist if it is empty. Appends the names of the
 * files, one a line, to `out_files`. Errors: INVALID_CONFIG (a name that is no id, or one that is taken; a folder that
 * is not empty), IO, NO_MEMORY; what was written before an error is removed. */
seqlstm_status sl_scaffold_backend(const char *id, const char *folder, struct sl_buf *out_files,
                                   struct seqlstm_error *err);

/* A model file of a kind, with a small sample of its data. INVALID_CONFIG for an unknown kind too. */
seqlstm_status sl_scaffold_model(const char *kind, const char *folder, struct sl_buf *out_files,
                                 struct seqlstm_error *err);

#endif
