/* SPDX-License-Identifier: Apache-2.0 */
/* See counters.h. */
#include "serve/job/counters.h"

/* Limits of the buckets: times from 20 microseconds to 10 seconds, and widths. */
static const double seconds[SL_COUNTER_BUCKETS] = {2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3,
                                                   1e-2, 2e-2, 5e-2, 0.1,  0.2,  0.5,  2,    10};
static const double widths[SL_COUNTER_BUCKETS] = {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 4096};

void sl_counters_init(struct sl_counters *counters)
{
    *counters = (struct sl_counters){.rows = 0};
    pthread_mutex_init(&counters->lock, NULL);
}

void sl_counters_deinit(struct sl_counters *counters)
{
    pthread_mutex_destroy(&counters->lock);
}

static void observe(struct sl_counter_histogram *histogram, const double limits[SL_COUNTER_BUCKETS], double value)
{
    int k = 0;
    while (k < SL_COUNTER_BUCKETS && value > limits[k])
        k++;
    histogram->counts[k]++;
    histogram->sum += value;
}

void sl_counters_note_reply(struct sl_counters *counters, int status)
{
    pthread_mutex_lock(&counters->lock);
    counters->answered[status / 100 % 6]++;
    pthread_mutex_unlock(&counters->lock);
}

void sl_counters_note_queued(struct sl_counters *counters, double waited)
{
    pthread_mutex_lock(&counters->lock);
    observe(&counters->queued_s, seconds, waited);
    pthread_mutex_unlock(&counters->lock);
}

void sl_counters_note_busy(struct sl_counters *counters, int change)
{
    pthread_mutex_lock(&counters->lock);
    counters->busy += change;
    pthread_mutex_unlock(&counters->lock);
}

void sl_counters_note_batch(struct sl_counters *counters, int64_t sequences, int64_t rows, double took)
{
    pthread_mutex_lock(&counters->lock);
    counters->batches++;
    counters->rows += rows;
    observe(&counters->computed_s, seconds, took);
    observe(&counters->width, widths, (double)sequences);
    pthread_mutex_unlock(&counters->lock);
}

void sl_counters_note_sequences(struct sl_counters *counters, int64_t count)
{
    pthread_mutex_lock(&counters->lock);
    counters->sequences += count;
    pthread_mutex_unlock(&counters->lock);
}

void sl_counters_note_gone(struct sl_counters *counters)
{
    pthread_mutex_lock(&counters->lock);
    counters->gone++;
    pthread_mutex_unlock(&counters->lock);
}

void sl_counters_note_followed(struct sl_counters *counters)
{
    pthread_mutex_lock(&counters->lock);
    counters->followed++;
    pthread_mutex_unlock(&counters->lock);
}

static void write_number(struct sl_buf *out, const char *name, const char *type, const char *help, int64_t value)
{
    sl_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %lld\n", name, help, name, type, name, (long long)value);
}

static void write_histogram(struct sl_buf *out, const char *name, const char *help,
                            const double limits[SL_COUNTER_BUCKETS], const struct sl_counter_histogram *histogram)
{
    int64_t sum = 0;
    sl_buf_printf(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
    for (int k = 0; k < SL_COUNTER_BUCKETS; k++) {
        sum += histogram->counts[k];
        sl_buf_printf(out, "%s_bucket{le=\"%g\"} %lld\n", name, limits[k], (long long)sum);
    }
    sum += histogram->counts[SL_COUNTER_BUCKETS];
    sl_buf_printf(out, "%s_bucket{le=\"+Inf\"} %lld\n%s_sum %.9g\n%s_count %lld\n", name, (long long)sum, name,
                  histogram->sum, name, (long long)sum);
}

void sl_counters_write(struct sl_counters *counters, const struct sl_counter_gauges *gauges, struct sl_buf *out)
{
    pthread_mutex_lock(&counters->lock);
    const struct sl_counters now = *counters;
    pthread_mutex_unlock(&counters->lock);
    sl_buf_append_text(out, "# HELP seqlstm_replies_total Replies by the first digit of their status.\n"
                            "# TYPE seqlstm_replies_total counter\n");
    for (int k = 2; k < 6; k++)
        sl_buf_printf(out, "seqlstm_replies_total{status=\"%dxx\"} %lld\n", k, (long long)now.answered[k]);
    write_number(out, "seqlstm_sequences_total", "counter", "Sequences that were computed to their ends.",
                 now.sequences);
    write_number(out, "seqlstm_rows_total", "counter", "Steps of all sequences that were computed.", now.rows);
    write_number(out, "seqlstm_batches_total", "counter", "Batches that were computed.", now.batches);
    write_number(out, "seqlstm_clients_gone_total", "counter",
                 "Requests whose client left before they were computed to their ends.", now.gone);
    write_number(out, "seqlstm_weights_taken_over_total", "counter", "Newer weights that were taken over.",
                 now.followed);
    write_number(out, "seqlstm_queue_length", "gauge", "Requests that wait for a worker.", gauges->waiting);
    write_number(out, "seqlstm_streams", "gauge", "Streams that are open.", gauges->streams);
    write_number(out, "seqlstm_streams_expired_total", "counter", "Streams that ended because they were not used.",
                 gauges->expired);
    write_number(out, "seqlstm_busy_workers", "gauge", "Workers that compute.", now.busy);
    write_histogram(out, "seqlstm_queue_seconds", "Time that a request waited for a worker.", seconds, &now.queued_s);
    write_histogram(out, "seqlstm_batch_seconds", "Time that a batch took.", seconds, &now.computed_s);
    write_histogram(out, "seqlstm_batch_sequences", "Sequences in a batch.", widths, &now.width);
}
