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

/* ---- the records -------------------------------------------------------------------------- */

enum sl_backend_status {
    SL_BACKEND_OK = 0,
    SL_BACKEND_UNAVAILABLE, /* a sound plugin that does not work on this machine */
    SL_BACKEND_REFUSED,     /* not a plugin, wrong ABI, not trusted, broke a rule */
    SL_BACKEND_NOT_FOUND,   /* no such file */
    SL_BACKEND_SHADOWED     /* a file of an id that was found earlier; not loaded */
};

/* The word for JSON: "ok", "unavailable", "refused", "not_found", "shadowed". */
const char *sl_backend_status_name(enum sl_backend_status status);

/* A mapped file: the plugin itself (first), something it depends on, or what it mapped in `open`. */
struct sl_backend_file {
    const char *path;     /* every link resolved */
    const char *soname;   /* what others ask the linker for; "" if it has none */
    const char *build_id; /* lower-case hex; "" if the file has none */
};

struct sl_backend_record {
    const char *id;     /* asked for, or the table's; "" if neither is known */
    const char *file;   /* absolute; NULL: built in, or not found */
    const char *origin; /* of the entry, or NULL */
    bool required;
    bool misconfigured;     /* refused for its settings */
    int32_t entry;          /* index in the request's entries; -1: found in a folder */
    uint64_t settings_hash; /* of the entry's settings */
    int32_t wrong_setting;  /* index in the entry's settings of the one that is wrong; -1: none, or all together */
    enum sl_backend_status status;
    const char *reason;  /* one sentence; NULL when OK */
    const char *dlerror; /* the system's text; NULL: dlopen did not fail */
    bool has_abi;        /* the two below were read */
    uint32_t abi_major, abi_minor_needed;
    const char *version, *vendor, *license, *build; /* NULL: the table was never read */
    uint32_t device_count;
    const struct seqlstm_device_info *devices;
    uint32_t option_count; /* of the table */
    const struct seqlstm_option *options;
    uint32_t file_count;
    const struct sl_backend_file *files;
    uint32_t searched_count; /* folders looked into for this one, in order */
    const char *const *searched;
};

/* ---- the registry ------------------------------------------------------------------------- */

struct sl_registry;
struct sl_backend;

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

/* ---- one backend --------------------------------------------------------------------------- */

const char *sl_backend_get_id(const struct sl_backend *backend);
const struct seqlstm_backend *sl_backend_get_table(const struct sl_backend *backend);
struct seqlstm_instance *sl_backend_get_instance(const struct sl_backend *backend);
uint32_t sl_backend_get_device_count(const struct sl_backend *backend);
/* index < device count */
const struct seqlstm_device_info *sl_backend_get_device(const struct sl_backend *backend, uint32_t index);
const struct sl_backend_record *sl_backend_get_record(const struct sl_backend *backend);
/* The entry's `device`. */
int32_t sl_backend_get_wished_device(const struct sl_backend *backend);
/* Index of the device to use: the entry's, else the first in the host's memory, else the first; false: it has none. */
bool sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device);
/* Bytes that the backend holds of the host's `allocate`, now and at most. */
int64_t sl_backend_get_live_bytes(const struct sl_backend *backend);
int64_t sl_backend_get_peak_bytes(const struct sl_backend *backend);

/* Asks whether the backend runs exactly this descriptor. OK with an answer, yes or no: out_answer is
 * complete (on no: code, option, reason; on yes: at least one variant) whatever the plugin wrote;
 * nonsense becomes a refusal with SEQLSTM_REFUSED_ABI that names the plugin. Descriptor bytes beyond
 * those the backend reads are answered no without asking. Errors: INTERNAL, when the plugin itself failed:
 * that is a bug of it, never a no. [any] */
seqlstm_status sl_backend_supports(const struct sl_backend *backend, uint32_t device, const struct seqlstm_desc *desc,
                                   struct seqlstm_answer *out_answer, struct seqlstm_error *err);

/* The same for a table and a device class; `desc` is readable for desc->struct_size bytes. [any] */
seqlstm_status sl_table_supports(const struct seqlstm_backend *table, const char *device_class,
                                 const struct seqlstm_desc *desc, struct seqlstm_answer *out_answer,
                                 struct seqlstm_error *err);

#endif
