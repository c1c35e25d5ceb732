/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the weights of a run. */
#include "session/weights/trained.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/value/hash.h"
#include "base/value/path.h"
#include "session/finding/mismatch.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checksums.h"
#include "train/checkpoint/weights.h"

seqlstm_status sl_session_require_trained(const struct sl_session *session, struct seqlstm_error *err)
{
    if (session->state != NULL)
        return SEQLSTM_OK;
    if (session->folder == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model has not been trained");
    SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND,
                 "%s has not been trained: nothing of its data was learned yet; `seqlstm resume %s` begins it",
                 session->folder, session->folder);
}

/* Adds a file to the hash; false: it is not there. */
static bool sign_file(const char *path, uint64_t *sign)
{
    struct stat facts;
    if (path == NULL || stat(path, &facts) != 0)
        return false;
    const uint64_t parts[] = {(uint64_t)facts.st_ino, (uint64_t)facts.st_size, (uint64_t)facts.st_mtim.tv_sec,
                              (uint64_t)facts.st_mtim.tv_nsec};
    *sign = sl_hash_combine(sl_hash_text(path), sl_hash_bytes(parts, sizeof parts, 0));
    return true;
}

/* Only the first, which is the newest, is needed. */
static void sign_checkpoint(void *context, const char *path)
{
    uint64_t *sign = context;
    if (*sign == 0)
        sign_file(path, sign);
}

uint64_t sl_session_sign_weights(const struct sl_session *session)
{
    uint64_t sign = 0;
    char *path = session->folder ? sl_path_join(session->folder, "final.safetensors") : NULL;
    char *folder = session->folder ? sl_path_join(session->folder, "checkpoints") : NULL;
    if (!sign_file(path, &sign) && folder)
        sl_checkpoint_folder_visit(folder, sign_checkpoint, &sign, NULL);
    free(path);
    free(folder);
    return sign;
}

seqlstm_status sl_session_load_weights(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->has_weights)
        return SEQLSTM_OK;
    if (session->folder == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model has not been trained");
    char *path = sl_path_join(session->folder, "final.safetensors");
    char *folder = sl_path_join(session->folder, "checkpoints");
    seqlstm_status status = SEQLSTM_OK;
    if (path == NULL || folder == NULL) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a path");
        goto out;
    }
    if (!sl_file_exists(path)) {
        struct sl_safetensors *file = NULL;
        free(path);
        path = NULL;
        if (sl_file_is_folder(folder))
            status = sl_checkpoint_open_latest(folder, session->options.log, &file, &path, err);
        sl_safetensors_close(file);
        if (status == SEQLSTM_OK && path == NULL)
            status = seqlstm_error_set(err, SEQLSTM_NOT_FOUND, __FILE__, __LINE__,
                                       "%s holds no weights yet: neither final.safetensors nor a checkpoint; "
                                       "`seqlstm resume %s` trains it",
                                       session->folder, session->folder);
        if (status == SEQLSTM_OK)
            sl_log_printf(session->options.log, SL_LOG_WARN, "the run is not finished; using %s", path);
    }
    if (status == SEQLSTM_OK)
        sl_checksums_compare_weights(session->folder, path, session->options.log);
    if (status == SEQLSTM_OK)
        status = sl_session_add_mismatch(session, path, sl_weights_load(session->params, path, 0, NULL, err), err);
    if (status == SEQLSTM_OK)
        status = sl_stored_quantization_check(session, err);
    session->has_weights = status == SEQLSTM_OK;
out:
    free(path);
    free(folder);
    return status;
}
