/* SPDX-License-Identifier: Apache-2.0 */
/* See emulated_stream.h. */
#include "emulated_stream.h"
#include "emulated_memory.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulation
{

namespace
{

void write_counts(const counts &c)
{
    const char *path = getenv("SEQLSTM_EMULATED_COUNTS");
    FILE *file = path ? fopen(path, "a") : nullptr;
    if (!file)
        return;
    fprintf(file,
            "{\"kernels\": %ld, \"copies\": %ld, \"fills\": %ld, \"graphs\": %ld, \"captured\": %ld, \"waits\": %ld}\n",
            c.kernels, c.copies, c.fills, c.graphs, c.captured, c.waits);
    fclose(file);
}

} // namespace

stream::stream(int ordinal) : device(ordinal), worker([this] { run(); })
{
}

stream::~stream()
{
    {
        std::lock_guard<std::mutex> guard(lock);
        stopping = true;
    }
    changed.notify_all();
    worker.join();
    write_counts(started);
}

void stream::run()
{
    std::unique_lock<std::mutex> guard(lock);
    bool open = false;
    for (;;) {
        if (queue.empty() && open) {
            device_memory.end_work();
            open = false;
        }
        if (queue.empty()) {
            changed.notify_all();
            if (stopping)
                return;
        }
        changed.wait(guard, [this] { return stopping || !queue.empty(); });
        if (queue.empty())
            continue;
        work job = std::move(queue.front());
        queue.pop_front();
        const bool failed = failure[0] != 0;
        guard.unlock();
        if (!open)
            device_memory.begin_work();
        open = true;
        char text[256] = "";
        const bool fine = failed || job(text, sizeof text);
        job = nullptr;
        guard.lock();
        if (!fine && failure[0] == 0)
            memcpy(failure, text, sizeof failure);
        done++;
    }
}

void stream::give(const char *name, work job, long counts::*kind)
{
    std::lock_guard<std::mutex> guard(lock);
    const int observed = kind == &counts::kernels ? 1 : kind == &counts::copies ? 2 : kind == &counts::fills ? 3 : 0;
    if (captured) {
        captured->push_back({std::move(job), name, observed});
        started.captured++;
        return;
    }
    started.*kind += 1;
    spent += kind == &counts::events || kind == &counts::graphs ? 0 : model.launch;
    queue.push_back(observe(observed, name, model.launch, std::move(job)));
    given++;
    changed.notify_all();
}

void stream::wait()
{
    std::unique_lock<std::mutex> guard(lock);
    const long mine = given;
    changed.wait(guard, [this, mine] { return done >= mine && queue.empty(); });
}

seqlstm_status stream::get_failure(seqlstm_error *err)
{
    std::lock_guard<std::mutex> guard(lock);
    if (failure[0] == 0)
        return SEQLSTM_OK;
    seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "an emulated kernel failed: %s", failure);
    if (err && err->struct_size >= sizeof *err)
        err->native_code = LAUNCH_FAILURE;
    return SEQLSTM_DEVICE;
}

void moment::happen()
{
    std::lock_guard<std::mutex> guard(lock);
    clock_gettime(CLOCK_MONOTONIC, &at);
    happened = true;
    changed.notify_all();
}

void moment::wait()
{
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [this] { return happened; });
}

} // namespace emulation
