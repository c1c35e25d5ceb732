/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_bytes.h. */
#include "predict/stream_bytes.h"

#include <string.h>

#include "base/value/hash.h"
#include "predict/predictor_private.h"

static const char magic[8] = {'S', 'L', 'S', 'T', 'R', 'E', 'A', 'M'};
enum {
    VERSION = 1,
    AT_VERSION = 8,
    AT_VALUES = 12,
    AT_IDENTITY = 16,
    AT_POSITION = 24,
    HEAD_BYTES = 32,
    TAIL_BYTES = 8
};

static void put(unsigned char *bytes, uint64_t value, int count)
{
    for (int b = 0; b < count; b++)
        bytes[b] = (unsigned char)(value >> 8 * b);
}

static uint64_t get(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int b = 0; b < count; b++)
        value |= (uint64_t)bytes[b] << 8 * b;
    return value;
}

size_t sl_stream_count_bytes(const struct sl_predictor *predictor)
{
    return predictor->reason[0] ? 0 : HEAD_BYTES + (size_t)predictor->state_elems * 4 + TAIL_BYTES;
}

seqlstm_status sl_stream_save(const struct sl_stream *stream, void *bytes, size_t *size, struct seqlstm_error *err)
{
    const struct sl_predictor *predictor = stream->predictor;
    const size_t needed = sl_stream_count_bytes(predictor), room = *size;
    unsigned char *out = bytes;
    *size = needed;
    if (bytes == NULL)
        return SEQLSTM_OK;
    if (room < needed)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "room for %zu bytes, and the state of the stream has %zu", room,
                     needed);
    memcpy(out, magic, sizeof magic);
    put(out + AT_VERSION, VERSION, 4);
    put(out + AT_VALUES, (uint64_t)predictor->state_elems, 4);
    put(out + AT_IDENTITY, predictor->identity, 8);
    put(out + AT_POSITION, (uint64_t)stream->position, 8);
    for (int64_t k = 0; k < predictor->state_elems; k++) {
        uint32_t bits;
        memcpy(&bits, &stream->values[k], sizeof bits);
        put(out + HEAD_BYTES + 4 * k, bits, 4);
    }
    put(out + needed - TAIL_BYTES, sl_crc64(0, out, needed - TAIL_BYTES), TAIL_BYTES);
    return SEQLSTM_OK;
}

static seqlstm_status check(const struct sl_predictor *predictor, const unsigned char *in, size_t size,
                            struct seqlstm_error *err)
{
    if (size < HEAD_BYTES + TAIL_BYTES || memcmp(in, magic, sizeof magic) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%zu bytes that are not the state of a stream", size);
    const uint64_t version = get(in + AT_VERSION, 4);
    if (version != VERSION)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the state of a stream in version %llu, this library reads version %d; use the version of seqlstm "
                     "that wrote it",
                     (unsigned long long)version, VERSION);
    if (get(in + size - TAIL_BYTES, TAIL_BYTES) != sl_crc64(0, in, size - TAIL_BYTES))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "the state of a stream is damaged: its checksum does not fit");
    if (get(in + AT_IDENTITY, 8) != predictor->identity || size != sl_stream_count_bytes(predictor) ||
        get(in + AT_POSITION, 8) > INT64_MAX)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the state of a stream of another model, or of other weights of this one");
    return SEQLSTM_OK;
}

seqlstm_status sl_stream_load(struct sl_stream *stream, const void *bytes, size_t size, struct seqlstm_error *err)
{
    const unsigned char *in = bytes;
    SEQLSTM_TRY(check(stream->predictor, in, size, err));
    for (int64_t k = 0; k < stream->predictor->state_elems; k++) {
        const uint32_t bits = (uint32_t)get(in + HEAD_BYTES + 4 * k, 4);
        memcpy(&stream->values[k], &bits, sizeof bits);
    }
    stream->position = (int64_t)get(in + AT_POSITION, 8);
    return SEQLSTM_OK;
}
