/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds the `open` of a plugin of any kind: the guard of the process, its output, the libraries that it maps.
 *
 *   struct sl_opening opening;
 *   sl_opening_begin(&opening, arena);
 *   status = ... open ...
 *   sl_opening_end(&opening, id, status, &why, has_settings, record, err);
 */
#ifndef SL_REGISTRY_OPENING_H
#define SL_REGISTRY_OPENING_H

#include "registry/mapped_files.h"
#include "registry/record.h"
#include "registry/watch/watch.h"

struct sl_opening {
    struct sl_arena *arena;
    struct sl_watched_code code;
    struct sl_mapped_files mapped;
};

void sl_opening_begin(struct sl_opening *opening, struct sl_arena *arena);

/* `status` and `why`: what open returned. If that was OK and the record's status is not OK afterwards, the caller
 * closes again what was opened. Errors: NO_MEMORY, also when the plugin ran out of it. */
seqlstm_status sl_opening_end(struct sl_opening *opening, const char *id, seqlstm_status status,
                              const struct seqlstm_error *why, bool has_settings, struct sl_backend_record *record,
                              struct seqlstm_error *err);

#endif
