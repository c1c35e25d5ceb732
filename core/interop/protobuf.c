/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol Buffers' wire format, written. A field is a varint (field number << 3 | wire type) and its payload. */
#include "interop/protobuf.h"

#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_32_BITS = 5 };

static void append_varint(struct sl_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        sl_buf_append_char(out, (char)(unsigned char)(value | 0x80));
    sl_buf_append_char(out, (char)(unsigned char)value);
}

static void append_key(struct sl_buf *out, uint32_t field, enum wire wire)
{
    append_varint(out, (uint64_t)field << 3 | (uint64_t)wire);
}

void sl_protobuf_append_int(struct sl_buf *out, uint32_t field, int64_t value)
{
    append_key(out, field, WIRE_VARINT);
    append_varint(out, (uint64_t)value);
}

void sl_protobuf_append_float(struct sl_buf *out, uint32_t field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_key(out, field, WIRE_32_BITS);
    for (int byte = 0; byte < 4; byte++)
        sl_buf_append_char(out, (char)(unsigned char)(bits >> 8 * byte));
}

void sl_protobuf_append_bytes(struct sl_buf *out, uint32_t field, const void *data, size_t bytes)
{
    append_key(out, field, WIRE_BYTES);
    append_varint(out, bytes);
    sl_buf_append(out, data, bytes);
}

void sl_protobuf_append_text(struct sl_buf *out, uint32_t field, const char *text)
{
    sl_protobuf_append_bytes(out, field, text, strlen(text));
}

void sl_protobuf_append_message(struct sl_buf *out, uint32_t field, const struct sl_buf *message)
{
    out->failed = out->failed || message->failed;
    sl_protobuf_append_bytes(out, field, message->data, message->length_bytes);
}
