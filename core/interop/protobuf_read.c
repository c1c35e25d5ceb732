/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol Buffers' wire format, read. */
#include "interop/protobuf_read.h"

#include <string.h>

bool sl_protobuf_next_varint(struct sl_protobuf_reader *reader, uint64_t *out_value)
{
    uint64_t value = 0;
    if (reader->failed || reader->at == reader->end)
        return false;
    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        unsigned char byte = *reader->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out_value = value;
            return true;
        }
    }
    reader->failed = true;
    return false;
}

/* `bytes` of payload, little endian where it is a number. */
static bool take(struct sl_protobuf_reader *reader, uint64_t bytes, struct sl_protobuf_field *field)
{
    if (bytes > (uint64_t)(reader->end - reader->at)) {
        reader->failed = true;
        return false;
    }
    field->data = reader->at;
    field->bytes = (size_t)bytes;
    reader->at += bytes;
    for (size_t k = 0; !field->is_bytes && k < field->bytes; k++)
        field->value |= (uint64_t)field->data[k] << 8 * k;
    return true;
}

bool sl_protobuf_next(struct sl_protobuf_reader *reader, struct sl_protobuf_field *out_field)
{
    enum { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_BYTES = 2, WIRE_32_BITS = 5 };
    uint64_t key, bytes;
    if (!sl_protobuf_next_varint(reader, &key))
        return false;
    *out_field = (struct sl_protobuf_field){.number = (uint32_t)(key >> 3), .is_bytes = (key & 7) == WIRE_BYTES};
    switch (key & 7) {
    case WIRE_VARINT:
        if (sl_protobuf_next_varint(reader, &out_field->value))
            return true;
        break;
    case WIRE_64_BITS:
        return take(reader, 8, out_field);
    case WIRE_32_BITS:
        return take(reader, 4, out_field);
    case WIRE_BYTES:
        if (sl_protobuf_next_varint(reader, &bytes))
            return take(reader, bytes, out_field);
        break;
    default: /* groups are not in use any more */
        break;
    }
    reader->failed = true;
    return false;
}

bool sl_protobuf_field_is(const struct sl_protobuf_field *field, const char *text)
{
    return field->is_bytes && strlen(text) == field->bytes && memcmp(field->data, text, field->bytes) == 0;
}

float sl_protobuf_field_get_float(const struct sl_protobuf_field *field)
{
    uint32_t bits = (uint32_t)field->value;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
