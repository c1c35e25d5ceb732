/* SPDX-License-Identifier: Apache-2.0 */
/* An instance of a backend, opened with a host's services, and the devices that it reports. */
#ifndef SL_REGISTRY_INSTANCE_H
#define SL_REGISTRY_INSTANCE_H

#include <seqlstm/backend.h>

#include "base/memory/arena.h"
#include "registry/record.h"

/* Opens an instance, watched by guard.h, and reads its devices into the record. If the record's status is not OK
 * afterwards, *out_instance is NULL. Errors: NO_MEMORY, also when the plugin ran out of it. [control] */
seqlstm_status sl_instance_open(struct sl_arena *arena, const struct seqlstm_backend *table,
                                const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                uint32_t setting_count, struct sl_backend_record *record,
                                struct seqlstm_instance **out_instance, struct seqlstm_error *err);

#endif
