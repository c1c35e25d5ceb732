/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/ab/match.h"

#include <string.h>

#include "base/value/text.h"

struct matcher {
    const struct sl_graph *graph;
    const struct sl_compare_side_facts *a, *b;
    bool sides_help;
    struct seqlstm_error *err;
};

static const struct sl_pin *find_pin(const struct matcher *m, const struct sl_node *node)
{
    const struct sl_dispatch_config *dispatch = &m->graph->model->dispatch;
    for (size_t p = 0; node->layer >= 0 && p < dispatch->pin_count; p++)
        if (strcmp(dispatch->pins[p].layer, m->graph->model->layers[node->layer].name) == 0)
            return &dispatch->pins[p];
    return NULL;
}

static bool both_accept(const struct matcher *m, int32_t unit)
{
    return m->a->units[unit].accepted && m->b->units[unit].accepted;
}

static struct sl_compare_side_choice choose(int32_t unit, const char *id, const char *variant)
{
    struct sl_compare_side_choice choice = {.unit = unit};
    sl_text_snprintf(choice.id, sizeof choice.id, "%s", id);
    sl_text_snprintf(choice.variant, sizeof choice.variant, "%s", variant);
    return choice;
}

static struct sl_match compare(const struct matcher *m, int32_t unit)
{
    return (struct sl_match){.unit = unit,
                             .compared = true,
                             .a = choose(unit, m->a->id, m->a->units[unit].variant),
                             .b = choose(unit, m->b->id, m->b->units[unit].variant)};
}

static bool offers(const struct sl_compare_side_unit *unit, const char *id, const char *variant)
{
    for (int32_t o = 0; o < unit->other_count; o++)
        if (strcmp(unit->others[o].id, id) == 0 && strcmp(unit->others[o].variant, variant) == 0)
            return true;
    return false;
}

/* How suitable a backend is for what is not compared: 0 for not at all, larger is better. */
static int rank(const struct matcher *m, const char *id)
{
    bool is_side = strcmp(id, m->a->id) == 0 || strcmp(id, m->b->id) == 0;
    if (is_side && !m->sides_help)
        return 0;
    return strcmp(id, "reference") == 0 ? 1 : is_side ? 2 : 3;
}

/* Finds the best backend that both sides have and that accepts the unit on both. */
static seqlstm_status find_common(const struct matcher *m, int32_t unit, struct sl_match *out_match)
{
    const struct sl_compare_side_unit *a = &m->a->units[unit], *b = &m->b->units[unit];
    int best = 0;
    for (int32_t o = 0; o < a->other_count; o++) {
        int now = rank(m, a->others[o].id);
        if (now <= best || !offers(b, a->others[o].id, a->others[o].variant))
            continue;
        best = now;
        out_match->a = out_match->b = choose(unit, a->others[o].id, a->others[o].variant);
    }
    if (best > 0)
        return SEQLSTM_OK;
    SEQLSTM_FAIL(m->err, SEQLSTM_UNAVAILABLE, "no backend runs `%s` on both sides: %s: %.300s; %s: %.300s",
                 sl_unit_get(m->graph, unit)->name, m->a->id, a->accepted ? "accepts it" : a->reason, m->b->id,
                 b->accepted ? "accepts it" : b->reason);
}

static seqlstm_status match_node(const struct matcher *m, int32_t n, struct sl_match *out_match)
{
    const struct sl_pin *pin = find_pin(m, &m->graph->nodes[n]);
    *out_match = (struct sl_match){.unit = n};
    if (pin) {
        char id[SEQLSTM_MAX_ID_BYTES];
        const char *colon = strchr(pin->backend, ':');
        size_t bytes = colon ? (size_t)(colon - pin->backend) : strlen(pin->backend);
        sl_text_snprintf(id, sizeof id, "%.*s", (int)bytes, pin->backend);
        out_match->a = out_match->b = choose(n, id, colon ? colon + 1 : "");
        return SEQLSTM_OK;
    }
    if (both_accept(m, n)) {
        *out_match = compare(m, n);
        return SEQLSTM_OK;
    }
    return find_common(m, n, out_match);
}

/* Finds an alternative that begins at node n, that both accept and that covers nothing pinned; -1 if there is none. */
static int32_t find_alternative(const struct matcher *m, int32_t n)
{
    int32_t found = -1, covered = 0;
    for (int32_t k = 0; k < m->graph->alternative_count; k++) {
        const struct sl_alternative *alternative = &m->graph->alternatives[k];
        bool free = alternative->first == n && alternative->count > covered && both_accept(m, m->graph->node_count + k);
        for (int32_t i = 0; free && i < alternative->count; i++)
            free = find_pin(m, &m->graph->nodes[n + i]) == NULL;
        if (free) {
            found = k;
            covered = alternative->count;
        }
    }
    return found;
}

static seqlstm_status fail_alone(const struct matcher *m)
{
    int32_t unit = 0; /* the first unit that only one of them refused, since its reason says the most */
    for (int32_t u = m->graph->node_count - 1; u >= 0; u--)
        if (m->a->units[u].accepted != m->b->units[u].accepted)
            unit = u;
    const struct sl_compare_side_unit *a = &m->a->units[unit], *b = &m->b->units[unit];
    SEQLSTM_FAIL(m->err, SEQLSTM_UNAVAILABLE, "A (%s) and B (%s) accept no layer in common; `%s`: A: %.300s; B: %.300s",
                 m->a->id, m->b->id, sl_unit_get(m->graph, unit)->name, a->accepted ? "accepts it" : a->reason,
                 b->accepted ? "accepts it" : b->reason);
}

seqlstm_status sl_matches_create(struct sl_arena *arena, const struct sl_graph *graph,
                                 const struct sl_compare_side_facts *a, const struct sl_compare_side_facts *b,
                                 bool sides_help, struct sl_match **out_matches, int32_t *out_count,
                                 struct seqlstm_error *err)
{
    struct matcher matcher = {graph, a, b, sides_help, err};
    struct sl_match *matches = SL_ARENA_ARRAY(arena, struct sl_match, (size_t)graph->node_count);
    int32_t count = 0, compared = 0;
    if (!matches)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the layers of the comparison");
    for (int32_t n = 0; n < graph->node_count; count++) {
        int32_t alternative = find_alternative(&matcher, n);
        if (alternative >= 0)
            matches[count] = compare(&matcher, graph->node_count + alternative);
        else
            SEQLSTM_TRY(match_node(&matcher, n, &matches[count]));
        n += alternative >= 0 ? graph->alternatives[alternative].count : 1;
        compared += matches[count].compared;
    }
    if (compared == 0)
        return fail_alone(&matcher);
    *out_matches = matches;
    *out_count = count;
    return SEQLSTM_OK;
}
