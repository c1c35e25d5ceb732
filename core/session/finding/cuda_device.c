/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_device.h. */
#include "session/finding/cuda_device.h"

#include <stdlib.h>
#include <string.h>

#include "session/record/session_record.h"

/* As Slurm does with --gpus-per-task, each rank may be shown its own device, which then has number 0. */
static bool sees_one_device(void)
{
    const char *shown = getenv("CUDA_VISIBLE_DEVICES");
    return shown && shown[0] && !strchr(shown, ',');
}

int32_t sl_session_find_cuda(const struct sl_session *session)
{
    const struct sl_rank_identity *identity = session->options.identity;
    const int32_t given =
        session->model->device < SL_DEVICE_CUDA ? -1 : (int32_t)session->model->device - SL_DEVICE_CUDA;
    if (!identity || !sl_session_is_divided(session) || session->model->device == SL_DEVICE_CPU)
        return given;
    const bool own = identity->parent == 0 && sees_one_device();
    return (given > 0 ? given : 0) + (own ? 0 : identity->local_rank);
}
