/* SPDX-License-Identifier: Apache-2.0 */
/* What is said where a backend refuses or fails: all reasons in order, with option, value and place; the place that
 * counts; what helps. */
#include "model_fixture.h"
#include "ok.h"
#include "oom.h"
#include "registry_fixture.h"

#include "base/value/error_place.h"
#include "dispatch/failure.h"
#include "dispatch/plan/blame.h"
#include "dispatch/plan/refusal.h"

static struct sl_registry *registry;

static int open_registry(void **state)
{
    static const struct sl_registry_entry entries[] = {{.name = "reference"}, {.name = "fake-a"}};
    oom_group_begin(state);
    registry = registry_open(entries, 2);
    return 0;
}

static int close_registry(void **state)
{
    sl_registry_destroy(registry);
    return oom_group_end(state);
}

/* Records in place of those of the registry; NULL: its own. meson.build leads the questions here. */
static const struct sl_backend_record *records;
static uint32_t record_count;

uint32_t __real_sl_registry_get_record_count(const struct sl_registry *asked);
uint32_t __wrap_sl_registry_get_record_count(const struct sl_registry *asked);
const struct sl_backend_record *__real_sl_registry_get_record(const struct sl_registry *asked, uint32_t i);
const struct sl_backend_record *__wrap_sl_registry_get_record(const struct sl_registry *asked, uint32_t i);

uint32_t __wrap_sl_registry_get_record_count(const struct sl_registry *asked)
{
    return records ? record_count : __real_sl_registry_get_record_count(asked);
}

const struct sl_backend_record *__wrap_sl_registry_get_record(const struct sl_registry *asked, uint32_t i)
{
    return records ? &records[i] : __real_sl_registry_get_record(asked, i);
}

static const struct sl_refusal refusals[] = {
    {.backend = "one", .option = "peephole", .value = "true", .reason = "no peepholes", .place = {"m.yaml", 12, 5, 0}},
    {.backend = "two", .option = "cell_clip", .value = "", .reason = "no clipping", .place = {NULL, 0, 0, 0}},
    {.backend = "three", .option = "", .value = "9", .reason = "unknown", .place = {"n.yaml", 3, 7, 0}}};

static void reasons_one_after_the_other(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "one: peephole true (m.yaml:12:5) no peepholes",
        "one: peephole true (m.yaml:12:5) no peepholes; two: cell_clip no clipping",
        "one: peephole true (m.yaml:12:5) no peepholes; two: cell_clip no clipping; three: (n.yaml:3:7) unknown"};
    for (int32_t count = 0; count <= 3; count++) {
        struct sl_buf buf = {0};
        sl_refusals_write(&buf, refusals, count);
        assert_string_equal(sl_buf_text(&buf), texts[count]);
        sl_buf_deinit(&buf);
    }
}

/* ---- a graph ------------------------------------------------------------------------------------------------------
 */

static struct loaded load_model(const char *backends)
{
    char text[512];
    snprintf(text, sizeof text,
             "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\nmodel:\n  - {type: lstm, name: a, units: 3}\n"
             "  - {type: dense, name: out, units: 2}\ntrain: {loss: mse, epochs: 1}\n%s",
             backends);
    return load_clean(text);
}

static void expect(seqlstm_status status, const struct seqlstm_error *err, const char *where, const char *message)
{
    assert_int_equal(status, SEQLSTM_UNAVAILABLE);
    if (strcmp(err->message, message) != 0 || strncmp(err->where, where, strlen(where)) != 0)
        fail_msg("`%s` at `%s`, expected `%s` at `%s`", err->message, err->where, message, where);
}

/* The first reason ends with a word, and no word more would fit. */
static void expect_cut(seqlstm_status status, const struct seqlstm_error *err, const char *words, size_t most)
{
    const char *shown = strstr(err->message, "`one`: "), *end = shown ? strstr(shown, " …") : NULL;
    assert_int_equal(status, SEQLSTM_UNAVAILABLE);
    assert_true(shown != NULL && end != NULL);
    shown += strlen("`one`: ");
    const size_t length = (size_t)(end - shown);
    assert_memory_equal(shown, words, length);
    assert_int_equal(words[length], ' ');
    assert_true(length <= most && length + 1 + strcspn(words + length + 1, " ") > most);
}

#define BLAS "; cpu-blas was not found: it is built if OpenBLAS is installed (Debian: libopenblas-dev)"
#define SLOW "; use --set 'backends=[reference]', which runs every model, but is slow"

/* The place of the first option that is refused, else of the pin, else of the layer; `backends` of the model decide
 * what helps. */
static void refused_by_all(void **state)
{
    (void)state;
    const struct sl_refusal whole = refusals[2], first = refusals[0];
    static const struct {
        const char *backends, *pin;
        int pin_line, refusals, layer; /* refusals: 1: an option; -1: as a whole; 0: none */
        const char *where, *message;
    } cases[] = {
        {"backends: [reference]", NULL, 0, 1, 0, "m.yaml:12:5",
         "no listed backend runs `n` (recurrent): one: peephole true (m.yaml:12:5) no peepholes"},
        {"backends: [reference]", NULL, 0, -1, 0, "n.yaml:3:7",
         "no listed backend runs `n` (recurrent): three: (n.yaml:3:7) unknown"},
        {"backends: [reference]", NULL, 0, 0, 1, "m.yaml:5:", "no listed backend runs `n` (recurrent): "},
        {"", NULL, 0, 0, 0, "m.yaml:4:", "no listed backend runs `n` (recurrent): " BLAS SLOW},
        {"", "fake-a", 8, -1, 0,
         "m.yaml:8:", "`n` (recurrent) is pinned to `fake-a`, which does not run it: three: (n.yaml:3:7) unknown"},
        {"", "fake-a", 8, 1, 0, "m.yaml:12:5",
         "`n` (recurrent) is pinned to `fake-a`, which does not run it: one: peephole true (m.yaml:12:5) no peepholes"},
        {"", "fake-a", 0, 1, 0, "m.yaml:12:5",
         "the stored plan gives `n` (recurrent) to `fake-a`, which does not run it: one: peephole true (m.yaml:12:5) "
         "no peepholes"},
        {"", "fake-a", 8, 0, 0, "m.yaml:8:", "`n` (recurrent) is pinned to `fake-a`, which does not run it: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loaded loaded = load_model(cases[i].backends);
        const struct sl_graph graph = {.model = loaded.model};
        const struct sl_node node = {
            .name = "n", .layer = cases[i].layer, .desc = {.head = {.op = SEQLSTM_OP_RECURRENT}}};
        struct sl_refusal one = cases[i].refusals > 0 ? first : whole;
        const struct sl_subgraph subgraph = {.node = &node,
                                             .refusals = &one,
                                             .refusal_count = cases[i].refusals != 0,
                                             .pin = cases[i].pin,
                                             .pin_place = {"m.yaml", cases[i].pin_line, 9, 0}};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        expect(sl_failure_refused(&graph, registry, &subgraph, &err), &err, cases[i].where, cases[i].message);
        unload(&loaded);
    }
}

/* Why none is loaded: the reasons of the first three that were found, which share the room for them, cut between words;
 * and where cpu-blas is not among those that were looked for, how to get it. */
static void without_any_backend(void **state)
{
    (void)state;
    struct loaded all = load_model(""), some = load_model("backends: [fake-a]");
    const struct sl_graph graph = {.model = all.model}, listed = {.model = some.model};
    struct sl_backend_record found[4] = {{.id = "one", .reason = "no such card"},
                                         {.id = "", .file = "/x/b.so"},
                                         {.id = "three", .reason = "old"},
                                         {.id = "four", .reason = "new"}};
    char words[900] = "";
    for (int k = 0; k < 150; k++)
        strcat(words, k % 10 == 9 ? "1234567 " : "word ");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
#define END "; `seqlstm backends -v` shows where backends were looked for"
    records = found;
    record_count = 0;
    expect(sl_failure_no_backend(&graph, registry, &err), &err, "", "no backend is loaded" BLAS SLOW END);
    record_count = 1;
    expect(sl_failure_no_backend(&listed, registry, &err), &err, "m.yaml:7:12",
           "no backend is loaded; `one`: no such card" SLOW ", or leave `backends` out to use all that are found" END);
    record_count = 4;
    expect(sl_failure_no_backend(&graph, registry, &err), &err, "",
           "no backend is loaded; `one`: no such card; `/x/b.so`: no reason was given; `three`: old" BLAS SLOW END);
    found[3].id = "cpu-blas"; /* it was found, wherever it stands */
    expect(sl_failure_no_backend(&graph, registry, &err), &err, "",
           "no backend is loaded; `one`: no such card; `/x/b.so`: no reason was given; `three`: old" SLOW END);
    found[0].reason = words;
    for (uint32_t count = 1; count <= 3; count++) {
        record_count = count;
        expect_cut(sl_failure_no_backend(&graph, registry, &err), &err, words, 360 / count);
    }
    memset(words, 'x', sizeof words - 1); /* one word: cut within */
    record_count = 2;
    sl_failure_no_backend(&graph, registry, &err);
    const char *shown = strchr(err.message, 'x');
    assert_non_null(shown);
    assert_int_equal(strspn(shown, "x"), 180);
    assert_int_equal(strncmp(shown + 180, " …;", strlen(" …;")), 0);
    records = NULL;
    unload(&all);
    unload(&some);
}

static void a_fallback_that_is_forbidden(void **state)
{
    (void)state;
    struct loaded loaded = load_model("backends: [reference]");
    const struct sl_graph graph = {.model = loaded.model};
    const struct sl_node node = {.name = "n", .layer = 1};
    struct sl_call call = {
        .node = &node, .backend = sl_registry_get_backend(registry, 1), .refusals = refusals, .refusal_count = 2};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    expect(sl_failure_fallback(&graph, &call, &err), &err, "m.yaml:12:5",
           "`n` falls back to fake-a, and `dispatch.fallback: error` forbids it: one: peephole true (m.yaml:12:5) no "
           "peepholes; two: cell_clip no clipping");
    call.refusals = &refusals[1];
    call.refusal_count = 1;
    expect(sl_failure_fallback(&graph, &call, &err), &err, "m.yaml:5:",
           "`n` falls back to fake-a, and `dispatch.fallback: error` forbids it: two: cell_clip no clipping");
    unload(&loaded);
}

/* What a plugin says gets the layer, or the operation of the update, the backend and its function in front. */
static void failures_are_blamed(void **state)
{
    (void)state;
    const struct sl_node node = {.name = "n"};
    const struct sl_call call = {.node = &node, .backend = sl_registry_get_backend(registry, 0)};
    const union seqlstm_any_desc desc = {.head = {.op = SEQLSTM_OP_OPTIMIZER}};
    const struct sl_vector_call vector = {.desc = &desc, .backend = sl_registry_get_backend(registry, 1)};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(err.message, sizeof err.message, "the card fell off");
    assert_int_equal(sl_plan_blame(&call, SL_FUNCTION_BACKWARD, SEQLSTM_DEVICE, &err), SEQLSTM_DEVICE);
    assert_string_equal(err.message, "n on reference (backward): the card fell off");
    snprintf(err.message, sizeof err.message, "no");
    assert_int_equal(sl_plan_blame_vector(&vector, SL_FUNCTION_FORWARD, SEQLSTM_IO, &err), SEQLSTM_IO);
    assert_string_equal(err.message, "optimizer on fake-a (forward): no");
    assert_int_equal(sl_plan_blame(&call, SL_FUNCTION_FORWARD, SEQLSTM_IO, NULL), SEQLSTM_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_one_after_the_other), cmocka_unit_test(refused_by_all),
        cmocka_unit_test(without_any_backend),         cmocka_unit_test(a_fallback_that_is_forbidden),
        cmocka_unit_test(failures_are_blamed),
    };
    return cmocka_run_group_tests(tests, open_registry, close_registry);
}
