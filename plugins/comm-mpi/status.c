/* SPDX-License-Identifier: Apache-2.0 */
/* The time, and what calls of MPI return. */
#include <time.h>

#include "connection.h"

int64_t mpi_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

seqlstm_status mpi_check(int code, const char *what, struct seqlstm_error *err)
{
    char text[MPI_MAX_ERROR_STRING + 1] = {0};
    int length = 0;
    if (code == MPI_SUCCESS)
        return SEQLSTM_OK;
    MPI_Error_string(code, text, &length);
    SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "MPI failed in %s: %.300s", what, text);
}
