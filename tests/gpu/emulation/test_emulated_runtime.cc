/* SPDX-License-Identifier: Apache-2.0 */
/* Captures on the emulated device behave as on a real one: work is stored instead of done, launches do it with what
 * memory contains by then, and what a capture forbids is an error that spoils it. */
#include <cstdio>
#include <cstring>
#include <functional>

#include "common/cuda_runtime.h"
#include "emulated_runtime.h"

static void *stream, *a, *b, *pinned;

static bool fine(seqlstm_status status)
{
    return status == SEQLSTM_OK;
}

static bool put(unsigned char value)
{
    return fine(gpu_fill(0, stream, a, value, 64, nullptr));
}

/* The first byte of b. */
static int get()
{
    unsigned char byte = 0;
    return fine(gpu_copy(0, stream, SEQLSTM_COPY_TO_HOST, &byte, b, 1, nullptr)) ? byte : -1;
}

static bool keep_copy(void **out_capture)
{
    return fine(gpu_capture_begin(0, stream, nullptr)) && gpu_is_capturing(0, stream) &&
           fine(gpu_copy(0, stream, SEQLSTM_COPY_WITHIN, b, a, 64, nullptr)) &&
           fine(gpu_capture_end(0, stream, out_capture, nullptr)) && !gpu_is_capturing(0, stream);
}

static bool check_launch()
{
    void *graph = nullptr;
    if (!put(1) || !fine(gpu_fill(0, stream, b, 0, 64, nullptr)) || !keep_copy(&graph) || get() != 0)
        return false;
    bool good = put(2) && fine(gpu_capture_launch(0, graph, stream, nullptr)) && get() == 2;
    good = good && put(3) && get() == 2 && fine(gpu_capture_launch(0, graph, stream, nullptr)) && get() == 3;
    gpu_capture_destroy(0, graph);
    return good;
}

/* A capture names a buffer that has been released: it finds no old numbers there. */
static bool check_stale_address()
{
    void *old = nullptr, *graph = nullptr, *first = a;
    if (!fine(gpu_allocate(0, SEQLSTM_MEMORY_DEVICE, 64, &old, nullptr)))
        return false;
    a = old;
    bool good = put(5) && keep_copy(&graph) && fine(gpu_capture_launch(0, graph, stream, nullptr)) && get() == 5;
    gpu_release(0, SEQLSTM_MEMORY_DEVICE, old);
    good = good && fine(gpu_capture_launch(0, graph, stream, nullptr)) && get() == 0xFF;
    gpu_capture_destroy(0, graph);
    a = first;
    return good;
}

/* `call` is an error inside a capture, which is then lost; afterwards the stream works as before. */
static bool check_forbidden(const std::function<bool()> &call)
{
    void *graph = &graph;
    if (!fine(gpu_capture_begin(0, stream, nullptr)))
        return false;
    const bool refused = !call();
    const bool spoilt = !fine(gpu_capture_end(0, stream, &graph, nullptr)) && graph == nullptr;
    return refused && spoilt && check_launch();
}

/* Pinned memory is read when the copy runs. */
static bool check_pinned()
{
    memset(pinned, 7, 64);
    bool good = fine(gpu_copy(0, stream, SEQLSTM_COPY_TO_DEVICE, b, pinned, 64, nullptr));
    return good && get() == 7;
}

int main()
{
    unsigned char host[64] = {0};
    void *event = nullptr, *room = nullptr;
    gpu_device devices[GPU_DEVICES_MAX];
    uint32_t count = 0;
    if (!fine(gpu_runtime_open(devices, &count, nullptr)) || !fine(gpu_stream_create(0, &stream, nullptr)) ||
        !fine(gpu_allocate(0, SEQLSTM_MEMORY_DEVICE, 64, &a, nullptr)) ||
        !fine(gpu_allocate(0, SEQLSTM_MEMORY_DEVICE, 64, &b, nullptr)) ||
        !fine(gpu_allocate(0, SEQLSTM_MEMORY_PINNED, 64, &pinned, nullptr)) ||
        !fine(gpu_event_create(0, &event, nullptr)))
        return 1;
    const struct {
        const char *name;
        std::function<bool()> test;
    } tests[] = {
        {"a launch does the work with what memory holds", check_launch},
        {"an address that is gone", check_stale_address},
        {"a copy out of pinned memory", check_pinned},
        {"waiting", [] { return check_forbidden([] { return fine(gpu_stream_synchronize(0, stream, nullptr)); }); }},
        {"allocating",
         [&] {
             return check_forbidden([&] { return fine(gpu_allocate(0, SEQLSTM_MEMORY_DEVICE, 64, &room, nullptr)); });
         }},
        {"a copy to the host",
         [&] {
             return check_forbidden(
                 [&] { return fine(gpu_copy(0, stream, SEQLSTM_COPY_TO_HOST, host, b, 64, nullptr)); });
         }},
        {"a copy from the host",
         [&] {
             return check_forbidden(
                 [&] { return fine(gpu_copy(0, stream, SEQLSTM_COPY_TO_DEVICE, b, host, 64, nullptr)); });
         }},
        {"an event",
         [&] { return check_forbidden([&] { return fine(gpu_event_record(0, event, stream, nullptr)); }); }},
        {"a capture within",
         [] { return check_forbidden([] { return fine(gpu_capture_begin(0, stream, nullptr)); }); }},
        {"the legacy stream",
         [] { return check_forbidden([] { return emulation::launch("none", nullptr, 1, 1, 0, false, [] {}) == 0; }); }},
    };
    int failed = 0, number = 0;
    printf("1..%d\n", (int)(sizeof tests / sizeof *tests));
    for (const auto &one : tests) {
        const bool good = one.test();
        failed += !good;
        printf("%sok %d - %s\n", good ? "" : "not ", ++number, one.name);
    }
    gpu_event_destroy(0, event);
    gpu_release(0, SEQLSTM_MEMORY_PINNED, pinned);
    gpu_release(0, SEQLSTM_MEMORY_DEVICE, a);
    gpu_release(0, SEQLSTM_MEMORY_DEVICE, b);
    gpu_stream_destroy(0, stream);
    return failed > 0;
}
