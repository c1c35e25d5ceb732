/* SPDX-License-Identifier: Apache-2.0 */
/* A server of one thread on the loopback, which the load generator asks. */
#ifndef SL_TESTS_UNIT_SERVE_LOAD_SOCKET_H
#define SL_TESTS_UNIT_SERVE_LOAD_SOCKET_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "ok.h"
#include "serve/load/load.h"

/* A socket that listens on a free port. room_bytes: for what arrives and is not read; 0: as the system has it. */
static inline int load_listen(int room_bytes, uint16_t *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (room_bytes > 0)
        setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &room_bytes, sizeof room_bytes);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(listening, 16), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &bytes), 0);
    *out_port = ntohs(address.sin_port);
    return listening;
}

/* Runs the load while `serve` accepts connections in a thread; then *ends is set and the socket closed. */
static inline struct sl_load_result load_run(const struct sl_load_request *request, int listening,
                                             void *(*serve)(void *server), void *server, _Atomic bool *ends)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_load_result result;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, serve, server), 0);
    ok(sl_load_run(request, &result, &err), &err);
    *ends = true;
    shutdown(listening, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listening);
    return result;
}

#endif
