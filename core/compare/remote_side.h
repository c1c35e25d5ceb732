/* SPDX-License-Identifier: Apache-2.0 */
/* A side in a process of its own: the program starts itself again and talks to that process through a socket.
 *
 * Why: the dynamic linker loads one library of a soname for a process, so two plugins that need different copies of one
 * cannot both have theirs (RTLD_LOCAL does not help). remote_link.h has the messages, remote_server.c the
 * child's part, remote_probe.c finds out whether two backends need it.
 */
#ifndef SL_COMPARE_REMOTE_SIDE_H
#define SL_COMPARE_REMOTE_SIDE_H

#include "registry/registry.h"
#include "compare/side.h"

enum { SL_REMOTE_ARGUMENTS_MOST = 256 }; /* of a worker, with its role and the NULL */

/* `*out_reason` in `arena`: why each side needs a process of its own, or NULL. Starts both as "probe-a" and "probe-b",
 * each of which loads its backend alone and lists the files which that maps. The reason is one soname that comes from
 * two places, or `forced`. `worker`: argv, NULL-terminated; the role is appended. Errors: what keeps a side from
 * loading. */
seqlstm_status sl_remote_find_reason(const char *const *worker, bool forced, struct sl_arena *arena,
                                     const char **out_reason, struct seqlstm_error *err);

/* Starts the process of side "a" or "b". `units`: sl_unit_count of the graph. */
seqlstm_status sl_remote_side_open(const char *const *worker, bool is_b, int32_t units,
                                   struct sl_compare_side **out_side, struct seqlstm_error *err);

/* In the child: serves `side` until the parent closes the socket. With a `status` other than OK it answers every
 * request with `err`. */
seqlstm_status sl_remote_serve(struct sl_compare_side *side, int32_t units, seqlstm_status status,
                               struct seqlstm_error *err);

/* In a probe: sends the files that `backend` maps; where it is NULL, `status` and `err`, which say why. */
seqlstm_status sl_remote_answer_probe(const struct sl_backend *backend, seqlstm_status status,
                                      struct seqlstm_error *err);

#endif
