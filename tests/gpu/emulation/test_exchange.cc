/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange that latencies.cu times: every store of a step arrives before it is read, for each cluster. */
#include <cstdio>

#include "cuda-generic/device/device.h"

/* A wait that is left out lets a block read what has not arrived. */
static bool planted;
#include "cuda-generic/device/mbarrier.h"
#define gpu_mbarrier_wait(barrier, parity) (planted ? (void)0 : gpu_mbarrier_wait(barrier, parity))
#include "../exchange.h"
#undef gpu_mbarrier_wait

#include "emulated_runtime.h"

enum { STEPS = 7, CLUSTERS = 2, RUNS = 2 /* stores arrive at once, then late */ };

/* Does each step of each run find what belongs to it? */
static bool run(int blocks, int stores)
{
    uint32_t wrong = 0;
    uint32_t *const at = &wrong;
    for (int k = 0; k < RUNS; k++) {
        char failure[256] = "";
        emulation::launch_request request;
        request.grid = dim3((unsigned)(CLUSTERS * blocks));
        request.block = dim3(EXCHANGE_THREADS);
        request.shared_bytes = count_exchange_bytes(stores);
        request.cooperative = false;
        request.cluster = (unsigned)blocks;
        request.kernel = [=] { exchange(blocks, stores, STEPS, at); };
        if (!emulation::run_launch(request, failure, sizeof failure)) {
            printf("# %s\n", failure);
            return false;
        }
    }
    return wrong == 0;
}

int main()
{
    int failed = 0, number = 0;
    printf("1..13\n");
    for (int blocks = 2; blocks <= EXCHANGE_BLOCKS_MOST; blocks *= 2)
        for (int stores = EXCHANGE_THREADS; stores <= 4 * EXCHANGE_THREADS; stores *= 2) {
            const bool fine = run(blocks, stores);
            failed |= !fine;
            printf("%sok %d - %d blocks, %d stores\n", fine ? "" : "not ", ++number, blocks, stores);
        }
    planted = true;
    const bool fine = !run(4, EXCHANGE_THREADS);
    failed |= !fine;
    printf("%sok %d - planted: no waits\n", fine ? "" : "not ", ++number);
    return failed;
}
