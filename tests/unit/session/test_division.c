/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a training before they meet: how many threads each has, whether their number fits, which GPU is whose, and
 * when gradients are exchanged during the backward pass. On a machine of a number of cores that the test says. */
#include "model_fixture.h"

#include "ok.h"
#include "oom.h"
#include "session/finding/cuda_device.h"
#include "session/prepare/division.h"
#include "session/prepare/pieces.h"
#include "session/record/session_record.h"

static int32_t cores;

int32_t __wrap_sl_cpu_count(void);

int32_t __wrap_sl_cpu_count(void)
{
    return cores;
}

/* Connections that the test makes up: each plugin that is asked for ends with its status. */
static struct {
    struct sl_connection_request last;
    struct sl_buf names;
    seqlstm_status nccl;
    const struct sl_parallel_config *config;
    int32_t inits;
} met;

seqlstm_status __wrap_sl_connection_open(const struct sl_connection_request *request,
                                         struct sl_connection **out_connection, struct seqlstm_error *err);
seqlstm_status __wrap_sl_ranks_init(struct sl_ranks *ranks, struct sl_connection *connection,
                                    const struct sl_parallel_config *config, struct sl_interrupt *own,
                                    struct seqlstm_error *err);

seqlstm_status __wrap_sl_connection_open(const struct sl_connection_request *request,
                                         struct sl_connection **out_connection, struct seqlstm_error *err)
{
    (void)out_connection;
    met.last = *request;
    sl_buf_printf(&met.names, "%s ", request->name);
    if (strcmp(request->name, "comm-nccl") == 0 && met.nccl != SEQLSTM_OK)
        SEQLSTM_FAIL(err, met.nccl, "no such library");
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_ranks_init(struct sl_ranks *ranks, struct sl_connection *connection,
                                    const struct sl_parallel_config *config, struct sl_interrupt *own,
                                    struct seqlstm_error *err)
{
    (void)ranks, (void)connection, (void)own, (void)err;
    met.config = config;
    met.inits++;
    return SEQLSTM_OK;
}

#define MODEL(parallel, more)                                                                                          \
    "seqlstm: 1\nname: m\ndata: {type: generator, name: adding_problem, length: [5, 8], train: {size: 64}, "           \
    "batch_size: 8}\nmodel:\n  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"                      \
    "train: {loss: mse, epochs: 1}\nparallel: {" parallel "}\n" more

static void threads_are_shared_out(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int32_t cores, ranks, local, given, stored; /* local: ranks on this host; given: --threads */
        int32_t threads;
        bool fixed; /* the number takes precedence over a stored plan's */
    } rows[] = {
        {MODEL("data: 2", ""), 8, 2, 2, 0, 0, 4, true},   {MODEL("data: 2", ""), 8, 2, 0, 0, 0, 4, true},
        {MODEL("data: 4", ""), 9, 4, 2, 0, 0, 4, true},   {MODEL("data: 4", ""), 9, 4, 4, 0, 0, 2, true},
        {MODEL("data: 4", ""), 3, 4, 4, 0, 0, 1, true},   {MODEL("data: 4", ""), 8, 4, 2, 0, 3, 4, false},
        {MODEL("data: 4", ""), 8, 4, 2, 5, 3, 5, true},   {MODEL("shards: 4", ""), 8, 2, 2, 0, 0, 1, true},
        {MODEL("shards: 4", ""), 8, 2, 2, 0, 3, 1, true}, {MODEL("shards: 4", ""), 8, 2, 2, 1, 0, 1, true},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct loaded m = load_clean(rows[r].model);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const struct sl_rank_identity identity = {.ranks = rows[r].ranks, .local_ranks = rows[r].local};
        struct sl_session session = {
            .model = m.model,
            .options = {.identity = &identity, .threads = rows[r].given, .threads_given = rows[r].given > 0},
            .stored = {.threads = rows[r].stored}};
        cores = rows[r].cores;
        ok(sl_session_divide_threads(&session, &err), &err);
        if (session.options.threads != rows[r].threads || session.options.threads_given != rows[r].fixed)
            fail_msg("row %d: %d threads, %d", (int)r, session.options.threads, session.options.threads_given);
        unload(&m);
    }
}

/* What the model says comes before what a stored plan says; a pipeline without either has as many as may be tried. */
static void pieces_are_those_of_the_model_or_the_plan(void **state)
{
    static const struct {
        int64_t pipeline, said;
        int32_t stored, given, count;
    } rows[] = {{1, 0, 0, 0, 0}, {1, 3, 0, 3, 3}, {1, 0, 5, 5, 5},
                {1, 3, 5, 3, 3}, {1, 7, 5, 7, 7}, {2, 0, 0, 0, SL_PIECES_AUTO_MOST},
                {2, 3, 0, 3, 3}, {2, 0, 5, 5, 5}, {2, 7, 5, 7, 7},
                {2, 1, 0, 1, 1}, {2, 0, 1, 1, 1}, {1, 0, 1, 1, 1}};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct sl_model model = {.parallel = {.pipeline = rows[r].pipeline, .pieces = rows[r].said}};
        const struct sl_session session = {.model = &model, .stored = {.pieces = rows[r].stored}};
        assert_int_equal(sl_session_get_given_pieces(&session), rows[r].given);
        assert_int_equal(sl_session_count_pieces(&session), rows[r].count);
    }
}

static void numbers_that_do_not_fit_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int32_t ranks, threads;
        const char *said;
    } rows[] = {
        {MODEL("shards: 4", ""), 2, 3,
         "with `shards` each rank computes with one thread, not 3: the same bits need it; use more ranks (--set "
         "parallel.data=3)"},
        {MODEL("pieces: 2", ""), 2, 4,
         "with `pieces` each rank computes with one thread, not 4: the same bits need it; use more ranks (--set "
         "parallel.pipeline=4)"},
        {MODEL("shards: 4", ""), 5, 0, "5 ranks were started for 4 shards; use at most as many ranks"},
        {MODEL("data: 4", ""), 3, 0,
         "`parallel: {data: 4}` divides each batch among 4 ranks, and there are 3; use --set parallel.data=3, or "
         "`shards`, with which the number of ranks changes nothing"},
        {MODEL("data: 4", ""), 1, 0,
         "`parallel: {data: 4}` divides each batch among 4 ranks, and there is 1; use --set parallel.data=1, or "
         "`shards`, with which the number of ranks changes nothing"},
        {MODEL("pipeline: 2", ""), 3, 0,
         "`pipeline: 2` needs 2 ranks, or a multiple of that, and there are 3; use --set parallel.pipeline=N"},
        {MODEL("pipeline: 2", ""), 1, 0,
         "`pipeline: 2` needs 2 ranks, or a multiple of that, and there is 1; use --set parallel.pipeline=N"},
        {MODEL("data: 3, pipeline: 2", ""), 4, 0,
         "`parallel: {data: 3, pipeline: 2}` needs 6 ranks, and there are 4; use --set parallel.data=2"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct loaded m = load_clean(rows[r].model);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const struct sl_rank_identity identity = {.ranks = rows[r].ranks, .local_ranks = rows[r].ranks};
        struct sl_session session = {.model = m.model,
                                     .options = {.identity = &identity,
                                                 .threads = rows[r].threads,
                                                 .threads_given = rows[r].threads > 0,
                                                 .stall_ns = 1000000}};
        seqlstm_status status = sl_session_divide_threads(&session, &err);
        if (status == SEQLSTM_OK)
            status = sl_session_join(&session, &err);
        assert_int_equal(status, SEQLSTM_INVALID_CONFIG);
        assert_string_equal(err.message, rows[r].said);
        unload(&m);
    }
}

static void gradients_are_exchanged_beside_where_a_core_is_free(void **state)
{
    (void)state;
    static const struct {
        int32_t cores, ranks, local;
        bool overlaps;
    } rows[] = {{4, 4, 4, false}, {5, 4, 4, true},  {3, 4, 4, false},
                {2, 4, 2, true},  {4, 4, 0, false}, {5, 4, 0, true}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const struct sl_rank_identity identity = {.ranks = rows[r].ranks, .local_ranks = rows[r].local};
        struct sl_session session = {.options = {.identity = &identity}, .ranks = {.ranks = rows[r].ranks}};
        cores = rows[r].cores;
        sl_session_choose_overlap(&session);
        assert_int_equal(session.ranks.overlaps, rows[r].overlaps);
    }
}

/* `parent` 0: a launcher of others has started the rank. */
static void each_rank_has_its_gpu(void **state)
{
    (void)state;
    static const struct {
        const char *model, *visible;
        int32_t parent, local_rank;
        int32_t number;
    } rows[] = {
        {MODEL("data: 4", "device: cpu\n"), NULL, 1, 2, -1},
        {MODEL("data: 4", ""), NULL, 1, 2, 2},
        {MODEL("data: 4", "device: cuda:0\n"), NULL, 1, 2, 2},
        {MODEL("data: 4", "device: cuda:3\n"), NULL, 1, 2, 5},
        {MODEL("data: 4", "device: cuda:3\n"), "0,1", 0, 2, 5},
        {MODEL("data: 4", "device: cuda:0\n"), "3", 0, 2, 0},
        {MODEL("data: 4", ""), "3", 0, 2, 0},
        {MODEL("data: 4", ""), "3", 1, 2, 2},
        {MODEL("data: 1", "device: cuda:3\n"), NULL, 0, 0, 3},
        {MODEL("data: 1", ""), NULL, 0, 0, -1},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct loaded m = load_clean(rows[r].model);
        const struct sl_rank_identity identity = {
            .ranks = 4, .local_ranks = 4, .parent = rows[r].parent, .local_rank = rows[r].local_rank};
        const struct sl_session session = {.model = m.model, .options = {.identity = &identity}};
        if (rows[r].visible)
            setenv("CUDA_VISIBLE_DEVICES", rows[r].visible, 1);
        else
            unsetenv("CUDA_VISIBLE_DEVICES");
        if (sl_session_find_cuda(&session) != rows[r].number)
            fail_msg("row %d: %d", (int)r, sl_session_find_cuda(&session));
        unload(&m);
    }
}

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    (void)level;
    sl_buf_printf(context, "%s", message);
}

/* Through which plugin ranks exchange, by their launcher, hosts and devices, and what takes its place. */
static void ranks_meet_through_what_fits(void **state)
{
    (void)state;
    static const char shared[] = "the ranks exchange through shared memory: no such library";
    static const struct {
        const char *model, *launcher, *collectives;
        int32_t ranks, local;
        seqlstm_status nccl, status;
        const char *opened, *logged;
    } rows[] = {
        {MODEL("data: 4", ""), "seqlstm", NULL, 4, 4, 0, 0, "comm-shm ", ""},
        {MODEL("data: 4", ""), "OpenMPI", NULL, 4, 4, 0, 0, "comm-shm ", ""},
        {MODEL("data: 4", ""), "OpenMPI", NULL, 4, 2, 0, 0, "comm-mpi ", ""},
        {MODEL("data: 4", ""), "MPICH", NULL, 4, 3, 0, 0, "comm-mpi ", ""},
        {MODEL("data: 4", ""), "Slurm", NULL, 4, 1, 0, 0, "comm-mpi ", ""},
        {MODEL("data: 4", ""), "torchrun", NULL, 4, 1, 0, 0, "comm-shm ", ""},
        {MODEL("data: 4", ""), "Slurm", NULL, 4, 0, 0, 0, "comm-shm ", ""},
        {MODEL("data: 4", ""), "Slurm", "./mine.so", 4, 1, 0, 0, "./mine.so ", ""},
        {MODEL("data: 4", "device: cuda:0\n"), "seqlstm", NULL, 4, 4, SEQLSTM_OK, 0, "comm-nccl ", ""},
        {MODEL("data: 4", "device: cuda:0\n"), "seqlstm", NULL, 4, 4, SEQLSTM_NOT_FOUND, 0, "comm-nccl comm-shm ",
         shared},
        {MODEL("data: 4", "device: cuda:0\n"), "seqlstm", NULL, 4, 4, SEQLSTM_UNAVAILABLE, 0, "comm-nccl comm-shm ",
         shared},
        {MODEL("data: 4", "device: cuda:0\n"), "seqlstm", NULL, 4, 4, SEQLSTM_DEVICE, SEQLSTM_DEVICE, "comm-nccl ", ""},
        {MODEL("data: 4", "device: cuda:0\n"), "Slurm", NULL, 4, 2, SEQLSTM_OK, 0, "comm-mpi ", ""},
        {MODEL("data: 4", "device: cuda:0\n"), "seqlstm", "comm-shm", 4, 4, SEQLSTM_OK, 0, "comm-shm ", ""},
        {MODEL("data: 4", "device: cpu\n"), "seqlstm", NULL, 4, 4, SEQLSTM_OK, 0, "comm-shm ", ""},
        {MODEL("data: 4", ""), "Kubernetes", NULL, 0, 0, 0, 0, "comm-shm ", ""}, /* it does not say how many */
        {MODEL("shards: 4", ""), "seqlstm", NULL, 1, 1, 0, 0, "", ""},           /* alone */
        {MODEL("shards: 4", ""), "seqlstm", NULL, 4, 4, 0, 0, "comm-shm ", ""},  /* a shard for each rank */
        {MODEL("data: 2, pipeline: 2", ""), "seqlstm", NULL, 4, 4, 0, 0, "comm-shm ", ""},
        {MODEL("shards: 2, pipeline: 2", ""), "seqlstm", NULL, 4, 4, 0, 0, "comm-shm ", ""},
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct loaded m = load_clean(rows[r].model);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf logged = {0};
        const struct sl_log log = {.write = write_log, .context = &logged, .level = SL_LOG_TRACE};
        const struct sl_rank_identity identity = {.rank = rows[r].ranks > 2 ? 2 : 0,
                                                  .ranks = rows[r].ranks,
                                                  .local_ranks = rows[r].local,
                                                  .local_rank = 1,
                                                  .job = "a job",
                                                  .launcher = rows[r].launcher};
        struct sl_session session = {.model = m.model,
                                     .options = {.identity = &identity,
                                                 .collectives = rows[r].collectives,
                                                 .log = &log,
                                                 .trust = r % 2,
                                                 .stall_ns = r % 3 ? 5 : 0}};
        met.names = (struct sl_buf){0};
        met.nccl = rows[r].nccl;
        met.inits = 0;
        met.config = NULL;
        assert_int_equal(sl_session_join(&session, &err), rows[r].status);
        assert_string_equal(sl_buf_text(&met.names), rows[r].opened);
        assert_string_equal(sl_buf_text(&logged), rows[r].logged);
        assert_int_equal(met.inits, rows[r].status == SEQLSTM_OK);
        assert_ptr_equal(met.config, rows[r].status == SEQLSTM_OK ? &m.model->parallel : NULL);
        if (rows[r].opened[0]) {
            assert_true(met.last.rank == identity.rank && met.last.ranks == 4);
            assert_true(met.last.local_ranks == rows[r].local && met.last.trust == (r % 2 == 1));
            assert_true(met.last.timeout_ns == (r % 3 ? 5 : INT64_C(600) * 1000000000));
            assert_string_equal(met.last.job, "a job");
            assert_int_equal(met.last.device, sl_session_find_cuda(&session));
        }
        sl_buf_deinit(&met.names);
        sl_buf_deinit(&logged);
        unload(&m);
    }
}

static const struct seqlstm_device_info devices[] = {{.domain = "host", .device_class = "cpu:avx2"},
                                                     {.domain = "cuda:1", .device_class = "cuda:90"}};

const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t index);

const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t index)
{
    (void)backend;
    return &devices[index];
}

/* Steps in pieces are refused by the first operation that would run on a device; batches may be divided there. */
static void pieces_stay_on_processors(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        uint32_t devices[3]; /* of each operation */
        const char *named;   /* NULL: it is fine */
    } rows[] = {
        {MODEL("pieces: 2", ""), {0, 0, 0}, NULL},
        {MODEL("pieces: 2", ""), {0, 1, 1}, "middle"},
        {MODEL("pipeline: 2", ""), {0, 0, 1}, "last"},
        {MODEL("shards: 4, pieces: 2", ""), {1, 0, 0}, "first"},
        {MODEL("data: 2", ""), {1, 1, 1}, NULL},
        {MODEL("shards: 4", ""), {1, 1, 1}, NULL},
        {MODEL("data: 2, pipeline: 2", ""), {0, 0, 0}, NULL},
    };
    static const char *const names[] = {"first", "middle", "last"};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct loaded m = load_clean(rows[r].model);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_node nodes[3];
        struct sl_call calls[3];
        char expected[200];
        for (int c = 0; c < 3; c++) {
            nodes[c] = (struct sl_node){.name = names[c]};
            calls[c] = (struct sl_call){.node = &nodes[c], .device = rows[r].devices[c]};
        }
        struct sl_plan plan = {.calls = calls, .call_count = 3};
        struct sl_session session = {.model = m.model, .train.plan = &plan};
        const seqlstm_status status = sl_session_check_division(&session, &err);
        assert_int_equal(status, rows[r].named ? SEQLSTM_UNSUPPORTED : SEQLSTM_OK);
        snprintf(expected, sizeof expected,
                 "pieces and pipelines run on processors only, and `%s` would run on cuda:90; use --set device=cpu, or "
                 "`data` alone",
                 rows[r].named);
        if (rows[r].named)
            assert_string_equal(err.message, expected);
        unload(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_shared_out),
        cmocka_unit_test(pieces_are_those_of_the_model_or_the_plan),
        cmocka_unit_test(pieces_stay_on_processors),
        cmocka_unit_test(numbers_that_do_not_fit_are_told),
        cmocka_unit_test(gradients_are_exchanged_beside_where_a_core_is_free),
        cmocka_unit_test(each_rank_has_its_gpu),
        cmocka_unit_test(ranks_meet_through_what_fits),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
