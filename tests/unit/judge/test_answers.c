/* SPDX-License-Identifier: Apache-2.0 */
/* What backends answer to `supports`: which variants they offer, in which order, and what they refuse. Compared with
 * tests/fixtures/dumps/answers-ID.txt; see support/dump_file.h. The title of a text is a class of devices, each of its
 * lines the name of a case of the conformance kit. One size may be a range, such as H{1..2048}: then all of its sizes
 * are asked for, and a line tells where the answer becomes another.
 *
 * cuda-generic is linked here, since its answers need no device; other backends are loaded if they are built.
 */
#include <dlfcn.h>

#include "dump_file.h"
#include "oom.h"
#include "judge/case.h"

#include "cuda-generic/plugin.h"

typedef seqlstm_status supports_fn(const char *device_class, const struct seqlstm_desc *desc,
                                   struct seqlstm_answer *answer, struct seqlstm_error *err);

static supports_fn *supports;

enum { ANSWER_BYTES = 1024 };

/* What is answered to a case; the value that is refused only if `shows_value`, since it may be the size of a range. */
static void ask(const char *class, const char *name, bool shows_value, char *out)
{
    struct sl_case c;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    int bytes = 0;
    if (sl_case_parse(name, &c, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", name, err.message);
    c.desc.head.mode = c.pass == SL_PASS_INFERENCE ? SEQLSTM_MODE_INFERENCE : SEQLSTM_MODE_TRAINING;
    assert_int_equal(supports(class, &c.desc.head, &answer, &err), SEQLSTM_OK);
    if (!answer.accepted)
        bytes = snprintf(out, ANSWER_BYTES, " refused %u for option %u: %s [%s]%s%s", answer.code, answer.option,
                         answer.reason, answer.hint, shows_value ? " " : "", shows_value ? answer.value : "");
    for (uint32_t v = 0; answer.accepted && v < answer.variant_count; v++)
        bytes += snprintf(out + bytes, ANSWER_BYTES - (size_t)bytes, " %s", answer.variants[v]);
    assert_true(bytes > 0 && bytes < ANSWER_BYTES);
}

static void add_answers(struct sl_buf *out, const char *class, const char *name)
{
    char answer[ANSWER_BYTES], before[ANSWER_BYTES] = "", one[SL_CASE_TEXT_BYTES];
    long long first = 0, last = 0;
    int range = 0, end = 0;
    const char *brace = strchr(name, '{');
    sl_buf_printf(out, "-- %s\n", name);
    if (brace) {
        assert_int_equal(sscanf(brace, "{%lld..%lld}%n", &first, &last, &range), 2);
        end = (int)(brace - name) + range;
    }
    for (long long size = first; size <= last; size++) {
        if (brace)
            snprintf(one, sizeof one, "%.*s%lld%s", (int)(brace - name), name, size, name + end);
        else
            snprintf(one, sizeof one, "%s", name);
        ask(class, one, brace == NULL, answer);
        if (strcmp(answer, before) != 0) {
            if (brace)
                sl_buf_printf(out, "  from %lld:", size);
            sl_buf_printf(out, "%s%s\n", brace ? "" : " ", answer);
        }
        strcpy(before, answer);
    }
}

static void add_class(struct sl_buf *out, const char *class, const char *text)
{
    char *lines = strdup(text), *rest = lines, *line;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (*line)
            add_answers(out, class, line);
    free(lines);
}

static void cuda_generic_answers_as_before(void **state)
{
    (void)state;
    supports = cg_supports;
    compare_dumps("answers-cuda-generic", add_class);
}

static void compare_loaded(const char *id)
{
    char *path, *file;
    assert_true(asprintf(&path, "%s/libseqlstm_backend_%s.so", getenv("SEQLSTM_BACKEND_PATH"), id) > 0);
    assert_true(asprintf(&file, "answers-%s", id) > 0);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, SEQLSTM_QUERY_SYMBOL) : NULL;
    free(path);
    seqlstm_backend_query_fn query;
    memcpy(&query, &symbol, sizeof query);
    if (library)
        supports = query(SEQLSTM_ABI_MINOR)->supports;
    if (library)
        compare_dumps(file, add_class);
    free(file);
    if (library)
        dlclose(library);
    else
        print_message("%s is not built: its answers are not compared\n", id);
}

static void cpu_blas_answers_as_before(void **state)
{
    (void)state;
    compare_loaded("cpu-blas");
}

static void cpu_onednn_answers_as_before(void **state)
{
    (void)state;
    compare_loaded("cpu-onednn");
}

static void reference_answers_as_before(void **state)
{
    (void)state;
    compare_loaded("reference");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuda_generic_answers_as_before),
        cmocka_unit_test(cpu_blas_answers_as_before),
        cmocka_unit_test(cpu_onednn_answers_as_before),
        cmocka_unit_test(reference_answers_as_before),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
