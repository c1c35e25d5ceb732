/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that join a decoder and leave it at any time: each is written once, as a decoder writes it alone. Room,
 * padding, sources that are dropped, results that are no numbers, and errors. */
#include "exec_pairs.h"

#include <malloc.h>

#include "oom.h"
#include "decode/continuous.h"
#include "decode/sample.h"

enum { BEGIN = 0, END = 1, MOST = 3, MOST_ROWS = 8, BEAM = 3, WORDS = 24 };

enum { ATTENDING = 8 }; /* of `cases`: additive attention, with memories of several widths */

/* What is written for a source. */
struct text {
    int times;
    bool is_number, ended;
    int64_t count;
    int32_t ids[WORDS];
    double score, log_probability;
};

static const struct sl_decode_config configs[] = {
    {.beam = 1, .n_best = 1, .length_penalty = {SL_LENGTH_PENALTY_NONE, 0}, .top_p = 1},
    {.beam = BEAM, .n_best = 2, .max_length = 6, .length_penalty = {SL_LENGTH_PENALTY_GNMT, 0.6}, .top_p = 1},
    {.beam = 2, .n_best = 1, .max_length = 9, .length_penalty = {SL_LENGTH_PENALTY_AVERAGE, 0}, .top_p = 1},
    {.beam = 1, .n_best = 1, .max_length = 7, .temperature = 2, .top_k = 5, .top_p = 0.9}};
enum { CONFIGS = sizeof configs / sizeof *configs };

/* A model in two parts, and what is written for each source alone. */
struct team {
    struct world w;
    struct part encoder, step;
    struct sl_decoder_request request;
    struct text alone[B];
};

static void open_team(struct team *team, size_t which)
{
    struct sl_data_facts facts = pair_facts(cases[which].one_vocabulary ? V : SOURCE_V);
    facts.envelope.sequences = MOST;
    facts.envelope.source_rows = MOST_ROWS;
    open_world(&team->w, data_pairs, cases[which].layers, &facts, true);
    struct sl_envelope envelope = facts.envelope;
    open_part(&team->encoder, &team->w, SL_PART_ENCODER, &envelope);
    envelope.steps = 1;
    envelope.sequences = envelope.rows = MOST * BEAM;
    open_part(&team->step, &team->w, SL_PART_DECODER, &envelope);
    team->request = (struct sl_decoder_request){
        .encoder = team->encoder.exec, .step = team->step.exec, .begin = BEGIN, .end = END, .seed = 3};
}

static void close_team(struct team *team)
{
    close_part(&team->step);
    close_part(&team->encoder);
    close_world(&team->w);
}

/* Sources of these records, the longest first, as batches without targets have them. Sample k is record k of the test.
 */
static struct sl_batch *make_sources(const int32_t *wanted, int64_t count)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int32_t records[B], steps[B];
    for (int64_t k = 0; k < count; k++) {
        int64_t at = k;
        for (; at > 0 && source_lengths[records[at - 1]] < source_lengths[wanted[k]]; at--)
            records[at] = records[at - 1];
        records[at] = wanted[k];
    }
    for (int64_t k = 0; k < count; k++)
        steps[k] = source_lengths[records[k]];
    const struct sl_batch_shape shape = {
        .sequences = count, .source_lengths = steps, .source_kind = SL_FIELD_IDS, .source_features = 1};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int64_t k = 0; k < count; k++) {
        ((int64_t *)batch->sample)[k] = records[k];
        for (int64_t t = 0; t < steps[k]; t++)
            ((int32_t *)batch->source.input.ids)[sl_batch_source_row(batch, k, t)] = source_token(records[k], t);
    }
    return batch;
}

static void keep(struct text *text, const struct sl_hypothesis *best)
{
    text->times++;
    text->is_number = best != NULL;
    if (best == NULL)
        return;
    assert_true(best->count <= WORDS);
    text->ended = best->ended;
    text->count = best->count;
    memcpy(text->ids, best->ids, (size_t)best->count * sizeof *best->ids);
    text->score = best->score;
    text->log_probability = best->log_probability;
}

/* Drawn tokens depend on the record's number, which is 0 for all that are written beside each other; `numbered`: each
 * has its own. */
static void write_alone(struct team *team, bool numbered)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_decoder *decoder = NULL;
    ok(sl_decoder_create(&team->request, &decoder, &err), &err);
    memset(team->alone, 0, sizeof team->alone);
    for (int32_t record = 0; record < B; record++) {
        struct sl_batch *batch = make_sources(&record, 1);
        if (!numbered)
            ((int64_t *)batch->sample)[0] = 0;
        ok(sl_decoder_run(decoder, batch, &err), &err);
        const struct sl_hypothesis best = sl_decoder_get_result(decoder, 0, 0);
        keep(&team->alone[record], &best);
        sl_batch_destroy(batch);
    }
    sl_decoder_destroy(decoder);
}

static void expect_text(const struct team *team, const char *name, int32_t record, const struct text *got)
{
    const struct text *alone = &team->alone[record];
    if (got->times != 1 || got->count != alone->count || got->ended != alone->ended ||
        memcmp(got->ids, alone->ids, (size_t)got->count * sizeof *got->ids) != 0 ||
        !(fabs(got->score - alone->score) <= 1e-5) || !(fabs(got->log_probability - alone->log_probability) <= 1e-5))
        fail_msg("%s: source %d is written %d times, %d words with %g; alone it has %d words with %g", name, record,
                 got->times, (int)got->count, got->log_probability, (int)alone->count, alone->log_probability);
}

static seqlstm_status collect(void *context, void *tag, const struct sl_hypothesis *best, struct seqlstm_error *err)
{
    (void)context;
    (void)err;
    keep(tag, best);
    return SEQLSTM_OK;
}

/* ---- any order ----------------------------------------------------------------------------------------------- */

struct play {
    struct sl_continuous *continuous;
    struct text texts[B];
    void *tags[B];
    bool present[B], dropped[B];
    int32_t order[B], next; /* records that have not joined yet are order[next ..] */
    uint64_t seed, draws;
};

static int32_t draw(struct play *play, int32_t below)
{
    return (int32_t)(seqlstm_uniform(play->seed, play->draws++, 0, 0) * (float)below);
}

static void begin(struct play *play)
{
    for (int32_t r = 0; r < B; r++)
        play->tags[r] = &play->texts[r];
    for (int32_t r = 0; r < B; r++) {
        const int32_t other = draw(play, r + 1);
        play->order[r] = play->order[other];
        play->order[other] = r;
    }
}

/* Of the sources that are there, by what the test knows. `pads`: the written ones stay until all are. */
static int32_t count_present(struct play *play, bool pads, int32_t *out_rows)
{
    int32_t count = 0, live = 0;
    *out_rows = 0;
    for (int32_t r = 0; r < B; r++) {
        play->present[r] = play->present[r] && (pads || play->texts[r].times == 0);
        count += play->present[r];
        live += play->present[r] && play->texts[r].times == 0;
        *out_rows += play->present[r] ? source_lengths[r] : 0;
    }
    if (live == 0) {
        memset(play->present, 0, sizeof play->present);
        *out_rows = 0;
    }
    return live == 0 ? 0 : count;
}

/* One to three of the next records join, if there is room. */
static void join_some(struct play *play, bool pads)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int32_t rows, count = 1 + draw(play, MOST), here = count_present(play, pads, &rows);
    if (count > B - play->next)
        count = B - play->next;
    if (count == 0)
        return;
    const int32_t *records = &play->order[play->next];
    struct sl_batch *batch = make_sources(records, count);
    for (int32_t k = 0; k < count; k++)
        rows += source_lengths[records[k]];
    const bool fits = here + count <= MOST && rows <= MOST_ROWS;
    assert_int_equal(sl_continuous_has_room(play->continuous, batch), fits);
    if (fits)
        ok(sl_continuous_join(play->continuous, batch, play->tags, &err), &err);
    for (int32_t k = 0; fits && k < count; k++)
        play->present[records[k]] = true;
    play->next += fits ? count : 0;
    sl_batch_destroy(batch);
}

static void drop_one(struct play *play)
{
    const int32_t record = draw(play, B);
    if (play->present[record] && play->texts[record].times == 0) {
        play->present[record] = false;
        play->dropped[record] = true;
    }
    sl_continuous_drop(play->continuous, &play->texts[record]); /* of one that is not there: nothing */
}

/* Sources come in any order and number, and some are dropped before their ends. */
static void play_once(const struct team *team, const char *name, struct sl_continuous *continuous, uint64_t seed,
                      bool pads, bool drops)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct play play = {.continuous = continuous, .seed = seed};
    int32_t rows;
    begin(&play);
    for (int32_t step = 0; play.next < B || count_present(&play, pads, &rows) > 0; step++) {
        assert_true(step < 200);
        if (draw(&play, 3) != 0)
            join_some(&play, pads);
        for (int32_t d = draw(&play, 8); drops && d < 2; d++)
            drop_one(&play);
        if (draw(&play, 5) == 0)
            join_some(&play, pads);
        assert_int_equal(sl_continuous_count(continuous), count_present(&play, pads, &rows));
        ok(sl_continuous_step(continuous, collect, NULL, &err), &err);
        assert_int_equal(sl_continuous_count(continuous), count_present(&play, pads, &rows));
    }
    for (int32_t r = 0; r < B; r++) {
        if (!play.dropped[r])
            expect_text(team, name, r, &play.texts[r]);
        else
            assert_int_equal(play.texts[r].times, 0);
    }
}

static void each_source_is_written_as_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct team team;
        open_team(&team, i);
        for (size_t c = 0; c < CONFIGS; c++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_continuous *continuous = NULL;
            team.request.config = &configs[c];
            team.request.never = (struct sl_never){.ids = {BEGIN, 3}, .count = c == 2 ? 2 : 0};
            write_alone(&team, false);
            ok(sl_continuous_create(&team.request, &continuous, &err), &err);
            for (uint64_t seed = 1; seed <= 6; seed++) /* the same one again and again */
                play_once(&team, cases[i].name, continuous, seed, false, seed > 3);
            sl_continuous_pad(continuous);
            for (uint64_t seed = 7; seed <= 8; seed++)
                play_once(&team, cases[i].name, continuous, seed, true, false);
            sl_continuous_destroy(continuous);
        }
        close_team(&team);
    }
}

/* The same sources again and again take no more memory: 16 bytes kept for each would be twice the bound, which leaves
 * room for freed blocks that the C library keeps at hand. (Sanitizers count in their own way, and find what leaks.) */
static void what_sources_take_is_given_back(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_continuous *continuous = NULL;
    struct team team;
    size_t before = 0;
    open_team(&team, ATTENDING);
    team.request.config = &configs[1];
    write_alone(&team, false);
    ok(sl_continuous_create(&team.request, &continuous, &err), &err);
    for (int k = 0; k < 510; k++) {
        play_once(&team, "again", continuous, 1, false, true);
        before = k == 9 ? mallinfo2().uordblks : before;
    }
    assert_in_range(mallinfo2().uordblks, 0, before + (size_t)500 * B * 8);
    sl_continuous_destroy(continuous);
    close_team(&team);
}

/* ---- a decoder ----------------------------------------------------------------------------------------------- */

/* Sequences may be in another order than their sources: each is cut at the limit of its own. */
static void limits_follow_the_source_of_each_sequence(void **state)
{
    (void)state;
    static const int32_t records[] = {0, 1, 2}, orders[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
    static const struct sl_decode_config endless = {
        .beam = 1, .n_best = 1, .length_penalty = {SL_LENGTH_PENALTY_NONE, 0}, .top_p = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_decoder *decoder = NULL;
    struct team team;
    open_team(&team, 0);
    team.request.config = &endless;
    team.request.never = (struct sl_never){.ids = {END}, .count = 1};
    write_alone(&team, false);
    ok(sl_decoder_create(&team.request, &decoder, &err), &err);
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        struct sl_batch *batch = make_sources(records, 3);
        int32_t of[3];
        for (int k = 0; k < 3; k++)
            of[k] = (int32_t)batch->sample[orders[o][k]];
        for (int k = 0; k < 3; k++) {
            ((int32_t *)(uintptr_t)batch->source.place)[k] = orders[o][k];
            ((int64_t *)(uintptr_t)batch->sample)[k] = of[k];
        }
        ok(sl_decoder_run(decoder, batch, &err), &err);
        for (int k = 0; k < 3; k++) {
            struct text got = {0};
            const struct sl_hypothesis best = sl_decoder_get_result(decoder, k, 0);
            assert_int_equal(best.count, 2 * source_lengths[of[k]] + 10);
            keep(&got, &best);
            expect_text(&team, "in another order", of[k], &got);
        }
        sl_batch_destroy(batch);
    }
    sl_decoder_destroy(decoder);
    close_team(&team);
}

/* Sequences, and tokens with their ends, of all runs of a decoder. Drawing takes memory that a search does not, and so
 * does a longer source where the limit follows from it. */
static void what_a_decoder_has_written_is_counted(void **state)
{
    (void)state;
    struct team team;
    open_team(&team, 0);
    for (size_t c = 0; c < CONFIGS; c++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_decoder *decoder = NULL;
        int64_t tokens = 0, ends = 0, ns = 0;
        team.request.config = &configs[c];
        ok(sl_decoder_create(&team.request, &decoder, &err), &err);
        for (int32_t record = 0; record < B; record++) {
            struct sl_batch *batch = make_sources(&record, 1);
            ok(sl_decoder_run(decoder, batch, &err), &err);
            assert_true(record == 0 || sl_decoder_get_totals(decoder).ns > ns); /* of all runs */
            ns = sl_decoder_get_totals(decoder).ns - 1;
            const struct sl_hypothesis best = sl_decoder_get_result(decoder, 0, 0);
            tokens += best.count;
            ends += best.ended;
            sl_batch_destroy(batch);
        }
        struct sl_decoder_totals totals = sl_decoder_get_totals(decoder);
        assert_true(totals.ns > ns);
        assert_int_equal(totals.sequences, B);
        assert_int_equal(totals.tokens, tokens + ends);
        assert_true(totals.rows >= totals.tokens);
        struct sl_batch *several = make_sources((const int32_t[]){2, 0, 3}, 3);
        ok(sl_decoder_run(decoder, several, &err), &err);
        sl_batch_destroy(several);
        totals = sl_decoder_get_totals(decoder);
        assert_int_equal(totals.sequences, B + 3);
        if (configs[c].beam == 1) /* one row for each token and each end */
            assert_int_equal(totals.rows, totals.tokens);
        else
            assert_true(totals.rows > totals.tokens);
        sl_decoder_destroy(decoder);
        const struct sl_graph *graph = sl_exec_get_graph(team.step.exec);
        struct sl_decode_config other = configs[c];
        const int64_t bytes = sl_decoder_count_bytes(graph, &configs[c], 5);
        assert_true((sl_decoder_count_bytes(graph, &configs[c], 50) > bytes) == (configs[c].max_length == 0));
        other.temperature = configs[c].temperature > 0 ? 0 : 0.5;
        const int64_t more = graph->facts.envelope.sequences * (int64_t)(sizeof(int32_t) + sizeof(double)) +
                             graph->facts.target.classes * (int64_t)sizeof(struct sl_sample_candidate);
        assert_int_equal(sl_decoder_count_bytes(graph, &other, 5) - bytes, other.temperature > 0 ? more : -more);
    }
    close_team(&team);
}

/* Each sequence of a batch gets the text that it gets alone, though others end before it: what is drawn depends on the
 * record and the step. */
static void batches_are_written_as_their_sequences(void **state)
{
    (void)state;
    struct team team;
    open_team(&team, ATTENDING);
    for (size_t c = 0; c < CONFIGS; c++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_decoder *decoder = NULL;
        team.request.config = &configs[c];
        write_alone(&team, true);
        ok(sl_decoder_create(&team.request, &decoder, &err), &err);
        for (int32_t first = 0; first < B; first++)
            for (int32_t second = 0; second < B; second++) {
                const int32_t wanted[] = {first, second};
                if (first == second || source_lengths[first] + source_lengths[second] > MOST_ROWS)
                    continue;
                struct sl_batch *batch = make_sources(wanted, 2);
                ok(sl_decoder_run(decoder, batch, &err), &err);
                for (int64_t k = 0; k < 2; k++) {
                    const struct sl_hypothesis best = sl_decoder_get_result(decoder, k, 0);
                    const struct text *expected = &team.alone[batch->sample[k]];
                    assert_int_equal(best.count, expected->count);
                    assert_memory_equal(best.ids, expected->ids, (size_t)best.count * sizeof *best.ids);
                    assert_int_equal(best.ended, expected->ended);
                }
                sl_batch_destroy(batch);
            }
        sl_decoder_destroy(decoder);
    }
    close_team(&team);
}

/* ---- what fails ---------------------------------------------------------------------------------------------- */

static void make_number_less(struct team *team, const char *name, int64_t row)
{
    const struct sl_param_view *view = sl_params_find(team->w.params, name);
    assert_non_null(view);
    for (int64_t k = 0; k < view->columns; k++)
        team->w.params->values[view->offset_elems + row * view->columns + k] = NAN;
    sl_params_touch(team->w.params);
}

/* The probabilities of one source are no numbers: it leaves without a text, and the others are written as ever. A
 * decoder that writes them as one batch tells the step. */
static void what_is_no_number_leaves_alone(void **state)
{
    (void)state;
    static const int32_t first[] = {4, 0, 3}, records[] = {0, 3, 4};
    static const size_t models[] = {0, ATTENDING};
    for (size_t m = 0; m < 2; m++)
        for (size_t c = 0; c < CONFIGS; c++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_continuous *continuous = NULL;
            struct sl_decoder *decoder = NULL;
            struct text texts[B] = {{0}};
            void *tags[B] = {&texts[0], &texts[1], &texts[2], &texts[3], &texts[4]};
            struct team team;
            open_team(&team, models[m]);
            team.request.config = &configs[c];
            write_alone(&team, false);
            make_number_less(&team, "source_words.w", 1); /* only record 0 has this word */
            ok(sl_continuous_create(&team.request, &continuous, &err), &err);
            struct sl_batch *batch = make_sources(first, 3);
            ok(sl_continuous_join(continuous, batch, tags, &err), &err);
            ok(sl_continuous_step(continuous, collect, NULL, &err), &err);
            assert_int_equal(texts[0].times, 1);
            assert_false(texts[0].is_number);
            assert_int_equal(sl_continuous_count(continuous), 2 - texts[3].times - texts[4].times);
            while (sl_continuous_count(continuous) > 0)
                ok(sl_continuous_step(continuous, collect, NULL, &err), &err);
            for (int32_t k = 1; k < 3; k++)
                expect_text(&team, cases[models[m]].name, records[k], &texts[records[k]]);
            ok(sl_decoder_create(&team.request, &decoder, &err), &err);
            assert_int_equal(sl_decoder_run(decoder, batch, &err), SEQLSTM_NUMERIC);
            assert_non_null(strstr(err.message, "probabilities at step 0 are not numbers"));
            sl_decoder_destroy(decoder);
            sl_batch_destroy(batch);
            sl_continuous_destroy(continuous);
            close_team(&team);
        }
}

static seqlstm_status refuse(void *context, void *tag, const struct sl_hypothesis *best, struct seqlstm_error *err)
{
    keep(tag, best);
    if (--*(int *)context > 0)
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err, SEQLSTM_IO, "no place for the text");
}

/* A writer that fails ends the step, and all have left; the next are written as ever. Of three sources, each as long as
 * it may be, the first and the last are over in the same step. */
static void after_an_error_all_have_left(void **state)
{
    static const int32_t records[] = {0, 4, 3}; /* of 2, 3 and 1 steps, which join one after the other */
    struct team team;
    (void)state;
    open_team(&team, ATTENDING);
    team.request.config = &configs[0];
    team.request.never = (struct sl_never){.ids = {BEGIN, END}, .count = 2};
    write_alone(&team, false);
    for (int trial = 0; trial < 6; trial++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct play play = {.seed = 1};
        seqlstm_status status = SEQLSTM_OK;
        int left = 1 + trial / 2;
        ok(sl_continuous_create(&team.request, &play.continuous, &err), &err);
        if (trial % 2 == 1)
            sl_continuous_pad(play.continuous);
        begin(&play);
        for (int step = 0; step < 30 && status == SEQLSTM_OK; step++) {
            struct sl_batch *batch = make_sources(&records[step % 3], 1);
            if (step < 3)
                ok(sl_continuous_join(play.continuous, batch, play.tags, &err), &err);
            sl_batch_destroy(batch);
            status = sl_continuous_step(play.continuous, refuse, &left, &err);
        }
        assert_true(status == SEQLSTM_IO && sl_continuous_count(play.continuous) == 0);
        assert_int_equal(play.texts[0].times + play.texts[3].times + play.texts[4].times, 1 + trial / 2);
        play_once(&team, "after an error", play.continuous, 1, trial % 2 == 1, false);
        sl_continuous_destroy(play.continuous);
    }
    close_team(&team);
}

/* Without memory none of a batch joins; those that are there stay, and their texts are the same. */
static void without_memory_the_others_stay(void **state)
{
    (void)state;
    static const int32_t first[] = {0, 3}, late[] = {2};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_continuous *continuous = NULL;
    struct team team;
    struct text texts[B] = {{0}};
    void *tags[B] = {&texts[0], &texts[1], &texts[2], &texts[3], &texts[4]};
    open_team(&team, ATTENDING);
    team.request.config = &configs[1];
    write_alone(&team, false);
    for (int n = 1;; n++) {
        oom_fail_at(n);
        const seqlstm_status status = sl_continuous_create(&team.request, &continuous, &err);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
    }
    struct sl_batch *batches[2] = {make_sources(first, 2), make_sources(late, 1)};
    ok(sl_continuous_join(continuous, batches[0], tags, &err), &err);
    ok(sl_continuous_step(continuous, collect, NULL, &err), &err);
    const int64_t before = sl_continuous_count(continuous);
    for (int n = 1;; n++) {
        oom_fail_at(n);
        const seqlstm_status status = sl_continuous_join(continuous, batches[1], tags, &err);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_int_equal(sl_continuous_count(continuous), before);
        assert_true(sl_continuous_has_room(continuous, batches[1]));
    }
    while (sl_continuous_count(continuous) > 0)
        ok(sl_continuous_step(continuous, collect, NULL, &err), &err);
    expect_text(&team, "there before", 0, &texts[0]);
    expect_text(&team, "there before", 3, &texts[3]);
    expect_text(&team, "joined at last", 2, &texts[2]);
    sl_batch_destroy(batches[0]);
    sl_batch_destroy(batches[1]);
    sl_continuous_destroy(continuous);
    close_team(&team);
}

/* The same, where the others go on at once, from wherever the joining has failed. */
static void after_a_failed_join_the_others_go_on(void **state)
{
    (void)state;
    static const int32_t first[] = {0, 3}, late[] = {2};
    struct team team;
    open_team(&team, ATTENDING);
    team.request.config = &configs[1];
    write_alone(&team, false);
    struct sl_batch *batches[2] = {make_sources(first, 2), make_sources(late, 1)};
    for (int n = 1, fails = 1; fails; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_continuous *continuous = NULL;
        struct text texts[B] = {{0}};
        void *tags[B] = {&texts[0], &texts[1], &texts[2], &texts[3], &texts[4]};
        ok(sl_continuous_create(&team.request, &continuous, &err), &err);
        ok(sl_continuous_join(continuous, batches[0], tags, &err), &err);
        oom_fail_at(n);
        (void)sl_continuous_join(continuous, batches[1], tags, &err);
        fails = oom_disarm();
        while (sl_continuous_count(continuous) > 0)
            ok(sl_continuous_step(continuous, collect, NULL, &err), &err);
        expect_text(&team, "there before", 0, &texts[0]);
        expect_text(&team, "there before", 3, &texts[3]);
        assert_int_equal(texts[2].times, !fails);
        sl_continuous_destroy(continuous);
    }
    sl_batch_destroy(batches[0]);
    sl_batch_destroy(batches[1]);
    close_team(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_source_is_written_as_alone),
        cmocka_unit_test(what_sources_take_is_given_back),
        cmocka_unit_test(what_is_no_number_leaves_alone),
        cmocka_unit_test(after_an_error_all_have_left),
        cmocka_unit_test(limits_follow_the_source_of_each_sequence),
        cmocka_unit_test(what_a_decoder_has_written_is_counted),
        cmocka_unit_test(batches_are_written_as_their_sequences),
        cmocka_unit_test(without_memory_the_others_stay),
        cmocka_unit_test(after_a_failed_join_the_others_go_on),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
