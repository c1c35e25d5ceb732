/* SPDX-License-Identifier: Apache-2.0 */
/* On how many devices the ranks of a training could compute, and on how many they do: for backends, devices and ranks
 * that the test makes up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ok.h"
#include "oom.h"
#include "session/record/session_record.h"
#include "session/scaling/devices.h"
#include "session/session.h"

enum { BACKENDS = 4, RANKS_MOST = 4 };

/* Backend 0 computes on the processor. */
static const struct made_up {
    uint32_t devices;
    const char *domain;
} backends[BACKENDS] = {{1, "host"}, {6, "cuda:a"}, {3, "cuda:b"}, {5, "cuda:c"}};

static struct sl_backend_record records[BACKENDS];
static uint32_t record_count;
static struct sl_call calls[BACKENDS];
static struct sl_plan plan = {.calls = calls};
static int plans_made;
static const char *domains[RANKS_MOST]; /* of each rank */

seqlstm_status __wrap_sl_session_load_backends(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status __wrap_sl_session_make_plan(struct sl_session *session, const struct sl_plan **out_plan,
                                           struct seqlstm_error *err);
uint32_t __wrap_sl_registry_get_record_count(const struct sl_registry *registry);
const struct sl_backend_record *__wrap_sl_registry_get_record(const struct sl_registry *registry, uint32_t index);
uint32_t __wrap_sl_backend_get_device_count(const struct sl_backend *backend);
const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t index);
seqlstm_status __wrap_sl_ranks_gather(const struct sl_ranks *ranks, const void *bytes, int64_t count, void *out_all,
                                      struct seqlstm_error *err);

seqlstm_status __wrap_sl_session_load_backends(struct sl_session *session, struct seqlstm_error *err)
{
    (void)session, (void)err;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_session_make_plan(struct sl_session *session, const struct sl_plan **out_plan,
                                           struct seqlstm_error *err)
{
    (void)session, (void)err;
    plans_made++;
    *out_plan = &plan;
    return SEQLSTM_OK;
}

uint32_t __wrap_sl_registry_get_record_count(const struct sl_registry *registry)
{
    (void)registry;
    return record_count;
}

const struct sl_backend_record *__wrap_sl_registry_get_record(const struct sl_registry *registry, uint32_t index)
{
    (void)registry;
    assert_in_range(index, 0, record_count - 1);
    return &records[index];
}

static const struct made_up *find_made_up(const struct sl_backend *backend)
{
    return (const struct made_up *)(const void *)backend;
}

uint32_t __wrap_sl_backend_get_device_count(const struct sl_backend *backend)
{
    return find_made_up(backend)->devices;
}

const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t index)
{
    static struct seqlstm_device_info info;
    assert_int_equal(index, 0);
    snprintf(info.domain, sizeof info.domain, "%s", find_made_up(backend)->domain);
    return &info;
}

seqlstm_status __wrap_sl_ranks_gather(const struct sl_ranks *ranks, const void *bytes, int64_t count, void *out_all,
                                      struct seqlstm_error *err)
{
    (void)bytes, (void)err;
    for (int32_t r = 0; r < ranks->ranks; r++)
        snprintf((char *)out_all + r * count, (size_t)count, "%s", domains[r]);
    return SEQLSTM_OK;
}

/* ---- before the ranks start ------------------------------------------------------------------------------------- */

static int32_t count_devices(int64_t device, const int *used, int32_t count)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_model model = {.device = device};
    struct sl_session session = {.model = &model};
    int32_t devices = -1;
    for (int32_t c = 0; c < count; c++) {
        calls[c] = (struct sl_call){.device = 0};
        memcpy(&calls[c].backend, &(const void *){&backends[used[c]]}, sizeof(void *));
    }
    plan.call_count = count;
    plans_made = 0;
    ok(sl_session_count_rank_devices(&session, &devices, &err), &err);
    return devices;
}

static void find_records(const struct sl_backend_record *found, uint32_t count)
{
    memcpy(records, found, count * sizeof *found);
    record_count = count;
}

static const struct seqlstm_device_info host = {.domain = "host"}, device = {.domain = "cuda:a"};

/* The backend with the fewest devices decides, whichever call it has; calls on the processor need none. */
static void test_the_fewest_devices_count(void **state)
{
    static const int ways[][3] = {{1, 2, 3}, {2, 3, 1}, {3, 1, 2}, {1, 3, 2}};
    const struct sl_backend_record found[] = {
        {.status = SL_BACKEND_OK, .device_count = 1, .devices = &host},
        {.status = SL_BACKEND_OK, .device_count = 1, .devices = &device},
    };
    (void)state;
    find_records(found, 2);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        assert_int_equal(count_devices(SL_DEVICE_AUTO, ways[k], 3), 3);
        assert_int_equal(count_devices(SL_DEVICE_CUDA, ways[k], 3), 3);
        assert_int_equal(count_devices(SL_DEVICE_CUDA + 1, ways[k], 3), 2); /* from device 1 on */
        assert_int_equal(count_devices(SL_DEVICE_CUDA + 2, ways[k], 3), 1);
        assert_int_equal(plans_made, 1);
    }
    assert_int_equal(count_devices(SL_DEVICE_AUTO, (const int[]){0, 3, 0, 1}, 4), 5);
    assert_int_equal(count_devices(SL_DEVICE_CUDA + 1, (const int[]){1, 0}, 2), 5);
    assert_int_equal(count_devices(SL_DEVICE_AUTO, (const int[]){0, 0}, 2), 0);
}

/* Without a backend that has devices nothing is planned. */
static void test_processors_need_no_plan(void **state)
{
    const struct sl_backend_record found[] = {
        {.status = SL_BACKEND_OK, .device_count = 1, .devices = &host},
        {.status = SL_BACKEND_NOT_FOUND},
        {.status = SL_BACKEND_OK, .device_count = 1, .devices = &host},
    };
    (void)state;
    find_records(found, 3);
    assert_int_equal(count_devices(SL_DEVICE_AUTO, (const int[]){1}, 1), 0);
    assert_int_equal(plans_made, 0);
}

/* ---- in the ranks ----------------------------------------------------------------------------------------------- */

/* `message` NULL: they may. */
static void expect_shared(int32_t ranks, const char *const *names, int32_t wanted, const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_params params = {.mirrors = NULL};
    struct sl_session session = {.params = &params, .ranks = {.ranks = ranks}};
    int32_t devices = -1;
    memcpy(domains, names, (size_t)ranks * sizeof *names);
    const seqlstm_status status = sl_scaling_count_devices(&session, &devices, &err);
    assert_int_equal(status, message ? SEQLSTM_UNSUPPORTED : SEQLSTM_OK);
    assert_string_equal(err.message, message ? message : "");
    assert_int_equal(devices, wanted);
}

static void test_each_rank_has_a_device_of_its_own(void **state)
{
#define SHARED(ranks, name)                                                                                            \
    "ranks " ranks " would compute on the same device (" name "), so their times would not be those of ranks with a "  \
    "device each; let CUDA_VISIBLE_DEVICES name each device once"
    (void)state;
    expect_shared(4, (const char *const[]){"cuda:a", "cuda:b", "cuda:c", "cuda:d"}, 4, NULL);
    expect_shared(3, (const char *const[]){"cuda:a", "cuda:b", "cuda:c"}, 3, NULL);
    expect_shared(4, (const char *const[]){"", "", "", ""}, 0, NULL); /* processors, which are shared */
    expect_shared(4, (const char *const[]){"cuda:a", "cuda:b", "cuda:c", "cuda:b"}, -1, SHARED("1 and 3", "cuda:b"));
    expect_shared(4, (const char *const[]){"cuda:a", "cuda:b", "cuda:c", "cuda:c"}, -1, SHARED("2 and 3", "cuda:c"));
    expect_shared(4, (const char *const[]){"cuda:d", "cuda:b", "cuda:d", "cuda:b"}, -1, SHARED("0 and 2", "cuda:d"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fewest_devices_count),
        cmocka_unit_test(test_processors_need_no_plan),
        cmocka_unit_test(test_each_rank_has_a_device_of_its_own),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
