/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, checking, making and replacing files of the token cache. */
#include "data/read/token_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/absolute_path.h"
#include "base/system/cpu.h"
#include "base/system/file.h"
#include "base/system/file_error.h"
#include "base/value/hash.h"
#include "base/value/path.h"
#include "data/read/raw.h"
#include "data/read/raw_builder.h"
#include "data/read/token_build.h"

#define ENDS_BYTES 65536

/* NULL with SEQLSTM_OK: the environment names none. */
static seqlstm_status find_folder(const char *said, char **out, struct seqlstm_error *err)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"SEQLSTM_CACHE", "tokens"}, {"XDG_CACHE_HOME", "seqlstm/tokens"}, {"HOME", ".cache/seqlstm/tokens"}};
    *out = said ? strdup(said) : NULL;
    bool found = said != NULL;
    for (size_t i = 0; !found && i < sizeof places / sizeof *places; i++) {
        const char *value = getenv(places[i].variable);
        if (!value || !*value)
            continue;
        found = true;
        *out = sl_path_join(value, places[i].below);
    }
    if (found && !*out)
        return SL_DATA_NO_MEMORY(err);
    return found ? sl_file_make_folders(*out, err) : SEQLSTM_OK;
}

static seqlstm_status describe_source(const struct sl_token_cache_request *request, struct sl_token_source *out,
                                      struct seqlstm_error *err)
{
    struct stat status;
    seqlstm_status result = SEQLSTM_OK;
    char *bytes = malloc(ENDS_BYTES);
    int fd = open(request->text_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        result = sl_file_fail(err, errno, "cannot read", request->text_path);
    else if (!bytes)
        result = SL_DATA_NO_MEMORY(err);
    *out = (struct sl_token_source){0};
    if (result == SEQLSTM_OK) {
        out->size_bytes = status.st_size;
        out->mtime_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
        int64_t count = out->size_bytes < ENDS_BYTES ? out->size_bytes : ENDS_BYTES;
        for (int end = 0; end < 2 && result == SEQLSTM_OK; end++) {
            result =
                sl_token_read_at(fd, request->text_path, bytes, (size_t)count, end ? out->size_bytes - count : 0, err);
            out->ends_crc64 = sl_crc64(out->ends_crc64, bytes, (size_t)count);
        }
    }
    const struct sl_tokenizer *t = request->tokenizer;
    out->options = sl_hash_combine(SL_TOKEN_VERSION, (uint64_t)t->type);
    out->options = sl_hash_combine(out->options, t->lowercase ? 2 : 0); /* version 2 of sl_text_lower */
    out->options = sl_hash_combine(out->options, sl_tokenizer_has(t, SL_SPECIAL_BOS));
    out->options = sl_hash_combine(out->options, sl_tokenizer_has(t, SL_SPECIAL_EOS));
    out->options = sl_hash_combine(out->options, request->stream);
    free(bytes);
    if (fd >= 0)
        close(fd);
    return result;
}

/* Opens the file if it exists. *out_file is NULL where it must be made, or made anew. */
static seqlstm_status look(const char *path, const struct sl_token_source *source, struct sl_token_file **out_file,
                           struct seqlstm_error *err)
{
    seqlstm_status status = sl_token_file_open(path, true, out_file, err);
    if (status == SEQLSTM_NOT_FOUND || status == SEQLSTM_CORRUPT_DATA) {
        *out_file = NULL;
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(status);
    const struct sl_token_source *was = &sl_token_file_get_header(*out_file)->source;
    if (was->size_bytes == source->size_bytes && was->mtime_ns == source->mtime_ns &&
        was->ends_crc64 == source->ends_crc64 && was->options == source->options)
        return SEQLSTM_OK;
    sl_token_file_close(*out_file);
    *out_file = NULL;
    return SEQLSTM_OK;
}

static seqlstm_status make(const struct sl_token_cache_request *request, const struct sl_token_source *source,
                           const char *folder, const char *path, const char *temporary, struct sl_token_file **out_file,
                           struct seqlstm_error *err)
{
    int threads = request->threads > 0 ? request->threads : (int)sl_cpu_count();
    struct sl_token_build build = {.text_path = request->text_path,
                                   .tokenizer = request->tokenizer,
                                   .stream = request->stream,
                                   .source = *source,
                                   .threads = threads < SL_TOKEN_THREADS_MOST ? threads : SL_TOKEN_THREADS_MOST,
                                   .chunk_bytes = request->chunk_bytes};
    SEQLSTM_TRY(sl_token_build(&build, temporary, err));
    if (rename(temporary, path) != 0) {
        int code = errno;
        unlink(temporary);
        return sl_file_fail(err, code, "cannot put the token cache in place", path);
    }
    SEQLSTM_TRY(sl_file_sync_folder(folder, err));
    return sl_token_file_open(path, false, out_file, err);
}

/* While the lock is held no other process makes the file: an existing temporary is left from a crash. */
static seqlstm_status make_locked(const struct sl_token_cache_request *request, const struct sl_token_source *source,
                                  const char *folder, const char *path, struct sl_token_file **out_file,
                                  struct seqlstm_error *err)
{
    char *lock = NULL, *temporary = NULL;
    seqlstm_status status = SEQLSTM_OK;
    int fd = -1;
    if (asprintf(&lock, "%s.lock", path) < 0)
        return SL_DATA_NO_MEMORY(err);
    if (asprintf(&temporary, "%s.tmp", path) < 0) {
        free(lock);
        return SL_DATA_NO_MEMORY(err);
    }
    fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    if (fd < 0)
        status = sl_file_fail(err, errno, "cannot lock the token cache (SEQLSTM_CACHE moves it)", lock);
    if (status == SEQLSTM_OK)
        status = look(path, source, out_file, err);
    if (status == SEQLSTM_OK && !*out_file)
        status = make(request, source, folder, path, temporary, out_file, err);
    if (fd >= 0)
        close(fd);
    free(lock);
    free(temporary);
    return status;
}

seqlstm_status sl_token_cache_open(const struct sl_token_cache_request *request, struct sl_token_file **out_file,
                                   struct seqlstm_error *err)
{
    struct sl_token_source source;
    char *folder = NULL, *path = NULL, *text = NULL, name[SL_HASH_TEXT_BYTES];
    *out_file = NULL;
    seqlstm_status status = find_folder(request->folder, &folder, err);
    if (status != SEQLSTM_OK || !folder) {
        free(folder);
        return status;
    }
    status = describe_source(request, &source, err);
    if (status == SEQLSTM_OK)
        status = sl_path_real(request->text_path, &text, err);
    if (status == SEQLSTM_OK &&
        asprintf(&path, "%s/%s.tokens", folder,
                 sl_hash_write(sl_hash_combine(source.options, sl_hash_text(text)), name)) < 0) {
        path = NULL;
        status = SL_DATA_NO_MEMORY(err);
    }
    if (status == SEQLSTM_OK)
        status = look(path, &source, out_file, err);
    if (status == SEQLSTM_OK && !*out_file)
        status = make_locked(request, &source, folder, path, out_file, err);
    free(path);
    free(text);
    free(folder);
    return status;
}
