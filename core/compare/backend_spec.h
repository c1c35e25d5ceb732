/* SPDX-License-Identifier: Apache-2.0 */
/* A backend as the user names it on the command line:
 *
 *   NAME[:VARIANT][,KEY=VALUE]…
 *
 *   cpu-blas                       an id, looked up on the backend path
 *   ./libseqlstm_backend_mine.so   a file: anything with a slash
 *   cpu-blas:packed                only this variant of it
 *   cpu-blas,instructions=avx2     with options, as under `options:` in the model file
 *   cuda-generic,device=1          on its second device (counted from 0); `device` is not an option of the backend
 */
#ifndef SL_COMPARE_BACKEND_SPEC_H
#define SL_COMPARE_BACKEND_SPEC_H

#include "base/memory/arena.h"
#include "registry/registry.h"

struct sl_backend_spec {
    const char *text;    /* as written */
    const char *name;    /* id, or absolute path */
    const char *variant; /* NULL: any */
    const struct seqlstm_setting *settings;
    uint32_t setting_count;
    int32_t device; /* as in sl_registry_entry */
};

/* Everything lives in `arena`. Errors: INVALID_ARGUMENT says what is wrong and how a spec is written; NO_MEMORY. */
seqlstm_status sl_backend_spec_parse(struct sl_arena *arena, const char *text, struct sl_backend_spec *out_spec,
                                     struct seqlstm_error *err);

/* The entry that a registry loads it by. */
struct sl_registry_entry sl_backend_spec_get_entry(const struct sl_backend_spec *spec);

/* The same file or id with the same options on the same device (variants may differ). */
bool sl_backend_spec_is_same(const struct sl_backend_spec *a, const struct sl_backend_spec *b);

/* The backend that was loaded for it. UNAVAILABLE with the record's reason. `registry` was opened with
 * its entry. */
seqlstm_status sl_backend_spec_find(const struct sl_backend_spec *spec, const struct sl_registry *registry,
                                    struct sl_backend **out_backend, struct seqlstm_error *err);

#endif
