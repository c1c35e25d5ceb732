/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 which only reports its version: FAKE_DRIVER_VERSION, as CUDA counts (12040 is 12.4). It has none of
 * the other functions that the runtime library asks for. */
#include <stdlib.h>

__attribute__((visibility("default"))) int cuDriverGetVersion(int *out_version);

int cuDriverGetVersion(int *out_version)
{
    const char *version = getenv("FAKE_DRIVER_VERSION");
    *out_version = version ? atoi(version) : 0;
    return version ? 0 : 3; /* CUDA_ERROR_NOT_INITIALIZED */
}
