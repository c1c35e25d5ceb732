/* SPDX-License-Identifier: Apache-2.0 */
/* The link to the process of a side: a socket over which requests and their replies go.
 *
 *   request   head {what, a, b, bytes} | payload
 *   reply     head {status, 0, 0, bytes} | payload, or the error
 *
 * Messages are plain structs and texts, since both processes run the same program.
 *
 * Invariants:
 *  1. One request is under way at a time, and each has one reply.
 *  2. A child is waited for when its link is closed.
 */
#ifndef SL_COMPARE_REMOTE_LINK_H
#define SL_COMPARE_REMOTE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <seqlstm/status.h>

enum { SL_REMOTE_SOCKET = 3 }; /* the child's end */

enum sl_remote_request {
    SL_REMOTE_FACTS,
    SL_REMOTE_PLAN,
    SL_REMOTE_JUDGE,
    SL_REMOTE_START,
    SL_REMOTE_STOP,
    SL_REMOTE_TURN,
    SL_REMOTE_FILES
};

struct sl_remote_head {
    int32_t what; /* of a reply: the status */
    int32_t a, b;
    int32_t reserved;
    int64_t bytes;
};

/* What the reply to START begins with; the values follow. */
struct sl_remote_started {
    double loss;
    int64_t elems, ns;
};

/* The parent's end. */
struct sl_remote_link {
    char name; /* 'A' or 'B' */
    pid_t pid;
    int socket;
    void *room;          /* the payload of the last reply */
    int64_t reply_bytes; /* its length */
    int64_t room_bytes;
};

/* Starts `worker` (argv, NULL-terminated) with `role` appended. Errors: INVALID_ARGUMENT (too many arguments), IO. */
seqlstm_status sl_remote_link_open(const char *const *worker, const char *role, char name,
                                   struct sl_remote_link *out_link, struct seqlstm_error *err);
/* Waits for the child. A zeroed link is fine. */
void sl_remote_link_close(struct sl_remote_link *link);

/* One request and its reply, which then stands in link->room. Errors: the child's own; INTERNAL: it died, or answered
 * fewer bytes than expected. */
seqlstm_status sl_remote_link_ask(struct sl_remote_link *link, struct sl_remote_head head, const void *payload,
                                  int64_t expected_least, struct seqlstm_error *err);

/* The child's end. False: the parent has closed its own. */
bool sl_remote_receive(void *data, size_t bytes);
/* With a `status` other than OK `err` is sent in place of the payload, which has two parts. */
bool sl_remote_reply(seqlstm_status status, const void *first, size_t first_bytes, const void *second,
                     size_t second_bytes, const struct seqlstm_error *err);

#endif
