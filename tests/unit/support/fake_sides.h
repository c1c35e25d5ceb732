/* SPDX-License-Identifier: Apache-2.0 */
/* Sides of a comparison which compute nothing: they accept, judge and take as long as a test says, by a clock and a
 * peak of the test. Linked with --wrap for the functions below. */
#ifndef FAKE_SIDES_H
#define FAKE_SIDES_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/live.h"
#include "golden.h"
#include "oom.h"
#include "temporary.h"

#include "base/operation/op_signature.h"
#include "base/system/pool.h"
#include "compare/side/local_side.h"
#include "session/session.h"

enum { FAKE_VALUES = 3 };

struct fake_side {
    struct sl_compare_side side;
    const struct fake_backend *backend;
    struct sl_local_side_request request;
    int calls, turns;
    bool runs;
    int32_t batch;
};

/* What a backend of a test does. */
struct fake_backend {
    const char *id, *version;
    bool on_device;
    const char *gone;                           /* why it does not load; or NULL */
    const char *accepts;                        /* the first letters of operations: "RDL" */
    bool joins;                                 /* accepts alternatives, too */
    const char *const *wrong;                   /* the units whose numbers are wrong, ends with NULL; or NULL */
    double (*ns)(const struct fake_side *side); /* of a step */
    double loss;
    float values[FAKE_VALUES];
};

static const struct fake_backend *fake_backends; /* ends with an id of NULL */
static struct sl_buf fake_log;
static int64_t fake_now_ns;
static double fake_peak, fake_peak_step;
static int fake_open_sides;
static struct sl_interrupt fake_interrupt; /* that of each request */

seqlstm_status __wrap_sl_local_side_open(const struct sl_local_side_request *request, struct sl_compare_side **out_side,
                                         struct seqlstm_error *err);
double __wrap_sl_peak_measure(struct sl_pool *pool);
int64_t __wrap_sl_clock_ns(void);

/* Of each thread; another one in each call. */
double __wrap_sl_peak_measure(struct sl_pool *pool)
{
    fake_peak += fake_peak_step;
    return fake_peak * sl_pool_get_members(pool);
}

int64_t __wrap_sl_clock_ns(void)
{
    return fake_now_ns;
}

/* Appends a text with its numbers to nine digits, which all machines have in common. */
static void fake_append_rounded(const char *text, struct sl_buf *out)
{
    while (*text) {
        const size_t other = strcspn(text, "0123456789");
        sl_buf_printf(out, "%.*s", (int)other, text);
        text += other;
        char *end = NULL;
        const double value = strtod(text, &end);
        const bool is_long = end - text > 11;
        if (is_long)
            sl_buf_printf(out, "%.9g", value);
        else
            sl_buf_printf(out, "%.*s", (int)(end - text), text);
        text = end;
    }
}

static struct fake_side *fake_of(struct sl_compare_side *side)
{
    return (struct fake_side *)side;
}

static void fake_close(struct sl_compare_side *side)
{
    fake_open_sides--;
    free(side);
}

static bool fake_accepts(const struct fake_backend *b, const struct sl_graph *graph, int32_t unit)
{
    const char *op = sl_op_name(sl_unit_get(graph, unit)->desc.head.op);
    return strchr(b->accepts, op[0]) != NULL && (unit < graph->node_count || b->joins);
}

static seqlstm_status fake_get_facts(struct sl_compare_side *side, struct sl_arena *arena,
                                     struct sl_compare_side_facts *out, struct seqlstm_error *err)
{
    const struct fake_side *f = fake_of(side);
    const struct sl_graph *graph = f->request.graph;
    memset(out, 0, sizeof *out);
    out->unit_count = sl_unit_count(graph);
    out->units = SL_ARENA_ARRAY(arena, struct sl_compare_side_unit, (size_t)out->unit_count);
    if (!out->units)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for facts");
    out->on_device = f->backend->on_device;
    strcpy(out->id, f->backend->id);
    strcpy(out->version, f->backend->version);
    snprintf(out->device, sizeof out->device, "%s:x", f->backend->on_device ? "gpu" : "cpu");
    for (int32_t u = 0; u < out->unit_count; u++) {
        struct sl_compare_side_unit *unit = &out->units[u];
        unit->accepted = fake_accepts(f->backend, graph, u);
        strcpy(unit->variant, unit->accepted ? u < graph->node_count ? "one" : "joined" : "");
        snprintf(unit->reason, sizeof unit->reason, "%s has no %s", f->backend->id, sl_unit_get(graph, u)->name);
        if (u % 2 == 0) {
            strcpy(unit->others[0].id, "third");
            strcpy(unit->others[0].variant, "v3");
        }
        strcpy(unit->others[(u + 1) % 2].id, "reference");
        strcpy(unit->others[(u + 1) % 2].variant, "loops");
        unit->other_count = 1 + (u + 1) % 2;
    }
    return SEQLSTM_OK;
}

static seqlstm_status fake_plan(struct sl_compare_side *side, const struct sl_compare_side_choice *choices,
                                int32_t count, struct seqlstm_error *err)
{
    struct fake_side *f = fake_of(side);
    (void)err;
    f->calls = count;
    sl_buf_printf(&fake_log, "%s with %d thread(s), batches of up to %d sequences and %d rows:", f->backend->id,
                  (int)sl_pool_get_members(f->request.pool), (int)f->request.sample->envelope.sequences,
                  (int)f->request.sample->envelope.rows);
    for (int32_t c = 0; c < count; c++)
        sl_buf_printf(&fake_log, " %s=%s:%s", sl_unit_get(f->request.graph, choices[c].unit)->name, choices[c].id,
                      choices[c].variant);
    sl_buf_append_char(&fake_log, '\n');
    return SEQLSTM_OK;
}

static bool fake_is_wrong(const struct fake_backend *b, const char *unit)
{
    for (const char *const *wrong = b->wrong; wrong && *wrong; wrong++)
        if (strcmp(*wrong, unit) == 0)
            return true;
    return false;
}

static seqlstm_status fake_judge(struct sl_compare_side *side, struct sl_compare_side_verdict *out,
                                 struct seqlstm_error *err)
{
    const struct fake_side *f = fake_of(side);
    (void)err;
    sl_buf_printf(&fake_log, "%s is judged\n", f->backend->id);
    for (int32_t u = 0; u < sl_unit_count(f->request.graph); u++) {
        const char *name = sl_unit_get(f->request.graph, u)->name;
        out[u].failed = fake_is_wrong(f->backend, name);
        out[u].worst = out[u].failed ? 4.5 : 0.0625 * (u + 1) + (f->backend->on_device ? 0.25 : 0);
        snprintf(out[u].detail, sizeof out[u].detail, "dW of %s is off", name);
    }
    return SEQLSTM_OK;
}

static seqlstm_status fake_start(struct sl_compare_side *side, int32_t batch, struct sl_compare_side_result *out,
                                 int64_t *out_ns, struct seqlstm_error *err)
{
    struct fake_side *f = fake_of(side);
    (void)err;
    assert_false(f->runs);
    f->runs = true;
    f->batch = batch;
    *out = (struct sl_compare_side_result){f->backend->loss, FAKE_VALUES, f->backend->values};
    *out_ns = (int64_t)f->backend->ns(f);
    return SEQLSTM_OK;
}

static seqlstm_status fake_stop(struct sl_compare_side *side, struct seqlstm_error *err)
{
    (void)err;
    fake_of(side)->runs = false;
    return SEQLSTM_OK;
}

static seqlstm_status fake_take_turn(struct sl_compare_side *side, int32_t lead, int32_t steps, double *out_ns,
                                     struct seqlstm_error *err)
{
    struct fake_side *f = fake_of(side);
    (void)err;
    assert_true(f->runs);
    out_ns[0] = f->backend->ns(f);
    for (int c = 1; c <= f->calls; c++)
        out_ns[c] = out_ns[0] / (c + 1);
    fake_now_ns += (int64_t)((lead + steps) * out_ns[0]);
    sl_buf_printf(&fake_log, "%s/%d/%d: %d+%d\n", f->backend->id, (int)sl_pool_get_members(f->request.pool),
                  (int)f->batch, (int)lead, (int)steps);
    f->turns++;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_local_side_open(const struct sl_local_side_request *request, struct sl_compare_side **out_side,
                                         struct seqlstm_error *err)
{
    static const struct sl_compare_side_table table = {fake_close, fake_get_facts, fake_plan,     fake_judge,
                                                       fake_start, fake_stop,      fake_take_turn};
    assert_ptr_equal(request->interrupt, &fake_interrupt);
    const struct fake_backend *b = fake_backends;
    while (b->id && strcmp(b->id, request->own->name) != 0)
        b++;
    if (!b->id || b->gone)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s: %s", request->own->name, b->id ? b->gone : "unknown");
    struct fake_side *f = calloc(1, sizeof *f);
    if (!f)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a side");
    f->side.table = &table;
    f->backend = b;
    f->request = *request;
    fake_open_sides++;
    *out_side = &f->side;
    return SEQLSTM_OK;
}

/* Makes each allocation of `run` fail, which gives NO_MEMORY then, or what it gives with memory. Nothing stays. */
static void fake_without_memory(seqlstm_status (*run)(struct sl_session *session, struct seqlstm_error *err),
                                struct sl_session *session)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (run(session, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    const long before = live_count();
    for (int n = 1;; n++) {
        err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        oom_fail_at(n);
        const seqlstm_status status = run(session, &err);
        const bool failed = oom_disarm();
        if (live_count() != before || fake_open_sides != 0)
            fail_msg("after allocation %d: %ld blocks, %d sides", n, live_count() - before, fake_open_sides);
        if (!failed)
            break;
        if (status != SEQLSTM_NO_MEMORY)
            fail_msg("allocation %d: status %d, '%s'", n, (int)status, err.message);
    }
}

/* A session of the model `text`; its options have one thread. */
static struct sl_session *fake_session(const char *text)
{
    char path[TEMPORARY_BYTES];
    const int file = mkstemp(temporary_template(path, "sides"));
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    struct sl_model_request model = {.path = path};
    const struct sl_session_options options = {.model = &model, .threads = 1, .threads_given = true};
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_session *session = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_diagnostics_create(&diagnostics, &err), SEQLSTM_OK);
    if (sl_session_open_model(&options, diagnostics, &session, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    sl_diagnostics_destroy(diagnostics);
    unlink(path);
    return session;
}

#endif
