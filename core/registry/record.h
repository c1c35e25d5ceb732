/* SPDX-License-Identifier: Apache-2.0 */
/* The record of one backend: what became of the request for it, and what it says about itself.
 *
 * Every backend that is looked for leaves a record, loaded or not. Texts live in the arena of the registry.
 */
#ifndef SL_REGISTRY_RECORD_H
#define SL_REGISTRY_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/memory/arena.h"

enum sl_backend_status {
    SL_BACKEND_OK = 0,
    SL_BACKEND_UNAVAILABLE, /* a valid plugin that does not work on this machine */
    SL_BACKEND_REFUSED,     /* no plugin, wrong ABI, not trusted, or against a rule */
    SL_BACKEND_NOT_FOUND,   /* no such file */
    SL_BACKEND_SHADOWED     /* not loaded, because a file of the same id was found earlier */
};

/* The word for JSON: "ok", "unavailable", "refused", "not_found", "shadowed". */
const char *sl_backend_status_name(enum sl_backend_status status);

/* A mapped file: the plugin itself (first), a library that it depends on, or one that it mapped in `open`. */
struct sl_backend_file {
    const char *path;     /* every link resolved */
    const char *soname;   /* the name by which others depend on it; "" if it has none */
    const char *build_id; /* lower-case hex; "" if the file has none */
};

enum { SL_BACKEND_DEVICES_MOST = 1024, SL_BACKEND_SETTINGS_MOST = 32 }; /* that a user can ask for */

struct sl_backend_record {
    const char *id;     /* as requested, or from the table; "" if neither is known */
    const char *file;   /* absolute; NULL: built in, or not found */
    const char *origin; /* the entry's, or NULL */
    bool required;
    bool misconfigured;     /* refused for its settings */
    int32_t entry;          /* index in the request's entries; -1: found in a folder */
    uint64_t settings_hash; /* of the entry's settings */
    int32_t wrong_setting;  /* index of the wrong setting of the entry; -1: none, or not a single one */
    enum sl_backend_status status;
    const char *reason;  /* one sentence; NULL when OK */
    const char *warning; /* one sentence: what it changed and the host undid; NULL: nothing */
    const char *dlerror; /* the system's text; NULL: dlopen did not fail */
    bool has_abi;        /* the next two are known */
    uint32_t abi_major, abi_minor_needed;
    const char *version, *vendor, *license, *build; /* NULL: the table was not read */
    uint32_t device_count;
    const struct seqlstm_device_info *devices;
    uint32_t option_count; /* of the table */
    const struct seqlstm_option *options;
    uint32_t file_count;
    const struct sl_backend_file *files;
    uint32_t searched_count; /* folders in which it was looked for, in order */
    const char *const *searched;
};

/* After a plugin's `function` changed the process (guard.h): a change that could make results wrong refuses it, others
 * become its warning. Errors: NO_MEMORY. */
seqlstm_status sl_record_note_change(struct sl_arena *arena, struct sl_backend_record *record, uint32_t changes,
                                     const char *function, const char *change, struct seqlstm_error *err);

/* After it wrote to stdout or stderr: that becomes its warning. Errors: NO_MEMORY. */
seqlstm_status sl_record_note_output(struct sl_arena *arena, struct sl_backend_record *record, const char *function,
                                     const char *output, struct seqlstm_error *err);

/* Sets status and reason. Errors: NO_MEMORY. */
seqlstm_status sl_record_refuse(struct sl_arena *arena, struct sl_backend_record *record, enum sl_backend_status status,
                                struct seqlstm_error *err, const char *format, ...) SEQLSTM_PRINTF(5, 6);

#endif
