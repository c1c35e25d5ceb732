/* SPDX-License-Identifier: Apache-2.0 */
/* plugins/common/cuda_runtime.h without a device: streams are threads (emulated_stream.h), memory is an arena that only
 * running work may access (emulated_memory.h), captures are lists of work. A copy out of pinned memory reads it when
 * the copy runs.
 *
 * A stream that is being captured stores its work instead of doing it. A launch of the capture does the work with what
 * memory contains by then. As with cudaStreamCaptureModeThreadLocal, anything that waits, allocates or releases
 * meanwhile fails and spoils the capture. So does a copy from or to the host, which the contract forbids and a device
 * would do with old addresses.
 *
 * With SEQLSTM_EMULATED_SHARED=BYTES a block has no more shared memory than that, with SEQLSTM_EMULATED_DEVICES=N there
 * are so many devices. With SEQLSTM_EMULATED_MULTIPROCESSORS=N each has so many multiprocessors, with
 * SEQLSTM_EMULATED_COOPERATIVE=0 none runs a grid whose blocks wait for each other.
 *
 * Kernels start on streams of the current device alone: that of the last call of this thread which names one.
 *
 * Each call can be made to fail in its turn (emulated_fail_at in emulated_device.h). A kernel then fails as on a device
 * with an error; in a capture, for want of memory, which spoils the capture.
 *
 * With SEQLSTM_EMULATED_STALE, copies out of pinned memory are ignored once a capture has been launched. This is a
 * device which keeps old values, to test the tests.
 *
 * With SEQLSTM_EMULATED_NODES=FILE, each capture adds a line with its nodes, in order. */
#include "emulated_runtime.h"
#include "emulated_device.h"
#include "emulated_memory.h"
#include "emulated_stream.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "common/cuda_runtime.h"

using namespace emulation;

namespace
{

enum { INVALID_HANDLE = 400, CAPTURE_UNSUPPORTED = 900, SHARED_MOST = 227 * 1024 };

/* ---- memory --------------------------------------------------------------------------------------------- */

/* Of a block. */
size_t get_shared()
{
    const char *text = getenv("SEQLSTM_EMULATED_SHARED");
    return text ? strtoul(text, nullptr, 10) : (size_t)SHARED_MOST;
}

/* Ranges of pinned memory. */
std::mutex pinned_lock;
std::map<const unsigned char *, size_t> pinned;

bool is_pinned(const void *pointer)
{
    std::lock_guard<std::mutex> guard(pinned_lock);
    const unsigned char *at = static_cast<const unsigned char *>(pointer);
    auto after = pinned.upper_bound(at);
    return after != pinned.begin() && at < std::prev(after)->first + std::prev(after)->second;
}

/* ---- streams -------------------------------------------------------------------------------------------- */

std::atomic<bool> launched; /* any capture */

thread_local stream *capturing; /* by this thread */

std::atomic<int> alive; /* streams, events, captures */

/* ---- failing on purpose --------------------------------------------------------------------------------- */

std::atomic<int> calls_left; /* the call that takes the last one fails; 0: none does */
std::atomic<bool> has_failed;

bool fails_in_turn()
{
    const bool now = calls_left > 0 && --calls_left == 0;
    has_failed = has_failed || now;
    return now;
}

thread_local int current; /* device */

/* `err` is NULL in calls that return no reason: these never fail. */
seqlstm_status try_call(int ordinal, const char *what, seqlstm_error *err)
{
    current = ordinal;
    if (!err || !fails_in_turn())
        return SEQLSTM_OK;
    seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "%s: told to fail", what);
    if (err->struct_size >= sizeof *err)
        err->native_code = LAUNCH_FAILURE;
    return SEQLSTM_DEVICE;
}

/* Fails for what no capture allows. */
seqlstm_status forbid(const char *what, seqlstm_error *err)
{
    if (!capturing)
        return SEQLSTM_OK;
    capturing->spoilt = true;
    seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "%s while a stream is captured", what);
    if (err && err->struct_size >= sizeof *err)
        err->native_code = CAPTURE_UNSUPPORTED;
    return SEQLSTM_DEVICE;
}

void write_nodes(const std::vector<node> &nodes)
{
    const char *path = getenv("SEQLSTM_EMULATED_NODES");
    FILE *file = path ? fopen(path, "a") : nullptr;
    if (!file)
        return;
    for (size_t k = 0; k < nodes.size(); k++)
        fprintf(file, "%s\"%s\"", k ? ", " : "[", nodes[k].name.c_str());
    fprintf(file, "]\n");
    fclose(file);
}

} // namespace

namespace emulation
{

int launch(const char *name, void *native, dim3 grid, dim3 block, size_t shared_bytes, bool cooperative,
           std::function<void()> kernel, unsigned cluster)
{
    const size_t threads = (size_t)block.x * block.y * block.z;
    if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 ||
        grid.z > 65535 || shared_bytes > get_shared() || cluster == 0 || cluster > 16 || grid.x % cluster != 0)
        return 9;  /* cudaErrorInvalidConfiguration */
    if (!native) { /* the legacy stream, which no call of ours may use */
        forbid("the legacy stream", nullptr);
        return INVALID_HANDLE;
    }
    if (static_cast<stream *>(native)->device != current)
        return INVALID_HANDLE;
    if (fails_in_turn())
        return forbid("a kernel without memory", nullptr) == SEQLSTM_OK ? LAUNCH_FAILURE : MEMORY_ALLOCATION;
    launch_request request = {grid, block, shared_bytes, cooperative, std::move(kernel), cluster};
    static_cast<stream *>(native)->give(
        name, [request](char *failure, size_t capacity) { return run_launch(request, failure, capacity); },
        &counts::kernels);
    return 0;
}

} // namespace emulation

void emulated_submit(void *native, emulated_work_fn *work_fn, void *context, void (*release)(void *context))
{
    std::shared_ptr<void> kept(context, release);
    static_cast<stream *>(native)->give(
        "library",
        [work_fn, kept](char *failure, size_t capacity) { return work_fn(kept.get(), failure, capacity) == 0; },
        &counts::kernels);
}

int emulated_get_device(const void *native)
{
    return native ? static_cast<const stream *>(native)->device : current;
}

int emulated_spoil(const char *what)
{
    return forbid(what, nullptr) != SEQLSTM_OK;
}

int emulated_owns(const void *pointer, size_t bytes)
{
    return device_memory.owns(pointer, bytes);
}

void emulated_fail_at(int n)
{
    has_failed = false;
    calls_left = n;
}

int emulated_disarm(void)
{
    calls_left = 0;
    return has_failed;
}

int emulated_count_alive(void)
{
    return alive;
}

size_t emulated_count_memory(void)
{
    return device_memory.count();
}

/* ---- the layer -------------------------------------------------------------------------------------------- */

seqlstm_status gpu_runtime_open(gpu_device *devices, uint32_t *out_count, seqlstm_error *err)
{
    const char *absent = getenv("SEQLSTM_EMULATED_ABSENT");
    if (absent)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s", absent);
    memset(devices, 0, sizeof *devices);
    devices->major = 9;
    const char *multiprocessors = getenv("SEQLSTM_EMULATED_MULTIPROCESSORS");
    devices->multiprocessors = multiprocessors ? atoi(multiprocessors) : 16;
    const char *cooperative = getenv("SEQLSTM_EMULATED_COOPERATIVE");
    devices->cooperative = cooperative ? atoi(cooperative) : 1;
    devices->shared_bytes = (int32_t)get_shared();
    devices->memory_bytes = emulated_memory::get_limit();
    snprintf(devices->name, sizeof devices->name, "a GPU emulated with fibers");
    const char *uuid = getenv("SEQLSTM_EMULATED_UUID");
    snprintf(devices->uuid, sizeof devices->uuid, "%s", uuid ? uuid : "emulated");
    *out_count = 1;
    const char *wanted = getenv("SEQLSTM_EMULATED_DEVICES");
    const int count = wanted ? atoi(wanted) : 0;
    for (int k = 0; k < count && k < GPU_DEVICES_MAX; k++) {
        devices[k] = devices[0];
        devices[k].ordinal = k;
        snprintf(devices[k].name, sizeof devices[k].name, "emulated GPU number %d", k);
        snprintf(devices[k].uuid, sizeof devices[k].uuid, "emulated-%d", k);
        *out_count = (uint32_t)k + 1;
    }
    return SEQLSTM_OK;
}

seqlstm_status gpu_use(int32_t ordinal, seqlstm_error *err)
{
    return try_call(ordinal, "the choice of a device", err);
}

seqlstm_status gpu_check_launch(int32_t, int code, const char *what, seqlstm_error *err)
{
    if (code == 0)
        return SEQLSTM_OK;
    const seqlstm_status status = code == MEMORY_ALLOCATION ? SEQLSTM_NO_MEMORY : SEQLSTM_DEVICE;
    seqlstm_error_set(err, status, __FILE__, __LINE__, "%s: the launch is refused (%d)", what, code);
    if (err && err->struct_size >= sizeof *err)
        err->native_code = code;
    return status;
}

seqlstm_status gpu_allocate(int32_t ordinal, uint32_t kind, uint64_t bytes, void **out_pointer, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "an allocation", err));
    SEQLSTM_TRY(forbid("an allocation", err));
    const size_t rounded = ((size_t)bytes + 63) / 64 * 64;
    void *pointer =
        kind == SEQLSTM_MEMORY_DEVICE ? device_memory.allocate((size_t)bytes, ordinal) : aligned_alloc(64, rounded);
    if (!pointer)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %llu bytes on the emulated device",
                     (unsigned long long)bytes);
    if (kind == SEQLSTM_MEMORY_PINNED) {
        std::lock_guard<std::mutex> guard(pinned_lock);
        pinned[static_cast<unsigned char *>(pointer)] = rounded;
    }
    *out_pointer = pointer;
    return SEQLSTM_OK;
}

void gpu_release(int32_t ordinal, uint32_t kind, void *pointer)
{
    if (!pointer)
        return;
    current = ordinal;
    forbid("a release", nullptr);
    if (kind == SEQLSTM_MEMORY_DEVICE) {
        device_memory.release(pointer);
        return;
    }
    std::lock_guard<std::mutex> guard(pinned_lock);
    pinned.erase(static_cast<unsigned char *>(pointer));
    free(pointer);
}

seqlstm_status gpu_memory_in_use(int32_t, uint64_t *out_bytes, seqlstm_error *)
{
    *out_bytes = device_memory.count();
    return SEQLSTM_OK;
}

seqlstm_status gpu_copy(int32_t ordinal, void *native, uint32_t direction, void *to, const void *from, uint64_t bytes,
                        seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "a copy", err));
    stream *s = static_cast<stream *>(native);
    SEQLSTM_TRY(s->get_failure(err));
    if (direction != SEQLSTM_COPY_WITHIN)
        SEQLSTM_TRY(forbid("a copy from or to the host", err));
    if (direction == SEQLSTM_COPY_TO_DEVICE && !is_pinned(from)) {
        std::vector<unsigned char> staged(static_cast<const unsigned char *>(from),
                                          static_cast<const unsigned char *>(from) + bytes);
        s->give(
            "copy",
            [staged, to](char *, size_t) {
                memcpy(to, staged.data(), staged.size());
                return true;
            },
            &counts::copies);
        return SEQLSTM_OK;
    }
    if (direction == SEQLSTM_COPY_TO_DEVICE && launched && getenv("SEQLSTM_EMULATED_STALE"))
        return SEQLSTM_OK;
    s->give(
        "copy",
        [to, from, bytes](char *, size_t) {
            memcpy(to, from, bytes);
            return true;
        },
        &counts::copies);
    return direction == SEQLSTM_COPY_TO_HOST ? gpu_stream_synchronize(ordinal, native, err) : SEQLSTM_OK;
}

seqlstm_status gpu_copy_peer(int32_t ordinal, void *native, void *to, int32_t peer, const void *from, uint64_t bytes,
                             seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "a copy between devices", err));
    stream *s = static_cast<stream *>(native);
    SEQLSTM_TRY(s->get_failure(err));
    SEQLSTM_TRY(forbid("a copy between devices", err));
    if (s->device != ordinal || !device_memory.owns(to, bytes, ordinal) || !device_memory.owns(from, bytes, peer))
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "a copy from device %d to device %d with a stream or memory of another", peer,
                     ordinal);
    s->give(
        "copy",
        [to, from, bytes](char *, size_t) {
            memcpy(to, from, bytes);
            return true;
        },
        &counts::copies);
    return SEQLSTM_OK;
}

seqlstm_status gpu_fill(int32_t ordinal, void *native, void *to, uint32_t value, uint64_t bytes, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "a fill", err));
    SEQLSTM_TRY(static_cast<stream *>(native)->get_failure(err));
    static_cast<stream *>(native)->give(
        "fill",
        [to, value, bytes](char *, size_t) {
            memset(to, (int)value, bytes);
            return true;
        },
        &counts::fills);
    return SEQLSTM_OK;
}

seqlstm_status gpu_stream_create(int32_t ordinal, void **out_stream, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "a stream", err));
    alive++;
    *out_stream = new stream(ordinal);
    return SEQLSTM_OK;
}

void gpu_stream_destroy(int32_t ordinal, void *native)
{
    if (!native)
        return;
    current = ordinal;
    static_cast<stream *>(native)->wait();
    delete static_cast<stream *>(native);
    alive--;
}

seqlstm_status gpu_stream_synchronize(int32_t ordinal, void *native, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "waiting for a stream", err));
    SEQLSTM_TRY(forbid("waiting for a stream", err));
    static_cast<stream *>(native)->started.waits++;
    static_cast<stream *>(native)->wait();
    return static_cast<stream *>(native)->get_failure(err);
}

seqlstm_status gpu_event_create(int32_t ordinal, void **out_event, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "an event", err));
    alive++;
    *out_event = new event{ordinal, nullptr, nullptr};
    return SEQLSTM_OK;
}

void gpu_event_destroy(int32_t, void *native)
{
    alive -= native != nullptr;
    delete static_cast<event *>(native);
}

seqlstm_status gpu_event_record(int32_t ordinal, void *native, void *on, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "an event", err));
    SEQLSTM_TRY(forbid("an event", err));
    event *e = static_cast<event *>(native);
    if (e->device != static_cast<stream *>(on)->device)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "an event of device %d on a stream of device %d", e->device,
                     static_cast<stream *>(on)->device);
    e->last = std::make_shared<moment>();
    e->on = static_cast<stream *>(on);
    e->last->spent = e->on->spent;
    /* It happens when the work is done or, on a stream that has failed, dropped. */
    const std::shared_ptr<moment> now(e->last.get(), [kept = e->last](moment *m) { m->happen(); });
    e->on->give(
        "event", [now](char *, size_t) { return now != nullptr; }, &counts::events);
    return SEQLSTM_OK;
}

seqlstm_status gpu_event_wait(int32_t ordinal, void *native, void *waiting, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "waiting for an event", err));
    SEQLSTM_TRY(forbid("waiting for an event", err));
    const std::shared_ptr<moment> last = static_cast<event *>(native)->last;
    if (last)
        static_cast<stream *>(waiting)->give(
            "wait",
            [last](char *, size_t) {
                last->wait();
                return true;
            },
            &counts::events);
    return SEQLSTM_OK;
}

seqlstm_status gpu_event_synchronize(int32_t ordinal, void *native, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "waiting for an event", err));
    const event *e = static_cast<event *>(native);
    SEQLSTM_TRY(forbid("waiting for an event", err));
    if (!e->last)
        return SEQLSTM_OK;
    e->last->wait();
    return e->on->get_failure(err);
}

seqlstm_status gpu_event_query(int32_t ordinal, void *native, bool *out_happened, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "a question", err));
    const event *e = static_cast<event *>(native);
    *out_happened = true;
    if (!e->last)
        return SEQLSTM_OK;
    {
        std::lock_guard<std::mutex> guard(e->last->lock);
        *out_happened = e->last->happened;
    }
    return *out_happened ? e->on->get_failure(err) : SEQLSTM_OK;
}

seqlstm_status gpu_event_elapsed(int32_t, void *begin, void *end, double *out_ns, seqlstm_error *err)
{
    moment *a = static_cast<event *>(begin)->last.get(), *b = static_cast<event *>(end)->last.get();
    if (!a || !b || !a->happened || !b->happened)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the time of an event that has not happened");
    if (model.known) {
        *out_ns = b->spent - a->spent;
        return SEQLSTM_OK;
    }
    *out_ns = (double)(b->at.tv_sec - a->at.tv_sec) * 1e9 + (double)(b->at.tv_nsec - a->at.tv_nsec);
    return SEQLSTM_OK;
}

bool gpu_is_capturing(int32_t, void *native)
{
    return capturing && capturing == native;
}

seqlstm_status gpu_capture_begin(int32_t ordinal, void *native, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "a capture", err));
    stream *s = static_cast<stream *>(native);
    SEQLSTM_TRY(s->get_failure(err));
    SEQLSTM_TRY(forbid("another capture", err));
    std::lock_guard<std::mutex> guard(s->lock);
    s->captured = std::make_shared<std::vector<node>>();
    s->spoilt = false;
    capturing = s;
    return SEQLSTM_OK;
}

seqlstm_status gpu_capture_end(int32_t ordinal, void *native, void **out_capture, seqlstm_error *err)
{
    stream *s = static_cast<stream *>(native);
    std::lock_guard<std::mutex> guard(s->lock);
    graph made = std::move(s->captured);
    s->captured = nullptr;
    *out_capture = nullptr;
    if (capturing != s || s->spoilt) {
        capturing = capturing == s ? nullptr : capturing;
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the capture is spoilt");
    }
    capturing = nullptr;
    SEQLSTM_TRY(try_call(ordinal, "the end of a capture", err));
    alive++;
    write_nodes(*made);
    *out_capture = new graph(std::move(made));
    return SEQLSTM_OK;
}

seqlstm_status gpu_capture_launch(int32_t ordinal, void *native_graph, void *native, seqlstm_error *err)
{
    SEQLSTM_TRY(try_call(ordinal, "the launch of a capture", err));
    SEQLSTM_TRY(static_cast<stream *>(native)->get_failure(err));
    const graph list = *static_cast<graph *>(native_graph);
    static_cast<stream *>(native)->spent += model.node * (double)list->size();
    launched = true;
    std::vector<work> jobs;
    for (const node &one : *list)
        jobs.push_back(observe(one.kind, one.name.c_str(), model.node, one.job));
    static_cast<stream *>(native)->give(
        "graph",
        [jobs](char *failure, size_t capacity) {
            for (const work &job : jobs)
                if (!job(failure, capacity))
                    return false;
            return true;
        },
        &counts::graphs);
    return SEQLSTM_OK;
}

void gpu_capture_destroy(int32_t, void *native_graph)
{
    if (native_graph)
        forbid("the end of a graph", nullptr);
    alive -= native_graph != nullptr;
    delete static_cast<graph *>(native_graph);
}
