/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a backend's answers about itself: `supports` is pure, quick and complete, and refuses what it cannot
 * know. */
#include <stddef.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/value/text.h"
#include "registry/answer.h"
#include "conformance/checks/checks.h"
#include "registry/plugin.h"

enum field_kind { ENUMERATION, BITS, ZERO32, ZERO64 };

struct field {
    uint32_t op; /* NONE: any descriptor */
    enum field_kind kind;
    size_t offset;
    const char *name;
};

#define FIELD(op, kind, struct_name, member)                                                                           \
    {                                                                                                                  \
        op, kind, offsetof(struct struct_name, member), #member                                                        \
    }

static const struct field fields[] = {
    FIELD(SEQLSTM_OP_NONE, ENUMERATION, seqlstm_desc, mode),
    FIELD(SEQLSTM_OP_NONE, BITS, seqlstm_desc, flags),
    FIELD(SEQLSTM_OP_NONE, ENUMERATION, seqlstm_desc, dtype_activation),
    FIELD(SEQLSTM_OP_NONE, ENUMERATION, seqlstm_desc, dtype_activation_grad),
    FIELD(SEQLSTM_OP_NONE, ENUMERATION, seqlstm_desc, dtype_state),
    FIELD(SEQLSTM_OP_NONE, ENUMERATION, seqlstm_desc, dtype_compute),
    FIELD(SEQLSTM_OP_NONE, ENUMERATION, seqlstm_desc, dtype_weight),
    FIELD(SEQLSTM_OP_NONE, ENUMERATION, seqlstm_desc, dtype_weight_grad),
    FIELD(SEQLSTM_OP_NONE, ZERO64, seqlstm_desc, reserved0),
    FIELD(SEQLSTM_OP_RECURRENT, ENUMERATION, seqlstm_recurrent_desc, cell),
    FIELD(SEQLSTM_OP_RECURRENT, ENUMERATION, seqlstm_recurrent_desc, direction),
    FIELD(SEQLSTM_OP_RECURRENT, ENUMERATION, seqlstm_recurrent_desc, merge),
    FIELD(SEQLSTM_OP_RECURRENT, BITS, seqlstm_recurrent_desc, options),
    FIELD(SEQLSTM_OP_RECURRENT, ENUMERATION, seqlstm_recurrent_desc, activations[SEQLSTM_PLACE_CANDIDATE][0].kind),
    FIELD(SEQLSTM_OP_RECURRENT, ZERO32, seqlstm_recurrent_desc, activations[SEQLSTM_PLACE_CANDIDATE][0].reserved0),
    FIELD(SEQLSTM_OP_DENSE, BITS, seqlstm_dense_desc, options),
    FIELD(SEQLSTM_OP_DENSE, ZERO32, seqlstm_dense_desc, reserved0),
    FIELD(SEQLSTM_OP_DENSE, ENUMERATION, seqlstm_dense_desc, activation.kind),
    FIELD(SEQLSTM_OP_ACTIVATION, ENUMERATION, seqlstm_activation_desc, activation.kind),
    FIELD(SEQLSTM_OP_ACTIVATION, ZERO32, seqlstm_activation_desc, activation.reserved0),
    FIELD(SEQLSTM_OP_DROPOUT, ENUMERATION, seqlstm_dropout_desc, mask),
    FIELD(SEQLSTM_OP_LAYER_NORM, BITS, seqlstm_layer_norm_desc, options),
    FIELD(SEQLSTM_OP_POOL, ENUMERATION, seqlstm_pool_desc, kind),
    FIELD(SEQLSTM_OP_POOL, ZERO32, seqlstm_pool_desc, reserved0),
    FIELD(SEQLSTM_OP_MERGE, ENUMERATION, seqlstm_merge_desc, kind),
    FIELD(SEQLSTM_OP_MERGE, ENUMERATION, seqlstm_merge_desc, inputs),
    FIELD(SEQLSTM_OP_CAST, ENUMERATION, seqlstm_cast_desc, from),
    FIELD(SEQLSTM_OP_CAST, ENUMERATION, seqlstm_cast_desc, to),
    FIELD(SEQLSTM_OP_LOSS, ENUMERATION, seqlstm_loss_desc, kind),
    FIELD(SEQLSTM_OP_LOSS, BITS, seqlstm_loss_desc, options),
    FIELD(SEQLSTM_OP_DENSE_LOSS, ENUMERATION, seqlstm_dense_loss_desc, kind),
    FIELD(SEQLSTM_OP_DENSE_LOSS, BITS, seqlstm_dense_loss_desc, options),
    FIELD(SEQLSTM_OP_DENSE_LOSS, BITS, seqlstm_dense_loss_desc, dense_options),
    FIELD(SEQLSTM_OP_DENSE_LOSS, ZERO32, seqlstm_dense_loss_desc, reserved0),
    FIELD(SEQLSTM_OP_TOP_K, ENUMERATION, seqlstm_top_k_desc, kind),
    FIELD(SEQLSTM_OP_OPTIMIZER, ENUMERATION, seqlstm_optimizer_desc, kind),
    FIELD(SEQLSTM_OP_OPTIMIZER, BITS, seqlstm_optimizer_desc, options),
    FIELD(SEQLSTM_OP_OPTIMIZER, ZERO32, seqlstm_optimizer_desc, reserved0),
    FIELD(SEQLSTM_OP_VECTOR, ENUMERATION, seqlstm_vector_desc, kind),
    FIELD(SEQLSTM_OP_VECTOR, ZERO32, seqlstm_vector_desc, reserved0),
    FIELD(SEQLSTM_OP_ATTENTION, ENUMERATION, seqlstm_attention_desc, kind),
    FIELD(SEQLSTM_OP_ATTENTION, BITS, seqlstm_attention_desc, options),
    FIELD(SEQLSTM_OP_ATTENTION, ZERO32, seqlstm_attention_desc, reserved0),
};

/* Room after the descriptor for bytes that only a later host knows. */
union wide_desc {
    union seqlstm_any_desc desc;
    unsigned char bytes[sizeof(union seqlstm_any_desc) + 64];
};

static seqlstm_status ask(const struct sl_bench *bench, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                          struct seqlstm_error *err)
{
    return sl_table_supports(bench->subject.table, bench->subject.device_class, desc, answer, err);
}

/* Each known field is set to a value or a bit that is not defined yet. The answer must be no, with a reason. */
static void check_unknown(struct sl_check *check)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    uint32_t op = check->data->c.desc.head.op;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct field *f = &fields[i];
        union wide_desc wide;
        struct seqlstm_answer answer;
        uint32_t value;
        if (f->op != SEQLSTM_OP_NONE && f->op != op)
            continue;
        memset(&wide, 0, sizeof wide);
        wide.desc = check->data->c.desc;
        unsigned char *at = wide.bytes + f->offset;
        memcpy(&value, at, sizeof value);
        value = f->kind == ENUMERATION ? 0x70000 : f->kind == BITS ? value | 0x40000000u : 1;
        memcpy(at, &value, sizeof value);
        if (!sl_check_status(check, ask(check->bench, &wide.desc.head, &answer, &err), "supports", &err))
            return;
        if (answer.accepted)
            sl_check_fail(check, "it accepts %s = %#x, which no version defines", f->name, value);
        else if (strstr(answer.reason, " is faulty: "))
            sl_check_fail(check, "asked about an unknown %s: %s", f->name, answer.reason);
    }
}

/* Where one of these is not zero, the host refuses for the backend: see sl_table_supports. */
static void check_future_bytes(struct sl_check *check)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answer;
    union wide_desc wide;
    memset(&wide, 0, sizeof wide);
    wide.desc = check->data->c.desc;
    wide.desc.head.struct_size += 32;
    if (!sl_check_status(check, ask(check->bench, &wide.desc.head, &answer, &err), "supports", &err))
        return;
    if (!answer.accepted)
        sl_check_fail(check, "it refuses a longer descriptor whose further bytes are zero (off): %s", answer.reason);
}

enum { ASKED = 6, ASKED_MOST = 100, SUPPORTS_MOST_NS = 1000000 };

/* The same question must give the same answer, byte for byte, in less than a millisecond. It is asked again while it
 * takes longer: another program may have had the processor. */
static void check_pure(struct sl_check *check)
{
    const struct sl_subject *s = &check->bench->subject;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answers[2];
    int64_t best = INT64_MAX, allocs = check->bench->host ? check->bench->host->memory.n_allocs : 0;
    for (int i = 0; i < ASKED || (i < ASKED_MOST && best > SUPPORTS_MOST_NS); i++) {
        struct seqlstm_answer *a = &answers[i != 0];
        memset(a, 0, sizeof *a);
        a->struct_size = (uint32_t)sizeof *a;
        int64_t start = sl_clock_ns();
        seqlstm_status rc = sl_plugin_supports(s->table, s->device_class, &check->data->c.desc.head, a, &err);
        int64_t took = sl_clock_ns() - start;
        best = took < best ? took : best;
        if (!sl_check_status(check, rc, "supports", &err))
            return;
        if (i > 0 && memcmp(&answers[0], &answers[1], sizeof answers[0]) != 0)
            sl_check_fail(check, "supports answered differently when asked again");
    }
    if (best > SUPPORTS_MOST_NS)
        sl_check_fail(check, "supports took %lld us at best, allowed are %d", (long long)(best / 1000),
                      SUPPORTS_MOST_NS / 1000);
    if (check->bench->host && check->bench->host->memory.n_allocs != allocs)
        sl_check_fail(check, "supports allocated memory");
}

/* A yes is a promise: each variant can be created, for any batch within the bounds. */
static void check_promise(struct sl_check *check)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_runner *runner = NULL;
    if (sl_check_status(check,
                        sl_runner_create(&check->bench->subject, check->data, check->variant, NULL, &runner, &err),
                        "creating an operation that supports accepted", &err))
        sl_runner_destroy(runner);
    else if (check->result->verdict == SL_VERDICT_UNSUPPORTED)
        check->result->verdict = SL_VERDICT_PASS; /* op_create may still refuse, with a reason */
}

void sl_check_claim(struct sl_check *check)
{
    check_pure(check);
    check_unknown(check);
    check_future_bytes(check);
    check_promise(check);
}
