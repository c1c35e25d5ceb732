/* SPDX-License-Identifier: Apache-2.0 */
/* Event files of TensorBoard, read back: records with their checksums, versions, restarts, numbers, and histograms
 * against plain counts; what becomes of a row of metrics; disks that are full, and memory that ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "descriptors.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"

#include "base/system/file.h"
#include "interop/protobuf_read.h"
#include "train/tensorboard/event.h"
#include "train/tensorboard_log.h"

enum { BUCKETS_MOST = 1600 };

/* An event that was read; what is absent is zero. */
struct event {
    double wall_time;
    int64_t step;
    char version[32], tag[64];
    bool restarts, has_number;
    float number;
    int32_t buckets; /* of a histogram */
    double least, most, count, sum, squares, limits[BUCKETS_MOST], counts[BUCKETS_MOST];
};

/* CRC-32C by long division of the reflected bits, one after the other. */
static uint32_t divide(const unsigned char *data, size_t bytes)
{
    uint32_t rest = 0xffffffffu;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        const uint32_t next = (data[bit / 8] >> bit % 8 & 1) ^ (rest & 1);
        rest >>= 1;
        if (next)
            rest ^= 0x82f63b78u;
    }
    return ~rest;
}

static uint64_t read_number(const unsigned char *data, int bytes)
{
    uint64_t value = 0;
    for (int k = bytes; k-- > 0;)
        value = value << 8 | data[k];
    return value;
}

static void expect_checksum(const unsigned char *data, size_t bytes)
{
    const uint32_t masked = (uint32_t)read_number(data + bytes, 4) - 0xa282ead8u;
    assert_int_equal(masked >> 17 | masked << 15, divide(data, bytes));
}

static double get_double(const struct sl_protobuf_field *field)
{
    double value;
    memcpy(&value, &field->value, sizeof value);
    return value;
}

static int32_t read_doubles(const struct sl_protobuf_field *field, double *out)
{
    assert_true(field->bytes % sizeof *out == 0 && field->bytes / sizeof *out <= BUCKETS_MOST);
    memcpy(out, field->data, field->bytes);
    return (int32_t)(field->bytes / sizeof *out);
}

static void read_histogram(const struct sl_protobuf_field *message, struct event *event)
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    double *const numbers[] = {&event->least, &event->most, &event->count, &event->sum, &event->squares};
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number <= 5)
            *numbers[field.number - 1] = get_double(&field);
        else if (field.number == 6)
            event->buckets = read_doubles(&field, event->limits);
        else if (field.number == 7)
            assert_int_equal(read_doubles(&field, event->counts), event->buckets);
    }
    assert_false(reader.failed);
}

static void read_value(const struct sl_protobuf_field *message, struct event *event)
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == 1)
            snprintf(event->tag, sizeof event->tag, "%.*s", (int)field.bytes, (const char *)field.data);
        else if (field.number == 2)
            event->has_number = true, event->number = sl_protobuf_field_get_float(&field);
        else if (field.number == 5)
            read_histogram(&field, event);
    }
    assert_false(reader.failed);
}

/* The event at *at, which moves behind it. */
static struct event read_event(const unsigned char *data, size_t bytes, size_t *at)
{
    static struct event event;
    const size_t length = (size_t)read_number(data + *at, 8);
    event = (struct event){.step = 0};
    assert_true(*at + 16 + length <= bytes);
    expect_checksum(data + *at, 8);
    expect_checksum(data + *at + 12, length);
    struct sl_protobuf_reader reader = sl_protobuf_begin(data + *at + 12, length);
    struct sl_protobuf_field field, inner;
    while (sl_protobuf_next(&reader, &field)) {
        struct sl_protobuf_reader within = sl_protobuf_begin(field.data, field.bytes);
        if (field.number == 1)
            event.wall_time = get_double(&field);
        else if (field.number == 2)
            event.step = (int64_t)field.value;
        else if (field.number == 3)
            snprintf(event.version, sizeof event.version, "%.*s", (int)field.bytes, (const char *)field.data);
        else if (field.number == 5 && sl_protobuf_next(&within, &inner) && inner.number == 1)
            read_value(&inner, &event);
        else if (field.number == 7 && sl_protobuf_next(&within, &inner))
            event.restarts = inner.number == 1 && inner.value == 1;
    }
    assert_false(reader.failed);
    *at += 16 + length;
    return event;
}

static void known_checksum(void **state)
{
    (void)state;
    assert_int_equal(divide((const unsigned char *)"123456789", 9), 0xe3069283u); /* the check value of CRC-32C */
}

static void events_one_after_the_other(void **state)
{
    (void)state;
    struct sl_buf out = {0};
    size_t at = 0;
    sl_event_append_version(&out, 1.5);
    sl_event_append_restart(&out, 2.5, 300);
    sl_event_append_scalar(&out, 3.25, INT64_C(5000000000), "loss/train", -0.125f);
    sl_event_append_scalar(&out, 4, 0, "", 0);
    const unsigned char *data = (const unsigned char *)out.data;
    struct event event = read_event(data, out.length_bytes, &at);
    assert_true(event.wall_time == 1.5 && strcmp(event.version, "brain.Event:2") == 0 && !event.restarts);
    event = read_event(data, out.length_bytes, &at);
    assert_true(event.wall_time == 2.5 && event.step == 300 && event.restarts && event.version[0] == '\0');
    event = read_event(data, out.length_bytes, &at);
    assert_true(event.wall_time == 3.25 && event.step == INT64_C(5000000000) && event.number == -0.125f);
    assert_string_equal(event.tag, "loss/train");
    event = read_event(data, out.length_bytes, &at);
    assert_true(event.wall_time == 4 && event.step == 0 && event.number == 0 && event.has_number);
    assert_int_equal(at, out.length_bytes);
    sl_buf_deinit(&out);
}

/* ---- histograms ----------------------------------------------------------------------------------------------------
 */

/* Of all values that are finite: the sums, and up to each limit as many as are not larger. */
static void check_histogram(const char *name, const float *values, int64_t elems)
{
    struct sl_buf out = {0};
    size_t at = 0;
    double least = INFINITY, most = -INFINITY, sum = 0, squares = 0, count = 0, counted = 0;
    for (int64_t i = 0; i < elems; i++)
        if (isfinite(values[i])) {
            const double value = (double)values[i];
            least = value < least ? value : least;
            most = value > most ? value : most;
            sum += value;
            squares += value * value;
            count++;
        }
    sl_event_append_histogram(&out, 9, 7, name, values, elems);
    if (count == 0) {
        assert_int_equal(out.length_bytes, 0);
        return;
    }
    const struct event event = read_event((const unsigned char *)out.data, out.length_bytes, &at);
    assert_int_equal(at, out.length_bytes);
    assert_string_equal(event.tag, name);
    assert_true(event.step == 7 && event.wall_time == 9 && !event.has_number);
    assert_true(event.least == least && event.most == most && event.count == count);
    assert_true(fabs(event.sum - sum) <= 1e-9 * (1 + fabs(sum)) &&
                fabs(event.squares - squares) <= 1e-9 * (1 + squares));
    assert_true(event.buckets > 0 && event.counts[0] > 0 && event.counts[event.buckets - 1] > 0);
    for (int32_t k = 0; k < event.buckets; k++) {
        double below = 0;
        for (int64_t i = 0; i < elems; i++)
            below += isfinite(values[i]) && (double)values[i] <= event.limits[k];
        counted += event.counts[k];
        if (counted != below)
            fail_msg("%s: %g are counted up to %g, expected %g", name, counted, event.limits[k], below);
        if (k > 0 && event.limits[k - 1] > 0 && event.limits[k] < DBL_MAX)
            assert_true(fabs(event.limits[k] / event.limits[k - 1] - 1.1) <= 1e-9);
        if (k > 0 && event.limits[k] < 0)
            assert_true(fabs(event.limits[k - 1] / event.limits[k] - 1.1) <= 1e-9);
    }
    assert_true(counted == count);
    sl_buf_deinit(&out);
}

static void histograms_are_plain_counts(void **state)
{
    (void)state;
    static const float several[] = {-2, 3, 0.5f, 0.5f, -0.25f, 7, 7, 7}, one[] = {-0.003f}, zeros[] = {0, 0, -0.0f},
                       tiny[] = {1e-13f, -1e-13f, 1e-30f, 0}, far[] = {1e20f, -1e20f, 3e38f, -3e38f, 1},
                       broken[] = {NAN, 1, INFINITY, 2, -INFINITY}, none[] = {NAN, INFINITY, -INFINITY};
    check_histogram("several", several, 8);
    check_histogram("one", one, 1);
    check_histogram("zeros", zeros, 3);
    check_histogram("tiny", tiny, 4);
    check_histogram("far", far, 5);
    check_histogram("broken", broken, 5);
    check_histogram("none", none, 3);
    check_histogram("empty", several, 0);
    float many[999];
    for (uint32_t i = 0; i < 999; i++)
        many[i] = (seqlstm_uniform(5, i, 0, 0) - 0.4f) * powf(10, 8 * seqlstm_uniform(6, i, 0, 0) - 4);
    check_histogram("many", many, 999);
}

/* ---- rows of metrics -----------------------------------------------------------------------------------------------
 */

static int is_events(const struct dirent *entry)
{
    return strncmp(entry->d_name, "events.out.tfevents.", 20) == 0;
}

/* All tags that a folder's only file has, with their numbers and steps. */
static char *read_tags(void)
{
    struct dirent **names;
    struct sl_buf out = {0};
    char *data;
    size_t bytes, at = 0;
    assert_int_equal(scandir(scratch_folder, &names, is_events, alphasort), 1);
    ok(sl_file_read(scratch_path(names[0]->d_name), 1 << 20, &data, &bytes, NULL), &(struct seqlstm_error){0});
    assert_int_equal(remove(scratch_path(names[0]->d_name)), 0);
    free(names[0]);
    free(names);
    while (at < bytes) {
        const struct event event = read_event((const unsigned char *)data, bytes, &at);
        if (event.version[0])
            sl_buf_printf(&out, "%s\n", event.version);
        if (event.restarts)
            sl_buf_printf(&out, "restart at %lld\n", (long long)event.step);
        if (event.has_number)
            sl_buf_printf(&out, "%s %g at %lld\n", event.tag, (double)event.number, (long long)event.step);
        if (event.buckets)
            sl_buf_printf(&out, "%s of %g numbers from %g at %lld\n", event.tag, event.count, event.least,
                          (long long)event.step);
    }
    free(data);
    return sl_buf_take(&out, NULL);
}

static void forget_files(void)
{
    char command[160];
    snprintf(command, sizeof command, "rm -f '%s'/events.out.tfevents.*", scratch_folder);
    assert_int_equal(system(command), 0);
}

/* A file of all kinds of events, or the first failure. */
static seqlstm_status write_log(int64_t resumed, struct seqlstm_error *err)
{
    static struct sl_metric_values values = {.count = 2, .items = {{"loss", 0.5, NULL}, {"mae", NAN, NULL}}};
    static const struct sl_metrics_row rows[] = {
        {4, 0.5, 9, "train", "report", 0.25, NAN, 3, 77, &values},
        {4, 1, 9, "train", "epoch", 0.25, NAN, 3, NAN, &values}, /* its rate is told already */
        {4, 1, 9, "valid", "validation", NAN, NAN, NAN, NAN, &values},
        {8, 1.5, 9, "train", "report", 0.125, 0.75, INFINITY, 78, &values}};
    static float numbers[] = {3, 1, 2, 99, -5, 6};
    static struct sl_param_view views[] = {{.name = "a.w", .offset_elems = 0, .elems = 3},
                                           {.name = "b.w", .offset_elems = 4, .elems = 2}};
    const struct sl_params params = {.views = views, .view_count = 2, .values = numbers};
    struct sl_tensorboard_log *log = NULL;
    seqlstm_status status = sl_tensorboard_log_open(scratch_folder, resumed, &log, err);
    for (size_t r = 0; status == SEQLSTM_OK && r < sizeof rows / sizeof *rows; r++)
        status = sl_tensorboard_log_append(log, &rows[r], err);
    if (status == SEQLSTM_OK)
        status = sl_tensorboard_log_append_params(log, 9, &params, err);
    sl_tensorboard_log_close(log);
    return status;
}

static void expect_tags(int64_t resumed)
{
    char *tags = read_tags(), expected[1024];
    snprintf(expected, sizeof expected,
             "brain.Event:2\n%s"
             "loss/train 0.5 at 4\nepoch 0.5 at 4\nrows_per_second 77 at 4\nlearning_rate 0.25 at 4\n"
             "gradient_norm 3 at 4\nloss/train_epoch 0.5 at 4\nloss/valid 0.5 at 4\nloss/train 0.5 at 8\n"
             "epoch 1.5 at 8\nrows_per_second 78 at 8\nlearning_rate 0.125 at 8\nteacher_forcing 0.75 at 8\n"
             "a.w of 3 numbers from 1 at 9\nb.w of 2 numbers from -5 at 9\n",
             resumed ? "restart at 7\n" : "");
    assert_string_equal(tags, expected);
    free(tags);
}

static void rows_become_tags(void **state)
{
    (void)state;
    for (int64_t resumed = 0; resumed <= 6; resumed += 6) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        ok(write_log(resumed, &err), &err);
        expect_tags(resumed);
    }
}

/* The first write that fails ends the file, and the answer names it; one that is interrupted goes on. `bytes`: so many
 * were written before. */
static void each_write_may_fail(void **state)
{
    (void)state;
    for (int bytes = -1; bytes <= 5; bytes += 6)
        for (int n = 1;; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            const int before = descriptors_count();
            io_fail_at(n, ENOSPC, bytes);
            const seqlstm_status status = write_log(6, &err);
            const bool failed = io_disarm();
            assert_int_equal(descriptors_count(), before);
            if (!failed) {
                assert_true(n == 7);
                ok(status, &err);
                expect_tags(6);
                break;
            }
            if (status != SEQLSTM_IO || err.native_code != ENOSPC || !strstr(err.message, "cannot write `") ||
                !strstr(err.message, "/events.out.tfevents.") || !strstr(err.message, strerror(ENOSPC)))
                fail_msg("write %d: status %d, %s", n, (int)status, err.message);
            forget_files();
            io_fail_at(n, EINTR, bytes);
            err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
            ok(write_log(6, &err), &err);
            assert_true(io_disarm());
            expect_tags(6);
        }
}

static void memory_may_end(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const int before = descriptors_count();
        oom_fail_at(n);
        const seqlstm_status status = write_log(6, &err);
        const bool failed = oom_disarm();
        assert_int_equal(descriptors_count(), before);
        if (!failed) {
            ok(status, &err);
            expect_tags(6);
            break;
        }
        if (status != SEQLSTM_NO_MEMORY)
            fail_msg("allocation %d: status %d, %s", n, (int)status, err.message);
        forget_files();
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_checksum),
        cmocka_unit_test(events_one_after_the_other),
        cmocka_unit_test(histograms_are_plain_counts),
        cmocka_unit_test(rows_become_tags),
        cmocka_unit_test(each_write_may_fail),
        cmocka_unit_test(memory_may_end),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
