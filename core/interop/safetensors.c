/* SPDX-License-Identifier: Apache-2.0 */
/* Reading safetensors files. See safetensors.h for the format and what is refused.
 *
 * Invariants of an open file: entries are sorted by their place; together they cover the data exactly; the data of each
 * lies inside the mapping and has the size that its shape says; names are distinct.
 */
#include "interop/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/checked.h"
#include "base/system/file.h"
#include "base/value/hash.h"
#include "base/value/json_tree.h"
#include "base/value/text.h"
#include "interop/safetensors_private.h"

struct sl_safetensors {
    char *name;             /* in messages */
    struct sl_file_map map; /* empty for bytes of the caller */
    const char *bytes;
    size_t size_bytes;
    size_t header_bytes;
    json_t *header;   /* owns names and texts */
    json_t *metadata; /* borrowed; NULL: none */
    int32_t count;
    struct sl_safetensors_entry *entries;
    const struct sl_safetensors_entry **by_name; /* sorted */
};

static const struct {
    const char *name;
    size_t bytes;
} DTYPES[SL_SAFETENSORS_DTYPE_COUNT] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"U16", 2},  {"I16", 2}, {"U32", 4}, {"I32", 4},
    {"U64", 8},  {"I64", 8}, {"F16", 2}, {"BF16", 2}, {"F32", 4}, {"F64", 8},
};

const char *sl_safetensors_dtype_get_name(enum sl_safetensors_dtype dtype)
{
    return DTYPES[dtype].name;
}

size_t sl_safetensors_dtype_get_bytes(enum sl_safetensors_dtype dtype)
{
    return DTYPES[dtype].bytes;
}

int64_t sl_safetensors_count_elems(const struct sl_safetensors_entry *entry)
{
    int64_t elems = 1;
    for (int32_t i = 0; i < entry->rank; i++)
        if (entry->shape[i] < 0 || !sl_checked_mul_i64(elems, entry->shape[i], &elems))
            return -1;
    return elems;
}

/* ---- the header ------------------------------------------------------------------------------------- */

#define CORRUPT(...) SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, __VA_ARGS__)

static seqlstm_status read_shape(const struct sl_safetensors *file, const char *name, json_t *shape,
                                 struct sl_safetensors_entry *entry, struct seqlstm_error *err)
{
    if (!json_is_array(shape) || json_array_size(shape) > SL_SAFETENSORS_RANK)
        CORRUPT("%s: the shape of `%s` is not a list of at most %d sizes", file->name, name, SL_SAFETENSORS_RANK);
    entry->rank = (int32_t)json_array_size(shape);
    for (int32_t i = 0; i < entry->rank; i++) {
        json_t *side = json_array_get(shape, (size_t)i);
        if (!json_is_integer(side) || json_integer_value(side) < 0)
            CORRUPT("%s: the shape of `%s` has a size that is not a number from 0 on", file->name, name);
        entry->shape[i] = json_integer_value(side);
    }
    return SEQLSTM_OK;
}

static seqlstm_status read_dtype(const struct sl_safetensors *file, const char *name, json_t *dtype,
                                 struct sl_safetensors_entry *entry, struct seqlstm_error *err)
{
    if (!json_is_string(dtype))
        CORRUPT("%s: `%s` has no dtype", file->name, name);
    for (int i = 0; i < SL_SAFETENSORS_DTYPE_COUNT; i++)
        if (strcmp(json_string_value(dtype), DTYPES[i].name) == 0) {
            entry->dtype = (enum sl_safetensors_dtype)i;
            return SEQLSTM_OK;
        }
    CORRUPT("%s: `%s` has the unknown dtype `%.32s`", file->name, name, json_string_value(dtype));
}

static seqlstm_status read_entry(const struct sl_safetensors *file, const char *name, json_t *value,
                                 struct sl_safetensors_entry *entry, struct seqlstm_error *err)
{
    size_t data_bytes = file->size_bytes - SL_SAFETENSORS_LENGTH_BYTES - file->header_bytes;
    if (!json_is_object(value) || json_object_size(value) != 3)
        CORRUPT("%s: the entry of `%s` is not {dtype, shape, data_offsets}", file->name, name);
    entry->name = name;
    SEQLSTM_TRY(read_dtype(file, name, json_object_get(value, "dtype"), entry, err));
    SEQLSTM_TRY(read_shape(file, name, json_object_get(value, "shape"), entry, err));
    json_t *offsets = json_object_get(value, "data_offsets");
    json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        CORRUPT("%s: the data_offsets of `%s` are not two numbers", file->name, name);
    int64_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin >= 0 && end >= begin && (uint64_t)end > data_bytes)
        CORRUPT("%s: the file is cut short: `%s` stands at bytes %" PRId64 " to %" PRId64 " of %zu; use an intact copy",
                file->name, name, begin, end, data_bytes);
    if (begin < 0 || end < begin)
        CORRUPT("%s: `%s` stands at bytes %" PRId64 " to %" PRId64 " of %zu", file->name, name, begin, end, data_bytes);
    int64_t elems = sl_safetensors_count_elems(entry), bytes = 0;
    if (elems < 0 || !sl_checked_mul_i64(elems, (int64_t)DTYPES[entry->dtype].bytes, &bytes) || bytes != end - begin)
        CORRUPT("%s: `%s` has %" PRId64 " bytes, its shape and dtype say otherwise", file->name, name, end - begin);
    entry->data = file->bytes + SL_SAFETENSORS_LENGTH_BYTES + file->header_bytes + begin;
    entry->data_bytes = (size_t)bytes;
    return SEQLSTM_OK;
}

static seqlstm_status read_metadata(struct sl_safetensors *file, json_t *metadata, struct seqlstm_error *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        CORRUPT("%s: %s is not an object", file->name, SL_SAFETENSORS_METADATA);
    json_object_foreach(metadata, key, value) if (!json_is_string(value))
        CORRUPT("%s: %s holds `%.64s`, which is not a text", file->name, SL_SAFETENSORS_METADATA, key);
    file->metadata = metadata;
    return SEQLSTM_OK;
}

static int compare_places(const void *a, const void *b)
{
    const struct sl_safetensors_entry *x = a, *y = b;
    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return x->data_bytes < y->data_bytes ? -1 : x->data_bytes > y->data_bytes;
}

static int compare_names(const void *a, const void *b)
{
    const struct sl_safetensors_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Sorted by place, each entry begins where the one before ends, and the last ends at the end. */
static seqlstm_status check_cover(const struct sl_safetensors *file, struct seqlstm_error *err)
{
    const char *next = file->bytes + SL_SAFETENSORS_LENGTH_BYTES + file->header_bytes;
    for (int32_t i = 0; i < file->count; i++) {
        const struct sl_safetensors_entry *entry = &file->entries[i];
        const char *data = entry->data;
        if (data != next)
            CORRUPT("%s: `%s` %s", file->name, entry->name,
                    data < next ? "overlaps the tensor before it" : "has a hole before it");
        next = data + entry->data_bytes;
    }
    size_t rest = (size_t)(file->bytes + file->size_bytes - next);
    if (rest != 0)
        CORRUPT("%s: %zu bytes at the end belong to no tensor", file->name, rest);
    return SEQLSTM_OK;
}

static seqlstm_status read_header(struct sl_safetensors *file, struct seqlstm_error *err)
{
    json_error_t json_error;
    const char *text = file->bytes + SL_SAFETENSORS_LENGTH_BYTES;
    if (text[0] != '{')
        CORRUPT("%s: the header does not begin with `{`", file->name);
    bool no_memory;
    file->header = sl_json_load(text, file->header_bytes, JSON_REJECT_DUPLICATES, &json_error, &no_memory);
    if (no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "%s: no memory for the header", file->name);
    if (!file->header || !json_is_object(file->header))
        CORRUPT("%s: the header is not a JSON object: %s at byte %d", file->name, json_error.text, json_error.position);
    size_t most = json_object_size(file->header);
    file->entries = calloc(most + 1, sizeof *file->entries);
    file->by_name = calloc(most + 1, sizeof *file->by_name);
    if (!file->entries || !file->by_name)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "%s: no memory for %zu entries", file->name, most);
    const char *key;
    json_t *value;
    json_object_foreach(file->header, key, value)
    {
        if (strcmp(key, SL_SAFETENSORS_METADATA) == 0)
            SEQLSTM_TRY(read_metadata(file, value, err));
        else
            SEQLSTM_TRY(read_entry(file, key, value, &file->entries[file->count++], err));
    }
    qsort(file->entries, (size_t)file->count, sizeof *file->entries, compare_places);
    SEQLSTM_TRY(check_cover(file, err));
    for (int32_t i = 0; i < file->count; i++)
        file->by_name[i] = &file->entries[i];
    qsort(file->by_name, (size_t)file->count, sizeof *file->by_name, compare_names);
    return SEQLSTM_OK;
}

/* ---- open and close ----------------------------------------------------------------------------------- */

/* What a file is that begins with no length of a header, as the end of a sentence. */
static const char *tell_kind(const struct sl_safetensors *file)
{
    enum { HEAD_BYTES = 512 };
    const unsigned char *head = (const unsigned char *)file->bytes;
    const size_t bytes = file->size_bytes < HEAD_BYTES ? file->size_bytes : HEAD_BYTES;
    size_t letters = 0;
    while (letters < bytes && ((head[letters] >= ' ' && head[letters] != 0x7f) || head[letters] == '\t' ||
                               head[letters] == '\r' || head[letters] == '\n'))
        letters++;
    if (letters == bytes)
        return ", but text: data are named in a model file, and `--input` of `seqlstm predict` and `eval` reads more";
    /* The first field of an ONNX file is its version, the next one a text or the graph. */
    if (head[0] == 0x08 && head[1] < 0x20 && (head[2] == 0x12 || head[2] == 0x1a || head[2] == 0x3a || head[2] == 0x42))
        return ", but perhaps ONNX, which `seqlstm import --from onnx` reads";
    return ": it does not begin with the length of a header";
}

static seqlstm_status read_file(struct sl_safetensors *file, struct seqlstm_error *err)
{
    if (file->size_bytes < SL_SAFETENSORS_LENGTH_BYTES)
        CORRUPT("%s: %zu bytes are too few for a safetensors file", file->name, file->size_bytes);
    uint64_t length = 0;
    for (int i = SL_SAFETENSORS_LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | (unsigned char)file->bytes[i];
    if (length > SL_SAFETENSORS_HEADER_MOST || length < 2)
        CORRUPT("%s: no safetensors file%s", file->name, tell_kind(file));
    if (length > file->size_bytes - SL_SAFETENSORS_LENGTH_BYTES)
        CORRUPT("%s: the file is cut short: it ends inside its header; use an intact copy", file->name);
    file->header_bytes = (size_t)length;
    return read_header(file, err);
}

static seqlstm_status open_file(const char *name, const struct sl_file_map *map, const char *bytes, size_t size_bytes,
                                struct sl_safetensors **out_file, struct seqlstm_error *err)
{
    struct sl_safetensors *file = calloc(1, sizeof *file);
    if (!file)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "%s: no memory", name);
    if (map)
        file->map = *map;
    file->bytes = bytes;
    file->size_bytes = size_bytes;
    file->name = strdup(name);
    seqlstm_status status = SEQLSTM_OK;
    if (!file->name)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "%s: no memory", name);
    else
        status = read_file(file, err);
    if (status != SEQLSTM_OK) {
        file->map = (struct sl_file_map){0};
        sl_safetensors_close(file);
        return status;
    }
    *out_file = file;
    return SEQLSTM_OK;
}

seqlstm_status sl_safetensors_open(const char *path, struct sl_safetensors **out_file, struct seqlstm_error *err)
{
    struct sl_file_map map;
    SEQLSTM_TRY(sl_file_map_open(path, &map, err));
    seqlstm_status status = open_file(path, &map, map.data, map.size_bytes, out_file, err);
    if (status != SEQLSTM_OK)
        sl_file_map_close(&map);
    return status;
}

seqlstm_status sl_safetensors_open_bytes(const char *name, const void *data, size_t bytes,
                                         struct sl_safetensors **out_file, struct seqlstm_error *err)
{
    return open_file(name, NULL, data, bytes, out_file, err);
}

void sl_safetensors_close(struct sl_safetensors *file)
{
    if (!file)
        return;
    sl_file_map_close(&file->map);
    json_decref(file->header);
    free(file->entries);
    free(file->by_name);
    free(file->name);
    free(file);
}

/* ---- access --------------------------------------------------------------------------------------------- */

seqlstm_status sl_safetensors_verify(const struct sl_safetensors *file, struct seqlstm_error *err)
{
    static const char ZEROS[SL_HASH_DIGITS + 1] = "0000000000000000";
    const char *sum = sl_safetensors_find_text(file, SL_SAFETENSORS_CHECKSUM);
    if (!sum || strlen(sum) != SL_HASH_DIGITS)
        CORRUPT("%s: the file has no checksum", file->name);
    char key[64];
    sl_text_snprintf(key, sizeof key, "\"%s\":\"%s\"", SL_SAFETENSORS_CHECKSUM, sum);
    const char *header = file->bytes + SL_SAFETENSORS_LENGTH_BYTES;
    const char *found = memmem(header, file->header_bytes, key, strlen(key));
    if (!found)
        CORRUPT("%s: the checksum is not written as seqlstm writes it", file->name);
    const char *digits = found + strlen(key) - 1 - SL_HASH_DIGITS;
    const char *rest = digits + SL_HASH_DIGITS;
    uint64_t crc = sl_crc64(0, header, (size_t)(digits - header));
    crc = sl_crc64(crc, ZEROS, SL_HASH_DIGITS);
    crc = sl_crc64(crc, rest, (size_t)(file->bytes + file->size_bytes - rest));
    char want[SL_HASH_TEXT_BYTES];
    sl_hash_write(crc, want);
    if (strcmp(want, sum) != 0)
        CORRUPT("%s: the content does not match its checksum (%s, computed %s); use an intact copy", file->name, sum,
                want);
    return SEQLSTM_OK;
}

int32_t sl_safetensors_get_count(const struct sl_safetensors *file)
{
    return file->count;
}

const struct sl_safetensors_entry *sl_safetensors_get_entry(const struct sl_safetensors *file, int32_t index)
{
    return &file->entries[index];
}

const struct sl_safetensors_entry *sl_safetensors_find(const struct sl_safetensors *file, const char *name)
{
    struct sl_safetensors_entry wanted = {.name = name};
    const struct sl_safetensors_entry *key = &wanted;
    const struct sl_safetensors_entry **found =
        bsearch(&key, file->by_name, (size_t)file->count, sizeof *file->by_name, compare_names);
    return found ? *found : NULL;
}

const char *sl_safetensors_find_text(const struct sl_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(file->metadata, key));
}

/* ---- conversion --------------------------------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16, subnormal numbers and NaN included. */
static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 31u, fraction = half & 1023u;
    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
        float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static float read_float(const char *data, enum sl_safetensors_dtype dtype, int64_t i)
{
    uint16_t half;
    double wide;
    switch (dtype) {
    case SL_SAFETENSORS_F16:
        memcpy(&half, data + 2 * i, 2);
        return float_of_half(half);
    case SL_SAFETENSORS_BF16:
        memcpy(&half, data + 2 * i, 2);
        return float_of_bits((uint32_t)half << 16);
    default:
        memcpy(&wide, data + 8 * i, 8);
        return (float)wide;
    }
}

seqlstm_status sl_safetensors_read_float32(const struct sl_safetensors_entry *entry, float *out, int64_t elems,
                                           struct seqlstm_error *err)
{
    if (entry->dtype < SL_SAFETENSORS_F16)
        CORRUPT("`%s` is %s, not a tensor of floats", entry->name, DTYPES[entry->dtype].name);
    if (sl_safetensors_count_elems(entry) != elems)
        CORRUPT("`%s` has %" PRId64 " elements, not %" PRId64, entry->name, sl_safetensors_count_elems(entry), elems);
    if (entry->dtype == SL_SAFETENSORS_F32) {
        if (elems > 0)
            memcpy(out, entry->data, entry->data_bytes);
        return SEQLSTM_OK;
    }
    for (int64_t i = 0; i < elems; i++)
        out[i] = read_float(entry->data, entry->dtype, i);
    return SEQLSTM_OK;
}
