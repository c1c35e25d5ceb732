/* SPDX-License-Identifier: Apache-2.0 */
/* Which divisions `plan --ranks` measures for which numbers of ranks, and what becomes of them: on hosts whose
 * measurements the test makes up. */
#include "golden.h"

#include "ok.h"
#include "scratch.h"
#include "session/prepare/division.h"
#include "session/record/session_record.h"
#include "session/scaling/costs.h"
#include "session/session.h"

static struct sl_buf out;
static int32_t rank; /* this one, of those that measure */

seqlstm_status __wrap_sl_scaling_measure(const struct sl_scaling_setup *setup, struct sl_scaling_costs *costs,
                                         struct seqlstm_error *err);
seqlstm_status __wrap_sl_session_meet(struct sl_session *session, const struct sl_parallel_config *config,
                                      struct seqlstm_error *err);
seqlstm_status __wrap_sl_ranks_broadcast(const struct sl_ranks *ranks, int32_t from, void *bytes, int64_t count,
                                         struct seqlstm_error *err);

/* A step of 10 ms, and as many real steps as the batch has sequences: 8 for each of the model's batches. */
static void make_up(const struct sl_scaling_setup *setup, struct sl_scaling_costs *costs)
{
    const int64_t factor = setup->batch_factor > 0 ? setup->batch_factor : 1;
    *costs = (struct sl_scaling_costs){.threads = 2,
                                       .stages = (int32_t)setup->parallel.pipeline,
                                       .pieces = (int32_t)setup->parallel.pieces,
                                       .shards = (int32_t)setup->parallel.shards,
                                       .rows = 8.0 * (double)factor,
                                       .batches = 3,
                                       .sequences = 8 * factor,
                                       .step_ns = 10e6,
                                       .together_ns = 11e6,
                                       .alone_ns = 10e6,
                                       .stages_ns = 6e6,
                                       .update_ns = 1e6,
                                       .weights_ns = 2e5,
                                       .agree_ns = 1e4,
                                       .elems = 1 << 20,
                                       .devices = setup->number == 1 ? 3 : 0,
                                       .measured = {setup->number == 2 ? 0 : 1e9 + setup->number, 1e-6},
                                       .memory_bytes = 1 << 20};
}

seqlstm_status __wrap_sl_scaling_measure(const struct sl_scaling_setup *setup, struct sl_scaling_costs *costs,
                                         struct seqlstm_error *err)
{
    (void)err;
    make_up(setup, costs);
    sl_buf_printf(&out, "  measurement %d: %d ranks, data %lld, pipeline %lld, pieces %lld, shards %lld, %s%s",
                  setup->number, setup->local, (long long)setup->parallel.data, (long long)setup->parallel.pipeline,
                  (long long)setup->parallel.pieces, (long long)setup->parallel.shards,
                  setup->parallel.reduce.how == SL_REDUCE_CENTRAL ? "central" : "all",
                  setup->parallel.reduce.dtype == SL_REDUCE_BFLOAT16 ? " bfloat16" : "");
    sl_buf_printf(&out, ", batches x %lld, pieces at %g B/s and %g s\n", (long long)setup->batch_factor,
                  setup->piece_exchange_bytes_per_s, setup->piece_exchange_latency_s);
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_session_meet(struct sl_session *session, const struct sl_parallel_config *config,
                                      struct seqlstm_error *err)
{
    (void)err;
    sl_buf_printf(&out, "  %lld ranks meet\n", (long long)config->data);
    session->ranks = (struct sl_ranks){.rank = rank, .ranks = (int32_t)config->data};
    return SEQLSTM_OK;
}

/* What the other ranks have measured. */
seqlstm_status __wrap_sl_ranks_broadcast(const struct sl_ranks *ranks, int32_t from, void *bytes, int64_t count,
                                         struct seqlstm_error *err)
{
    (void)err;
    assert_int_equal(from, 0);
    assert_int_equal(count, sizeof(struct sl_scaling_costs));
    if (ranks->rank > 0)
        make_up(&(struct sl_scaling_setup){.parallel = {.data = 1, .pipeline = 1}, .batch_factor = 5}, bytes);
    return SEQLSTM_OK;
}

static void plan(const char *title, const char *data, const char *parallel, struct sl_scaling_request request)
{
    static struct sl_scaling_report report;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[256], text[1024];
    snprintf(path, sizeof path, "%s", scratch_path("m.yaml"));
    snprintf(
        text, sizeof text,
        "seqlstm: 1\nname: m\ndata: {type: generator, name: adding_problem, length: [5, 8], train: {size: 64}, %s}\n"
        "model:\n  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"
        "train: {loss: mse, epochs: 1}\nparallel: {%s}\n",
        data, parallel);
    ok(sl_file_write(path, text, strlen(text), &err), &err);
    const struct sl_model_request model = {.path = path};
    const struct sl_session_options options = {.model = &model, .threads = 1, .threads_given = true};
    sl_buf_printf(&out, "== %s\n", title);
    request.options = &options;
    const seqlstm_status status = sl_session_plan_ranks(&request, &report, &err);
    for (int32_t k = 0; k < report.count && status == SEQLSTM_OK; k++) {
        const struct sl_scaling_row *row = &report.rows[k];
        sl_buf_printf(&out, "%d ranks, %d hosts, stages %d, rows %g, update %.6g, exchange %.6g, idle %d\n", row->ranks,
                      row->hosts, row->stages, row->rows, row->update_ns, row->exchange_ns, row->idle);
    }
    if (status != SEQLSTM_OK)
        sl_buf_printf(&out, "error %d: %s\n", (int)status, err.message);
    else
        sl_buf_printf(&out, "local %d, measuring %d, devices %d, measured %g, links %g %g, grows %d\n", report.local,
                      report.measuring, report.devices, report.measured.bytes_per_s, report.link.bytes_per_s,
                      report.inner.bytes_per_s, report.grows);
}

#define RANKS(...)   .ranks = {__VA_ARGS__}, .count = sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)
#define REQUEST(...) ((struct sl_scaling_request){.link = {1e9, 1e-6}, __VA_ARGS__})

static void test_divisions(void **state)
{
    static const char batch[] = "batch_size: 8";
    const struct sl_scaling_link inner = {4e9, 2e-6};
    (void)state;
    plan("a batch of eight", batch, "", REQUEST(RANKS(1, 2, 3, 4, 6, 8, 20, 64), .local = 4, .measuring = 4));
    plan("batches that grow", batch, "", REQUEST(RANKS(1, 2, 4, 6, 64), .local = 4, .measuring = 4, .grows = true));
    plan("fewer ranks measure", batch, "", REQUEST(RANKS(2, 4, 8), .local = 4, .measuring = 2));
    plan("fewer ranks measure, batches grow", batch, "",
         REQUEST(RANKS(2, 4, 8), .local = 4, .measuring = 2, .grows = true));
    plan("another rank", batch, "", REQUEST(RANKS(1, 2, 4), .local = 4, .measuring = 4));
    rank = 3;
    plan("a rank that waits", batch, "", REQUEST(RANKS(1, 3, 4), .local = 4, .measuring = 4));
    rank = 0;
    plan("batches of rows", "batching: {max_tokens: 32}", "", REQUEST(RANKS(1, 8, 64), .local = 4, .measuring = 4));
    plan("two stages", batch, "pipeline: 2, pieces: 4",
         REQUEST(RANKS(1, 2, 4, 6, 40), .local = 4, .measuring = 4, .inner = inner));
    plan("two stages, batches grow", batch, "pipeline: 2, pieces: 4",
         REQUEST(RANKS(1, 2, 4, 6, 40), .local = 4, .measuring = 4, .inner = inner, .grows = true));
    plan("three stages cross hosts of four", batch, "pipeline: 3, pieces: 4",
         REQUEST(RANKS(3, 6, 12), .local = 4, .measuring = 4, .inner = inner));
    plan("six stages on hosts of four, batches grow", batch, "pipeline: 6, pieces: 4",
         REQUEST(RANKS(6, 12), .local = 4, .measuring = 4, .inner = inner, .grows = true));
    plan("shards", batch, "shards: 12", REQUEST(RANKS(1, 2, 3, 12), .local = 4, .measuring = 4));
    plan("a central rank", batch, "data: 2, reduce: central", REQUEST(RANKS(1, 2, 8), .local = 4, .measuring = 4));
    plan("half precision", batch, "data: 2, reduce: {dtype: bfloat16}",
         REQUEST(RANKS(1, 2, 8), .local = 4, .measuring = 4));
    plan("ranks that no pipeline has", batch, "pipeline: 2", REQUEST(RANKS(2, 5), .local = 4, .measuring = 4));
    plan("more ranks than shards", batch, "shards: 4", REQUEST(RANKS(4, 5), .local = 8, .measuring = 4));
    plan("more ranks than shards of a pipeline", batch, "shards: 4, pipeline: 2, pieces: 2",
         REQUEST(RANKS(8, 10), .local = 16, .measuring = 4));
    plan("no link", batch, "", (struct sl_scaling_request){RANKS(2, 4, 5), .local = 4, .measuring = 4});
    plan("no link, fewer ranks measure", batch, "",
         (struct sl_scaling_request){RANKS(2, 4, 5), .local = 4, .measuring = 2});
    plan("no link is needed", batch, "", (struct sl_scaling_request){RANKS(2, 4), .local = 4, .measuring = 4});
    golden_expect("reports/scaling_plans.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_divisions),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
