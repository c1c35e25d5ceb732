/* SPDX-License-Identifier: Apache-2.0 */
/* A side in its own process: the program starts itself again and communicates with that process through a socket.
 *
 * The reason: the dynamic linker loads only one library of a soname for a process. Two plugins that need different
 * copies of one library cannot both have theirs (RTLD_LOCAL does not help). remote_link.h defines the messages,
 * remote_server.c is the child, and remote_probe.c finds out whether two backends need it. */
#ifndef SL_COMPARE_SIDE_REMOTE_SIDE_H
#define SL_COMPARE_SIDE_REMOTE_SIDE_H

#include "registry/registry.h"
#include "compare/side/side.h"

enum { SL_REMOTE_ARGUMENTS_MOST = 256 }; /* arguments of a worker, with its role and the NULL */

/* Sets `*out_reason` in `arena`: why each side needs its own process, or NULL. Starts both sides as "probe-a" and
 * "probe-b"; each loads its backend alone and lists the files that it maps. The reason is a soname that comes from
 * two places, or `forced`. `worker`: argv, NULL-terminated; the role is appended. Errors: those of a side that does
 * not load. */
seqlstm_status sl_remote_find_reason(const char *const *worker, bool forced, struct sl_arena *arena,
                                     const char **out_reason, struct seqlstm_error *err);

/* Starts the process of side "a" or "b". `units`: sl_unit_count of the graph. */
seqlstm_status sl_remote_side_open(const char *const *worker, bool is_b, int32_t units,
                                   struct sl_compare_side **out_side, struct seqlstm_error *err);

/* In the child: serves `side` until the parent closes the socket. With a `status` other than OK, it answers every
 * request with `err`. */
seqlstm_status sl_remote_serve(struct sl_compare_side *side, int32_t units, seqlstm_status status,
                               struct seqlstm_error *err);

/* In a probe: sends the files that `backend` maps; if that is NULL, `status` and `err`, which state why. */
seqlstm_status sl_remote_answer_probe(const struct sl_backend *backend, seqlstm_status status,
                                      struct seqlstm_error *err);

#endif
