/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a run begins with. */
#include "session/run_folder/setup.h"

#include "base/value/buf.h"
#include "session/record/session_record.h"
#include "session/run_folder/plan_json.h"
#include "session/run_folder/run_folder.h"
#include "session/run_folder/sources.h"

seqlstm_status sl_run_folder_write_config(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    seqlstm_status status = sl_run_folder_write_buf(session->folder, "config.yaml", &buf,
                                                    sl_model_write_config(session->model, 0, &buf, err), err);
    sl_buf_deinit(&buf);
    return status;
}

seqlstm_status sl_run_folder_write_setup(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    seqlstm_status status = SEQLSTM_OK;
    if (!session->is_run)
        status = sl_run_folder_write_config(session, err);
    if (status == SEQLSTM_OK && session->state)
        status = sl_run_folder_write_buf(session->folder, "data.json", &buf,
                                         sl_data_state_write(session->state, &buf, err), err);
    sl_buf_deinit(&buf);
    if (status == SEQLSTM_OK && !session->is_run && session->train_data)
        status = sl_sources_write(session, err);
    if (status == SEQLSTM_OK && session->train.plan) {
        status = sl_session_write_plan_json(session, session->train.plan, &buf, err);
        status = sl_run_folder_write_buf(session->folder, "plan.json", &buf, status, err);
    }
    sl_buf_deinit(&buf);
    return status;
}
