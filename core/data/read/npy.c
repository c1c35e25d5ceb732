/* SPDX-License-Identifier: Apache-2.0 */
/* The header is a Python dict literal with three keys in any order; nothing else of Python is read. */
#include "data/read/npy.h"

#include <string.h>

#include "base/value/checked.h"

struct header {
    const char *name;
    const char *at, *end;
    char descr[8];
    bool fortran, has_descr, has_order, has_shape;
    int dimensions;
    int64_t shape[SL_NPY_DIMENSIONS];
};

static void skip(struct header *h, const char *set)
{
    while (h->at < h->end && *h->at && strchr(set, *h->at))
        h->at++;
}

static bool take_string(struct header *h, char *out, size_t capacity)
{
    size_t n = 0;
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
        return false;
    char quote = *h->at++;
    for (; h->at < h->end && *h->at != quote; h->at++) {
        if (n + 1 >= capacity)
            return false;
        out[n++] = *h->at;
    }
    if (h->at == h->end)
        return false;
    h->at++;
    out[n] = '\0';
    return true;
}

static bool take_word(struct header *h, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0)
        return false;
    h->at += n;
    return true;
}

static bool take_shape(struct header *h)
{
    if (!take_word(h, "("))
        return false;
    for (;;) {
        skip(h, " ");
        if (take_word(h, ")"))
            return true;
        int64_t value = 0;
        bool digits = false;
        for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++, digits = true)
            if (!sl_checked_mul_i64(value, 10, &value) || !sl_checked_add_i64(value, *h->at - '0', &value))
                return false;
        if (!digits || h->dimensions == SL_NPY_DIMENSIONS)
            return false;
        take_word(h, "L");
        h->shape[h->dimensions++] = value;
        skip(h, " ");
        if (!take_word(h, ",") && (h->at == h->end || *h->at != ')'))
            return false;
    }
}

static bool parse_header(struct header *h)
{
    char key[24];
    skip(h, " ");
    if (!take_word(h, "{"))
        return false;
    for (;;) {
        skip(h, " ,");
        if (take_word(h, "}"))
            return h->has_descr && h->has_order && h->has_shape;
        if (!take_string(h, key, sizeof key))
            return false;
        skip(h, " ");
        if (!take_word(h, ":"))
            return false;
        skip(h, " ");
        bool ok = false;
        if (strcmp(key, "descr") == 0) {
            ok = h->has_descr = take_string(h, h->descr, sizeof h->descr);
        } else if (strcmp(key, "fortran_order") == 0) {
            h->fortran = take_word(h, "True");
            ok = h->has_order = h->fortran || take_word(h, "False");
        } else if (strcmp(key, "shape") == 0) {
            ok = h->has_shape = take_shape(h);
        }
        if (!ok)
            return false;
    }
}

static bool find_type(const char *descr, enum sl_npy_type *out, int64_t *out_bytes)
{
    static const struct {
        const char *descr;
        enum sl_npy_type type;
        int64_t bytes;
    } types[] = {{"<f4", SL_NPY_FLOAT32, 4}, {"<f8", SL_NPY_FLOAT64, 8}, {"|i1", SL_NPY_INT8, 1},
                 {"<i2", SL_NPY_INT16, 2},   {"<i4", SL_NPY_INT32, 4},   {"<i8", SL_NPY_INT64, 8},
                 {"|u1", SL_NPY_UINT8, 1},   {"|b1", SL_NPY_UINT8, 1},   {"<u2", SL_NPY_UINT16, 2},
                 {"<u4", SL_NPY_UINT32, 4}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].descr, descr) == 0) {
            *out = types[i].type;
            *out_bytes = types[i].bytes;
            return true;
        }
    }
    return false;
}

seqlstm_status sl_npy_parse(const char *name, const void *data, size_t bytes, struct sl_npy *out,
                            struct seqlstm_error *err)
{
    const unsigned char *p = data;
    struct header h = {.name = name};
    int64_t elem_bytes = 0, elems = 1, data_bytes;
    enum sl_npy_type type;
    if (bytes < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: no .npy file: it does not begin with \\x93NUMPY", name);
    if (p[6] < 1 || p[6] > 3)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: .npy version %d.%d, expected 1 to 3", name, p[6], p[7]);
    size_t prefix = p[6] == 1 ? 10 : 12;
    size_t length = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1 && bytes >= 12)
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (bytes < prefix || bytes - prefix < length)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the .npy header of %zu bytes is cut off at %zu", name, length,
                     bytes);
    h.at = (const char *)data + prefix;
    h.end = h.at + length;
    if (!parse_header(&h))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: the .npy header is not understood: expected descr, fortran_order and a shape of at most %d "
                     "dimensions",
                     name, SL_NPY_DIMENSIONS);
    if (!find_type(h.descr, &type, &elem_bytes))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: dtype '%s' is not read, expected '<f4', '<f8', '<i4' or '<i8': save x.astype('float32')",
                     name, h.descr);
    if (h.fortran && h.dimensions > 1)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: the array is in Fortran order, expected C order: save numpy.ascontiguousarray(x)", name);
    bool fits = true;
    for (int i = 0; i < SL_NPY_DIMENSIONS; i++) {
        if (i >= h.dimensions)
            h.shape[i] = 1;
        fits = fits && sl_checked_mul_i64(elems, h.shape[i], &elems);
    }
    if (!fits || !sl_checked_mul_i64(elems, elem_bytes, &data_bytes) || (uint64_t)data_bytes > bytes - prefix - length)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: the file is cut off: it has %zu bytes of data, its shape asks for more", name,
                     bytes - prefix - length);
    memset(out, 0, sizeof *out);
    out->type = type;
    out->dimensions = h.dimensions;
    memcpy(out->shape, h.shape, sizeof out->shape);
    out->elems = elems;
    out->data = p + prefix + length;
    out->name = name;
    return SEQLSTM_OK;
}

seqlstm_status sl_npy_open(const char *path, struct sl_npy *out, struct seqlstm_error *err)
{
    struct sl_file_map map;
    SEQLSTM_TRY(sl_file_map_open(path, &map, err));
    seqlstm_status status = sl_npy_parse(path, map.data, map.size_bytes, out, err);
    if (status != SEQLSTM_OK) {
        sl_file_map_close(&map);
        return status;
    }
    out->map = map;
    return SEQLSTM_OK;
}

void sl_npy_close(struct sl_npy *npy)
{
    sl_file_map_close(&npy->map);
    memset(npy, 0, sizeof *npy);
}

bool sl_npy_is_integer(const struct sl_npy *npy)
{
    return npy->type != SL_NPY_FLOAT32 && npy->type != SL_NPY_FLOAT64;
}

#define GET(type)                                                                                                      \
    {                                                                                                                  \
        type value;                                                                                                    \
        memcpy(&value, (const char *)npy->data + element * (int64_t)sizeof value, sizeof value);                       \
        return value;                                                                                                  \
    }

double sl_npy_get(const struct sl_npy *npy, int64_t element)
{
    if (npy->type == SL_NPY_FLOAT32)
        GET(float)
    if (npy->type == SL_NPY_FLOAT64)
        GET(double)
    return (double)sl_npy_get_integer(npy, element);
}

int64_t sl_npy_get_integer(const struct sl_npy *npy, int64_t element)
{
    switch (npy->type) {
    case SL_NPY_INT8:
        GET(int8_t)
    case SL_NPY_INT16:
        GET(int16_t)
    case SL_NPY_INT32:
        GET(int32_t)
    case SL_NPY_INT64:
        GET(int64_t)
    case SL_NPY_UINT8:
        GET(uint8_t)
    case SL_NPY_UINT16:
        GET(uint16_t)
    case SL_NPY_UINT32:
        GET(uint32_t)
    case SL_NPY_FLOAT32:
    case SL_NPY_FLOAT64:
        break;
    }
    return 0;
}
