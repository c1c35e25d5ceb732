/* SPDX-License-Identifier: Apache-2.0 */
/* The child: it has a side in its own process and answers the requests of remote_side.c. */
#include "compare/side/remote_link.h"
#include "compare/side/remote_side.h"

struct server {
    struct sl_compare_side *side;
    struct sl_arena arena;
    int32_t units, calls;
    struct sl_compare_side_verdict *verdicts;
    double *times;
    struct sl_compare_side_choice *choices;
    struct seqlstm_error *err;
};

static bool serve_plan(struct server *s, const struct sl_remote_head *head)
{
    size_t count = (size_t)head->a;
    s->calls = head->a;
    s->choices = SL_ARENA_ARRAY(&s->arena, struct sl_compare_side_choice, count + 1);
    s->times = SL_ARENA_ARRAY(&s->arena, double, count + 1);
    if (!s->choices || !s->times || !sl_remote_receive(s->choices, count * sizeof *s->choices))
        return false;
    return sl_remote_reply(s->side->table->plan(s->side, s->choices, s->calls, s->err), NULL, 0, NULL, 0, s->err);
}

static bool serve_start(struct server *s, int32_t batch)
{
    struct sl_compare_side_result result = {0};
    struct sl_remote_started started = {0};
    seqlstm_status status = s->side->table->start(s->side, batch, &result, &started.ns, s->err);
    started.loss = result.loss;
    started.elems = result.elems;
    return sl_remote_reply(status, &started, sizeof started, result.values,
                           (size_t)result.elems * sizeof *result.values, s->err);
}

static bool serve_one(struct server *s, const struct sl_remote_head *head)
{
    const struct sl_compare_side_table *t = s->side->table;
    struct sl_compare_side_facts facts = {.unit_count = 0};
    seqlstm_status status;
    switch (head->what) {
    case SL_REMOTE_FACTS:
        status = t->get_facts(s->side, &s->arena, &facts, s->err);
        return sl_remote_reply(status, &facts, sizeof facts, facts.units,
                               (size_t)facts.unit_count * sizeof *facts.units, s->err);
    case SL_REMOTE_PLAN:
        return serve_plan(s, head);
    case SL_REMOTE_JUDGE:
        status = t->judge(s->side, s->verdicts, s->err);
        return sl_remote_reply(status, s->verdicts, (size_t)s->units * sizeof *s->verdicts, NULL, 0, s->err);
    case SL_REMOTE_START:
        return serve_start(s, head->a);
    case SL_REMOTE_STOP:
        return sl_remote_reply(t->stop(s->side, s->err), NULL, 0, NULL, 0, s->err);
    case SL_REMOTE_TURN:
        status = s->times ? t->take_turn(s->side, head->a, head->b, s->times, s->err) : SEQLSTM_INVALID_ARGUMENT;
        return sl_remote_reply(status, s->times, (size_t)(1 + s->calls) * sizeof *s->times, NULL, 0, s->err);
    default:
        return false;
    }
}

seqlstm_status sl_remote_serve(struct sl_compare_side *side, int32_t units, seqlstm_status status,
                               struct seqlstm_error *err)
{
    struct server s = {.side = side, .units = units, .err = err};
    struct sl_remote_head head;
    sl_arena_init(&s.arena);
    s.verdicts = SL_ARENA_ARRAY(&s.arena, struct sl_compare_side_verdict, (size_t)units + 1);
    if (status == SEQLSTM_OK && !s.verdicts)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a side");
    while (sl_remote_receive(&head, sizeof head))
        if (status != SEQLSTM_OK ? !sl_remote_reply(status, NULL, 0, NULL, 0, err) : !serve_one(&s, &head))
            break;
    sl_arena_deinit(&s.arena);
    return SEQLSTM_OK;
}
