/* SPDX-License-Identifier: Apache-2.0 */
/* What the emulated runtime (streams, memory, graphs) and the emulated kernels know of each other. */
#ifndef SEQLSTM_TESTS_GPU_EMULATED_RUNTIME_H
#define SEQLSTM_TESTS_GPU_EMULATED_RUNTIME_H

#include "emulation.h"

namespace emulation
{

struct launch_request {
    dim3 grid, block;
    size_t shared_bytes;
    bool cooperative;
    std::function<void()> kernel;
    unsigned cluster = 1; /* blocks that run together */
    bool tickets = false; /* blocks may wait for others */
};

/* Runs one launch to its end on the calling thread. False: `out_failure` says what was wrong with it. */
bool run_launch(const launch_request &request, char *out_failure, size_t capacity);

} // namespace emulation

#endif
