/* SPDX-License-Identifier: Apache-2.0 */
/* Selects cases, runs them here or in workers, and collects the results. */
#include "conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/system/clock.h"
#include "base/value/text.h"
#include "conformance/level.h"
#include "conformance/named_check.h"
#include "conformance/workers.h"

struct selected {
    enum sl_level level;
    const char *name;
};

struct sl_conformance_report {
    struct sl_arena arena;
    struct sl_backend_record record;
    struct sl_conformance_result *results;
    uint32_t count, capacity;
    bool failed;
    uint32_t verdicts[SL_VERDICT_COUNT];
    const struct sl_conformance_request *request; /* while running */
    const struct sl_case_time *times;             /* set_times */
    uint32_t time_count;
    bool timed;
    struct sl_workbench *workbench; /* in this process; NULL with workers */
    struct sl_workers *workers;
};

/* ---- selection -------------------------------------------------------------------------------- */

static bool is_glob(const char *name)
{
    return strpbrk(name, "*?") != NULL;
}

struct selection {
    const struct sl_conformance_request *request;
    void (*fn)(void *context, enum sl_level level, const char *name);
    void *context;
};

static void offer(void *context, enum sl_level level, const char *text)
{
    struct selection *s = context;
    bool wanted = s->request->case_count == 0;
    for (uint32_t i = 0; i < s->request->case_count; i++)
        if (is_glob(s->request->cases[i]))
            wanted |= sl_pattern_matches(s->request->cases[i], text);
        else if (strcmp(s->request->cases[i], text) == 0)
            return; /* it was named */
    if (wanted)
        s->fn(s->context, level, text);
}

static bool has_level(const struct sl_conformance_request *request, enum sl_level level)
{
    return request->levels == 0 || (request->levels & (1u << level)) != 0;
}

/* Calls fn for each selected case. Names that are no globs need not be in the catalogue. */
static void each_case(const struct sl_conformance_request *request,
                      void (*fn)(void *context, enum sl_level level, const char *name), void *context)
{
    bool any_glob = request->case_count == 0 && request->random == 0;
    for (uint32_t i = 0; i < request->random; i++) {
        char text[SL_CASE_TEXT_BYTES];
        sl_catalogue_random(request->seed, i, text);
        fn(context, SL_LEVEL_COUNT, text);
    }
    for (uint32_t i = 0; i < request->case_count; i++) {
        if (is_glob(request->cases[i]))
            any_glob = true;
        else
            fn(context, SL_LEVEL_COUNT, request->cases[i]);
    }
    struct selection selection = {request, fn, context};
    for (int level = SL_LEVEL_CLAIMS; any_glob && level < SL_LEVEL_COUNT; level++)
        if (has_level(request, (enum sl_level)level))
            sl_catalogue_each((enum sl_level)level, request->full, offer, &selection);
}

/* The level of a case that was named directly, by its pass. */
static enum sl_level level_of(const struct sl_case *c)
{
    switch (c->pass) {
    case SL_PASS_CLAIM:
        return SL_LEVEL_CLAIMS;
    case SL_PASS_INFERENCE:
    case SL_PASS_FORWARD:
    case SL_PASS_SAME:
        return SL_LEVEL_FORWARD;
    case SL_PASS_MEMORY:
    case SL_PASS_IDLE:
    case SL_PASS_REPEAT:
        return SL_LEVEL_MEMORY;
    case SL_PASS_THREADS:
    case SL_PASS_ALTERNATE:
        return SL_LEVEL_THREADS;
    default:
        return SL_LEVEL_BACKWARD;
    }
}

/* ---- running ------------------------------------------------------------------------------------ */

static void keep_result(struct sl_conformance_report *r, const struct sl_conformance_result *result)
{
    if (r->count == r->capacity) {
        uint32_t capacity = r->capacity ? 2 * r->capacity : 256;
        struct sl_conformance_result *grown = realloc(r->results, capacity * sizeof *grown);
        if (!grown) {
            r->failed = true;
            return;
        }
        r->results = grown;
        r->capacity = capacity;
    }
    struct sl_conformance_result copy = *result;
    copy.name = sl_arena_strdup(&r->arena, result->name);
    sl_claims_judge(r->request->claims, r->request->claim_count,
                    r->record.device_count ? r->record.devices[0].device_class : "", result->name, &copy.check);
    if (!copy.name) {
        r->failed = true;
        return;
    }
    r->results[r->count++] = copy;
    r->verdicts[copy.check.verdict]++;
    if (r->request->on_result)
        r->request->on_result(r->request->context, &copy);
}

static void check(struct sl_conformance_report *r, const char *name, struct sl_check_result *out_result)
{
    if (r->workers)
        sl_workers_run(r->workers, name, out_result);
    else
        sl_named_check(r->workbench, r->request, name, out_result);
}

static void run_case(void *context, enum sl_level level, const char *name)
{
    struct sl_conformance_report *r = context;
    struct sl_conformance_result result = {.level = level, .name = name};
    struct sl_case c;
    int64_t start = sl_clock_ns();
    if (r->failed || sl_interrupt_get_stop(r->request->interrupt))
        return;
    if (level == SL_LEVEL_COUNT)
        result.level = sl_case_parse(name, &c, NULL) == SEQLSTM_OK ? level_of(&c) : SL_LEVEL_CLAIMS;
    check(r, name, &result.check);
    result.took_ns = sl_clock_ns() - start;
    keep_result(r, &result);
}

/* Runs the levels load and contract. */
static void run_levels(struct sl_conformance_report *r)
{
    const struct sl_conformance_request *request = r->request;
    const char *name;
    if (request->case_count > 0 || request->random > 0)
        return;
    for (uint32_t i = 0; has_level(request, SL_LEVEL_LOAD) && (name = sl_level_load_get_name(i)) != NULL; i++)
        run_case(r, SL_LEVEL_LOAD, name);
    for (uint32_t i = 0; has_level(request, SL_LEVEL_CONTRACT) && (name = sl_level_contract_get_name(i)) != NULL; i++)
        run_case(r, SL_LEVEL_CONTRACT, name);
}

/* Ends a process that has the backend open. Only a worker can test this. */
static void run_end(struct sl_conformance_report *r)
{
    const struct sl_conformance_request *request = r->request;
    struct sl_conformance_result result = {.level = SL_LEVEL_LOAD, .name = "load:end"};
    if (!r->workers || request->case_count > 0 || request->random > 0 || !has_level(request, SL_LEVEL_LOAD))
        return;
    sl_workers_end(r->workers, &result.check);
    keep_result(r, &result);
}

struct claimed {
    const char *pattern;
    bool found;
};

static void look_for_claim(void *context, enum sl_level level, const char *name)
{
    struct claimed *c = context;
    (void)level;
    c->found = c->found || sl_pattern_matches(c->pattern, name);
}

/* A claim that matches no case promises nothing. It is most likely a typing error. */
static void check_claims(struct sl_conformance_report *r)
{
    const struct sl_conformance_request *request = r->request;
    if (request->case_count > 0 || request->random > 0 || request->levels != 0)
        return;
    for (uint32_t i = 0; i < request->claim_count; i++) {
        struct claimed claimed = {.pattern = request->claims[i].pattern};
        for (uint32_t k = 0; k < r->count && !claimed.found; k++) /* load and contract are not in the catalogue */
            look_for_claim(&claimed, r->results[k].level, r->results[k].name);
        for (int level = SL_LEVEL_CLAIMS; level < SL_LEVEL_COUNT && !claimed.found; level++)
            sl_catalogue_each((enum sl_level)level, true, look_for_claim, &claimed);
        if (claimed.found)
            continue;
        struct sl_check_result check = {.verdict = SL_VERDICT_FAIL};
        sl_text_snprintf(check.detail, sizeof check.detail, "line %d of the claims, `%.200s`, matches no case",
                         request->claims[i].line, request->claims[i].pattern);
        struct sl_conformance_result result = {.level = SL_LEVEL_CLAIMS, .name = "claims:file", .check = check};
        keep_result(r, &result);
    }
}

/* False: no memory. */
static bool copy_text(struct sl_arena *arena, const char *text, const char **out)
{
    *out = text ? sl_arena_strdup(arena, text) : NULL;
    return *out || !text;
}

/* Copies the record into the arena of the report, because the report outlives the workbench. */
static seqlstm_status keep_record(struct sl_conformance_report *r, const struct sl_backend_record *from,
                                  struct seqlstm_error *err)
{
    r->record = *from;
    struct sl_arena *arena = &r->arena;
    bool copied =
        copy_text(arena, from->id, &r->record.id) && copy_text(arena, from->file, &r->record.file) &&
        copy_text(arena, from->version, &r->record.version) && copy_text(arena, from->vendor, &r->record.vendor) &&
        copy_text(arena, from->license, &r->record.license) && copy_text(arena, from->build, &r->record.build);
    struct seqlstm_device_info *devices = SL_ARENA_ARRAY(arena, struct seqlstm_device_info, from->device_count + 1);
    struct sl_backend_file *files = SL_ARENA_ARRAY(arena, struct sl_backend_file, from->file_count + 1);
    for (uint32_t i = 0; copied && files && i < from->file_count; i++)
        copied = copy_text(arena, from->files[i].path, &files[i].path) &&
                 copy_text(arena, from->files[i].build_id, &files[i].build_id);
    if (!copied || !devices || !files)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the conformance report");
    if (from->device_count)
        memcpy(devices, from->devices, from->device_count * sizeof *devices);
    r->record.devices = devices;
    r->record.files = files;
    return SEQLSTM_OK;
}

static seqlstm_status load_here(struct sl_conformance_report *r, struct sl_workbench *w, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_workbench_init(w, r->request, err));
    r->workbench = w;
    return keep_record(r, &w->record, err);
}

/* With workers, this process runs no code of the plugin, not even to load it. */
static seqlstm_status load_in_worker(struct sl_conformance_report *r, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_workers_create(r->request->worker, r->request->timeout_ns, &r->workers, err));
    return sl_workers_load(r->workers, &r->arena, &r->record, err);
}

seqlstm_status sl_conformance_run(const struct sl_conformance_request *request,
                                  struct sl_conformance_report **out_report, struct seqlstm_error *err)
{
    struct sl_conformance_report *r = calloc(1, sizeof *r);
    struct sl_workbench *w = calloc(1, sizeof *w);
    seqlstm_status rc = SEQLSTM_NO_MEMORY;
    if (!r || !w)
        goto no_memory;
    r->request = request;
    rc = request->worker ? load_in_worker(r, err) : load_here(r, w, err);
    if (rc != SEQLSTM_OK)
        goto out;
    run_levels(r);
    each_case(request, run_case, r);
    run_end(r);
    check_claims(r);
    if (r->failed)
        goto no_memory;
    if (sl_interrupt_get_stop(request->interrupt))
        rc = seqlstm_error_set(err, SEQLSTM_CANCELLED, __FILE__, __LINE__, "stopped after %u case%s", r->count,
                               r->count == 1 ? "" : "s");
    goto out;
no_memory:
    rc = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "out of memory for the conformance report");
out:
    if (r) {
        sl_workers_destroy(r->workers);
        r->workers = NULL;
        r->workbench = NULL;
    }
    if (w) {
        sl_workbench_deinit(w);
        free(w);
    }
    if (rc == SEQLSTM_OK)
        *out_report = r;
    else
        sl_conformance_report_destroy(r);
    return rc;
}

void sl_conformance_report_destroy(struct sl_conformance_report *report)
{
    if (!report)
        return;
    free(report->results);
    sl_arena_deinit(&report->arena);
    free(report);
}

/* ---- the report ---------------------------------------------------------------------------------- */

const char *sl_conformance_report_find_untested(const struct sl_conformance_report *report)
{
    const char *reason = NULL;
    for (uint32_t i = 0; i < report->count; i++) {
        const struct sl_conformance_result *r = &report->results[i];
        if (r->level < SL_LEVEL_CLAIMS)
            continue;
        if (r->check.verdict == SL_VERDICT_SKIP)
            reason = r->check.detail;
        else if (r->check.verdict != SL_VERDICT_UNSUPPORTED)
            return NULL;
    }
    return reason;
}

void sl_conformance_report_set_times(struct sl_conformance_report *report, const struct sl_case_time *times,
                                     uint32_t count)
{
    report->times = times;
    report->time_count = count;
    report->timed = true;
}

bool sl_conformance_report_is_timed(const struct sl_conformance_report *report)
{
    return report->timed;
}

const struct sl_case_time *sl_conformance_report_get_times(const struct sl_conformance_report *report,
                                                           uint32_t *out_count)
{
    *out_count = report->time_count;
    return report->times;
}

uint32_t sl_conformance_report_get_count(const struct sl_conformance_report *report, enum sl_verdict verdict)
{
    return report->verdicts[verdict];
}

uint32_t sl_conformance_report_get_size(const struct sl_conformance_report *report)
{
    return report->count;
}

uint32_t sl_conformance_report_count_bad(const struct sl_conformance_report *report)
{
    uint32_t bad = 0;
    for (int v = 0; v < SL_VERDICT_COUNT; v++)
        bad += sl_verdict_is_bad((enum sl_verdict)v) ? report->verdicts[v] : 0;
    return bad;
}

const struct sl_conformance_result *sl_conformance_report_get(const struct sl_conformance_report *report,
                                                              uint32_t index)
{
    return &report->results[index];
}

const struct sl_backend_record *sl_conformance_report_get_record(const struct sl_conformance_report *report)
{
    return &report->record;
}

/* ---- lists and workers ----------------------------------------------------------------------------- */

static void print_name(void *context, enum sl_level level, const char *name)
{
    (void)level;
    sl_buf_append_text(context, name);
    sl_buf_append_char(context, '\n');
}

seqlstm_status sl_conformance_list(const struct sl_conformance_request *request, struct sl_buf *out,
                                   struct seqlstm_error *err)
{
    each_case(request, print_name, out);
    if (out->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the list of cases");
    return SEQLSTM_OK;
}

seqlstm_status sl_conformance_work(const struct sl_conformance_request *request, int in, int out,
                                   struct seqlstm_error *err)
{
    struct sl_workbench *w = calloc(1, sizeof *w);
    if (!w)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for a worker");
    struct sl_conformance_request own = *request;
    own.is_worker = true;
    sl_worker_share();
    seqlstm_status rc = sl_workbench_init(w, &own, err);
    if (rc == SEQLSTM_OK) {
        rc = sl_worker_serve(w, &own, in, out, err);
        sl_workbench_deinit(w);
    } else {
        rc = sl_worker_refuse(NULL, rc, err->message, in, out) ? SEQLSTM_OK : rc;
    }
    free(w);
    return rc;
}
