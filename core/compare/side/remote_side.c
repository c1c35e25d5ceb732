/* SPDX-License-Identifier: Apache-2.0 */
/* The parent: each function of a side sends one request. remote_server.c answers them. */
#include "compare/side/remote_side.h"

#include <stdlib.h>
#include <string.h>

#include "compare/side/remote_link.h"

struct remote {
    struct sl_compare_side side;
    struct sl_remote_link link;
    int32_t units, calls;
};

static void remote_close(struct sl_compare_side *side)
{
    struct remote *r = (struct remote *)side;
    if (!r)
        return;
    sl_remote_link_close(&r->link);
    free(r);
}

static seqlstm_status remote_get_facts(struct sl_compare_side *side, struct sl_arena *arena,
                                       struct sl_compare_side_facts *out_facts, struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    int64_t units = r->units * (int64_t)sizeof *out_facts->units;
    SEQLSTM_TRY(sl_remote_link_ask(&r->link, (struct sl_remote_head){.what = SL_REMOTE_FACTS}, NULL,
                                   (int64_t)sizeof *out_facts + units, err));
    memcpy(out_facts, r->link.room, sizeof *out_facts);
    out_facts->units = SL_ARENA_ARRAY(arena, struct sl_compare_side_unit, (size_t)r->units);
    if (!out_facts->units)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the offers of a backend");
    memcpy(out_facts->units, (char *)r->link.room + sizeof *out_facts, (size_t)units);
    return SEQLSTM_OK;
}

static seqlstm_status remote_plan(struct sl_compare_side *side, const struct sl_compare_side_choice *choices,
                                  int32_t count, struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    r->calls = count;
    return sl_remote_link_ask(
        &r->link,
        (struct sl_remote_head){.what = SL_REMOTE_PLAN, .a = count, .bytes = count * (int64_t)sizeof *choices}, choices,
        0, err);
}

static seqlstm_status remote_judge(struct sl_compare_side *side, struct sl_compare_side_verdict *out_verdicts,
                                   struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    int64_t bytes = r->units * (int64_t)sizeof *out_verdicts;
    SEQLSTM_TRY(sl_remote_link_ask(&r->link, (struct sl_remote_head){.what = SL_REMOTE_JUDGE}, NULL, bytes, err));
    memcpy(out_verdicts, r->link.room, (size_t)bytes);
    return SEQLSTM_OK;
}

static seqlstm_status remote_start(struct sl_compare_side *side, int32_t batch,
                                   struct sl_compare_side_result *out_result, int64_t *out_ns,
                                   struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    struct sl_remote_started started;
    SEQLSTM_TRY(sl_remote_link_ask(&r->link, (struct sl_remote_head){.what = SL_REMOTE_START, .a = batch}, NULL,
                                   sizeof started, err));
    memcpy(&started, r->link.room, sizeof started);
    *out_result =
        (struct sl_compare_side_result){.loss = started.loss,
                                        .elems = started.elems,
                                        .values = (const float *)((const char *)r->link.room + sizeof started)};
    *out_ns = started.ns;
    return SEQLSTM_OK;
}

static seqlstm_status remote_stop(struct sl_compare_side *side, struct seqlstm_error *err)
{
    return sl_remote_link_ask(&((struct remote *)side)->link, (struct sl_remote_head){.what = SL_REMOTE_STOP}, NULL, 0,
                              err);
}

static seqlstm_status remote_take_turn(struct sl_compare_side *side, int32_t lead, int32_t steps, double *out_ns,
                                       struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    int64_t bytes = (1 + r->calls) * (int64_t)sizeof *out_ns;
    SEQLSTM_TRY(sl_remote_link_ask(&r->link, (struct sl_remote_head){.what = SL_REMOTE_TURN, .a = lead, .b = steps},
                                   NULL, bytes, err));
    memcpy(out_ns, r->link.room, (size_t)bytes);
    return SEQLSTM_OK;
}

static const struct sl_compare_side_table table = {
    .close = remote_close,
    .get_facts = remote_get_facts,
    .plan = remote_plan,
    .judge = remote_judge,
    .start = remote_start,
    .stop = remote_stop,
    .take_turn = remote_take_turn,
};

seqlstm_status sl_remote_side_open(const char *const *worker, bool is_b, int32_t units,
                                   struct sl_compare_side **out_side, struct seqlstm_error *err)
{
    struct remote *r = calloc(1, sizeof *r);
    if (!r)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a side of the comparison");
    *r = (struct remote){.side.table = &table, .units = units};
    seqlstm_status status = sl_remote_link_open(worker, is_b ? "b" : "a", is_b ? 'B' : 'A', &r->link, err);
    if (status != SEQLSTM_OK) {
        free(r);
        return status;
    }
    *out_side = &r->side;
    return SEQLSTM_OK;
}
