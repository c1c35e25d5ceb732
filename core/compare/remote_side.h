/* SPDX-License-Identifier: Apache-2.0 */
/* A side in a process of its own: the program, spawned again, on the other end of a socket.
 *
 * Why: the dynamic linker keeps one library of a soname for a process, so two plugins that need different copies of one
 * cannot both get theirs (RTLD_LOCAL does not help). Messages are the plain structs of side.h: both ends are one
 * program.
 */
#ifndef SL_COMPARE_REMOTE_SIDE_H
#define SL_COMPARE_REMOTE_SIDE_H

#include "registry/registry.h"
#include "compare/side.h"

enum { SL_REMOTE_SOCKET = 3 }; /* the child's end */

/* `*out_reason` in `arena`: why the sides need processes of their own, or NULL. Spawns both as "probe-a" and "probe-b",
 * each of which loads its backend alone and says which files that maps; one soname from two places is a reason, as is
 * `forced`. `worker`: argv, NULL-terminated; the role is added to it. Errors: what keeps a side from loading. */
seqlstm_status sl_remote_find_reason(const char *const *worker, bool forced, struct sl_arena *arena,
                                     const char **out_reason, struct seqlstm_error *err);

/* Spawns side "a" or "b". `units`: sl_unit_count of the graph. */
seqlstm_status sl_remote_side_open(const char *const *worker, bool is_b, int32_t units,
                                   struct sl_compare_side **out_side, struct seqlstm_error *err);

/* The child's side. Serves `side` until the other end closes; with `status` other than OK answers everything with
 * `err`. */
seqlstm_status sl_remote_serve(struct sl_compare_side *side, int32_t units, seqlstm_status status,
                               struct seqlstm_error *err);

/* A probe's answer: the files that `backend` (NULL: `status` and `err` say why not) maps. */
seqlstm_status sl_remote_answer_probe(const struct sl_backend *backend, seqlstm_status status,
                                      struct seqlstm_error *err);

#endif
