/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol Buffers' wire format, read: a cursor that hands out one field after the other. Nothing is copied and
 * everything is checked: a field that runs past the end makes the reader fail and stop. Source: protobuf.dev,
 * "Encoding". */
#ifndef SL_INTEROP_PROTOBUF_READ_H
#define SL_INTEROP_PROTOBUF_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_protobuf_reader {
    const unsigned char *at;
    const unsigned char *end;
    bool failed;
};

struct sl_protobuf_field {
    uint32_t number;
    bool is_bytes;
    uint64_t value;            /* varint, or the bits of a 32- or 64-bit number */
    const unsigned char *data; /* is_bytes: text, a message, packed numbers; not terminated */
    size_t bytes;
};

static inline struct sl_protobuf_reader sl_protobuf_begin(const void *data, size_t bytes)
{
    const unsigned char *begin = data;
    return (struct sl_protobuf_reader){begin, bytes ? begin + bytes : begin, false};
}

/* False at the end, and where the bytes are no message (`failed`). */
bool sl_protobuf_next(struct sl_protobuf_reader *reader, struct sl_protobuf_field *out_field);

/* One number of a packed field. False at the end or on failure. */
bool sl_protobuf_next_varint(struct sl_protobuf_reader *reader, uint64_t *out_value);

/* Is the field's text this one? */
bool sl_protobuf_field_is(const struct sl_protobuf_field *field, const char *text);

/* The float in the low 32 bits of `value`. */
float sl_protobuf_field_get_float(const struct sl_protobuf_field *field);

#endif
