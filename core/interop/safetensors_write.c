/* SPDX-License-Identifier: Apache-2.0 */
/* Writing safetensors files: header in memory, arrays streamed. See safetensors.h. */
#include "interop/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"
#include "base/value/checked.h"
#include "base/system/file_writer.h"
#include "base/value/hash.h"
#include "base/value/json_write.h"
#include "base/value/text.h"
#include "interop/safetensors_private.h"

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names are valid UTF-8 and distinct. `names` is reordered. */
static seqlstm_status check_names(const char **names, size_t count, const char *what, struct seqlstm_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!sl_text_is_utf8(names[i], strlen(names[i]), NULL))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s %zu is not UTF-8", what, i);
    qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s `%s` stands twice", what, names[i]);
    return SEQLSTM_OK;
}

static seqlstm_status check_content(const struct sl_safetensors_content *content, struct seqlstm_error *err)
{
    size_t entries = (size_t)content->entry_count, texts = (size_t)content->text_count;
    const char **names = malloc((entries + texts + 2) * sizeof *names);
    if (!names)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %zu names", entries + texts);
    for (size_t i = 0; i < entries; i++)
        names[i] = content->entries[i].name;
    names[entries] = SL_SAFETENSORS_METADATA;
    seqlstm_status status = check_names(names, entries + 1, "tensor", err);
    for (size_t i = 0; i < texts; i++)
        names[i] = content->texts[i].key;
    names[texts] = SL_SAFETENSORS_CHECKSUM;
    if (status == SEQLSTM_OK)
        status = check_names(names, texts + 1, "text", err);
    free(names);
    for (size_t i = 0; i < texts && status == SEQLSTM_OK; i++)
        if (!sl_text_is_utf8(content->texts[i].value, strlen(content->texts[i].value), NULL))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the text `%s` is not UTF-8", content->texts[i].key);
    return status;
}

static seqlstm_status count_bytes(const struct sl_safetensors_entry *entry, size_t *out_bytes,
                                  struct seqlstm_error *err)
{
    int64_t elems = sl_safetensors_count_elems(entry), bytes = 0;
    if (entry->rank < 0 || entry->rank > SL_SAFETENSORS_RANK || elems < 0 ||
        !sl_checked_mul_i64(elems, (int64_t)sl_safetensors_dtype_get_bytes(entry->dtype), &bytes))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the shape of `%s` is not possible", entry->name);
    *out_bytes = (size_t)bytes;
    return SEQLSTM_OK;
}

static void put_metadata(struct sl_buf *header, const struct sl_safetensors_content *content, size_t *out_checksum)
{
    sl_buf_printf(header, "\"%s\":{", SL_SAFETENSORS_METADATA);
    const char *comma = "";
    if (content->checksum) {
        sl_buf_printf(header, "\"%s\":\"", SL_SAFETENSORS_CHECKSUM);
        *out_checksum = header->length_bytes;
        sl_buf_fill(header, '0', SL_HASH_DIGITS);
        sl_buf_append_char(header, '"');
        comma = ",";
    }
    for (int32_t i = 0; i < content->text_count; i++) {
        sl_buf_append_text(header, comma);
        sl_json_append_string(header, content->texts[i].key);
        sl_buf_append_char(header, ':');
        sl_json_append_string(header, content->texts[i].value);
        comma = ",";
    }
    sl_buf_append_char(header, '}');
}

static seqlstm_status put_header(struct sl_buf *header, const struct sl_safetensors_content *content,
                                 size_t *out_checksum, struct seqlstm_error *err)
{
    size_t place = 0;
    bool metadata = content->checksum || content->text_count > 0;
    sl_buf_append_char(header, '{');
    if (metadata)
        put_metadata(header, content, out_checksum);
    for (int32_t i = 0; i < content->entry_count; i++) {
        const struct sl_safetensors_entry *entry = &content->entries[i];
        size_t bytes = 0, end = 0;
        SEQLSTM_TRY(count_bytes(entry, &bytes, err));
        if (!sl_checked_add_size(place, bytes, &end))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the tensors are too large together");
        sl_buf_append_text(header, i > 0 || metadata ? "," : "");
        sl_json_append_string(header, entry->name);
        sl_buf_printf(header, ":{\"dtype\":\"%s\",\"shape\":[", sl_safetensors_dtype_get_name(entry->dtype));
        for (int32_t k = 0; k < entry->rank; k++)
            sl_buf_printf(header, "%s%" PRId64, k ? "," : "", entry->shape[k]);
        sl_buf_printf(header, "],\"data_offsets\":[%zu,%zu]}", place, end);
        place = end;
    }
    sl_buf_append_char(header, '}');
    /* Blanks up to a multiple of 8 bytes, so that the arrays are aligned in a mapped file. */
    sl_buf_fill(header, ' ', (8 - header->length_bytes % 8) % 8);
    if (header->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a header of %d tensors", content->entry_count);
    if (header->length_bytes > SL_SAFETENSORS_HEADER_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a header of %zu bytes, at most %d are allowed",
                     header->length_bytes, SL_SAFETENSORS_HEADER_MOST);
    return SEQLSTM_OK;
}

static void set_checksum(struct sl_buf *header, const struct sl_safetensors_content *content, size_t place)
{
    uint64_t crc = sl_crc64(0, header->data, header->length_bytes);
    for (int32_t i = 0; i < content->entry_count; i++) {
        size_t bytes = 0;
        if (count_bytes(&content->entries[i], &bytes, NULL) == SEQLSTM_OK && bytes > 0)
            crc = sl_crc64(crc, content->entries[i].data, bytes);
    }
    char digits[SL_HASH_TEXT_BYTES];
    sl_hash_write(crc, digits);
    memcpy(header->data + place, digits, SL_HASH_DIGITS);
}

static seqlstm_status write_all(struct sl_file_writer *writer, const struct sl_buf *header,
                                const struct sl_safetensors_content *content, struct seqlstm_error *err)
{
    unsigned char length[SL_SAFETENSORS_LENGTH_BYTES];
    for (int i = 0; i < SL_SAFETENSORS_LENGTH_BYTES; i++)
        length[i] = (unsigned char)((uint64_t)header->length_bytes >> (8 * i));
    SEQLSTM_TRY(sl_file_writer_write(writer, length, sizeof length, err));
    SEQLSTM_TRY(sl_file_writer_write(writer, header->data, header->length_bytes, err));
    for (int32_t i = 0; i < content->entry_count; i++) {
        size_t bytes = 0;
        SEQLSTM_TRY(count_bytes(&content->entries[i], &bytes, err));
        if (bytes > 0)
            SEQLSTM_TRY(sl_file_writer_write(writer, content->entries[i].data, bytes, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_safetensors_write(const char *path, const struct sl_safetensors_content *content,
                                    struct seqlstm_error *err)
{
    struct sl_buf header = {0};
    struct sl_file_writer *writer = NULL;
    size_t checksum = 0;
    SEQLSTM_TRY(check_content(content, err));
    seqlstm_status status = put_header(&header, content, &checksum, err);
    if (status != SEQLSTM_OK)
        goto out;
    if (content->checksum)
        set_checksum(&header, content, checksum);
    status = sl_file_writer_open(path, &writer, err);
    if (status != SEQLSTM_OK)
        goto out;
    status = write_all(writer, &header, content, err);
    if (status == SEQLSTM_OK)
        status = sl_file_writer_commit(writer, err);
    else
        sl_file_writer_abort(writer);
out:
    sl_buf_deinit(&header);
    return status;
}
