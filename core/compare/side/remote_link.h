/* SPDX-License-Identifier: Apache-2.0 */
/* The link to the process of a side: a socket for requests and their replies.
 *
 *   request   head {what, a, b, bytes} | payload
 *   reply     head {status, 0, 0, bytes} | payload, or the error
 *
 * Messages are plain structs and texts, since both processes run the same program.
 *
 * Invariants
 * 1. At any time there is at most one request without a reply, and each request has one reply.
 * 2. Closing a link waits for its child. */
#ifndef SL_COMPARE_SIDE_REMOTE_LINK_H
#define SL_COMPARE_SIDE_REMOTE_LINK_H

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
    int32_t what; /* in a reply: the status */
    int32_t a, b;
    int32_t reserved;
    int64_t bytes;
};

/* The beginning of the reply to START; the values follow. */
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
/* Waits for the child. Accepts a zeroed link. */
void sl_remote_link_close(struct sl_remote_link *link);

/* Sends a request and waits for its reply, which is then in link->room. Errors: the child's own; INTERNAL if it
 * died, or sent fewer bytes than expected. */
seqlstm_status sl_remote_link_ask(struct sl_remote_link *link, struct sl_remote_head head, const void *payload,
                                  int64_t expected_least, struct seqlstm_error *err);

/* The child's end. Returns false if the parent has closed its end. */
bool sl_remote_receive(void *data, size_t bytes);
/* With a `status` other than OK, `err` is sent instead of the payload, which has two parts. */
bool sl_remote_reply(seqlstm_status status, const void *first, size_t first_bytes, const void *second,
                     size_t second_bytes, const struct seqlstm_error *err);

#endif
