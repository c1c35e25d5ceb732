/* SPDX-License-Identifier: Apache-2.0 */
/* See history.h. */
#include "serve/load/history.h"

#include <stdlib.h>

void sl_history_init(struct sl_history *history)
{
    *history = (struct sl_history){.count = 0};
    pthread_mutex_init(&history->lock, NULL);
}

void sl_history_deinit(struct sl_history *history)
{
    pthread_mutex_destroy(&history->lock);
    free(history->events);
}

static bool make_room(struct sl_history *history)
{
    if (history->count < history->room)
        return true;
    const int64_t room = history->room > 0 ? 2 * history->room : 1 << 14;
    struct sl_history_event *grown = realloc(history->events, (size_t)room * sizeof *grown);
    if (grown == NULL)
        return false;
    history->events = grown;
    history->room = room;
    return true;
}

void sl_history_note(struct sl_history *history, const struct sl_history_event *event)
{
    if (history == NULL)
        return;
    pthread_mutex_lock(&history->lock);
    if (make_room(history))
        history->events[history->count++] = *event;
    else
        history->failed = true;
    pthread_mutex_unlock(&history->lock);
}

void sl_history_write(const struct sl_history *history, struct sl_buf *out)
{
    sl_buf_append_text(out, "what,load,begin_s,end_s,steps,sequences,rows\n");
    for (int64_t k = 0; k < history->count; k++) {
        const struct sl_history_event *e = &history->events[k];
        sl_buf_printf(out, e->number < 0 ? "batch," : "request,%d", (int)e->number);
        sl_buf_printf(out, ",%.6f,%.6f,%lld,%lld,%lld\n", (double)e->begin_ns * 1e-9, (double)e->end_ns * 1e-9,
                      (long long)e->steps, (long long)e->sequences, (long long)e->rows);
    }
    out->failed = out->failed || history->failed;
}
