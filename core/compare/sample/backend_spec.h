/* SPDX-License-Identifier: Apache-2.0 */
/* A backend, as the user names it on the command line:
 *
 *   NAME[:VARIANT][,KEY=VALUE]…
 *
 *   cpu-blas                       an id, searched on the backend path
 *   ./libseqlstm_backend_mine.so   a file: any name with a slash
 *   cpu-blas:packed                only this variant
 *   cpu-blas,instructions=avx2     with these options; without any, with those of the model file
 *   cuda-generic,device=1          on its second device (counted from 0); `device` is not an option of the backend */
#ifndef SL_COMPARE_SAMPLE_BACKEND_SPEC_H
#define SL_COMPARE_SAMPLE_BACKEND_SPEC_H

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

/* Everything lives in `arena`. Errors: INVALID_ARGUMENT states what is wrong and how to write it; NO_MEMORY. */
seqlstm_status sl_backend_spec_parse(struct sl_arena *arena, const char *text, struct sl_backend_spec *out_spec,
                                     struct seqlstm_error *err);

/* The entry with which a registry loads it. */
struct sl_registry_entry sl_backend_spec_get_entry(const struct sl_backend_spec *spec);

/* Returns true for the same file or id, options and device; variants may differ. */
bool sl_backend_spec_is_same(const struct sl_backend_spec *a, const struct sl_backend_spec *b);

/* The backend that was loaded for it. UNAVAILABLE, with the reason of its record. `registry` must have been opened
 * with its entry. */
seqlstm_status sl_backend_spec_find(const struct sl_backend_spec *spec, const struct sl_registry *registry,
                                    struct sl_backend **out_backend, struct seqlstm_error *err);

#endif
