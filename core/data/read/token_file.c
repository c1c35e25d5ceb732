/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, checking and reading files of token ids. */
#include "data/read/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/value/checked.h"
#include "base/system/file_error.h"
#include "base/value/hash.h"

#define BLOCK_BYTES (1 << 20)
#define MOST        ((int64_t)1 << 48) /* no section is larger */

struct sl_token_file {
    int fd;
    char *path;
    struct sl_token_header header;
    struct sl_token_layout layout;
};

_Static_assert(sizeof(struct sl_token_header) == 128, "the header has a fixed size");

static int64_t round_up(int64_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

bool sl_token_layout_make(const struct sl_token_header *h, struct sl_token_layout *out)
{
    if (h->tokens < 0 || h->lines < 0 || h->types < 0 || h->text_bytes < 0 || h->tokens > MOST || h->lines > MOST ||
        h->types > INT32_MAX || h->text_bytes > MOST || (h->id_bytes != 2 && h->id_bytes != 4))
        return false;
    out->ids = (int64_t)sizeof *h;
    out->line_begin = out->ids + round_up(h->tokens * h->id_bytes);
    out->count = out->line_begin + 8 * (h->lines + 1);
    out->text_begin = out->count + 8 * h->types;
    out->text = out->text_begin + 8 * (h->types + 1);
    out->size_bytes = out->text + round_up(h->text_bytes);
    return true;
}

seqlstm_status sl_token_read_at(int fd, const char *path, void *out, size_t bytes, int64_t offset,
                                struct seqlstm_error *err)
{
    char *to = out;
    while (bytes > 0) {
        ssize_t got = pread(fd, to, bytes, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return sl_file_fail(err, errno, "cannot read", path);
        if (got == 0)
            SEQLSTM_FAIL(err, SEQLSTM_IO, "%s: the file ends at byte %lld: it was cut short while it was read", path,
                         (long long)offset);
        to += got;
        offset += got;
        bytes -= (size_t)got;
    }
    return SEQLSTM_OK;
}

static seqlstm_status fail(const struct sl_token_file *file, const char *what, struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: %s", file->path, what);
}

static seqlstm_status check_header(struct sl_token_file *file, struct seqlstm_error *err)
{
    struct sl_token_header *h = &file->header;
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return sl_file_fail(err, errno, "cannot read", file->path);
    if (status.st_size < (off_t)sizeof *h)
        return fail(file, "too short for a token file", err);
    SEQLSTM_TRY(sl_token_read_at(file->fd, file->path, h, sizeof *h, 0, err));
    if (memcmp(h->magic, SL_TOKEN_MAGIC, sizeof h->magic) != 0)
        return fail(file, "no token file", err);
    if (h->version != SL_TOKEN_VERSION || h->byte_order != 0x01020304u)
        return fail(file, "a token file of another version or machine", err);
    if (h->header_crc64 != sl_crc64(0, h, sizeof *h - sizeof h->header_crc64))
        return fail(file, "the header is damaged", err);
    if (!sl_token_layout_make(h, &file->layout) || file->layout.size_bytes != status.st_size)
        return fail(file, "the size is not what the header says", err);
    return SEQLSTM_OK;
}

/* The checksum of the body, and no id beyond the types. */
static seqlstm_status prove_body(const struct sl_token_file *file, struct seqlstm_error *err)
{
    const struct sl_token_header *h = &file->header;
    int64_t ids_end = file->layout.ids + h->tokens * h->id_bytes;
    uint64_t crc = 0;
    uint32_t largest = 0;
    void *block = malloc(BLOCK_BYTES);
    seqlstm_status status = SEQLSTM_OK;
    if (!block)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to read %s", file->path);
    for (int64_t at = file->layout.ids; status == SEQLSTM_OK && at < file->layout.size_bytes; at += BLOCK_BYTES) {
        int64_t rest = file->layout.size_bytes - at, bytes = rest < BLOCK_BYTES ? rest : BLOCK_BYTES;
        status = sl_token_read_at(file->fd, file->path, block, (size_t)bytes, at, err);
        if (status != SEQLSTM_OK)
            break;
        crc = sl_crc64(crc, block, (size_t)bytes);
        int64_t inside = ids_end - at < bytes ? ids_end - at : bytes;
        const uint16_t *narrow = block;
        const uint32_t *wide = block;
        for (int64_t i = 0; h->id_bytes == 2 && i < inside / 2; i++)
            largest = narrow[i] > largest ? narrow[i] : largest;
        for (int64_t i = 0; h->id_bytes == 4 && i < inside / 4; i++)
            largest = wide[i] > largest ? wide[i] : largest;
    }
    free(block);
    SEQLSTM_TRY(status);
    if (crc != h->body_crc64 || (h->tokens > 0 && (int64_t)largest >= h->types))
        return fail(file, "the content is damaged", err);
    return SEQLSTM_OK;
}

seqlstm_status sl_token_file_open(const char *path, bool prove, struct sl_token_file **out_file,
                                  struct seqlstm_error *err)
{
    struct sl_token_file *file = calloc(1, sizeof *file);
    if (!file)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a file");
    file->path = strdup(path);
    file->fd = file->path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    seqlstm_status status = SEQLSTM_OK;
    if (!file->path)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a path");
    else if (file->fd < 0)
        status = sl_file_fail(err, errno, "cannot open", path);
    if (status == SEQLSTM_OK)
        status = check_header(file, err);
    if (status == SEQLSTM_OK && prove)
        status = prove_body(file, err);
    if (status != SEQLSTM_OK) {
        sl_token_file_close(file);
        return status;
    }
    *out_file = file;
    return SEQLSTM_OK;
}

void sl_token_file_close(struct sl_token_file *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file);
}

const struct sl_token_header *sl_token_file_get_header(const struct sl_token_file *file)
{
    return &file->header;
}

seqlstm_status sl_token_file_read_texts(const struct sl_token_file *file, struct sl_intern *out,
                                        struct seqlstm_error *err)
{
    const struct sl_token_header *h = &file->header;
    int64_t *begin = malloc(((size_t)h->types + 1) * sizeof *begin);
    char *text = malloc((size_t)h->text_bytes + 1);
    seqlstm_status status = SEQLSTM_OK;
    if (!begin || !text)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the vocabulary of %s",
                                   file->path);
    if (status == SEQLSTM_OK)
        status = sl_token_read_at(file->fd, file->path, begin, ((size_t)h->types + 1) * sizeof *begin,
                                  file->layout.text_begin, err);
    if (status == SEQLSTM_OK)
        status = sl_token_read_at(file->fd, file->path, text, (size_t)h->text_bytes, file->layout.text, err);
    for (int64_t i = 0; status == SEQLSTM_OK && i < h->types; i++) {
        if (begin[i] < 0 || begin[i + 1] < begin[i] || begin[i + 1] > h->text_bytes)
            status = fail(file, "the vocabulary is damaged", err);
        else if (sl_intern_add(out, text + begin[i], (size_t)(begin[i + 1] - begin[i])) != (int32_t)i)
            status = out->failed ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                                     "no memory for the vocabulary of %s", file->path)
                                 : fail(file, "the vocabulary is damaged", err);
    }
    free(begin);
    free(text);
    return status;
}

seqlstm_status sl_token_file_read_counts(const struct sl_token_file *file, int64_t *out, struct seqlstm_error *err)
{
    return sl_token_read_at(file->fd, file->path, out, (size_t)file->header.types * sizeof *out, file->layout.count,
                            err);
}

seqlstm_status sl_token_file_read_lines(const struct sl_token_file *file, int64_t first, int64_t count, int64_t *out,
                                        struct seqlstm_error *err)
{
    return sl_token_read_at(file->fd, file->path, out, (size_t)count * sizeof *out, file->layout.line_begin + 8 * first,
                            err);
}

seqlstm_status sl_token_file_read(const struct sl_token_file *file, int64_t first, int64_t count, int32_t *out,
                                  struct seqlstm_error *err)
{
    const struct sl_token_header *h = &file->header;
    if (first < 0 || count < 0 || first + count > h->tokens)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "tokens %lld to %lld of %lld", (long long)first, (long long)(first + count),
                     (long long)h->tokens);
    /* Narrow ids are read into the upper half of `out` and widened from the front, so that none is overwritten before
     * it is read. */
    char *bytes = (char *)out + (size_t)count * (4 - h->id_bytes);
    SEQLSTM_TRY(sl_token_read_at(file->fd, file->path, bytes, (size_t)count * h->id_bytes,
                                 file->layout.ids + first * h->id_bytes, err));
    for (int64_t i = 0; h->id_bytes == 2 && i < count; i++) {
        uint16_t id;
        memcpy(&id, bytes + 2 * i, sizeof id);
        out[i] = id;
    }
    for (int64_t i = 0; i < count; i++)
        if (out[i] < 0 || out[i] >= h->types)
            return fail(file, "an id is beyond the vocabulary: the file was changed while it was read", err);
    return SEQLSTM_OK;
}

int64_t sl_token_file_find_line(const struct sl_token_file *file, int64_t token)
{
    int64_t low = 0, high = file->header.lines, begin;
    while (low < high) { /* the first line that begins after the token */
        int64_t middle = low + (high - low) / 2;
        if (sl_token_file_read_lines(file, middle, 1, &begin, NULL) != SEQLSTM_OK)
            return 0;
        if (begin <= token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
