/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas with a delay after every call, of `percent` of the time that the call took. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <seqlstm/backend.h>

static struct seqlstm_backend table;
static const struct seqlstm_backend *inner;
static double share;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void wait_on(double begin)
{
    double end = now_ns();
    for (end += share * (end - begin); now_ns() < end;) {
    }
}

static seqlstm_status slow_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                uint32_t setting_count, struct seqlstm_instance **out_instance,
                                struct seqlstm_error *err)
{
    share = 0.03;
    for (uint32_t s = 0; s < setting_count; s++)
        share = atof(settings[s].value) / 100;
    return inner->open(host, NULL, 0, out_instance, err);
}

static seqlstm_status slow_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                   const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    double begin = now_ns();
    seqlstm_status rc = inner->forward(binding, queue, args, err);
    wait_on(begin);
    return rc;
}

static seqlstm_status slow_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    double begin = now_ns();
    seqlstm_status rc = inner->backward(binding, queue, args, err);
    wait_on(begin);
    return rc;
}

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);
SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)
{
    static const struct seqlstm_option options[] = {{"percent", "float", "3", "how much slower every call is"}};
    void *library = dlopen(SLOW_INNER, RTLD_NOW | RTLD_LOCAL), *symbol;
    seqlstm_backend_query_fn query = NULL;
    symbol = library ? dlsym(library, SEQLSTM_QUERY_SYMBOL) : NULL;
    memcpy(&query, &symbol, sizeof query);
    if (!query)
        return NULL;
    inner = query(host_minor);
    table = *inner;
    table.id = "slow";
    table.options = options;
    table.option_count = 1;
    table.open = slow_open;
    table.forward = slow_forward;
    table.backward = slow_backward;
    return &table;
}
