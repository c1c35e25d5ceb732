/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks that share layers and batches give to each other: carried states, weights, what compression has missed. */
#include "forked_ranks.h"
#include "oom.h"
#include "train_plain.h"

#include "parallel/reducer.h"
#include "train/trainer/shards.h"
#include "train/trainer/stages.h"

/* ---- an executor with several states ---------------------------------------------------------------------------- */

/* State s has s + 1 features; a shard has two sequences at most. */
enum { STATES = 3, SHARD_ELEMS = 16 * STATES };

static float shard_state[SHARD_ELEMS];

const struct sl_graph *__wrap_sl_exec_get_graph(const struct sl_exec *exec);
const struct sl_graph *__wrap_sl_exec_get_graph(const struct sl_exec *exec)
{
    static struct sl_state states[STATES] = {{.features = 1}, {.features = 2}, {.features = 3}};
    static const struct sl_graph graph = {.state_count = STATES, .states = states};
    (void)exec;
    return &graph;
}

seqlstm_status __wrap_sl_exec_get_state(struct sl_exec *exec, float **out_state, int64_t *out_elems,
                                        struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_get_state(struct sl_exec *exec, float **out_state, int64_t *out_elems,
                                        struct seqlstm_error *err)
{
    (void)exec, (void)err;
    *out_state = shard_state;
    *out_elems = SHARD_ELEMS;
    return SEQLSTM_OK;
}

int64_t __wrap_sl_exec_get_state_offset(const struct sl_exec *exec, int32_t s);
int64_t __wrap_sl_exec_get_state_offset(const struct sl_exec *exec, int32_t s)
{
    (void)exec;
    return 16 * s;
}

/* ---- an update of the parameters of a stage --------------------------------------------------------------------- */

enum { VIEWS = 5 };

/* Each view is a number, which is 100 v after an update, and the states of its optimizer 100 v + 1 to 3. */
static struct {
    const struct sl_owners *owners;
    int32_t stage;
    bool owned_as_said;
    double squares;
    struct sl_params *params;
} update;

seqlstm_status __wrap_sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *making, const bool *owned,
                                          double *out_squares, struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *making, const bool *owned,
                                          double *out_squares, struct seqlstm_error *err)
{
    (void)exec, (void)making, (void)err;
    update.owned_as_said = true;
    for (int32_t v = 0; v < VIEWS; v++) {
        update.owned_as_said = update.owned_as_said && owned[v] == (update.owners->params[v] == update.stage);
        out_squares[v] = owned[v] ? 1 << v : 1000;
    }
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                           struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                           struct seqlstm_error *err)
{
    (void)exec, (void)err;
    update.squares = squares;
    for (int32_t v = 0; v < VIEWS; v++)
        if (owned[v]) {
            const int64_t at = update.params->views[v].offset_elems;
            update.params->values[at] = (float)(100 * v);
            for (int k = 0; k < 3; k++)
                update.params->states[k][at] = (float)(100 * v + k + 1);
        }
    *out_squares = squares;
    return SEQLSTM_OK;
}

/* ---- steps and times -------------------------------------------------------------------------------------------- */

enum { STEPS_MOST = 16 };

static struct sl_exec_step steps[STEPS_MOST];
static int step_count;
static float gradient; /* of element i, i + 1 times this */

seqlstm_status __wrap_sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                  struct sl_exec_result *out_result, struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                  struct sl_exec_result *out_result, struct seqlstm_error *err)
{
    (void)err;
    assert_in_range(step_count, 0, STEPS_MOST - 1);
    steps[step_count++] = *step;
    for (int64_t i = 0; gradient > 0 && i < exec->params->trainable_elems; i++)
        exec->params->grads[i] = (step->accumulate ? exec->params->grads[i] : 0) + gradient * (float)(i + 1);
    *out_result = (struct sl_exec_result){.rows = batch->axis.rows, .loss_sum = 1, .weight_sum = 1};
    return SEQLSTM_OK;
}

struct sl_reducer_times __wrap_sl_reducer_get_times(struct sl_reducer *reducer);
struct sl_reducer_times __wrap_sl_reducer_get_times(struct sl_reducer *reducer)
{
    (void)reducer;
    return (struct sl_reducer_times){.exchange_ns = INT64_C(1500000000), .wait_ns = INT64_C(250000000)};
}

static char said[200];

static void keep(void *context, enum sl_log_level level, const char *message)
{
    (void)context, (void)level;
    snprintf(said, sizeof said, "%s", message);
}

/* ---- the tests -------------------------------------------------------------------------------------------------- */

/* A rank of its own world: `be` gets a trainer that has joined the others. */
struct trial {
    struct sl_parallel_config config;
    enum sl_batch_unit unit;
    bool (*be)(struct sl_trainer *trainer, struct sl_ranks *ranks);
};

static bool be_rank(int rank, const char *job, const void *context)
{
    const struct trial *trial = context;
    struct sl_connection *connection = NULL;
    struct sl_interrupt own = {0};
    struct sl_ranks ranks;
    struct sl_model model = {.train = {.loss.kind = SL_LOSS_MSE}};
    struct sl_data_facts facts = {.records = 28, .rows = 77};
    struct sl_batcher batcher = {.batches = 7};
    struct fake_params fake;
    struct sl_exec exec = {.params = &fake.params};
    const struct sl_log log = {keep, NULL, SL_LOG_INFO};
    model.data.batching.unit = trial->unit;
    model.parallel = trial->config;
    fake_params_init(&fake);
    fake.params.grads = sl_memory_alloc_zeroed(NULL, sizeof fake.grads);
    if (join_ranks(rank, sl_parallel_count_ranks(&trial->config), job, &connection) != SEQLSTM_OK ||
        sl_ranks_init(&ranks, connection, &trial->config, &own, NULL) != SEQLSTM_OK)
        return false;
    struct sl_trainer trainer = {.config = &model.train,
                                 .request = {.model = &model,
                                             .exec = &exec,
                                             .params = &fake.params,
                                             .train = &batcher,
                                             .facts = &facts,
                                             .log = &log,
                                             .ranks = &ranks}};
    const bool fine = trial->be(&trainer, &ranks);
    sl_trainer_close_shards(&trainer);
    sl_trainer_close_stages(&trainer);
    sl_connection_close(connection);
    if (!fake.params.lent_grads)
        sl_memory_free(NULL, fake.params.grads);
    return fine;
}

/* Feature f of state s of sequence k of the whole batch. */
static float get_carried(int s, int k, int f)
{
    return (float)(100 * s + 10 * k + f + 1);
}

/* Two replicas of two stages, three shards of four sequences: the stage that writes a state has it, the other one has
 * what is old. */
static bool collect_states(struct sl_trainer *trainer, struct sl_ranks *ranks)
{
    int32_t states[STATES] = {1, 0, 1}, params[3] = {0, 1, 1};
    bool shared[3] = {false};
    const struct sl_owners owners = {params, shared, states};
    float *carried;
    int64_t elems;
    bool fine = true;
    trainer->request.owners = &owners;
    if (sl_trainer_open_stages(trainer, NULL) != SEQLSTM_OK || sl_trainer_open_shards(trainer, NULL) != SEQLSTM_OK ||
        sl_trainer_get_carried(trainer, &carried, &elems, NULL) != SEQLSTM_OK || elems != 16 * STATES)
        return false;
    for (int turn = 0; turn < 2; turn++) {
        for (int s = 0; s < STATES; s++)
            for (int k = 0; k < FAKE_SEQUENCES; k++)
                for (int f = 0; f <= s; f++)
                    carried[16 * s + k * (s + 1) + f] =
                        states[s] == ranks->stage ? get_carried(s, k, f) : (float)(-1 - ranks->rank);
        sl_trainer_spread_carried(trainer);
        if (turn == 1)
            sl_trainer_reset_states(trainer);
        memset(carried, 0xff, (size_t)elems * sizeof *carried);
        if (sl_trainer_collect_carried(trainer, NULL) != SEQLSTM_OK)
            return false;
        for (int s = 0; s < STATES; s++)
            for (int k = 0; k < FAKE_SEQUENCES; k++)
                for (int f = 0; f <= s; f++)
                    fine = fine && carried[16 * s + k * (s + 1) + f] == (turn == 0 ? get_carried(s, k, f) : 0);
    }
    return fine;
}

static void carried_states_come_from_the_stage_that_writes_them(void **state)
{
    (void)state;
    static const struct trial trial = {{.data = 2, .pipeline = 2, .shards = 3}, SL_UNIT_STREAM, collect_states};
    expect_of_ranks(4, "carried states", be_rank, &trial);
}

/* Are the numbers of all views which this rank may know those of their owners? */
static bool are_known(const float *numbers, const struct sl_params *params, int add, const bool known[VIEWS], float old)
{
    bool fine = true;
    for (int v = 0; v < VIEWS; v++)
        fine = fine && numbers[params->views[v].offset_elems] == (known[v] ? (float)(100 * v + add) : old);
    return fine;
}

static void make_old(struct sl_params *params, float *average, float old)
{
    for (int v = 0; v < VIEWS; v++) {
        const int64_t at = params->views[v].offset_elems;
        params->values[at] = params->states[0][at] = params->states[1][at] = params->states[2][at] = old;
        if (v < VIEWS - 1) /* the last is frozen */
            average[at] = update.owners->params[v] == update.stage ? (float)(100 * v + 4) : old;
    }
}

/* Three stages: shared parameters are the owner's at once, the others once they are gathered, and then only once. */
static bool gather(struct sl_trainer *trainer, struct sl_ranks *ranks)
{
    int32_t owned_by[VIEWS] = {2, 0, 1, 2, 1}, states[STATES] = {0, 0, 0};
    bool shared[VIEWS] = {false, false, true, true, false}, own[VIEWS], all[VIEWS] = {true, true, true, true};
    const struct sl_owners owners = {owned_by, shared, states};
    struct sl_param_view views[VIEWS];
    struct sl_params *params = trainer->request.params;
    float third[FAKE_ELEMS], average[FAKE_ELEMS];
    double squares = 0;
    bool fine = true;
    for (int v = 0; v < VIEWS; v++)
        views[v] = (struct sl_param_view){.name = "x", .offset_elems = 4 * v, .elems = 1, .trainable = v < VIEWS - 1};
    params->views = views;
    params->view_count = VIEWS;
    params->states[2] = third;
    trainer->request.owners = update.owners = &owners;
    trainer->average = (struct sl_average){.kind = SL_AVERAGE_EMA, .values = average};
    update.stage = ranks->stage;
    update.params = params;
    if (sl_trainer_open_stages(trainer, NULL) != SEQLSTM_OK || sl_trainer_is_last_stage(trainer) != (ranks->stage == 2))
        return false;
    for (int turn = 0; turn < 2; turn++) {
        const float old = (float)(-1 - ranks->rank - 10 * turn);
        trainer->average.active = turn == 1;
        make_old(params, average, old);
        const struct sl_exec_update making = {.count = 1};
        fine = fine && sl_trainer_update_own(trainer, &making, &squares, NULL) == SEQLSTM_OK;
        fine = fine && update.owned_as_said && update.squares == 31 && squares == 31;
        for (int v = 0; v < VIEWS; v++) {
            own[v] = owned_by[v] == ranks->stage;
            all[v] = own[v] || v < VIEWS - 1;
        }
        fine = fine && are_known(params->states[1], params, 2, own, old);
        for (int v = 0; v < VIEWS; v++)
            own[v] = own[v] || shared[v];
        fine = fine && are_known(params->values, params, 0, own, old);
        fine = fine && sl_trainer_gather_weights(trainer, NULL) == SEQLSTM_OK;
        fine = fine && are_known(params->values, params, 0, all, old);
        for (int k = 0; k < 3; k++)
            fine = fine && are_known(params->states[k], params, k + 1, all, old);
        for (int v = 0; v < VIEWS - 1; v++)
            fine = fine && average[4 * v] == (turn == 1 || owned_by[v] == ranks->stage ? (float)(100 * v + 4) : old);
    }
    make_old(params, average, 7);
    fine = fine && sl_trainer_gather_weights(trainer, NULL) == SEQLSTM_OK; /* nothing has changed since */
    for (int v = 0; v < VIEWS; v++)
        fine = fine && params->values[4 * v] == 7;
    return fine;
}

static void weights_of_other_stages_are_gathered_after_each_update(void **state)
{
    (void)state;
    static const struct trial trial = {{.data = 1, .pipeline = 3}, SL_UNIT_SEQUENCE, gather};
    expect_of_ranks(3, "weights", be_rank, &trial);
}

/* What compression has missed is summed for a checkpoint, and each rank gets an equal part of it. */
static bool spread_errors(struct sl_trainer *trainer, struct sl_ranks *ranks)
{
    const int64_t elems = trainer->request.params->elems;
    bool fine = sl_trainer_open_shards(trainer, NULL) == SEQLSTM_OK;
    float *errors = fine ? sl_trainer_get_errors(trainer) : NULL;
    if (errors == NULL)
        return false;
    for (int64_t i = 0; i < elems; i++)
        errors[i] = (float)(3 * i + 3) * (float)(ranks->rank + 1); /* a rank may be resumed from what it likes */
    sl_trainer_spread_errors(trainer);
    memset(errors, 0, (size_t)elems * sizeof *errors);
    fine = sl_trainer_collect_errors(trainer, NULL) == SEQLSTM_OK;
    for (int64_t i = 0; i < elems; i++)
        fine = fine && errors[i] == (float)(6 * i + 6); /* (1 + 2 + 3) / 3 */
    sl_trainer_close_shards(trainer);
    return fine && strcmp(said, "gradients: 1.500 s in exchanges, of which the rank waited 0.250 s after its backward "
                                "passes") == 0;
}

static void errors_of_compression_are_summed_and_divided(void **state)
{
    (void)state;
    static const struct trial trial = {
        {.data = 3, .pipeline = 1, .compress = {SL_COMPRESS_POWERSGD, 1}}, SL_UNIT_SEQUENCE, spread_errors};
    expect_of_ranks(3, "errors", be_rank, &trial);
}

/* Gradients lie in memory of the collectives from the first update to the last, and no longer. */
static bool add_lent_gradients(struct sl_trainer *trainer, struct sl_ranks *ranks)
{
    struct sl_params *params = trainer->request.params;
    bool fine = sl_trainer_open_shards(trainer, NULL) == SEQLSTM_OK && params->lent_grads;
    for (int turn = 0; turn < 2 && fine; turn++) {
        struct sl_batch *group[2];
        struct sl_update making = {.group = group, .count = 2, .normaliser = 1, .rate = 0.1};
        for (int i = 0; i < making.count; i++)
            if (sl_batcher_next(trainer->request.train, &group[i], NULL) != SEQLSTM_OK)
                return false;
        gradient = (float)(ranks->rank + 1 + turn);
        fine = sl_trainer_run_shards(trainer, &making, NULL) == SEQLSTM_OK;
        for (int64_t i = 0; i < params->trainable_elems; i++) /* of two batches: 2 (1 + 2 + 3), 2 (2 + 3 + 4) */
            fine = fine && params->grads[i] == (float)(12 + 6 * turn) * (float)(i + 1);
        for (int i = 0; i < making.count; i++)
            sl_batch_destroy(group[i]);
    }
    sl_trainer_close_shards(trainer);
    return fine && params->grads == NULL;
}

/* Collectives that lend no memory. */
static bool lends = true;

seqlstm_status __real_sl_connection_allocate(struct sl_connection *connection, int64_t bytes, void **out_memory,
                                             struct seqlstm_error *err);
seqlstm_status __wrap_sl_connection_allocate(struct sl_connection *connection, int64_t bytes, void **out_memory,
                                             struct seqlstm_error *err);
seqlstm_status __wrap_sl_connection_allocate(struct sl_connection *connection, int64_t bytes, void **out_memory,
                                             struct seqlstm_error *err)
{
    *out_memory = NULL;
    return lends ? __real_sl_connection_allocate(connection, bytes, out_memory, err) : SEQLSTM_OK;
}

/* Where gradients are exchanged through memory of the trainer, it is counted with the rest. */
static bool count_memory(struct sl_trainer *trainer, struct sl_ranks *ranks)
{
    struct sl_memory memory = {0};
    int64_t bytes[2];
    bool fine = true;
    (void)ranks;
    trainer->request.memory = &memory;
    for (int k = 0; k < 2 && fine; k++) {
        lends = k == 1;
        fine = sl_trainer_open_shards(trainer, NULL) == SEQLSTM_OK && trainer->request.params->lent_grads == lends;
        bytes[k] = memory.live_bytes;
        sl_trainer_close_shards(trainer);
        fine = fine && memory.live_bytes == 0;
    }
    const int64_t scratch = (trainer->request.params->trainable_elems + 1) * (int64_t)sizeof(float);
    return fine && bytes[0] - bytes[1] == scratch;
}

static void memory_of_the_exchange_is_counted(void **state)
{
    (void)state;
    static const struct trial trial = {{.data = 3, .pipeline = 1}, SL_UNIT_SEQUENCE, count_memory};
    expect_of_ranks(3, "memory", be_rank, &trial);
}

static void lent_gradients_are_added_and_given_back(void **state)
{
    (void)state;
    static const struct trial trial = {{.data = 3, .pipeline = 1}, SL_UNIT_SEQUENCE, add_lent_gradients};
    expect_of_ranks(3, "gradients", be_rank, &trial);
}

/* The masks of weights stay for all segments of a batch; each shard begins its gradients anew. An update is the next of
 * those that have changed something. */
static void segments_of_a_batch_share_their_masks(void **state)
{
    (void)state;
    static const struct sl_parallel_config config = {.data = 1, .pipeline = 1, .shards = 2};
    static const struct {
        int64_t bptt;
        uint32_t masks[4];
        bool scales;
        double normaliser; /* 0: no target counts, and nothing is changed */
    } cases[] = {{3, {0, 0, 2, 2}, false, 0.5}, {0, {0, 1, 2, 3}, true, 0.25}, {0, {0, 1, 2, 3}, false, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct world *world = make_plain();
        struct sl_interrupt own = {0};
        struct sl_ranks ranks;
        struct sl_update making = {.normaliser = cases[c].normaliser};
        struct sl_batch *group[4];
        world->model.data.batching.bptt = cases[c].bptt;
        world->train.segments = 2;
        assert_int_equal(sl_ranks_init(&ranks, NULL, &config, &own, NULL), SEQLSTM_OK);
        struct sl_trainer trainer = {.config = &world->model.train, .request = world->request};
        trainer.request.ranks = &ranks;
        trainer.request.scales_loss = cases[c].scales;
        trainer.state.epoch = 6;
        trainer.state.applied = 40;
        assert_int_equal(sl_trainer_open_shards(&trainer, NULL), SEQLSTM_OK);
        for (int i = 0; i < 4; i++)
            assert_int_equal(sl_batcher_next(&world->train, &group[i], NULL), SEQLSTM_OK);
        making.group = group;
        making.count = 4;
        step_count = 0;
        assert_int_equal(sl_trainer_run_shards(&trainer, &making, NULL), SEQLSTM_OK);
        assert_int_equal(step_count, 8);
        for (int i = 0; i < 8; i++) {
            assert_int_equal(steps[i].weight_mask_step, cases[c].masks[i % 4]);
            assert_int_equal(steps[i].accumulate, i % 4 > 0);
            assert_int_equal(steps[i].epoch, 6);
            assert_true(steps[i].normaliser == cases[c].normaliser && steps[i].update == NULL);
            assert_true(steps[i].loss_scale == (cases[c].scales ? 65536 : 1));
        }
        assert_true(making.started == 4 && making.done == 4);
        assert_true(making.sums.loss == 8);
        assert_int_equal(world->exec.last_update, cases[c].normaliser > 0 ? 41 : 0);
        for (int i = 0; i < 4; i++)
            sl_batch_destroy(group[i]);
        sl_trainer_close_shards(&trainer);
        free(world);
    }
}

/* Whatever finds no memory, that is said, and all that was taken before is given back. */
static void shards_without_memory(void **state)
{
    (void)state;
    static const struct sl_parallel_config config = {.data = 1, .pipeline = 1, .shards = 3};
    for (int stream = 0; stream < 2; stream++)
        for (int n = 1;; n++) {
            struct world *world = make_plain();
            struct sl_interrupt own = {0};
            struct sl_memory memory = {0};
            struct sl_ranks ranks;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_update making = {.normaliser = 0.5};
            struct sl_batch *group[3];
            world->model.data.batching.unit = stream ? SL_UNIT_STREAM : SL_UNIT_SEQUENCE;
            assert_int_equal(sl_ranks_init(&ranks, NULL, &config, &own, NULL), SEQLSTM_OK);
            struct sl_trainer trainer = {.config = &world->model.train, .request = world->request};
            trainer.request.ranks = &ranks;
            trainer.request.memory = &memory;
            for (int i = 0; i < 2; i++)
                assert_int_equal(sl_batcher_next(&world->train, &group[i], NULL), SEQLSTM_OK);
            making.group = group;
            making.count = 2;
            step_count = 0;
            oom_fail_at(n);
            seqlstm_status status = sl_trainer_open_shards(&trainer, &err);
            if (status == SEQLSTM_OK)
                status = sl_trainer_run_shards(&trainer, &making, &err);
            const bool failed = oom_disarm();
            assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
            assert_true(!failed || strncmp(err.message, "no memory for ", 14) == 0);
            for (int i = 0; i < 2; i++)
                sl_batch_destroy(group[i]);
            sl_trainer_close_shards(&trainer);
            assert_int_equal(memory.live_bytes, 0);
            free(world);
            if (!failed)
                break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carried_states_come_from_the_stage_that_writes_them),
        cmocka_unit_test(weights_of_other_stages_are_gathered_after_each_update),
        cmocka_unit_test(errors_of_compression_are_summed_and_divided),
        cmocka_unit_test(lent_gradients_are_added_and_given_back),
        cmocka_unit_test(memory_of_the_exchange_is_counted),
        cmocka_unit_test(segments_of_a_batch_share_their_masks),
        cmocka_unit_test(shards_without_memory),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
