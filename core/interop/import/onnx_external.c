/* SPDX-License-Identifier: Apache-2.0 */
#include "interop/import/onnx_external.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"

enum { NAME_BYTES = 256 };

struct sl_onnx_external {
    struct sl_onnx_external *next;
    char name[NAME_BYTES];
    char *data;
    size_t bytes;
};

/* Where a tensor's numbers lie. `bytes` is SIZE_MAX if they go on to the end of the file. */
struct place {
    char name[NAME_BYTES];
    size_t offset, bytes;
};

static seqlstm_status fail(const char *onnx_path, const char *what, struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                 "%s: %s; save the model with all weights in one file (PyTorch: `external_data=False`)", onnx_path,
                 what);
}

static bool parse_number(const struct sl_protobuf_field *text, size_t *out)
{
    size_t number = 0;
    for (size_t k = 0; k < text->bytes; k++) {
        const unsigned digit = text->data[k] - (unsigned)'0';
        if (digit > 9 || number > (SIZE_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *out = number;
    return text->bytes > 0;
}

/* Accepts only the name of a file in the same folder. */
static bool parse_name(const struct sl_protobuf_field *text, char *out)
{
    if (text->bytes == 0 || text->bytes >= NAME_BYTES || memchr(text->data, '/', text->bytes) ||
        memchr(text->data, '\0', text->bytes))
        return false;
    memcpy(out, text->data, text->bytes);
    out[text->bytes] = '\0';
    return strcmp(out, ".") != 0 && strcmp(out, "..") != 0;
}

/* One StringStringEntryProto. Keys that are not known here, such as a checksum, are skipped. */
static bool parse_entry(const struct sl_protobuf_field *entry, struct place *place)
{
    enum { KEY = 1, VALUE = 2 };
    struct sl_protobuf_reader reader = sl_protobuf_begin(entry->data, entry->bytes);
    struct sl_protobuf_field field, key = {0}, value = {0};
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == KEY && field.is_bytes)
            key = field;
        else if (field.number == VALUE && field.is_bytes)
            value = field;
    }
    if (reader.failed)
        return false;
    if (sl_protobuf_field_is(&key, "location"))
        return parse_name(&value, place->name);
    if (sl_protobuf_field_is(&key, "offset"))
        return parse_number(&value, &place->offset);
    if (sl_protobuf_field_is(&key, "length"))
        return parse_number(&value, &place->bytes);
    return true;
}

static bool parse_place(const struct sl_protobuf_field *tensor, struct place *place)
{
    enum { EXTERNAL_DATA = 13 };
    struct sl_protobuf_reader reader = sl_protobuf_begin(tensor->data, tensor->bytes);
    struct sl_protobuf_field field;
    *place = (struct place){.bytes = SIZE_MAX};
    while (sl_protobuf_next(&reader, &field))
        if (field.number == EXTERNAL_DATA && (!field.is_bytes || !parse_entry(&field, place)))
            return false;
    return !reader.failed && place->name[0];
}

static seqlstm_status read_file(const char *onnx_path, const char *name, struct sl_onnx_external **out,
                                struct seqlstm_error *err)
{
    const char *slash = strrchr(onnx_path, '/');
    const int folder_bytes = slash ? (int)(slash + 1 - onnx_path) : 0;
    const size_t path_bytes = (size_t)folder_bytes + strlen(name) + 1;
    struct sl_onnx_external *file = calloc(1, sizeof *file);
    char *path = malloc(path_bytes);
    if (file == NULL || path == NULL) {
        free(file);
        free(path);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", name);
    }
    snprintf(path, path_bytes, "%.*s%s", folder_bytes, onnx_path, name);
    snprintf(file->name, sizeof file->name, "%s", name);
    seqlstm_status status;
    if (!sl_file_exists(path))
        status = seqlstm_error_set(
            err, SEQLSTM_NOT_FOUND, __FILE__, __LINE__,
            "%s keeps its weights in the file `%s` of the same folder, which is not there; copy it, too", onnx_path,
            name);
    else if (!sl_file_is_regular(path))
        status = fail(onnx_path, "its weights are in something that is no file", err);
    else
        status = sl_file_read(path, SIZE_MAX / 2, &file->data, &file->bytes, err);
    free(path);
    if (status != SEQLSTM_OK) {
        free(file);
        return status;
    }
    *out = file;
    return SEQLSTM_OK;
}

seqlstm_status sl_onnx_external_read(struct sl_onnx_external **list, const char *onnx_path,
                                     const struct sl_protobuf_field *tensor, const unsigned char **out_data,
                                     size_t *out_bytes, struct seqlstm_error *err)
{
    struct place place;
    if (!parse_place(tensor, &place))
        return fail(onnx_path, "the place of a tensor's numbers (external_data) is not a file of the same folder", err);
    struct sl_onnx_external *file = *list;
    while (file && strcmp(file->name, place.name) != 0)
        file = file->next;
    if (file == NULL) {
        SEQLSTM_TRY(read_file(onnx_path, place.name, &file, err));
        file->next = *list;
        *list = file;
    }
    if (place.offset > file->bytes || (place.bytes != SIZE_MAX && place.bytes > file->bytes - place.offset))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: its file %s is cut off; copy or save both again", onnx_path,
                     file->name);
    *out_data = (const unsigned char *)file->data + place.offset;
    *out_bytes = place.bytes == SIZE_MAX ? file->bytes - place.offset : place.bytes;
    return SEQLSTM_OK;
}

void sl_onnx_external_free(struct sl_onnx_external *list)
{
    while (list) {
        struct sl_onnx_external *next = list->next;
        free(list->data);
        free(list);
        list = next;
    }
}
