/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of kernels on the emulated device: its stream, and a line of TAP for each test. */
#ifndef SEQLSTM_TESTS_GPU_EMULATED_TESTS_H
#define SEQLSTM_TESTS_GPU_EMULATED_TESTS_H

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "common/cuda_runtime.h"

static void *stream;

struct emulated_test {
    std::string name;
    std::function<bool()> passes;
};

/* Returns the exit status of the program. */
static inline int run_tests(const std::vector<emulated_test> &tests)
{
    gpu_device devices[GPU_DEVICES_MAX];
    uint32_t count = 0;
    int failed = 0, number = 0;
    if (gpu_runtime_open(devices, &count, nullptr) != SEQLSTM_OK ||
        gpu_stream_create(0, &stream, nullptr) != SEQLSTM_OK)
        return 1;
    printf("1..%zu\n", tests.size());
    for (const emulated_test &test : tests) {
        const bool good = test.passes();
        printf("%sok %d - %s\n", good ? "" : "not ", ++number, test.name.c_str());
        failed += !good;
    }
    gpu_stream_destroy(0, stream);
    return failed != 0;
}

#endif
