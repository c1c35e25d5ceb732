/* SPDX-License-Identifier: Apache-2.0 */
/* Which loads a curve of latency over load consists of, and what is told of the latencies of one. The loads are made up
 * here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "oom.h"
#include "golden.h"
#include "ok.h"
#include "serve/load/curve.h"

enum { LOADS_MOST = 16 };

/* What was asked for, and what the loads find: `reached` of the closed loop; all differ by `answered`, their number. */
static struct sl_load_request asked[LOADS_MOST];
static int count, fails_at;
static double reached;

seqlstm_status __wrap_sl_load_run(const struct sl_load_request *request, struct sl_load_result *out,
                                  struct seqlstm_error *err);

seqlstm_status __wrap_sl_load_run(const struct sl_load_request *request, struct sl_load_result *out,
                                  struct seqlstm_error *err)
{
    assert_true(count < LOADS_MOST);
    asked[count] = *request;
    *out = (struct sl_load_result){.wanted = request->rate,
                                   .answered = count,
                                   .failed = 7 + count,
                                   .reached = count == 1 ? reached : 1000 + count};
    if (count++ == fails_at)
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "stopped at load %d", fails_at);
    return SEQLSTM_OK;
}

static const struct sl_load_bodies bodies = {.count = 3};
static const struct sl_load_request request = {
    .address = "127.0.0.1", .port = 81, .bodies = &bodies, .rate = 77, .connections = 40, .seconds = 2.5, .seed = 100};

static seqlstm_status measure(struct sl_curve *curve, const double *rates, int32_t rate_count,
                              struct seqlstm_error *err)
{
    memset(asked, 0, sizeof asked);
    memset(curve, 0, sizeof *curve);
    count = 0;
    return sl_curve_measure(curve, &request, rates, rate_count, err);
}

static void expect_loads(const struct sl_curve *curve, const double *rates, int32_t rate_count)
{
    assert_int_equal(count, 2 + rate_count);
    assert_int_equal(sl_curve_count_loads(rate_count), count);
    assert_int_equal(curve->count, rate_count);
    assert_int_equal(curve->alone.answered, 0);
    assert_int_equal(curve->closed.answered, 1);
    for (int k = 0; k < count; k++) {
        assert_string_equal(asked[k].address, "127.0.0.1");
        assert_ptr_equal(asked[k].bodies, &bodies);
        assert_int_equal(asked[k].port, 81);
        assert_int_equal(asked[k].number, k);
        assert_int_equal(asked[k].connections, k == 0 ? 1 : 40);
        assert_int_equal(asked[k].seed, k < 2 ? 100 : 100 + k - 2);
        assert_true(asked[k].seconds == 2.5);
        assert_true(fabs(asked[k].rate - (k < 2 ? 0 : rates[k - 2])) <= 1e-9);
        if (k >= 2)
            assert_int_equal(curve->points[k - 2].answered, k);
    }
}

static void a_curve_is_one_connection_many_and_each_rate(void **state)
{
    (void)state;
    static const double rates[] = {5, 2, 900};
    static struct sl_curve curve;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    fails_at = -1;
    reached = 0; /* no rate depends on it */
    ok(measure(&curve, rates, 3, &err), &err);
    expect_loads(&curve, rates, 3);
}

static void without_rates_they_are_parts_of_the_highest_throughput(void **state)
{
    (void)state;
    static const double rates[] = {20, 60, 100, 140, 160, 180, 190};
    static struct sl_curve curve;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    fails_at = -1;
    reached = 200;
    ok(measure(&curve, NULL, 0, &err), &err);
    assert_int_equal(sl_curve_count_loads(0), 9);
    expect_loads(&curve, rates, 7);
}

static void a_server_that_answers_nothing_has_no_curve(void **state)
{
    (void)state;
    static struct sl_curve curve;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    fails_at = -1;
    reached = 0;
    assert_int_equal(measure(&curve, NULL, 0, &err), SEQLSTM_IO);
    assert_string_equal(err.message, "the server has answered no request with status 200, but 8 with others");
    assert_int_equal(count, 2);
}

static void the_load_that_fails_is_the_last(void **state)
{
    (void)state;
    static const double rates[] = {5, 2, 900};
    static struct sl_curve curve;
    for (fails_at = 0; fails_at < 5; fails_at++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char message[] = "stopped at load 0";
        message[sizeof message - 2] = (char)('0' + fails_at);
        assert_int_equal(measure(&curve, rates, 3, &err), SEQLSTM_CANCELLED);
        assert_string_equal(err.message, message);
        assert_int_equal(count, fails_at + 1);
    }
}

static void latencies_are_told_in_order(void **state)
{
    (void)state;
    enum { ALL = 1000 };
    static double latencies[ALL];
    struct sl_load_result result = {.wanted = 3, .answered = ALL};
    for (int k = 0; k < ALL; k++)
        latencies[k] = k * 7 % ALL; /* 0 to 999 */
    sl_load_summarize(latencies, ALL, 4, &result);
    const struct sl_load_result expected = {.wanted = 3,
                                            .reached = 250,
                                            .answered = ALL,
                                            .mean = 499.5,
                                            .p50 = 499,
                                            .p90 = 899,
                                            .p99 = 989,
                                            .p999 = 998,
                                            .most = 999};
    assert_memory_equal(&result, &expected, sizeof result);
    double one = 0.5;
    sl_load_summarize(&one, 1, 4, &result);
    const struct sl_load_result alone = {.wanted = 3,
                                         .reached = 0.25,
                                         .answered = ALL,
                                         .mean = 0.5,
                                         .p50 = 0.5,
                                         .p90 = 0.5,
                                         .p99 = 0.5,
                                         .p999 = 0.5,
                                         .most = 0.5};
    assert_memory_equal(&result, &alone, sizeof result);
    struct sl_load_result none = {.wanted = 3};
    sl_load_summarize(NULL, 0, 4, &none);
    assert_true(none.reached == 0 && none.mean == 0 && none.most == 0);
}

/* ---- what is shown of them ------------------------------------------------------------------------------------- */

static struct sl_load_result make_result(double wanted, double seconds, int64_t number)
{
    return (struct sl_load_result){.wanted = wanted,
                                   .reached = wanted > 0 ? 0.9 * wanted : 1000.0 * (double)number,
                                   .answered = 100 + number,
                                   .failed = 3 * number,
                                   .lost = 10 * number,
                                   .mean = seconds,
                                   .p50 = 0.75 * seconds,
                                   .p90 = 2 * seconds,
                                   .p99 = 3 * seconds,
                                   .p999 = 4.5 * seconds,
                                   .most = 6 * seconds,
                                   .own_cpu = 1e-6 * (double)number,
                                   .other_cpu = 1.25e-5 * (double)number};
}

/* A point of which nothing was answered has no latency. */
static void a_curve_is_shown_as_a_table_a_page_and_json(void **state)
{
    (void)state;
    static struct sl_curve curve = {.name = "a <b>", .server = "http://[::1]:80/", .steps = 333, .requests = 64};
    static const double wanted[] = {400, 1200, 1800}, seconds[] = {0.0021, 0, 0.043};
    struct sl_buf out = {0};
    curve.alone = make_result(0, 0.0015, 1);
    curve.closed = make_result(0, 0.03, 2);
    for (int k = 0; k < 3; k++)
        curve.points[curve.count++] = make_result(wanted[k], seconds[k], 3 + k);
    for (int is_own = 0; is_own < 2; is_own++) { /* a server of another process, or of the same */
        curve.offline = 5432.1 * is_own;
        sl_buf_printf(&out, "== %s\n", is_own ? "with what is computed without a server" : "of any server");
        sl_curve_print_table(&curve, &out);
        sl_curve_print_json(&curve, &out);
        sl_curve_print_html(&curve, &out);
    }
    golden_expect("reports/load_curve.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* Where nothing was answered there is no line, and yet an axis. */
static void a_page_without_an_answer_has_its_axis(void **state)
{
    (void)state;
    static struct sl_curve curve = {.name = "a", .server = "b", .steps = 3, .requests = 1, .count = 2};
    struct sl_buf out = {0};
    curve.points[0].wanted = 10;
    curve.points[1].wanted = 20;
    sl_curve_print_html(&curve, &out);
    assert_non_null(strstr(sl_buf_text(&out), ">1 ms</text>"));
    assert_non_null(strstr(sl_buf_text(&out), ">1000 ms</text>"));
    assert_null(strstr(sl_buf_text(&out), ">2000 ms</text>"));
    assert_null(strstr(sl_buf_text(&out), ">p50</text>"));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_curve_is_one_connection_many_and_each_rate),
        cmocka_unit_test(without_rates_they_are_parts_of_the_highest_throughput),
        cmocka_unit_test(a_server_that_answers_nothing_has_no_curve),
        cmocka_unit_test(the_load_that_fails_is_the_last),
        cmocka_unit_test(latencies_are_told_in_order),
        cmocka_unit_test(a_curve_is_shown_as_a_table_a_page_and_json),
        cmocka_unit_test(a_page_without_an_answer_has_its_axis),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
