/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a backend would run an operation, and with which variant: what it answers to `supports`, and what happens
 * when its variants are created.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "judge/offer.h"
#include "registry/plugin.h"
#include "oom.h"

static const struct seqlstm_backend table = {.id = "card"};
static char instance, ops[3];

static struct {
    bool has_device;
    seqlstm_status supports;
    struct seqlstm_answer answer;
    seqlstm_status create[3];
    const char *words[3];
} told;
static char tried[40];
static int live;

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend);
struct seqlstm_instance *__wrap_sl_backend_get_instance(const struct sl_backend *backend);
bool __wrap_sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device);
seqlstm_status __wrap_sl_backend_supports(const struct sl_backend *backend, uint32_t device,
                                          const struct seqlstm_desc *desc, struct seqlstm_answer *out_answer,
                                          struct seqlstm_error *err);
seqlstm_status __wrap_sl_plugin_create_op(const struct seqlstm_backend *of, struct seqlstm_instance *on,
                                          uint32_t device, const struct seqlstm_desc *desc, const char *variant,
                                          struct seqlstm_op **out_op, struct seqlstm_error *err);
void __wrap_sl_plugin_destroy_op(const struct seqlstm_backend *of, struct seqlstm_op *op);
struct sl_option_place __wrap_sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node,
                                                   uint32_t option);

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend)
{
    (void)backend;
    return &table;
}

struct seqlstm_instance *__wrap_sl_backend_get_instance(const struct sl_backend *backend)
{
    (void)backend;
    return (void *)&instance;
}

bool __wrap_sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device)
{
    (void)backend;
    *out_device = 2;
    return told.has_device;
}

seqlstm_status __wrap_sl_backend_supports(const struct sl_backend *backend, uint32_t device,
                                          const struct seqlstm_desc *desc, struct seqlstm_answer *out_answer,
                                          struct seqlstm_error *err)
{
    (void)backend;
    assert_true(told.has_device && device == 2 && desc->op == SEQLSTM_OP_POOL);
    *out_answer = told.answer;
    if (told.supports != SEQLSTM_OK)
        SEQLSTM_FAIL(err, told.supports, "no answer");
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_plugin_create_op(const struct seqlstm_backend *of, struct seqlstm_instance *on,
                                          uint32_t device, const struct seqlstm_desc *desc, const char *variant,
                                          struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    const int v = variant[0] - 'a';
    assert_true(of == &table && (void *)on == (void *)&instance && device == 2 && desc->op == SEQLSTM_OP_POOL);
    strcat(strcat(tried, variant), " ");
    if (told.create[v] != SEQLSTM_OK)
        SEQLSTM_FAIL(err, told.create[v], "%s", told.words[v]);
    *out_op = (void *)&ops[v];
    live++;
    return SEQLSTM_OK;
}

void __wrap_sl_plugin_destroy_op(const struct seqlstm_backend *of, struct seqlstm_op *op)
{
    assert_true(of == &table && (char *)op >= ops && (char *)op < ops + 3);
    live--;
}

struct sl_option_place __wrap_sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node,
                                                   uint32_t option)
{
    (void)graph, (void)node;
    return option == SEQLSTM_OPTION_NONE
               ? (struct sl_option_place){.key = "pool", .place = {.file = "m.yaml", .line = 3, .column = 5}}
               : (struct sl_option_place){.key = "merge", .place = {.file = "m.yaml", .line = 4, .column = 7}};
}

/* The offer, which is zero where nothing was said, and the error. */
static seqlstm_status ask(const char *variant, struct sl_offer *offer, struct seqlstm_error *err)
{
    const struct sl_node node = {.desc.head = {.op = SEQLSTM_OP_POOL}};
    tried[0] = '\0';
    memset(offer, 0, sizeof *offer);
    const seqlstm_status status = sl_offer_ask(NULL, NULL, &node, variant, offer, err);
    assert_int_equal(live, 0);
    return status;
}

static void tell(void)
{
    memset(&told, 0, sizeof told);
    told.has_device = true;
    told.answer.accepted = 1;
    told.answer.variant_count = 3;
    for (int v = 0; v < 3; v++)
        told.answer.variants[v][0] = (char)('a' + v);
}

/* Variants are created in their order, or only the one that is asked for, until one is; those that the backend refuses
 * are passed over, and any other failure is told with its words. */
static void variants_are_created_in_their_order(void **state)
{
    enum { OK = SEQLSTM_OK, NO = SEQLSTM_UNSUPPORTED, BAD = SEQLSTM_DEVICE };
    static const struct {
        const char *variant;
        seqlstm_status create[3], status;
        const char *tried, *taken, *words; /* words: the reason, or the error */
    } rows[] = {
        {NULL, {OK, OK, OK}, OK, "a ", "a", ""},
        {NULL, {NO, OK, OK}, OK, "a b ", "b", ""},
        {NULL, {NO, NO, OK}, OK, "a b c ", "c", ""},
        {NULL, {NO, NO, NO}, OK, "a b c ", "", "c is not for this"},
        {NULL, {BAD, OK, OK}, BAD, "a ", "", "a is not for this"},
        {NULL, {NO, BAD, OK}, BAD, "a b ", "", "b is not for this"},
        {"b", {OK, OK, OK}, OK, "b ", "b", ""},
        {"c", {OK, OK, NO}, OK, "c ", "", "c is not for this"},
        {"c", {OK, OK, BAD}, BAD, "c ", "", "c is not for this"},
        {"a", {NO, OK, OK}, OK, "a ", "", "a is not for this"},
        {"d", {OK, OK, OK}, OK, "", "", "it has no variant `d` for this operation"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_offer offer;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        tell();
        memcpy(told.create, rows[k].create, sizeof told.create);
        told.words[0] = "a is not for this";
        told.words[1] = "b is not for this";
        told.words[2] = "c is not for this";
        assert_int_equal(ask(rows[k].variant, &offer, &err), rows[k].status);
        assert_string_equal(tried, rows[k].tried);
        assert_string_equal(offer.variant, rows[k].taken);
        assert_string_equal(rows[k].status == OK ? offer.reason : err.message, rows[k].words);
        assert_int_equal(offer.accepted, rows[k].taken[0] != '\0');
        if (rows[k].status == OK) {
            assert_int_equal(offer.device, 2);
            assert_string_equal(offer.option, "");
            assert_string_equal(err.message, "");
        }
        assert_int_equal(ask(rows[k].variant, &offer, NULL), rows[k].status);
    }
}

static void a_refusal_has_its_option_and_place(void **state)
{
    (void)state;
    struct sl_offer offer;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    tell();
    told.answer.accepted = 0;
    told.answer.code = SEQLSTM_BIT_REFUSED_OPERATION;
    strcpy(told.answer.reason, "it has no pool");
    assert_int_equal(ask(NULL, &offer, &err), SEQLSTM_OK);
    assert_true(!offer.accepted && offer.no_operation && offer.place.line == 3);
    assert_string_equal(offer.option, "");
    assert_string_equal(offer.value, "");
    assert_string_equal(offer.reason, "it has no pool");
    told.answer.code = SEQLSTM_BIT_REFUSED_OPTION;
    told.answer.option = SEQLSTM_OPTION_MERGE;
    strcpy(told.answer.value, "0.2500");
    assert_int_equal(ask("a", &offer, &err), SEQLSTM_OK);
    assert_true(!offer.accepted && !offer.no_operation && offer.place.line == 4 && offer.place.column == 7);
    assert_string_equal(offer.option, "merge");
    assert_string_equal(offer.value, "0.25");
    assert_string_equal(tried, "");
}

static void without_a_device_or_an_answer_nothing_is_created(void **state)
{
    (void)state;
    struct sl_offer offer;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    tell();
    told.supports = SEQLSTM_INTERNAL;
    assert_int_equal(ask(NULL, &offer, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "no answer");
    told.has_device = false;
    assert_int_equal(ask(NULL, &offer, NULL), SEQLSTM_OK);
    assert_false(offer.accepted);
    assert_string_equal(offer.reason, "it has no device whose memory this program fills");
    assert_string_equal(offer.option, "");
    assert_string_equal(tried, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_are_created_in_their_order),
        cmocka_unit_test(a_refusal_has_its_option_and_place),
        cmocka_unit_test(without_a_device_or_an_answer_nothing_is_created),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
