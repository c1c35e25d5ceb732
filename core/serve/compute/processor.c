/* SPDX-License-Identifier: Apache-2.0 */
/* See processor.h. */
#include "serve/compute/processor.h"

/* It is judged after so much computing, and left if it was without a processor for more than one of so many parts. */
enum { JUDGE_NS = 100000000, PARTS = 8 };

#define PAUSE_LEAST_NS ((int64_t)1000000000)
#define PAUSE_MOST_NS  (300 * PAUSE_LEAST_NS)

void sl_processor_init(struct sl_processor *processor, const struct sl_pinning *pinning, int32_t k)
{
    *processor = (struct sl_processor){.used = pinning->used, .all = pinning->all};
    if (processor->used)
        sl_pinning_get(pinning, k, &processor->own);
}

int sl_processor_start(const struct sl_processor *processor, pthread_t *out_thread, void *(*start)(void *),
                       void *context)
{
    pthread_attr_t attributes;
    int failure = pthread_attr_init(&attributes);
    if (failure != 0)
        return failure;
    if (processor->used)
        failure = pthread_attr_setaffinity_np(&attributes, sizeof processor->own, &processor->own);
    if (failure == 0)
        failure = pthread_create(out_thread, &attributes, start, context);
    pthread_attr_destroy(&attributes);
    return failure;
}

static void move(struct sl_processor *processor, bool leave)
{
    const cpu_set_t *to = leave ? &processor->all : &processor->own;
    processor->used = pthread_setaffinity_np(pthread_self(), sizeof *to, to) == 0;
    processor->left = leave;
    processor->took_ns = processor->had_ns = 0;
}

static int64_t choose_pause(int64_t last_ns)
{
    if (last_ns == 0)
        return PAUSE_LEAST_NS;
    return last_ns < PAUSE_MOST_NS / 2 ? 2 * last_ns : PAUSE_MOST_NS;
}

void sl_processor_note(struct sl_processor *processor, int64_t now_ns, int64_t took_ns, int64_t had_ns)
{
    if (!processor->used)
        return;
    if (processor->left) {
        if (now_ns >= processor->back_ns)
            move(processor, false);
        return;
    }
    processor->took_ns += took_ns;
    processor->had_ns += had_ns;
    if (processor->took_ns < JUDGE_NS)
        return;
    if (processor->took_ns - processor->had_ns > processor->took_ns / PARTS) {
        processor->pause_ns = choose_pause(processor->pause_ns);
        processor->back_ns = now_ns + processor->pause_ns;
        move(processor, true);
        return;
    }
    processor->pause_ns = processor->took_ns = processor->had_ns = 0;
}
