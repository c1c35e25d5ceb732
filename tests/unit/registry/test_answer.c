/* SPDX-License-Identifier: Apache-2.0 */
/* What the host makes of a plugin's answer, and of values for its options: each rule from both of its sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/ops.h>

#include "registry/answer.h"
#include "registry/kind/settings.h"
#include "oom.h"

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static struct seqlstm_answer said;

static seqlstm_status supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                               struct seqlstm_error *err)
{
    (void)device_class, (void)desc, (void)err;
    *answer = said;
    return SEQLSTM_OK;
}

enum { HEAD = sizeof(struct seqlstm_desc), KNOWN = HEAD + 8, ALL = KNOWN + 16 };

static uint32_t known_bytes[SEQLSTM_OP_DENSE + 1] = {[SEQLSTM_OP_DENSE] = KNOWN};
static const struct seqlstm_backend table = {
    .id = "spoken", .supports = supports, .desc_count = SEQLSTM_OP_DENSE + 1, .desc_bytes = known_bytes};

static struct seqlstm_answer ask(const struct seqlstm_desc *desc)
{
    struct seqlstm_answer answer;
    memset(&answer, 0, sizeof answer);
    assert_int_equal(sl_table_supports(&table, "cpu", desc, &answer, NULL), SEQLSTM_OK);
    return answer;
}

static void say_yes(uint32_t variants)
{
    memset(&said, 0, sizeof said);
    said.accepted = 1;
    said.variant_count = variants;
    for (uint32_t v = 0; v < variants && v < SEQLSTM_MAX_VARIANTS; v++)
        snprintf(said.variants[v], sizeof said.variants[v], "v%u", v);
}

static void say_no(void)
{
    memset(&said, 0, sizeof said);
    said.code = SEQLSTM_BIT_REFUSED_OPTION;
    snprintf(said.reason, sizeof said.reason, "it cannot");
}

/* The bytes behind the head are zero. */
static const union {
    struct seqlstm_desc head;
    unsigned char bytes[ALL];
} plain = {.head = {.struct_size = ALL, .op = SEQLSTM_OP_DENSE}};

static void expect_faulty(const char *what)
{
    const struct seqlstm_answer answer = ask(&plain.head);
    if (answer.accepted || answer.code != SEQLSTM_BIT_REFUSED_ABI || !strstr(answer.reason, what))
        fail_msg("%s: accepted %u, code %#x, %s", what, answer.accepted, answer.code, answer.reason);
}

static void test_yes(void **state)
{
    (void)state;
    for (uint32_t count = 0; count <= SEQLSTM_MAX_VARIANTS + 1; count++) {
        say_yes(count);
        if (count == 0 || count > SEQLSTM_MAX_VARIANTS) {
            expect_faulty("without a proper number of variants");
            continue;
        }
        const struct seqlstm_answer answer = ask(&plain.head);
        assert_true(answer.accepted && answer.variant_count == count);
        assert_memory_equal(answer.variants, said.variants, sizeof said.variants);
    }
    for (uint32_t later = 1; later < 3; later++)
        for (uint32_t earlier = 0; earlier < later; earlier++) {
            say_yes(3);
            strcpy(said.variants[later], said.variants[earlier]);
            expect_faulty("one variant twice");
        }
    say_yes(2);
    said.variants[1][0] = '\0';
    expect_faulty("a variant without a name");
    say_yes(2);
    memset(said.variants[1], 'x', sizeof said.variants[1]);
    expect_faulty("a variant without a name");
    say_yes(1);
    said.variants[0][0] = '\t';
    expect_faulty("control characters");
    say_yes(1);
    said.accepted = 2;
    expect_faulty("neither yes nor no");
}

static void test_no(void **state)
{
    (void)state;
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        say_no();
        said.code = bit;
        if (bit > SEQLSTM_BIT_REFUSED_DEPENDENCY)
            expect_faulty("without a known code");
        else
            assert_int_equal(ask(&plain.head).code, bit);
    }
    for (uint32_t option = 0; option <= SEQLSTM_OPTION_COUNT; option++) {
        say_no();
        said.option = option;
        if (option == SEQLSTM_OPTION_COUNT)
            expect_faulty("for an unknown option");
        else
            assert_int_equal(ask(&plain.head).option, option);
    }
    say_no();
    said.code = 0;
    expect_faulty("without a known code");
    say_no();
    said.reason[0] = '\0';
    expect_faulty("without a reason");
    char *const texts[] = {said.value, said.reason, said.hint};
    const size_t sizes[] = {sizeof said.value, sizeof said.reason, sizeof said.hint};
    for (int t = 0; t < 3; t++) {
        say_no();
        memset(texts[t], 'x', sizes[t]);
        expect_faulty("a text without an end");
    }
}

/* Each text is shown with its control characters escaped. */
static void test_clean_texts(void **state)
{
    (void)state;
    say_no();
    snprintf(said.value, sizeof said.value, "a\033v");
    snprintf(said.reason, sizeof said.reason, "a\nr");
    snprintf(said.hint, sizeof said.hint, "a\177h");
    const struct seqlstm_answer answer = ask(&plain.head);
    assert_string_equal(answer.value, "a\\x1bv");
    assert_string_equal(answer.reason, "a\\nr");
    assert_string_equal(answer.hint, "a\\x7fh");
    say_no();
    memset(said.reason, 0, sizeof said.reason);
    expect_faulty("spoken is faulty: asked about dense it answered no, without a reason");
}

/* The plugin reads the first bytes of a descriptor. If one behind them is set, the host answers without asking. */
static void test_bytes_of_later_versions(void **state)
{
    (void)state;
    for (uint32_t b = HEAD; b < ALL; b++) {
        union {
            struct seqlstm_desc head;
            unsigned char bytes[ALL];
        } desc = {.bytes = {0}};
        desc.head = plain.head;
        desc.bytes[b] = 1;
        say_yes(1);
        const struct seqlstm_answer answer = ask(&desc.head);
        char reason[200];
        snprintf(reason, sizeof reason,
                 "spoken reads %d bytes of the descriptor of dense; byte %u of %d is set and could not be honoured",
                 (int)KNOWN, b, (int)ALL);
        assert_int_equal(strcmp(answer.reason, reason) == 0, b >= KNOWN);
        assert_int_equal(answer.accepted, b < KNOWN);
        assert_int_equal(answer.code, answer.accepted ? 0 : SEQLSTM_BIT_REFUSED_ABI);
    }
    struct seqlstm_desc other = plain.head;
    other.op = SEQLSTM_OP_DENSE + 1;
    assert_int_equal(ask(&other).code, SEQLSTM_BIT_REFUSED_OPERATION);
}

/* ---- options ---------------------------------------------------------------------------------------------------- */

static void test_values_of_options(void **state)
{
    static const struct {
        const char *type;
        const char *good, *bad; /* separated by blanks */
    } all[] = {
        {"int", "0 -7 123456", "1.5 x 1x"},
        {"int 1..64", "1 2 63 64", "0 65 -1 1.0"},
        {"int -2..2", "-2 0 2", "-3 3"},
        {"float", "0 -7 1.5 1e3", "x 1.5x"},
        {"float 0..0.5", "0 0.25 0.5", "-0.001 0.501 1"},
        {"bool", "true false", "True yes 1 truefalse"},
        {"string", "x 1 true", ""},
        {"small|large|auto", "small large auto", "smal smaller small|large medium"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int good = 0; good < 2; good++) {
            char values[64], *rest = NULL;
            snprintf(values, sizeof values, "%s", good ? all[i].good : all[i].bad);
            for (char *value = strtok_r(values, " ", &rest); value; value = strtok_r(NULL, " ", &rest)) {
                const struct seqlstm_option options[] = {{.key = "other", .type = "bool", .help = "another"},
                                                         {.key = "it", .type = all[i].type, .help = "what it is"}};
                const struct seqlstm_setting settings[] = {{.key = "other", .value = "true"},
                                                           {.key = "it", .value = value}};
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                int32_t wrong = 7;
                const seqlstm_status status = sl_settings_check("spoken", options, 2, settings, 2, &wrong, &err);
                if (status != (good ? SEQLSTM_OK : SEQLSTM_INVALID_CONFIG) || wrong != (good ? -1 : 1))
                    fail_msg("%s as %s: status %d, setting %d", value, all[i].type, (int)status, (int)wrong);
                if (!good && (!strstr(err.message, all[i].type) || !strstr(err.message, value)))
                    fail_msg("%s as %s: %s", value, all[i].type, err.message);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yes),
        cmocka_unit_test(test_clean_texts),
        cmocka_unit_test(test_no),
        cmocka_unit_test(test_bytes_of_later_versions),
        cmocka_unit_test(test_values_of_options),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
