/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing that stands in a file may crash the reader, hang it or leak: files cut short at every byte,
 * bytes changed, pieces exchanged, and every allocation failing in turn. */
#include "model_fixture.h"

#include "model/doc_limits.h"

#include <stdio.h>

#include "base/system/file.h"
#include "model/schema/schema.h"
#include "oom.h"

static char *text;
static size_t bytes;

static int read_everything(void **state)
{
    oom_group_begin(state);
    char path[512];
    const char *source = getenv("SEQLSTM_SOURCE");
    if (source == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/tests/fixtures/models/good/everything.yaml", source);
    return sl_file_read(path, 1 << 20, &text, &bytes, NULL);
}

static int free_everything(void **state)
{
    free(text);
    return oom_group_end(state);
}

/* Loads whatever it is; says whether it was accepted, in which case it prints and loads again. */
static void try_text(const char *data, size_t length)
{
    struct loaded l = load_text("m.yaml", data, length, NULL);
    if (l.status == SEQLSTM_OK) {
        struct sl_buf out;
        sl_buf_init(&out);
        assert_int_equal(sl_model_write_config(l.model, 0, &out, NULL), SEQLSTM_OK);
        struct loaded again = load_text("m.yaml", out.data, out.length_bytes, NULL);
        if (again.status != SEQLSTM_OK)
            fail_msg("%s\n%s", sl_buf_text(&again.text), out.data);
        unload(&again);
        sl_buf_deinit(&out);
    } else {
        assert_int_equal(l.status, SEQLSTM_INVALID_CONFIG);
        assert_true(sl_diagnostics_count(l.diagnostics, SL_SEVERITY_ERROR) > 0);
        assert_true(l.text.length_bytes > 0);
    }
    unload(&l);
}

static void test_truncated(void **state)
{
    (void)state;
    for (size_t length = 0; length < bytes; length += 3)
        try_text(text, length);
}

/* A small generator of its own, so that failures repeat. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void test_mutated(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "{",    "}",    "[",  "]",    ": ", "- ",    "&a ",    "*a ",      "<<", "\"",
        "'",    "\n",   "\t", "!!x ", "#",  "|",     "~",      "null",     "-1", "1e9",
        ".inf", "\xff", ",",  "? ",   "\r", "---\n", "type: ", "\xc2\x85", "${", "99999999999999999999"};
    char *copy = malloc(bytes + 64);
    uint64_t random = 1;
    assert_non_null(copy);
    for (int round = 0; round < 1500; round++) {
        size_t length = bytes;
        memcpy(copy, text, bytes);
        int changes = 1 + (int)(next_random(&random) % 3);
        for (int i = 0; i < changes; i++) {
            const char *piece = pieces[next_random(&random) % (sizeof pieces / sizeof *pieces)];
            size_t size = strlen(piece), at = next_random(&random) % (length - 32);
            size_t removed = next_random(&random) % 12;
            if (length + size - removed > bytes + 60)
                continue;
            memmove(copy + at + size, copy + at + removed, length - at - removed);
            memcpy(copy + at, piece, size);
            length = length + size - removed;
        }
        try_text(copy, length);
    }
    free(copy);
}

/* Every value replaced by one of another kind. */
static void test_values_of_wrong_kinds(void **state)
{
    (void)state;
    static const char *const values[] = {
        "[]", "{}", "~", "\"\"", "[[1]]", "{type: {}}", "{type: []}", "-", "a: b", "{a: {b: {c: 1}}}", "{forward: 1}"};
    char *copy = malloc(bytes + 64);
    assert_non_null(copy);
    for (size_t at = 0; at + 2 < bytes; at++) {
        if (text[at] != ':' || text[at + 1] != ' ')
            continue;
        size_t end = at + 2 + strcspn(text + at + 2, ",}]\n");
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            size_t size = strlen(values[v]);
            memcpy(copy, text, at + 2);
            memcpy(copy + at + 2, values[v], size);
            memcpy(copy + at + 2 + size, text + end, bytes - end);
            try_text(copy, at + 2 + size + bytes - end);
        }
    }
    free(copy);
}

static seqlstm_status load_print_render(const char *data, size_t length)
{
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_model *model = NULL;
    struct sl_buf out;
    sl_buf_init(&out);
    seqlstm_status status = sl_diagnostics_create(&diagnostics, NULL);
    if (status == SEQLSTM_OK)
        status = sl_model_load_text("m.yaml", data, length, NULL, diagnostics, &model, NULL);
    if (status == SEQLSTM_OK)
        status = sl_model_write_config(model, 0, &out, NULL);
    if (status == SEQLSTM_INVALID_CONFIG) {
        seqlstm_status rendered = sl_diagnostics_render(diagnostics, true, &out, NULL);
        if (rendered == SEQLSTM_OK)
            rendered = sl_diagnostics_write_json(diagnostics, &out, NULL);
        status = rendered == SEQLSTM_OK ? status : rendered;
    }
    sl_model_destroy(model);
    if (diagnostics != NULL)
        sl_diagnostics_destroy(diagnostics);
    sl_buf_deinit(&out);
    return status;
}

static void fail_each_allocation(const char *data, size_t length, seqlstm_status whole)
{
    for (int n = 1;; n++) {
        oom_fail_at(n);
        seqlstm_status status = load_print_render(data, length);
        if (!oom_disarm()) {
            assert_int_equal(status, whole);
            assert_true(n > 5);
            return;
        }
        if (status != SEQLSTM_NO_MEMORY)
            fail_msg("allocation %d failed, but the status is %d", n, (int)status);
    }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char wrong[] = "seqlstm: 1\nsede: 4\ntrain: {lr: 1, epochs: &a [*a]}\n";
    static const char *const more = "\nsede: 4\nx: {a: 1}\n";
    char *broken = malloc(bytes + 64);
    assert_non_null(broken);
    fail_each_allocation(text, bytes, SEQLSTM_OK);
    fail_each_allocation(wrong, strlen(wrong), SEQLSTM_INVALID_CONFIG);
    memcpy(broken, text, bytes);
    strcpy(broken + bytes, more);
    fail_each_allocation(broken, bytes + strlen(more), SEQLSTM_INVALID_CONFIG);
    free(broken);
}

static void test_schema_out_of_memory(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        struct sl_buf out;
        sl_buf_init(&out);
        oom_fail_at(n);
        seqlstm_status json = sl_schema_write_json(&out, NULL);
        bool failed = oom_disarm();
        assert_int_equal(json, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        sl_buf_deinit(&out);
        if (!failed)
            break;
    }
}

/* `depth` lists in each other, the inner `inner` of them behind an alias if `inner` > 0. */
static void check_depth(int depth, int inner, bool fine)
{
    char model[1024] = "seqlstm: 1\n";
    if (inner > 0) {
        strcat(model, "x: &a ");
        for (int i = 0; i < inner; i++)
            strcat(model, "[");
        for (int i = 0; i < inner; i++)
            strcat(model, "]");
        strcat(model, "\n");
    }
    strcat(model, "y: ");
    for (int i = 0; i < depth - inner; i++)
        strcat(model, "[");
    strcat(model, inner > 0 ? "*a" : "");
    for (int i = 0; i < depth - inner; i++)
        strcat(model, "]");
    strcat(model, "\n");
    struct loaded l = load(model);
    assert_int_equal(strstr(sl_buf_text(&l.text), "nested more than") == NULL, fine);
    unload(&l);
}

/* The map of the file and 63 lists are 64 levels, directly or through an alias; one more is refused. */
static void test_depth(void **state)
{
    (void)state;
    for (int inner = 0; inner <= 40; inner += 20) {
        check_depth(SL_DOC_MAX_DEPTH - 1, inner, true);
        check_depth(SL_DOC_MAX_DEPTH, inner, false);
        check_depth(SL_DOC_MAX_DEPTH + 20, inner, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated),     cmocka_unit_test(test_mutated),
        cmocka_unit_test(test_depth),         cmocka_unit_test(test_values_of_wrong_kinds),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_schema_out_of_memory),
    };
    return cmocka_run_group_tests(tests, read_everything, free_everything);
}
