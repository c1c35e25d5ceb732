/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the classes of CUDA devices. */
#include <stdlib.h>
#include <string.h>

#include "common/cuda_domain.h"

int32_t gpu_parse_class(const char *device_class)
{
    if (strncmp(device_class, "cuda:sm_", 8) != 0 || device_class[8] < '1' || device_class[8] > '9')
        return 0; /* strtol would skip spaces and take a sign */
    char *end;
    long capability = strtol(device_class + 8, &end, 10);
    return *end == 0 && capability < 1000 ? (int32_t)capability : 0;
}
