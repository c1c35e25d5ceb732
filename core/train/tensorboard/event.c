/* SPDX-License-Identifier: Apache-2.0 */
/* See event.h. */
#include "train/tensorboard/event.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- records ----------------------------------------------------------------------------------------------- */

static uint32_t crc32c(const void *data, size_t bytes)
{
    uint32_t crc = ~0u;
    for (const unsigned char *p = data; bytes > 0; p++, bytes--) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0x82f63b78u & -(crc & 1)); /* the polynomial of Castagnoli, reflected */
    }
    return ~crc;
}

static void append_little_endian(struct sl_buf *out, uint64_t value, int bytes)
{
    for (int k = 0; k < bytes; k++)
        sl_buf_append_char(out, (char)(value >> 8 * k));
}

static void append_checksum(struct sl_buf *out, const void *data, size_t bytes)
{
    const uint32_t crc = crc32c(data, bytes);
    append_little_endian(out, (crc >> 15 | crc << 17) + 0xa282ead8u, 4);
}

/* Empties the message. */
static void append_record(struct sl_buf *out, struct sl_buf *message)
{
    const size_t begin = out->length_bytes;
    append_little_endian(out, message->length_bytes, 8);
    if (out->failed || message->failed)
        out->failed = true;
    else {
        append_checksum(out, out->data + begin, 8);
        sl_buf_append(out, message->data, message->length_bytes);
        append_checksum(out, message->data, message->length_bytes);
    }
    sl_buf_deinit(message);
}

/* ---- protocol buffers -------------------------------------------------------------------------------------- */

enum wire { WIRE_VARINT = 0, WIRE_8_BYTES = 1, WIRE_LENGTH = 2, WIRE_4_BYTES = 5 };

static void put_varint(struct sl_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        sl_buf_append_char(out, (char)(value | 0x80));
    sl_buf_append_char(out, (char)value);
}

static void put_key(struct sl_buf *out, int field, enum wire wire)
{
    put_varint(out, (uint64_t)field << 3 | wire);
}

static void put_bits64(struct sl_buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_little_endian(out, bits, 8);
}

static void put_double(struct sl_buf *out, int field, double value)
{
    put_key(out, field, WIRE_8_BYTES);
    put_bits64(out, value);
}

static void put_float(struct sl_buf *out, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, WIRE_4_BYTES);
    append_little_endian(out, bits, 4);
}

static void put_bytes(struct sl_buf *out, int field, const void *data, size_t bytes)
{
    put_key(out, field, WIRE_LENGTH);
    put_varint(out, bytes);
    sl_buf_append(out, data, bytes);
}

/* A message inside another; empties it. */
static void put_message(struct sl_buf *out, int field, struct sl_buf *message)
{
    out->failed = out->failed || message->failed;
    put_bytes(out, field, sl_buf_text(message), message->length_bytes);
    sl_buf_deinit(message);
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static void begin_event(struct sl_buf *event, double wall_time, int64_t step)
{
    put_double(event, 1, wall_time);
    put_key(event, 2, WIRE_VARINT);
    put_varint(event, (uint64_t)step);
}

void sl_event_append_version(struct sl_buf *out, double wall_time)
{
    static const char version[] = "brain.Event:2";
    struct sl_buf event = {0};
    put_double(&event, 1, wall_time);
    put_bytes(&event, 3, version, sizeof version - 1);
    append_record(out, &event);
}

void sl_event_append_restart(struct sl_buf *out, double wall_time, int64_t step)
{
    enum { SESSION_START = 1 };
    struct sl_buf event = {0}, session = {0};
    put_key(&session, 1, WIRE_VARINT);
    put_varint(&session, SESSION_START);
    begin_event(&event, wall_time, step);
    put_message(&event, 7, &session);
    append_record(out, &event);
}

/* Empties the value, to which its tag is added. */
static void append_summary(struct sl_buf *out, double wall_time, int64_t step, const char *tag, struct sl_buf *value)
{
    struct sl_buf event = {0}, summary = {0};
    put_bytes(value, 1, tag, strlen(tag));
    put_message(&summary, 1, value);
    begin_event(&event, wall_time, step);
    put_message(&event, 5, &summary);
    append_record(out, &event);
}

void sl_event_append_scalar(struct sl_buf *out, double wall_time, int64_t step, const char *tag, float value)
{
    struct sl_buf message = {0};
    put_float(&message, 2, value);
    append_summary(out, wall_time, step, tag, &message);
}

/* ---- histograms -------------------------------------------------------------------------------------------- */

/* Bucket k holds what is at most its limit and larger than the limit of bucket k - 1. The middle one holds what is at
 * most `smallest` in magnitude; outwards limits grow by `growth`, up to 1e20. */
enum { SIDE = 774, BUCKETS = 2 * SIDE + 1 };

static const double smallest = 1e-12, growth = 1.1;

struct histogram {
    double least, most, sum, squares;
    int64_t counts[BUCKETS], count;
};

static double get_limit(int bucket)
{
    if (bucket == BUCKETS - 1)
        return DBL_MAX;
    return bucket < SIDE ? -smallest * pow(growth, SIDE - 1 - bucket) : smallest * pow(growth, bucket - SIDE);
}

static int find_bucket(double value)
{
    if (fabs(value) <= smallest)
        return value == -smallest ? SIDE - 1 : SIDE;
    const double steps = log(fabs(value) / smallest) / log(growth);
    return value < 0 ? SIDE - 1 - (int)fmin(floor(steps), SIDE - 1) : SIDE + (int)fmin(ceil(steps), SIDE);
}

static void count_values(struct histogram *h, const float *values, int64_t elems)
{
    *h = (struct histogram){.least = INFINITY, .most = -INFINITY};
    for (int64_t i = 0; i < elems; i++) {
        const double value = values[i];
        if (!isfinite(value))
            continue;
        h->least = fmin(h->least, value);
        h->most = fmax(h->most, value);
        h->sum += value;
        h->squares += value * value;
        h->counts[find_bucket(value)]++;
        h->count++;
    }
}

/* The buckets from the first to the last that hold anything. */
static void put_buckets(struct sl_buf *message, const struct histogram *h)
{
    struct sl_buf limits = {0}, counts = {0};
    int first = 0, last = BUCKETS - 1;
    while (first < last && h->counts[first] == 0)
        first++;
    while (last > first && h->counts[last] == 0)
        last--;
    for (int k = first; k <= last; k++) {
        put_bits64(&limits, get_limit(k));
        put_bits64(&counts, (double)h->counts[k]);
    }
    put_message(message, 6, &limits);
    put_message(message, 7, &counts);
}

void sl_event_append_histogram(struct sl_buf *out, double wall_time, int64_t step, const char *tag, const float *values,
                               int64_t elems)
{
    struct histogram h;
    struct sl_buf histogram = {0}, value = {0};
    count_values(&h, values, elems);
    if (h.count == 0)
        return;
    put_double(&histogram, 1, h.least);
    put_double(&histogram, 2, h.most);
    put_double(&histogram, 3, (double)h.count);
    put_double(&histogram, 4, h.sum);
    put_double(&histogram, 5, h.squares);
    put_buckets(&histogram, &h);
    put_message(&value, 5, &histogram);
    append_summary(out, wall_time, step, tag, &value);
}
