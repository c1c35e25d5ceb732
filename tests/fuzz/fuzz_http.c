/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm serve` on its sockets: whatever a connection sends, it is answered or closed, and other requests are
 * answered as before. The first byte says how the client behaves, the second where its bytes are cut in two; the others
 * are sent. Needs the module that serves HTTP (SEQLSTM_MODULE_PATH); the exit status without it is 77. */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system/interrupt.h"
#include "fuzz.h"
#include "serve/http/http.h"
#include "serve/server.h"
#include "session/session.h"

/* What a client does, in the low bits of the first byte. */
enum {
    ASKS_TOKENS = 1, /* of the server that wants tokens */
    LEAVES = 2,      /* without reading anything */
    WAITS = 4,       /* for the answer before it sends its end */
    READS_LITTLE = 8 /* a few bytes at a time */
};

enum { OPEN, CLOSED, SERVERS, MODELS_MOST = 3, STEPS = 40, PATIENCE_S = 50, PAUSE_MS = 5, BETWEEN = 64 };

static const char values[] =
    "seqlstm: 1\nname: values\nseed: 3\n"
    "data: {type: csv, group: id, inputs: [a, b], targets: [y], train: {file: train.csv}}\n"
    "model: [{type: gru, units: 3, return_sequences: true}, {type: dense, units: from_target}]\n"
    "train: {epochs: 1, loss: mse}\nbackends: [reference]\n";
static const char letters[] = "seqlstm: 1\nname: letters\nseed: 2\n"
                              "data: {train: {type: text, file: text.txt}, tokenizer: {type: char}, batching: {unit: "
                              "stream, bptt: 8}, batch_size: 2}\n"
                              "model: [{type: embedding, dim: 3}, {type: lstm, units: 4, return_sequences: true}, "
                              "{type: output, activation: softmax}]\n"
                              "train: {task: language_model, epochs: 1}\nbackends: [reference]\n";
static const char sums[] =
    "seqlstm: 1\nname: sums\nseed: 2\n"
    "data:\n  train: {type: generator, name: addition, digits: 1, size: 38}\n  batch_size: 8\n"
    "model:\n  encoder: [{type: embedding, dim: 4}, {type: lstm, units: 4}]\n"
    "  decoder:\n    - {type: embedding, dim: 4}\n"
    "    - {type: lstm, units: 4, return_sequences: true, initial_state: lstm_1}\n"
    "    - {type: output, activation: softmax}\n"
    "train: {epochs: 1, loss: cross_entropy}\ndecode: {beam: 2, max_length: 6}\nbackends: [reference]\n";

static struct served {
    struct sl_session *sessions[MODELS_MOST];
    struct sl_diagnostics *diagnostics[MODELS_MOST];
    int count;
    struct sl_server *server;
    struct sl_interrupt interrupt;
    pthread_t thread;
} served[SERVERS];

static char known[4096]; /* the answer to a good request */

/* ---- servers ----------------------------------------------------------------------------------------------- */

static void require_ok(seqlstm_status status, const struct seqlstm_error *err)
{
    if (status != SEQLSTM_OK)
        fprintf(stderr, "%s\n", err->message);
    fuzz_require(status == SEQLSTM_OK);
}

static void train(struct served *to, const char *folder, const char *text)
{
    char path[600], out[600];
    static int runs;
    struct sl_run_result result;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int k = to->count++;
    snprintf(path, sizeof path, "%s/model.yaml", folder);
    snprintf(out, sizeof out, "%s/run-%d", folder, runs++);
    fuzz_write_file(path, text, strlen(text));
    const struct sl_model_request request = {.path = path};
    const struct sl_run_observer observer = {.on_folder = NULL};
    const struct sl_session_options options = {.model = &request, .out_dir = out, .threads = 1, .trust = true};
    require_ok(sl_diagnostics_create(&to->diagnostics[k], &err), &err);
    require_ok(sl_session_open_model(&options, to->diagnostics[k], &to->sessions[k], &err), &err);
    require_ok(sl_session_run(to->sessions[k], &observer, &result, &err), &err);
}

static void *serve(void *context)
{
    struct served *one = context;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    require_ok(sl_server_run(one->server, &err), &err);
    return NULL;
}

static void start(struct served *one, const char *const *tokens)
{
    static const char *const names[MODELS_MOST] = {"values", "letters", "sums"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_server_request request = {.sessions = one->sessions,
                                              .names = names,
                                              .count = one->count,
                                              .address = "127.0.0.1",
                                              .tokens = tokens,
                                              .workers = 1,
                                              .threads = 1,
                                              .queue = 64,
                                              .body_bytes = 1 << 15,
                                              .steps = STEPS,
                                              .streams = 4,
                                              .stream_idle_ns = 100000000,
                                              .reproducible = true,
                                              .interrupt = &one->interrupt};
    require_ok(sl_server_open(&request, &one->server, &err), &err);
    fuzz_require(pthread_create(&one->thread, NULL, serve, one) == 0);
}

static void stop_all(void)
{
    for (struct served *one = served; one < served + SERVERS; one++) {
        one->interrupt.stop = 1;
        pthread_join(one->thread, NULL);
        sl_server_close(one->server);
        for (int k = 0; k < one->count; k++) {
            sl_session_close(one->sessions[k]);
            sl_diagnostics_destroy(one->diagnostics[k]);
        }
    }
}

/* ---- clients ----------------------------------------------------------------------------------------------- */

static int connect_to(const struct served *one)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(sl_server_get_port(one->server)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    fuzz_require(client >= 0 && connect(client, (const struct sockaddr *)&address, sizeof address) == 0);
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return client;
}

/* The server may have closed the connection, because of what it has read. */
static void send_all(int client, const void *bytes, size_t count)
{
    for (size_t sent = 0; sent < count;) {
        const ssize_t some = send(client, (const char *)bytes + sent, count - sent, MSG_NOSIGNAL);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return;
        sent += (size_t)some;
    }
}

/* Up to the end of the connection, of which the server must see to it; what has no room is dropped. */
static size_t read_all(int client, size_t most_at_once, char *out, size_t room)
{
    char part[4096];
    for (size_t count = 0;;) {
        const ssize_t some = recv(client, part, most_at_once, 0);
        if (some < 0 && errno == EINTR)
            continue; /* an alarm of libFuzzer */
        if (some < 0 && errno != ECONNRESET)
            fprintf(stderr, "recv: %s\n", strerror(errno));
        fuzz_require(some >= 0 || errno == ECONNRESET);
        if (some <= 0)
            return count;
        const size_t fits = (size_t)some < room - count ? (size_t)some : room - count;
        memcpy(out + count, part, fits);
        count += fits;
    }
}

/* Ends without the wait of the system for late packets, in which its port is in use. */
static void hang_up(int client)
{
    const struct linger now = {.l_onoff = 1};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(client);
}

/* Nothing, or an answer of HTTP with a status that the server gives; JSON is valid. `bodies`: no answer is to HEAD, and
 * has a length without its body. */
static void check_answer(char *text, size_t count, bool bodies)
{
    static const int statuses[] = {100, 200, 400, 401, 403, 404, 405, 411, 413, 414, 415, 417, 429, 499, 501, 503};
    bool is_known = false;
    int status = 0;
    text[count] = '\0';
    if (count == 0)
        return;
    fuzz_require(sscanf(text, "HTTP/%*d.%*d %d ", &status) == 1); /* the version is that of the client */
    for (size_t k = 0; k < sizeof statuses / sizeof *statuses; k++)
        is_known |= status == statuses[k];
    if (!is_known)
        fprintf(stderr, "status %d\n", status);
    fuzz_require(is_known);
    const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "\r\nContent-Length: ");
    const char *type = strstr(text, "\r\nContent-Type: application/json");
    if (!bodies || body == NULL || length == NULL || length > body || type == NULL || type > body)
        return;
    const size_t bytes = strtoul(length + 18, NULL, 10);
    if (bytes > 0 && bytes <= count - (size_t)(body + 4 - text)) {
        json_t *root = json_loadb(body + 4, bytes, JSON_REJECT_DUPLICATES, NULL);
        fuzz_require(json_is_object(root));
        json_decref(root);
    }
}

#define HOST "Host: localhost\r\n"
#define BODY "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[1,2,3,4]}]}"

static void write_post(const char *path, const char *headers, const char *body, char out[512])
{
    snprintf(out, 512, "POST %s HTTP/1.1\r\n" HOST "%sContent-Length: %zu\r\n\r\n%s", path, headers, strlen(body),
             body);
}

/* The answer to a good request, without its headers, which hold the time. */
static void ask_well(char out[sizeof known])
{
    char request[512], text[sizeof known] = "";
    const int client = connect_to(&served[OPEN]);
    write_post("/v2/models/values/infer", "Connection: close\r\n", BODY, request);
    send_all(client, request, strlen(request));
    read_all(client, sizeof text, text, sizeof text - 1);
    hang_up(client);
    const char *body = strstr(text, "\r\n\r\n");
    fuzz_require(strncmp(text, "HTTP/1.1 200 ", 13) == 0 && body != NULL);
    strcpy(out, body);
}

/* ---- inputs ------------------------------------------------------------------------------------------------ */

static void seed(int behaviour, const char *text)
{
    static int written;
    char all[1024] = {100};
    strcpy(all + 1, text);
    fuzz_write_seed(behaviour + 16 * written++, all, strlen(text) + 1);
}

static void seed_post(int behaviour, const char *path, const char *headers, const char *body)
{
    char text[512];
    write_post(path, headers, body, text);
    seed(behaviour, text);
}

static void write_seeds(void)
{
    static const char json[] = "Content-Type: application/json\r\n";
    seed(WAITS, "GET / HTTP/1.1\r\n" HOST "\r\n");
    seed(WAITS, "GET /metrics HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\nHEAD /v2 HTTP/1.1\r\n" HOST "\r\n");
    seed(WAITS, "GET /v2/models/letters HTTP/1.1\r\n" HOST "\r\nGET /v1/models/sums HTTP/1.1\r\n" HOST "\r\n");
    seed(WAITS, "POST /v2/models/values/infer HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n4a\r\n" BODY
                "\r\n0\r\n\r\n");
    seed(WAITS | ASKS_TOKENS, "GET /v2 HTTP/1.1\r\nAuthorization: Bearer a-token-of-one\r\n\r\n");
    seed(WAITS, "PUT /%76%32 HTTP/1.1\r\n" HOST " folded\r\n\r\n");
    seed_post(WAITS, "/v2/models/values/infer", json, BODY);
    seed_post(
        WAITS, "/v2/models/values/infer", "Expect: 100-continue\r\nInference-Header-Content-Length: 93\r\n",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],\"parameters\":{\"binary_data_size\":8}}]}"
        "abcdefgh");
    seed_post(WAITS, "/v2/models/values/infer", json,
              "{\"parameters\":{\"sequence_id\":7,\"sequence_start\":true},\"inputs\":[{\"name\":\"x\",\"datatype\":"
              "\"FP32\",\"shape\":[1,2],\"data\":[1,2]}]}");
    seed_post(WAITS, "/v2/models/sums/infer", json,
              "{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"1+2\"]}]}");
    seed_post(WAITS | READS_LITTLE, "/v1/completions", json,
              "{\"model\":\"letters\",\"prompt\":\"the\",\"max_tokens\":9,\"stream\":true,\"n\":2}");
    seed_post(LEAVES, "/v1/completions", json,
              "{\"model\":\"letters\",\"prompt\":\"the\",\"max_tokens\":30,\"seed\":4}");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const tokens[] = {"a-token-of-one", "another", NULL};
    static const char rows[] = "id,a,b,y\n0,1,2,3\n0,2,3,1\n1,0,1,2\n1,2,2,2\n";
    static const char text[] = "the cat saw the dog, and the dog saw a cat.\n";
    const struct seqlstm_http_module *module;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[600];
    (void)argc, (void)argv;
    if (sl_http_find(&module, &err) != SEQLSTM_OK) {
        fprintf(stderr, "skipped: %s\n", err.message);
        exit(77);
    }
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    const char *folder = fuzz_make_folder();
    snprintf(path, sizeof path, "%s/train.csv", folder);
    fuzz_write_file(path, rows, sizeof rows - 1);
    snprintf(path, sizeof path, "%s/text.txt", folder);
    fuzz_write_file(path, text, sizeof text - 1);
    train(&served[OPEN], folder, values);
    train(&served[OPEN], folder, letters);
    train(&served[OPEN], folder, sums);
    train(&served[CLOSED], folder, values);
    start(&served[OPEN], NULL);
    start(&served[CLOSED], tokens);
    fuzz_require(atexit(stop_all) == 0);
    ask_well(known);
    write_seeds();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[1 << 20], again[sizeof known];
    static int calls;
    if (size < 2)
        return 0;
    const int client = connect_to(&served[data[0] & ASKS_TOKENS ? CLOSED : OPEN]);
    const size_t cut = (size - 2) * data[1] / 256;
    struct pollfd answer = {.fd = client, .events = POLLIN};
    send_all(client, data + 2, cut);
    send_all(client, data + 2 + cut, size - 2 - cut);
    if (data[0] & WAITS)
        poll(&answer, 1, PAUSE_MS);
    if (!(data[0] & LEAVES)) {
        shutdown(client, SHUT_WR);
        check_answer(text, read_all(client, data[0] & READS_LITTLE ? 7 : 4096, text, sizeof text - 1),
                     memmem(data, size, "HEAD", 4) == NULL);
    }
    hang_up(client);
    if (++calls % BETWEEN == 0) {
        ask_well(again);
        fuzz_require(strcmp(again, known) == 0);
    }
    return 0;
}
