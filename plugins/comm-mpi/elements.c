/* SPDX-License-Identifier: Apache-2.0 */
/* See elements.h. MPI does not know floats of 16 bits: they are reduced by functions of this file, in float32. */
#include "elements.h"

#include <stdbool.h>

#include <seqlstm/collectives.h>

#include "common/half.h"

MPI_Datatype mpi_elem_type(uint32_t dtype)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_FLOAT64:
        return MPI_DOUBLE;
    case SEQLSTM_DTYPE_INT32:
        return MPI_INT32_T;
    case SEQLSTM_DTYPE_INT8:
        return MPI_INT8_T;
    case SEQLSTM_DTYPE_UINT8:
        return MPI_UINT8_T;
    case SEQLSTM_DTYPE_FLOAT16:
    case SEQLSTM_DTYPE_BFLOAT16:
        return MPI_UINT16_T;
    default:
        return MPI_FLOAT;
    }
}

#define SUM(a, b)     ((a) + (b))
#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))
#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))

#define DEFINE(name, FROM, TO, OP)                                                                                     \
    static void name(void *from, void *to, int *count, MPI_Datatype *type)                                             \
    {                                                                                                                  \
        const uint16_t *x = from;                                                                                      \
        uint16_t *y = to;                                                                                              \
        (void)type;                                                                                                    \
        for (int i = 0; i < *count; i++)                                                                               \
            y[i] = TO(OP(FROM(x[i]), FROM(y[i])));                                                                     \
    }

DEFINE(sum_f16, gpu_from_f16, gpu_to_f16, SUM)
DEFINE(max_f16, gpu_from_f16, gpu_to_f16, MAXIMUM)
DEFINE(min_f16, gpu_from_f16, gpu_to_f16, MINIMUM)
DEFINE(sum_bf16, gpu_from_bf16, gpu_to_bf16, SUM)
DEFINE(max_bf16, gpu_from_bf16, gpu_to_bf16, MAXIMUM)
DEFINE(min_bf16, gpu_from_bf16, gpu_to_bf16, MINIMUM)

MPI_Op mpi_get_operation(uint32_t dtype, uint32_t reduction)
{
    static MPI_User_function *const functions[2][SEQLSTM_REDUCE_COUNT] = {{sum_f16, max_f16, min_f16},
                                                                          {sum_bf16, max_bf16, min_bf16}};
    static MPI_Op made[2][SEQLSTM_REDUCE_COUNT];
    static bool is_made[2][SEQLSTM_REDUCE_COUNT];
    const int narrow = dtype == SEQLSTM_DTYPE_BFLOAT16;
    if (dtype != SEQLSTM_DTYPE_FLOAT16 && dtype != SEQLSTM_DTYPE_BFLOAT16)
        return reduction == SEQLSTM_REDUCE_SUM ? MPI_SUM : reduction == SEQLSTM_REDUCE_MAX ? MPI_MAX : MPI_MIN;
    if (!is_made[narrow][reduction])
        is_made[narrow][reduction] =
            MPI_Op_create(functions[narrow][reduction], 1, &made[narrow][reduction]) == MPI_SUCCESS;
    return is_made[narrow][reduction] ? made[narrow][reduction] : MPI_OP_NULL;
}
