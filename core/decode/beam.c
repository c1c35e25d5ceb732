/* SPDX-License-Identifier: Apache-2.0 */
/* See beam.h. */
#include "decode/beam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A token and what came before it; -1: nothing. */
struct node {
    int32_t parent;
    int32_t token;
    int32_t length; /* tokens up to here, begin not counted */
    int32_t row;    /* of the step that chose it */
};

struct result {
    int32_t node;
    double score, log_probability;
    bool ended;
};

/* A continuation. */
struct candidate {
    int32_t row;
    int32_t token;
    double log_probability;
};

struct sl_beam {
    struct sl_beam_rule rule;
    int32_t sentences;
    int32_t *limits;
    int32_t *result_counts;   /* [sentences] */
    struct result *results;   /* [sentences, beam], best first */
    struct sl_beam_row *rows; /* [sentences * beam] */
    struct sl_beam_row *next;
    int32_t row_count;
    int32_t *sources;       /* [sentences * beam] */
    struct candidate *best; /* [beam] of one sentence, best first */
    struct node *nodes;
    int32_t node_count, node_capacity;
    int32_t *text, *trail; /* of the result that was last asked for: tokens and rows */
};

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a beam search");
}

seqlstm_status sl_beam_create(const struct sl_beam_rule *rule, int32_t sentences, const int32_t *limits,
                              struct sl_beam **out_beam, struct seqlstm_error *err)
{
    struct sl_beam *beam = calloc(1, sizeof *beam);
    if (beam == NULL)
        return no_memory(err);
    size_t n = (size_t)sentences + 1, places = n * (size_t)rule->beam;
    int32_t longest = 1;
    for (int32_t s = 0; s < sentences; s++)
        longest = limits[s] > longest ? limits[s] : longest;
    beam->rule = *rule;
    beam->sentences = sentences;
    beam->limits = calloc(n, sizeof *beam->limits);
    beam->result_counts = calloc(n, sizeof *beam->result_counts);
    beam->results = calloc(places, sizeof *beam->results);
    beam->rows = calloc(places, sizeof *beam->rows);
    beam->next = calloc(places, sizeof *beam->next);
    beam->sources = calloc(places, sizeof *beam->sources);
    beam->best = calloc((size_t)rule->beam + 1, sizeof *beam->best);
    beam->text = calloc((size_t)longest + 1, sizeof *beam->text);
    beam->trail = calloc((size_t)longest + 1, sizeof *beam->trail);
    if (!beam->limits || !beam->result_counts || !beam->results || !beam->rows || !beam->next || !beam->sources ||
        !beam->best || !beam->text || !beam->trail) {
        sl_beam_destroy(beam);
        return no_memory(err);
    }
    for (int32_t s = 0; s < sentences; s++) {
        beam->limits[s] = limits[s];
        beam->rows[s] = (struct sl_beam_row){.sentence = s, .token = rule->begin, .node = -1};
    }
    beam->row_count = sentences;
    *out_beam = beam;
    return SEQLSTM_OK;
}

int64_t sl_beam_count_bytes(const struct sl_beam_rule *rule, int64_t sentences, int64_t limit)
{
    const int64_t places = sentences * rule->beam;
    const size_t place = sizeof(struct result) + 2 * sizeof(struct sl_beam_row) + sizeof(int32_t);
    const size_t tokens = 2 * sizeof(int32_t); /* text and trail */
    return places * (int64_t)place + limit * (places * (int64_t)sizeof(struct node) + (int64_t)tokens);
}

void sl_beam_destroy(struct sl_beam *beam)
{
    if (beam == NULL)
        return;
    free(beam->limits);
    free(beam->result_counts);
    free(beam->results);
    free(beam->rows);
    free(beam->next);
    free(beam->sources);
    free(beam->best);
    free(beam->nodes);
    free(beam->text);
    free(beam->trail);
    free(beam);
}

const struct sl_beam_row *sl_beam_get_rows(const struct sl_beam *beam, int32_t *out_count)
{
    *out_count = beam->row_count;
    return beam->rows;
}

static double get_score(const struct sl_beam *beam, double log_probability, int32_t length)
{
    switch (beam->rule.penalty.kind) {
    case SL_LENGTH_PENALTY_AVERAGE:
        return log_probability / length;
    case SL_LENGTH_PENALTY_GNMT:
        return log_probability / pow((5.0 + length) / 6.0, beam->rule.penalty.alpha);
    case SL_LENGTH_PENALTY_NONE:
        break;
    }
    return log_probability;
}

/* Room for what one step may add. */
static seqlstm_status reserve_nodes(struct sl_beam *beam, struct seqlstm_error *err)
{
    int32_t most = beam->sentences * beam->rule.beam;
    if (beam->node_count + most <= beam->node_capacity)
        return SEQLSTM_OK;
    int32_t capacity = 2 * beam->node_capacity + most;
    struct node *grown = realloc(beam->nodes, (size_t)capacity * sizeof *grown);
    if (grown == NULL)
        return no_memory(err);
    beam->nodes = grown;
    beam->node_capacity = capacity;
    return SEQLSTM_OK;
}

static int32_t get_length(const struct sl_beam *beam, int32_t node)
{
    return node < 0 ? 0 : beam->nodes[node].length;
}

static int32_t add_node(struct sl_beam *beam, int32_t row, int32_t token)
{
    int32_t parent = beam->rows[row].node;
    beam->nodes[beam->node_count] = (struct node){parent, token, get_length(beam, parent) + 1, row};
    return beam->node_count++;
}

/* Keeps a hypothesis among the sentence's results, after equal ones. */
static void keep(struct sl_beam *beam, int32_t sentence, int32_t node, double log_probability, bool ended)
{
    struct result *results = beam->results + (size_t)sentence * (size_t)beam->rule.beam;
    struct result result = {node, get_score(beam, log_probability, get_length(beam, node)), log_probability, ended};
    int32_t at = beam->result_counts[sentence]++;
    for (; at > 0 && results[at - 1].score < result.score; at--)
        results[at] = results[at - 1];
    results[at] = result;
}

/* The best continuations of rows [first, end) so far, at most `places`. */
static int32_t add_candidate(struct candidate *best, int32_t count, int32_t places, struct candidate candidate)
{
    if (count == places && !(candidate.log_probability > best[count - 1].log_probability))
        return count;
    int32_t at = count < places ? count : count - 1;
    for (; at > 0 && best[at - 1].log_probability < candidate.log_probability; at--)
        best[at] = best[at - 1];
    best[at] = candidate;
    return count < places ? count + 1 : count;
}

enum { BLOCK = 64 };

/* Is none of the BLOCK probabilities larger than `least`? Without branches, so that the compiler uses vectors. */
static bool is_block_idle(const float *block, float least)
{
    int32_t above = 0;
    for (int k = 0; k < BLOCK; k++)
        above |= block[k] > least;
    return above == 0;
}

static int32_t find_best(struct sl_beam *beam, int32_t first, int32_t end, int32_t places, const float *probabilities,
                         int64_t classes)
{
    int32_t count = 0;
    for (int32_t r = first; r < end; r++) {
        const float *row = probabilities + (int64_t)r * classes;
        double before = beam->rows[r].log_probability;
        float least = 0; /* what a token of this row must exceed */
        for (int64_t c = 0; c < classes; c++) {
            while (count == places && c + BLOCK <= classes && is_block_idle(row + c, least))
                c += BLOCK;
            if (c == classes || (count == places && !(row[c] > least)) || sl_never_has(&beam->rule.never, (int32_t)c))
                continue;
            struct candidate candidate = {r, (int32_t)c, before + log((double)row[c])};
            count = add_candidate(beam->best, count, places, candidate);
            if (count == places)
                least = (float)exp(beam->best[count - 1].log_probability - before) * (1 - 1e-6f);
        }
    }
    return count;
}

/* Accepts the candidates; live ones are appended to `next`. */
static void take(struct sl_beam *beam, int32_t sentence, int32_t count, int32_t *next_count)
{
    for (int32_t k = 0; k < count; k++) {
        const struct candidate *c = &beam->best[k];
        int32_t node = add_node(beam, c->row, c->token);
        bool ended = c->token == beam->rule.end;
        if (ended || get_length(beam, node) >= beam->limits[sentence]) {
            keep(beam, sentence, node, c->log_probability, ended);
            continue;
        }
        beam->sources[*next_count] = c->row;
        beam->next[(*next_count)++] = (struct sl_beam_row){sentence, c->token, node, c->log_probability};
    }
}

/* Is it impossible that a live hypothesis overtakes the n_best? Log-probabilities only fall. */
static bool is_decided(const struct sl_beam *beam, int32_t sentence, const struct sl_beam_row *live, int32_t count)
{
    if (count == 0 || beam->result_counts[sentence] < beam->rule.n_best)
        return false;
    const struct result *worst = &beam->results[(size_t)sentence * (size_t)beam->rule.beam] + beam->rule.n_best - 1;
    for (int32_t k = 0; k < count; k++)
        if (get_score(beam, live[k].log_probability, beam->limits[sentence]) > worst->score)
            return false;
    return true;
}

static void turn(struct sl_beam *beam, int32_t next_count)
{
    struct sl_beam_row *rows = beam->rows;
    beam->rows = beam->next;
    beam->next = rows;
    beam->row_count = next_count;
}

seqlstm_status sl_beam_advance(struct sl_beam *beam, const float *probabilities, int64_t classes,
                               const int32_t **out_sources, struct seqlstm_error *err)
{
    SEQLSTM_TRY(reserve_nodes(beam, err));
    int32_t next = 0;
    for (int32_t first = 0, end; first < beam->row_count; first = end) {
        int32_t sentence = beam->rows[first].sentence, places = beam->rule.beam - beam->result_counts[sentence];
        for (end = first + 1; end < beam->row_count && beam->rows[end].sentence == sentence; end++)
            ;
        int32_t begin = next, count = find_best(beam, first, end, places, probabilities, classes);
        take(beam, sentence, count, &next);
        if (is_decided(beam, sentence, beam->next + begin, next - begin))
            next = begin;
    }
    turn(beam, next);
    *out_sources = beam->sources;
    return SEQLSTM_OK;
}

seqlstm_status sl_beam_follow(struct sl_beam *beam, const int32_t *tokens, const double *log_probabilities,
                              const int32_t **out_sources, struct seqlstm_error *err)
{
    SEQLSTM_TRY(reserve_nodes(beam, err));
    int32_t next = 0;
    for (int32_t r = 0; r < beam->row_count; r++) {
        beam->best[0] = (struct candidate){r, tokens[r], beam->rows[r].log_probability + log_probabilities[r]};
        take(beam, beam->rows[r].sentence, 1, &next);
    }
    turn(beam, next);
    *out_sources = beam->sources;
    return SEQLSTM_OK;
}

int32_t sl_beam_count_results(const struct sl_beam *beam, int32_t sentence)
{
    int32_t count = beam->result_counts[sentence];
    return count < beam->rule.n_best ? count : beam->rule.n_best;
}

struct sl_hypothesis sl_beam_get_result(struct sl_beam *beam, int32_t sentence, int32_t rank)
{
    const struct result *result = &beam->results[(size_t)sentence * (size_t)beam->rule.beam] + rank;
    int32_t node = result->node, steps = get_length(beam, node);
    for (int32_t k = steps - 1; k >= 0; k--, node = beam->nodes[node].parent) {
        beam->text[k] = beam->nodes[node].token;
        beam->trail[k] = beam->nodes[node].row;
    }
    return (struct sl_hypothesis){.ids = beam->text,
                                  .rows = beam->trail,
                                  .count = steps - result->ended,
                                  .score = result->score,
                                  .log_probability = result->log_probability,
                                  .ended = result->ended};
}
