/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 that knows its version alone: FAKE_DRIVER_VERSION, as CUDA counts (12040 is 12.4). Whatever else the
 * runtime library asks for is not there. */
#include <stdlib.h>

__attribute__((visibility("default"))) int cuDriverGetVersion(int *out_version);

int cuDriverGetVersion(int *out_version)
{
    const char *version = getenv("FAKE_DRIVER_VERSION");
    *out_version = version ? atoi(version) : 0;
    return version ? 0 : 3; /* CUDA_ERROR_NOT_INITIALIZED */
}
