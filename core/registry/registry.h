/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: every backend that was asked for, loaded, opened, or the reason why not.
 *
 * It is the only place of the program that opens shared objects. It never aborts and never lets a
 * candidate pass in silence: each one leaves a record. Backends stay mapped until the process ends.
 *
 * Search order for a bare id (file libseqlstm_backend_ID.so): the folders of the request
 * (--backend-path), SEQLSTM_BACKEND_PATH, $XDG_DATA_HOME/seqlstm/backends (or
 * ~/.local/share/seqlstm/backends), the build's own folder when the program runs from its build tree,
 * <libdir>/seqlstm/backends. Never the current folder; a relative folder is refused. A name with `/`
 * is a file. The first file found decides; later ones of the same id are reported as shadowed.
 *
 * Invariants:
 *  1. Records stand in the order of the request (all_backends: order of discovery, built-in first);
 *     `sl_registry_get_backend(r, i)` in the same order, counting only those with status OK.
 *  2. A backend's table has the host's full size: slots that its author did not know are NULL.
 *  3. Everything returned is borrowed and lives until sl_registry_destroy.
 */
#ifndef SL_REGISTRY_REGISTRY_H
#define SL_REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "registry/backend.h"
#include "registry/record.h"

/* ---- the request -------------------------------------------------------------------------- */

/* One backend that the user lists. Borrowed for the call. */
struct sl_registry_entry {
    const char *name;                       /* id ("cpu-blas"), or a file: then it contains '/' and is absolute or
                                               relative to the current folder (the caller has resolved the model's) */
    const char *origin;                     /* where it was asked for, for messages: "model.yaml:86:5"; NULL: unknown */
    bool require;                           /* sl_registry_check_required fails when it is not there */
    const struct seqlstm_setting *settings; /* the `options:` map as text */
    uint32_t setting_count;
    int32_t device; /* n: the n-th of its devices alone, 1 the first; 0: which suits */
};

/* A backend that is linked into the program. Opened only when an entry names its id, or with
 * all_builtins: so the reference runs only where it is listed. */
struct sl_backend_builtin {
    const char *id;
    seqlstm_backend_query_fn query;
};

struct sl_registry_request {
    const struct sl_registry_entry *entries;
    uint32_t entry_count;
    bool all_backends; /* entries first, then every file of every folder but those of a built-in's id */
    bool all_builtins; /* the built-in ones too, last */
    bool trust;        /* skip the checks of owner and mode */
    bool cpu_only;     /* backends without a device of class "cpu…" are unavailable: `device: cpu` */
    const struct sl_backend_builtin *builtins;
    uint32_t builtin_count;
    const char *const *folders; /* of --backend-path, searched first */
    uint32_t folder_count;
    bool only_folders;                    /* search nothing but `folders`: tests */
    const struct sl_log *log;             /* may be NULL; outlives the registry */
    const struct sl_interrupt *interrupt; /* behind host.cancelled; may be NULL; outlives it */
};

/* ---- the registry ------------------------------------------------------------------------- */

struct sl_registry;

/* Looks up, loads and opens. A backend that does not load is a record, not an error.
 * Errors: NO_MEMORY; INVALID_ARGUMENT (a relative folder). Not while another thread calls dlopen. */
seqlstm_status sl_registry_create(const struct sl_registry_request *request, struct sl_registry **out_registry,
                                  struct seqlstm_error *err);

/* Closes the backends; all ops and bindings must be gone. Files stay mapped. NULL is fine. */
void sl_registry_destroy(struct sl_registry *registry);

/* NOT_FOUND or UNAVAILABLE, with the record's reason, for the first required backend that is not OK. */
seqlstm_status sl_registry_check_required(const struct sl_registry *registry, struct seqlstm_error *err);

/* UNAVAILABLE: the backend `id` is not loaded; why not, and which are. */
seqlstm_status sl_registry_fail_unloaded(const struct sl_registry *registry, const char *id, struct seqlstm_error *err);

uint32_t sl_registry_get_record_count(const struct sl_registry *registry);
const struct sl_backend_record *sl_registry_get_record(const struct sl_registry *registry, uint32_t index);

/* Folders that were searched, in order (also when nothing was looked up in them). */
uint32_t sl_registry_get_folder_count(const struct sl_registry *registry);
const char *sl_registry_get_folder(const struct sl_registry *registry, uint32_t index);

uint32_t sl_registry_get_backend_count(const struct sl_registry *registry);
struct sl_backend *sl_registry_get_backend(const struct sl_registry *registry, uint32_t index);
struct sl_backend *sl_registry_find_backend(const struct sl_registry *registry, const char *id);

#endif
