/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the splits of a model. */
#include "session/data/read_data.h"

#include "session/data/notes.h"
#include "session/finding/finding.h"
#include "session/finding/missing.h"
#include "session/record/session_record.h"
#include "session/run_folder/sources.h"

/* An error of the data of a split, as findings. Files that are missing are found at once, in all splits. */
static seqlstm_status add_findings(struct sl_session *session, enum sl_split split, seqlstm_status status,
                                   struct seqlstm_error *err)
{
    const bool missing = status == SEQLSTM_NOT_FOUND && session->diagnostics != NULL;
    const bool found = missing && sl_session_find_missing_files(session) > 0;
    status = sl_session_blame_data(status, err);
    return status == SEQLSTM_OK || found ? status : sl_session_add_data_finding(session, split, status, err);
}

seqlstm_status sl_session_read_data(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->train_data)
        return SEQLSTM_OK;
    sl_log_printf(session->options.log, SL_LOG_STATUS, "reading the training data");
    seqlstm_status status =
        session->state ? sl_dataset_open(session->model, SL_SPLIT_TRAIN, session->state, &session->train_data, err)
                       : sl_dataset_open_train(session->model, &session->train_data, &session->state, err);
    if (status == SEQLSTM_OK) {
        sl_sources_check(session, SL_SPLIT_TRAIN);
        sl_session_note_split(session, SL_SPLIT_TRAIN, session->train_data);
    }
    return add_findings(session, SL_SPLIT_TRAIN, status, err);
}

seqlstm_status sl_session_read_split(struct sl_session *session, enum sl_split split, struct sl_dataset **out_data,
                                     struct seqlstm_error *err)
{
    return add_findings(session, split, sl_dataset_open(session->model, split, session->state, out_data, err), err);
}

seqlstm_status sl_session_open_split(struct sl_session *session, enum sl_split split, struct sl_dataset **out_data,
                                     struct seqlstm_error *err)
{
    if (session->state == NULL)
        SEQLSTM_TRY(sl_session_read_data(session, err));
    if (!sl_dataset_has_split(session->model, split))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the model file has no data.%s", sl_split_get_name(split));
    SEQLSTM_TRY(sl_session_read_split(session, split, out_data, err));
    /* a split cut from `train` is in the file of `train`, which reading the training data checks */
    bool cut = session->model->data.splits[split].origin == SL_SOURCE_FROM_TRAIN;
    if (!cut || session->train_data == NULL)
        sl_sources_check(session, cut ? SL_SPLIT_TRAIN : split);
    if (!session->noted[split])
        sl_session_note_split(session, split, *out_data);
    return SEQLSTM_OK;
}

seqlstm_status sl_session_scan_test(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_dataset *data = NULL;
    if (session->noted[SL_SPLIT_TEST] || !sl_dataset_has_split(session->model, SL_SPLIT_TEST))
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_session_read_split(session, SL_SPLIT_TEST, &data, err));
    sl_session_note_split(session, SL_SPLIT_TEST, data);
    session->noted[SL_SPLIT_TEST] = true;
    sl_dataset_close(data);
    return SEQLSTM_OK;
}
