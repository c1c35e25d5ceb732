/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that is open: the plugin's table, one instance of it, and the device to use.
 *
 * Everything returned is borrowed and lives as long as the registry.
 */
#ifndef SL_REGISTRY_OPENED_BACKEND_H
#define SL_REGISTRY_OPENED_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/memory/arena.h"
#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "registry/record.h"

struct sl_backend;

/* How to open a backend. Borrowed for the call, log and interrupt for the life of the backend. */
struct sl_backend_request {
    const struct seqlstm_setting *settings;
    uint32_t setting_count;
    int32_t device; /* n: only the n-th of its devices, counted from 1; 0: any */
    bool cpu_only;  /* a backend without a device of class "cpu…" is unavailable */
    int32_t cuda;   /* `device` of a backend on devices of class "cuda…", unless that is given */
    const struct sl_log *log;
    const struct sl_interrupt *interrupt;
};

/* Checks the settings and opens an instance. If the record's status is not OK afterwards, *out_backend is NULL. Texts
 * and the backend itself live in `arena`. Errors: NO_MEMORY. Not while another thread calls dlopen. */
seqlstm_status sl_backend_open(struct sl_arena *arena, const struct sl_backend_request *request,
                               const struct seqlstm_backend *table, struct sl_backend_record *record,
                               struct sl_backend **out_backend, struct seqlstm_error *err);

/* All operations and bindings must be gone. */
void sl_backend_close(struct sl_backend *backend);

const char *sl_backend_get_id(const struct sl_backend *backend);
const struct seqlstm_backend *sl_backend_get_table(const struct sl_backend *backend);
struct seqlstm_instance *sl_backend_get_instance(const struct sl_backend *backend);
const struct sl_backend_record *sl_backend_get_record(const struct sl_backend *backend);

uint32_t sl_backend_get_device_count(const struct sl_backend *backend);
/* index < device count */
const struct seqlstm_device_info *sl_backend_get_device(const struct sl_backend *backend, uint32_t index);
/* Index of the device to use: the requested one, or the first in the host's memory, or the first. False: there is no
 * device. */
bool sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device);

/* Bytes that the backend holds of the host's `allocate` now. */
int64_t sl_backend_get_live_bytes(const struct sl_backend *backend);

/* sl_table_supports (answer.h) for one of its devices. [any] */
seqlstm_status sl_backend_supports(const struct sl_backend *backend, uint32_t device, const struct seqlstm_desc *desc,
                                   struct seqlstm_answer *out_answer, struct seqlstm_error *err);

#endif
