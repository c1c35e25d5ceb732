/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of an emulated device: a thread that does its work in order, or notes it while the stream is captured.
 *
 * Work starts late on purpose: a host that does not wait reads old numbers.
 *
 * An event happens on the stream, after the work before it. Another stream that waits for it does no work until then.
 *
 * With SEQLSTM_EMULATED_COUNTS=FILE, each stream adds a line to the file when it ends: what the host has started on
 * it. */
#ifndef EMULATED_STREAM_H
#define EMULATED_STREAM_H

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <time.h>
#include <vector>

#include "emulated_clock.h"

#include "common/cuda_runtime.h"

namespace emulation
{

enum {
    MEMORY_ALLOCATION = 2, /* cudaErrorMemoryAllocation */
    LAUNCH_FAILURE = 719   /* cudaErrorLaunchFailure */
};

struct node {
    work job;
    std::string name;
    int kind; /* for a profiler; 0: none of its kinds */
};
typedef std::shared_ptr<std::vector<node>> graph; /* a launch holds it until it has run */

/* What the host has started on a stream: each is a call of the driver. */
struct counts {
    long kernels = 0, copies = 0, fills = 0, graphs = 0, captured = 0, waits = 0, events = 0;
};

struct stream {
    const int device;
    std::mutex lock;
    std::condition_variable changed;
    std::deque<work> queue;
    graph captured; /* in progress */
    bool spoilt = false;
    counts started;
    long given = 0, done = 0;
    double spent = 0; /* nanoseconds on the device by the model, of what has been given */
    bool stopping = false;
    char failure[256] = "";
    std::thread worker;

    explicit stream(int ordinal);
    ~stream(); /* after all of its work */
    void give(const char *name, work job, long counts::*kind);
    /* Until what has been given is done. */
    void wait();
    /* SEQLSTM_DEVICE, with the reason, once some of its work has failed: what follows is dropped. */
    seqlstm_status get_failure(seqlstm_error *err);

  private:
    void run();
};

/* One recording of an event. */
struct moment {
    std::mutex lock;
    std::condition_variable changed;
    bool happened = false;
    timespec at = {};
    double spent = 0; /* by the stream, when it was recorded */

    void happen();
    void wait();
};

struct event {
    const int device;
    std::shared_ptr<moment> last; /* null: never recorded */
    stream *on;
};

} // namespace emulation

#endif
