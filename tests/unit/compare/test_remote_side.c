/* SPDX-License-Identifier: Apache-2.0 */
/* Sides in processes of their own, each of which is this program again: what they are told, and what they answer, are
 * all different. And which libraries need two processes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "compare/side/remote_link.h"
#include "compare/side/remote_side.h"
#include "ok.h"
#include "oom.h"

enum { UNITS = 3 };

static const char *const child_words[] = {"/proc/self/exe", "--child"};

/* ---- the side of a child ----------------------------------------------------------------------------------------- */

struct child {
    struct sl_compare_side side;
    const char *scenario, *role;
    struct sl_compare_side_choice choices[UNITS];
    int32_t calls;
    float values[16];
};

static struct child *get(struct sl_compare_side *side)
{
    return (struct child *)side;
}

static void child_close(struct sl_compare_side *side)
{
    (void)side;
}

static seqlstm_status child_get_facts(struct sl_compare_side *side, struct sl_arena *arena,
                                      struct sl_compare_side_facts *facts, struct seqlstm_error *err)
{
    (void)err;
    snprintf(facts->id, sizeof facts->id, "of-%s", get(side)->role);
    snprintf(facts->version, sizeof facts->version, "1.2");
    snprintf(facts->file, sizeof facts->file, "/x/%s.so", get(side)->role);
    snprintf(facts->device, sizeof facts->device, "cuda:%s", get(side)->role);
    facts->on_device = strcmp(get(side)->role, "b") == 0;
    facts->units = SL_ARENA_ARRAY(arena, struct sl_compare_side_unit, UNITS);
    facts->unit_count = UNITS;
    for (int u = 0; u < UNITS; u++) {
        struct sl_compare_side_unit *unit = &facts->units[u];
        unit->accepted = u != 1;
        snprintf(unit->variant, sizeof unit->variant, "v%d", u);
        snprintf(unit->reason, sizeof unit->reason, "why %d", u);
        unit->other_count = u;
        for (int k = 0; k < u; k++) {
            snprintf(unit->others[k].id, sizeof unit->others[k].id, "other%d%d", u, k);
            snprintf(unit->others[k].variant, sizeof unit->others[k].variant, "w%d%d", u, k);
        }
    }
    return SEQLSTM_OK;
}

static seqlstm_status child_plan(struct sl_compare_side *side, const struct sl_compare_side_choice *choices,
                                 int32_t count, struct seqlstm_error *err)
{
    struct child *c = get(side);
    if (strcmp(c->scenario, "refuses") == 0)
        return seqlstm_error_set(err, SEQLSTM_UNSUPPORTED, "child.c", 5, "no plan for %d of %s", count, choices[0].id);
    memcpy(c->choices, choices, (size_t)count * sizeof *choices);
    c->calls = count;
    return SEQLSTM_OK;
}

static seqlstm_status child_judge(struct sl_compare_side *side, struct sl_compare_side_verdict *verdicts,
                                  struct seqlstm_error *err)
{
    (void)err;
    if (strcmp(get(side)->scenario, "exits") == 0)
        _exit(7);
    for (int u = 0; u < (strcmp(get(side)->scenario, "short") == 0 ? 1 : UNITS); u++) {
        verdicts[u].failed = u == 2;
        verdicts[u].worst = 0.5 + u;
        snprintf(verdicts[u].detail, sizeof verdicts[u].detail, "detail %d", u);
    }
    return SEQLSTM_OK;
}

static seqlstm_status child_start(struct sl_compare_side *side, int32_t batch, struct sl_compare_side_result *result,
                                  int64_t *ns, struct seqlstm_error *err)
{
    struct child *c = get(side);
    (void)err;
    if (strcmp(c->scenario, "dies") == 0)
        kill(getpid(), SIGKILL);
    *result = (struct sl_compare_side_result){.loss = batch + 0.25, .elems = 2 + batch, .values = c->values};
    for (int k = 0; k < 2 + batch; k++)
        c->values[k] = (float)(10 * k + batch);
    *ns = 1000 + batch;
    return SEQLSTM_OK;
}

static seqlstm_status child_stop(struct sl_compare_side *side, struct seqlstm_error *err)
{
    (void)side, (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status child_take_turn(struct sl_compare_side *side, int32_t lead, int32_t steps, double *ns,
                                      struct seqlstm_error *err)
{
    const struct child *c = get(side);
    (void)err;
    ns[0] = 100 * lead + steps;
    for (int32_t k = 0; k < c->calls; k++)
        ns[1 + k] = 1000 * c->choices[k].unit + 10 * (c->choices[k].id[0] - 'a') + c->choices[k].variant[0] - 'a';
    return SEQLSTM_OK;
}

static const struct sl_compare_side_table child_table = {.close = child_close,
                                                         .get_facts = child_get_facts,
                                                         .plan = child_plan,
                                                         .judge = child_judge,
                                                         .start = child_start,
                                                         .stop = child_stop,
                                                         .take_turn = child_take_turn};

/* ---- the files of a child ---------------------------------------------------------------------------------------- */

enum { FILES_MOST = 4 };

/* The first file of each side is its plugin. */
static const struct {
    struct sl_backend_file a[FILES_MOST], b[FILES_MOST];
    const char *reason;
} libraries[] = {
    {{{"/a.so", "p", "1"}, {"/1/x", "x", "aa"}},
     {{"/b.so", "p", "2"}, {"/2/x", "x", "bb"}},
     "A needs /1/x as x, B needs /2/x"},
    {{{"/a.so", "p", "1"}, {"/1/x", "x", "aa"}}, {{"/b.so", "p", "2"}, {"/2/x", "x", "aa"}}, NULL}, /* two copies */
    {{{"/a.so", "p", "1"}, {"/1/x", "x", ""}},
     {{"/b.so", "p", "2"}, {"/2/x", "x", ""}},
     "A needs /1/x as x, B needs /2/x"}, /* it is not known whether they are copies */
    {{{"/a.so", "p", "1"}, {"/1/x", "x", "aa"}},
     {{"/b.so", "p", "2"}, {"/2/x", "x", ""}},
     "A needs /1/x as x, B needs /2/x"},
    {{{"/a.so", "p", "1"}, {"/1/x", "x", "aa"}}, {{"/b.so", "p", "2"}, {"/1/x", "x", "bb"}}, NULL}, /* one file */
    {{{"/a.so", "p", "1"}, {"/1/x", "", "aa"}}, {{"/b.so", "p", "2"}, {"/2/x", "", "bb"}}, NULL},   /* no names */
    {{{"/a.so", "p", "1"}, {"/1/x", "x", "aa"}}, {{"/b.so", "p", "2"}, {"/2/y", "y", "bb"}}, NULL},
    {{{"/a.so", "p", "1"}, {"/1/x", "x", "aa"}}, {{"/b.so", "x", "2"}}, NULL}, /* a plugin is no library */
    {{{"/a.so", "x", "1"}}, {{"/b.so", "p", "2"}, {"/2/x", "x", "bb"}}, NULL},
    {{{"/a.so", "p", "1"}}, {{"/b.so", "p", "2"}, {"/2/x", "x", "bb"}}, NULL},
    {{{"/a.so", "p", "1"}, {"/1/x", "x", "aa"}, {"/1/y", "y", "aa"}, {"/1/z", "z", "aa"}},
     {{"/b.so", "p", "2"}, {"/1/x", "x", "aa"}, {"/2/w", "w", "aa"}, {"/2/z", "z", "cc"}},
     "A needs /1/z as z, B needs /2/z"},
};

static struct sl_backend_record record;

const struct sl_backend_record *__wrap_sl_backend_get_record(const struct sl_backend *backend);

const struct sl_backend_record *__wrap_sl_backend_get_record(const struct sl_backend *backend)
{
    (void)backend;
    return &record;
}

static void answer_probe(const char *scenario, const char *role)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const bool is_b = strcmp(role, "probe-b") == 0;
    if (strcmp(scenario, "gone") == 0 && is_b) {
        seqlstm_error_set(&err, SEQLSTM_NOT_FOUND, "child.c", 9, "there is no second one");
        sl_remote_answer_probe(NULL, SEQLSTM_NOT_FOUND, &err);
        return;
    }
    int row = atoi(scenario), fails = 0;
    if (sscanf(scenario, "%d without %d", &row, &fails) == 2 && !is_b)
        oom_fail_at(fails);
    record.files = is_b ? libraries[row].b : libraries[row].a;
    while (record.file_count < FILES_MOST && record.files[record.file_count].path)
        record.file_count++;
    sl_remote_answer_probe((const struct sl_backend *)(const void *)&record, SEQLSTM_OK, &err);
}

static int run_child(const char *scenario, const char *role)
{
    static struct child child = {.side.table = &child_table};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = SEQLSTM_OK;
    if (strncmp(role, "probe-", 6) == 0) {
        answer_probe(scenario, role);
        return 0;
    }
    child.scenario = scenario;
    child.role = role;
    if (strcmp(scenario, "late") == 0)
        status = seqlstm_error_set(&err, SEQLSTM_UNAVAILABLE, "child.c", 7, "it does not load");
    sl_remote_serve(&child.side, strcmp(scenario, "short") == 0 ? 1 : UNITS, status, &err);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static struct sl_compare_side *open_side(const char *scenario, bool is_b)
{
    const char *const worker[] = {child_words[0], child_words[1], scenario, NULL};
    struct sl_compare_side *side = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_remote_side_open(worker, is_b, UNITS, &side, &err), &err);
    return side;
}

static void check_facts(struct sl_compare_side *side, bool is_b)
{
    struct sl_compare_side_facts facts = {.unit_count = 0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_arena arena;
    sl_arena_init(&arena);
    ok(side->table->get_facts(side, &arena, &facts, &err), &err);
    assert_string_equal(facts.id, is_b ? "of-b" : "of-a");
    assert_string_equal(facts.version, "1.2");
    assert_string_equal(facts.file, is_b ? "/x/b.so" : "/x/a.so");
    assert_string_equal(facts.device, is_b ? "cuda:b" : "cuda:a");
    assert_int_equal(facts.on_device, is_b);
    assert_int_equal(facts.unit_count, UNITS);
    for (int u = 0; u < UNITS; u++) {
        const struct sl_compare_side_unit *unit = &facts.units[u];
        char text[64];
        assert_int_equal(unit->accepted, u != 1);
        snprintf(text, sizeof text, "v%d", u);
        assert_string_equal(unit->variant, text);
        snprintf(text, sizeof text, "why %d", u);
        assert_string_equal(unit->reason, text);
        assert_int_equal(unit->other_count, u);
        for (int k = 0; k < u; k++) {
            snprintf(text, sizeof text, "other%d%d", u, k);
            assert_string_equal(unit->others[k].id, text);
            snprintf(text, sizeof text, "w%d%d", u, k);
            assert_string_equal(unit->others[k].variant, text);
        }
    }
    sl_arena_deinit(&arena);
}

static void check_turns(struct sl_compare_side *side)
{
    static const struct sl_compare_side_choice choices[] = {{2, "c", "e"}, {0, "b", "f"}, {1, "d", "g"}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double ns[1 + UNITS];
    for (int32_t count = UNITS; count > 0; count--) { /* of a smaller plan, too */
        ok(side->table->plan(side, choices, count, &err), &err);
        ok(side->table->take_turn(side, 4, 10 + count, ns, &err), &err);
        assert_true(ns[0] == 410 + count);
        assert_true(ns[1] == 2024 && (count < 2 || ns[2] == 15) && (count < 3 || ns[3] == 1036));
    }
}

static void sides_are_told_and_answer_all(void **state)
{
    (void)state;
    for (int is_b = 0; is_b < 2; is_b++) {
        struct sl_compare_side *side = open_side("plain", is_b);
        struct sl_compare_side_verdict verdicts[UNITS];
        struct sl_compare_side_result result;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        int64_t ns;
        check_facts(side, is_b);
        ok(side->table->judge(side, verdicts, &err), &err);
        for (int u = 0; u < UNITS; u++) {
            char text[32];
            snprintf(text, sizeof text, "detail %d", u);
            assert_string_equal(verdicts[u].detail, text);
            assert_true(verdicts[u].failed == (u == 2) && verdicts[u].worst == 0.5 + u);
        }
        check_turns(side);
        for (int32_t batch = 9; batch >= 0; batch -= 3) {
            ok(side->table->start(side, batch, &result, &ns, &err), &err);
            assert_true(result.loss == batch + 0.25 && result.elems == 2 + batch && ns == 1000 + batch);
            for (int32_t k = 0; k < 2 + batch; k++)
                assert_true(result.values[k] == (float)(10 * k + batch));
            ok(side->table->stop(side, &err), &err);
        }
        check_facts(side, is_b);
        side->table->close(side);
    }
}

/* What the child says of itself, or how it ended, with the name of its side. */
static void failures_are_those_of_the_side(void **state)
{
    struct sl_compare_side_choice choice = {1, "an-id", "v"};
    struct sl_compare_side_verdict verdicts[UNITS];
    struct sl_compare_side_result result;
    struct sl_compare_side_facts facts;
    struct sl_arena arena;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char expected[200];
    int64_t ns;
    double times[1 + UNITS];
    (void)state;
    sl_arena_init(&arena);
    struct sl_compare_side *side = open_side("late", true);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(side->table->get_facts(side, &arena, &facts, &err), SEQLSTM_UNAVAILABLE);
        assert_string_equal(err.message, "it does not load");
    }
    side->table->close(side);
    side = open_side("refuses", false);
    assert_int_equal(side->table->take_turn(side, 1, 1, times, &err),
                     SEQLSTM_INVALID_ARGUMENT); /* nothing is planned */
    assert_int_equal(side->table->plan(side, &choice, 1, &err), SEQLSTM_UNSUPPORTED);
    assert_string_equal(err.message, "no plan for 1 of an-id");
    ok(side->table->judge(side, verdicts, &err), &err); /* it goes on */
    side->table->close(side);
    side = open_side("short", false);
    assert_int_equal(side->table->judge(side, verdicts, &err), SEQLSTM_INTERNAL);
    snprintf(expected, sizeof expected, "side A answered %zu bytes, expected %zu", sizeof *verdicts, sizeof verdicts);
    assert_string_equal(err.message, expected);
    side->table->close(side);
    side = open_side("exits", false);
    assert_int_equal(side->table->judge(side, verdicts, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "the process of side A ended with exit status 7");
    side->table->close(side);
    side = open_side("dies", true);
    assert_int_equal(side->table->start(side, 1, &result, &ns, &err), SEQLSTM_INTERNAL);
    snprintf(expected, sizeof expected, "the process of side B died of signal 9 (%s)", strsignal(SIGKILL));
    assert_string_equal(err.message, expected);
    side->table->close(side);
    sl_arena_deinit(&arena);
}

static void processes_that_do_not_start(void **state)
{
    const char *worker[SL_REMOTE_ARGUMENTS_MOST + 1];
    struct sl_compare_side *side = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    for (int most = SL_REMOTE_ARGUMENTS_MOST - 2, count = most; count <= most + 1; count++) {
        for (int k = 0; k < count; k++)
            worker[k] = "/nowhere/seqlstm";
        worker[count] = NULL;
        assert_int_equal(sl_remote_side_open(worker, false, UNITS, &side, &err),
                         count > most ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_IO);
        assert_string_equal(err.message, count > most ? "the process of a side takes at most 254 arguments"
                                                      : "the process of a side cannot be started: /nowhere/seqlstm");
        assert_null(side);
    }
}

static void libraries_that_need_two_processes(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_arena arena;
    const char *reason = "";
    (void)state;
    sl_arena_init(&arena);
    for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++) {
        char row[8];
        snprintf(row, sizeof row, "%d", (int)k);
        const char *const worker[] = {child_words[0], child_words[1], row, NULL};
        ok(sl_remote_find_reason(worker, false, &arena, &reason, &err), &err);
        if ((reason == NULL) != (libraries[k].reason == NULL) || (reason && strcmp(reason, libraries[k].reason) != 0))
            fail_msg("row %zu: %s", k, reason ? reason : "no reason");
    }
    ok(sl_remote_find_reason(NULL, true, &arena, &reason, &err), &err);
    assert_string_equal(reason, "asked for");
    const char *const gone[] = {child_words[0], child_words[1], "gone", NULL};
    assert_int_equal(sl_remote_find_reason(gone, false, &arena, &reason, &err), SEQLSTM_NOT_FOUND);
    assert_string_equal(err.message, "there is no second one");
    assert_null(reason);
    sl_arena_deinit(&arena);
}

/* Half a list of files is none: what needs two processes is not run in one. */
static void a_side_without_memory_has_no_list(void **state)
{
    enum { ROW = (int)(sizeof libraries / sizeof *libraries) - 1, TRIED = 4 };
    int failures = 0;
    (void)state;
    for (int n = 1; n <= TRIED; n++) {
        char scenario[32];
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_arena arena;
        const char *reason = NULL;
        const char *const worker[] = {child_words[0], child_words[1], scenario, NULL};
        snprintf(scenario, sizeof scenario, "%d without %d", (int)ROW, n);
        sl_arena_init(&arena);
        const seqlstm_status status = sl_remote_find_reason(worker, false, &arena, &reason, &err);
        failures += status == SEQLSTM_NO_MEMORY;
        if (status != SEQLSTM_NO_MEMORY &&
            (status != SEQLSTM_OK || !reason || strcmp(reason, libraries[ROW].reason) != 0))
            fail_msg("allocation %d: %d, %s, %s", n, (int)status, err.message, reason ? reason : "no reason");
        sl_arena_deinit(&arena);
    }
    assert_true(failures > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_are_told_and_answer_all),     cmocka_unit_test(failures_are_those_of_the_side),
        cmocka_unit_test(processes_that_do_not_start),       cmocka_unit_test(libraries_that_need_two_processes),
        cmocka_unit_test(a_side_without_memory_has_no_list),
    };
    if (argc == 4 && strcmp(argv[1], child_words[1]) == 0)
        return run_child(argv[2], argv[3]);
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
