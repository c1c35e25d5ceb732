/* SPDX-License-Identifier: Apache-2.0 */
/* What the emulated runtime (streams, memory, captures) and the emulated kernels share. */
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
};

/* Runs one launch to its end on the calling thread. Returns false after writing what was wrong to `out_failure`. */
bool run_launch(const launch_request &request, char *out_failure, size_t capacity);

} // namespace emulation

#endif
