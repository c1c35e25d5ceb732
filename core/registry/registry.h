/* SPDX-License-Identifier: Apache-2.0 */
/* The registry finds, loads and opens backends: those that a request lists, or all.
 *
 * Only core/registry opens plugins. A backend that does not load is no error: each one that is looked for leaves a
 * record (record.h) which says why. Files stay mapped until the process ends.
 *
 * Where a backend named by its id (file libseqlstm_backend_ID.so) is looked for, in this order: the folders of the
 * request
 * (--backend-path), SEQLSTM_BACKEND_PATH, $XDG_DATA_HOME/seqlstm/backends (or ~/.local/share/seqlstm/backends), the
 * build folder if the program runs from its build tree, <libdir>/seqlstm/backends. Never in the current folder; a
 * relative folder is refused. A name with `/` is a file. The first file found is used; later files of the same id are
 * reported as shadowed.
 *
 * The other files of core/registry, in the order in which a plugin passes through them:
 *   search                  the folders, and the files in them
 *   elf                     checks before a file is mapped, with base/system/owner
 *   loader, objects         maps it, and lists the libraries that come with it
 *   table                   checks its table of functions
 *   settings                checks the user's options for it
 *   instance, mapped_files  opens it, and lists what it maps by itself
 *   guard                   watches what it changes in the process meanwhile
 *   backend                 an open backend;  answer: whether it runs an operation
 *   host, domain, lane      what the host offers it: services, queues, memory, streams
 *
 * Invariants:
 *  1. Records stand in the order of the request (all_backends: in the order in which files are found, built-in ones
 *     first). Backends are those records with status OK, in the same order.
 *  2. A backend's table has the host's full size: functions that are newer than the plugin are NULL.
 *  3. Everything returned is borrowed and lives until sl_registry_destroy.
 */
#ifndef SL_REGISTRY_REGISTRY_H
#define SL_REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "registry/opened_backend.h"
#include "registry/record.h"

/* ---- the request -------------------------------------------------------------------------- */

/* One backend that the user lists. Borrowed for the call. */
struct sl_registry_entry {
    const char *name;                       /* id ("cpu-blas"), or a file: then it contains '/' and is absolute or
                                               relative to the current folder (the caller has resolved the model's) */
    const char *origin;                     /* where it was asked for, for messages: "model.yaml:86:5"; NULL: unknown */
    bool require;                           /* its record says so; the caller fails if it is not open */
    const struct seqlstm_setting *settings; /* the `options:` map as text */
    uint32_t setting_count;
    int32_t device; /* n: only the n-th of its devices, counted from 1; 0: any */
};

/* A backend that is linked into the program. Opened only if an entry names its id, or with all_builtins; so the
 * reference is used only where it is listed. */
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
    int32_t cuda;      /* n: only the n-th device of backends on devices of class "cuda…", counted from 1; 0: any */
    const struct sl_backend_builtin *builtins;
    uint32_t builtin_count;
    const char *const *folders; /* of --backend-path, searched first */
    uint32_t folder_count;
    bool only_folders;                    /* search nothing but `folders`: tests */
    const struct sl_log *log;             /* may be NULL; outlives the registry */
    const struct sl_interrupt *interrupt; /* answers host.cancelled; may be NULL; outlives it */
};

/* ---- the registry ------------------------------------------------------------------------- */

struct sl_registry;

/* Finds, loads and opens. A backend that does not load is a record, not an error.
 * Errors: NO_MEMORY; INVALID_ARGUMENT (a relative folder). Not while another thread calls dlopen. */
seqlstm_status sl_registry_create(const struct sl_registry_request *request, struct sl_registry **out_registry,
                                  struct seqlstm_error *err);

/* Closes the backends; all ops and bindings must be gone. Files stay mapped. NULL is fine. */
void sl_registry_destroy(struct sl_registry *registry);

/* Returns UNAVAILABLE: the backend `id` is not loaded. The message says why not, and which are. */
seqlstm_status sl_registry_fail_unloaded(const struct sl_registry *registry, const char *id, struct seqlstm_error *err);

uint32_t sl_registry_get_record_count(const struct sl_registry *registry);
const struct sl_backend_record *sl_registry_get_record(const struct sl_registry *registry, uint32_t index);

/* The folders of the search, in order, even if nothing was looked for. */
uint32_t sl_registry_get_folder_count(const struct sl_registry *registry);
const char *sl_registry_get_folder(const struct sl_registry *registry, uint32_t index);

uint32_t sl_registry_get_backend_count(const struct sl_registry *registry);
struct sl_backend *sl_registry_get_backend(const struct sl_registry *registry, uint32_t index);
struct sl_backend *sl_registry_find_backend(const struct sl_registry *registry, const char *id);

#endif
