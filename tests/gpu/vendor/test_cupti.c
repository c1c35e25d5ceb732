/* SPDX-License-Identifier: Apache-2.0 */
/* plugins/common/cupti.h against CUPTI's own headers, names of kernels, the recorders of two plugins in turn, and of
 * two devices at the same time. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cuda_domain.h"
#include "common/cuda_recorder.h"
#include "common/cuda_runtime.h"
#include "common/cupti.h"
#include "../../unit/support/temporary.h"

#ifdef HAS_CUPTI_HEADERS
#include <cupti.h>

#define SAME(ours, member, theirs, their_member)                                                                       \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&                                  \
                       sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->their_member),                      \
                   #ours "." #member)

SAME(cupti_kernel, kind, CUpti_ActivityKernel10, kind);
SAME(cupti_kernel, start, CUpti_ActivityKernel10, start);
SAME(cupti_kernel, end, CUpti_ActivityKernel10, end);
SAME(cupti_kernel, device, CUpti_ActivityKernel10, deviceId);
SAME(cupti_kernel, name, CUpti_ActivityKernel10, name);
SAME(cupti_memcpy, copy_kind, CUpti_ActivityMemcpy6, copyKind);
SAME(cupti_memcpy, bytes, CUpti_ActivityMemcpy6, bytes);
SAME(cupti_memcpy, start, CUpti_ActivityMemcpy6, start);
SAME(cupti_memcpy, end, CUpti_ActivityMemcpy6, end);
SAME(cupti_memcpy, device, CUpti_ActivityMemcpy6, deviceId);
SAME(cupti_memset, bytes, CUpti_ActivityMemset4, bytes);
SAME(cupti_memset, start, CUpti_ActivityMemset4, start);
SAME(cupti_memset, end, CUpti_ActivityMemset4, end);
SAME(cupti_memset, device, CUpti_ActivityMemset4, deviceId);
_Static_assert(CUPTI_KIND_CONCURRENT_KERNEL_ == (int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
                   CUPTI_KIND_MEMCPY_ == (int)CUPTI_ACTIVITY_KIND_MEMCPY &&
                   CUPTI_KIND_MEMSET_ == (int)CUPTI_ACTIVITY_KIND_MEMSET &&
                   CUPTI_COPY_TO_DEVICE_ == (int)CUPTI_ACTIVITY_MEMCPY_KIND_HTOD &&
                   CUPTI_COPY_TO_HOST_ == (int)CUPTI_ACTIVITY_MEMCPY_KIND_DTOH &&
                   CUPTI_FLUSH_FORCED_ == (int)CUPTI_ACTIVITY_FLAG_FLUSH_FORCED &&
                   CUPTI_MAX_LIMIT_REACHED_ == (int)CUPTI_ERROR_MAX_LIMIT_REACHED,
               "numbers of CUPTI");
#endif

seqlstm_status gpu_memory_in_use(int32_t ordinal, uint64_t *out_bytes, struct seqlstm_error *err)
{
    (void)err;
    *out_bytes = 1000 + (uint64_t)ordinal;
    return SEQLSTM_OK;
}

static void test_names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"_ZN12_GLOBAL__N_111gemm_kernelILi4EEEvPKfPf", "gemm_kernel"},
                                           {"_Z4fillPfm", "fill"},
                                           {"_ZL10step_tilesILb1EEvPf", "step_tiles"},
                                           {"_ZN3one3twoEv", "two"},
                                           {"plain", "plain"},
                                           {"_Z99short", "_Z99short"},
                                           {"_Z", "_Z"},
                                           {"", ""}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char name[32];
        gpu_recorder_name(cases[k][0], name, sizeof name);
        assert_string_equal(name, cases[k][1]);
    }
    char small[5];
    gpu_recorder_name("_Z11gemm_kernelv", small, sizeof small);
    assert_string_equal(small, "gemm");
}

/* The same code once more, as in another plugin. */
extern const struct seqlstm_recorder second_recorder;

static const char *library; /* a fake CUPTI */

static void *find(const char *name)
{
    void *symbol = dlsym(dlopen(library, RTLD_NOW), name);
    assert_non_null(symbol);
    return symbol;
}

static void start(const struct seqlstm_recorder *recorder, struct gpu_domain *domain)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = recorder->start((struct seqlstm_instance *)(void *)domain, 0, &err);
    if (status != SEQLSTM_OK)
        print_message("%s\n", err.message);
    assert_int_equal(status, SEQLSTM_OK);
}

static void stop(const struct seqlstm_recorder *recorder, struct gpu_domain *domain)
{
    recorder->stop((struct seqlstm_instance *)(void *)domain, 0);
}

/* A buffer that comes back after its recording has ended is counted by none, so that buffers never run out. */
static void test_late_buffers(void **state)
{
    (void)state;
    enum { TURNS = 200 };
    static struct gpu_domain domains[2];
    const struct seqlstm_recorder *const recorders[2] = {&gpu_recorder, &second_recorder};
    int (*hold)(void);
    for (int k = 0; k < 2; k++)
        snprintf(domains[k].cupti, sizeof domains[k].cupti, "%s", library);
    for (int turn = 0; turn <= TURNS; turn++) { /* buffers of the first come back to the second */
        start(recorders[0], &domains[0]);
        void *symbol = find("fake_cupti_hold");
        memcpy(&hold, &symbol, sizeof hold);
        assert_true(hold());
        stop(recorders[0], &domains[0]);
        start(recorders[1], &domains[1]);
        if (turn == TURNS)
            assert_true(hold());
        stop(recorders[1], &domains[1]);
    }
}

/* Counts the kernels that a device reports, in any order, by their names of one letter. */
static void count_name(void *context, const struct seqlstm_activity *activity)
{
    int *counts = context;
    counts[activity->name[0] - 'a']++;
}

static void add_none(void *context, const struct seqlstm_counter *counter)
{
    (void)context;
    (void)counter;
}

/* expected: each of these once. */
static void assert_reported(struct gpu_domain *domain, uint32_t device, const char *expected)
{
    int counts[26] = {0};
    const struct seqlstm_report to = {
        .struct_size = sizeof to, .context = counts, .activity = count_name, .counter = add_none};
    struct seqlstm_instance *instance = (struct seqlstm_instance *)(void *)domain;
    assert_int_equal(gpu_recorder.report(instance, device, &to, NULL), SEQLSTM_OK);
    for (char name = 'a'; name <= 'z'; name++)
        assert_int_equal(counts[name - 'a'], strchr(expected, name) != NULL);
}

/* Each device reports its own kernels, once, from its start to its stop, whatever the other does. */
static void test_two_devices(void **state)
{
    (void)state;
    static struct gpu_domain domain;
    struct seqlstm_instance *instance = (struct seqlstm_instance *)(void *)&domain;
    void (*run)(uint32_t device, const char *name);
    domain.devices[1].ordinal = 1;
    snprintf(domain.cupti, sizeof domain.cupti, "%s", library);
    start(&gpu_recorder, &domain);
    void *symbol = find("fake_cupti_run");
    memcpy(&run, &symbol, sizeof run);
    run(0, "a");
    run(1, "z");
    assert_int_equal(gpu_recorder.start(instance, 1, NULL), SEQLSTM_OK);
    run(0, "b");
    run(1, "c");
    assert_reported(&domain, 0, "ab");
    run(0, "d");
    assert_reported(&domain, 1, "c");
    assert_reported(&domain, 0, "d");
    assert_reported(&domain, 1, "");
    run(0, "e");
    run(1, "f");
    stop(&gpu_recorder, &domain);
    assert_reported(&domain, 0, "");
    assert_reported(&domain, 1, "f");
    start(&gpu_recorder, &domain);
    run(0, "g");
    gpu_recorder.stop(instance, 1);
    run(0, "h");
    assert_reported(&domain, 1, "");
    assert_reported(&domain, 0, "gh");
    stop(&gpu_recorder, &domain);
}

/* ---- what is reported ------------------------------------------------------------------------------------------- */

static char lines[1024];

static void write_activity(void *context, const struct seqlstm_activity *activity)
{
    static const char *const kinds[] = {
        [SEQLSTM_ACTIVITY_KERNEL] = "kernel", [SEQLSTM_ACTIVITY_COPY] = "copy", [SEQLSTM_ACTIVITY_FILL] = "fill"};
    (void)context;
    const size_t at = strlen(lines);
    snprintf(lines + at, sizeof lines - at, "%s `%s` %lld-%lld %llu\n", kinds[activity->kind], activity->name,
             (long long)activity->begin_ns, (long long)activity->end_ns, (unsigned long long)activity->bytes);
}

static void write_counter(void *context, const struct seqlstm_counter *counter)
{
    (void)context;
    const size_t at = strlen(lines);
    snprintf(lines + at, sizeof lines - at, "%s %g\n", counter->name, counter->value);
}

/* Of its own device, since its start, with their times, sizes and names. */
static void test_activities(void **state)
{
    enum { OWN = 5, OTHER = 2, KERNEL = 1, COPY = 2, FILL = 3 };
    (void)state;
    static struct gpu_domain domain;
    struct seqlstm_instance *instance = (struct seqlstm_instance *)(void *)&domain;
    const struct seqlstm_report to = {.struct_size = sizeof to, .activity = write_activity, .counter = write_counter};
    void (*add)(int, uint32_t, const char *, int64_t, int64_t, uint64_t, int);
    domain.devices[0].ordinal = OTHER;
    domain.devices[1].ordinal = OWN;
    snprintf(domain.cupti, sizeof domain.cupti, "%s", library);
    assert_int_equal(gpu_recorder.start(instance, 1, NULL), SEQLSTM_OK);
    void *symbol = find("fake_cupti_add");
    memcpy(&add, &symbol, sizeof add);
    add(KERNEL, OWN, "_Z4gemmPf", 10, 30, 0, 0);
    add(KERNEL, OTHER, "_Z5otherv", 11, 31, 0, 0);
    add(KERNEL, OWN, NULL, 32, 33, 0, 0);
    add(KERNEL, OWN, "early", -1, 5, 0, 0);
    add(KERNEL, OWN, "backwards", 9, 8, 0, 0);
    add(KERNEL, OWN, "short", 0, 0, 0, 0);
    add(COPY, OWN, "c", 40, 45, 100, CUPTI_COPY_TO_DEVICE_);
    add(COPY, OWN, "c", 46, 47, 200, CUPTI_COPY_TO_HOST_);
    add(COPY, OWN, "c", 48, 59, 300, 8);
    add(COPY, OTHER, "c", 48, 59, 400, 8);
    add(FILL, OWN, "f", 60, 71, 500, 0);
    add(FILL, OTHER, "f", 60, 71, 600, 0);
    lines[0] = '\0';
    assert_int_equal(gpu_recorder.report(instance, 1, &to, NULL), SEQLSTM_OK);
    assert_string_equal(lines, "kernel `gemm` 10-30 0\n"
                               "kernel `kernel` 32-33 0\n"
                               "kernel `short` 0-0 0\n"
                               "copy `copy to the device` 40-45 100\n"
                               "copy `copy to the host` 46-47 200\n"
                               "copy `copy on the device` 48-59 300\n"
                               "fill `fill` 60-71 500\n"
                               "memory in use, bytes 1005\n");
    gpu_recorder.stop(instance, 1);
    lines[0] = '\0';
    assert_int_equal(gpu_recorder.report(instance, 0, &to, NULL), SEQLSTM_OK); /* not recorded: counters alone */
    assert_string_equal(lines, "memory in use, bytes 1002\n");
}

/* What begins and fails ends wholly, and leaves its place to others. */
static void test_failures(void **state)
{
    static const struct {
        const char *fails, *message;
    } rows[] = {
        {"1", "CUPTI, which measures them, failed in cuptiActivityEnable: CUPTI_ERROR_NOT_INITIALIZED (15)"},
        {"copies", "CUPTI, which measures them, failed in cuptiActivityEnable: CUPTI_ERROR_NOT_INITIALIZED (15)"},
        {"time", "CUPTI, which measures them, failed in cuptiGetTimestamp: CUPTI_ERROR_NOT_INITIALIZED (15)"}};
    (void)state;
    static struct gpu_domain domain;
    int (*count)(void);
    snprintf(domain.cupti, sizeof domain.cupti, "%s", library);
    start(&gpu_recorder, &domain);
    void *symbol = find("fake_cupti_count_enabled");
    memcpy(&count, &symbol, sizeof count);
    assert_int_equal(count(), 3);
    stop(&gpu_recorder, &domain);
    assert_int_equal(count(), 0);
    for (int k = 0; k < 3 * (GPU_DEVICES_MAX + 1); k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        setenv("FAKE_CUPTI_FAILS", rows[k % 3].fails, 1);
        assert_int_equal(gpu_recorder.start((struct seqlstm_instance *)(void *)&domain, 0, &err), SEQLSTM_UNAVAILABLE);
        assert_string_equal(err.message, rows[k % 3].message);
        assert_int_equal(err.native_code, 15);
        assert_int_equal(count(), 0);
    }
    unsetenv("FAKE_CUPTI_FAILS");
    start(&gpu_recorder, &domain);
    assert_int_equal(count(), 3);
    stop(&gpu_recorder, &domain);
}

/* Devices of any number of instances, up to a limit. */
static void test_limit(void **state)
{
    (void)state;
    static struct gpu_domain domains[GPU_DEVICES_MAX + 1];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char expected[80];
    for (int k = 0; k <= GPU_DEVICES_MAX; k++)
        snprintf(domains[k].cupti, sizeof domains[k].cupti, "%s", library);
    for (int k = 0; k < GPU_DEVICES_MAX; k++)
        start(&gpu_recorder, &domains[k]);
    snprintf(expected, sizeof expected, "%d devices of this process are recorded already", GPU_DEVICES_MAX);
    assert_int_equal(gpu_recorder.start((struct seqlstm_instance *)(void *)&domains[GPU_DEVICES_MAX], 0, &err),
                     SEQLSTM_UNAVAILABLE);
    assert_string_equal(err.message, expected);
    for (int k = 0; k < GPU_DEVICES_MAX; k++)
        stop(&gpu_recorder, &domains[k]);
}

/* In a process of its own, where nothing is loaded yet. */
static void test_other_libraries(void **state)
{
    static const struct {
        const char *place, *message;
    } rows[] = {
        {"none", "CUPTI, which measures them, is switched off (the backend's option `cupti` names a file or folder)"},
        {"libm.so.6", "CUPTI, which measures them, has no function cuptiActivityEnable"}};
    (void)state;
    for (int k = 0; k < 2; k++) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0) {
            static struct gpu_domain domain;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            snprintf(domain.cupti, sizeof domain.cupti, "%s", rows[k].place);
            const seqlstm_status got = gpu_recorder.start((struct seqlstm_instance *)(void *)&domain, 0, &err);
            _exit(got != SEQLSTM_UNAVAILABLE ? 2 : strcmp(err.message, rows[k].message) != 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void copy_library(const char *to)
{
    FILE *from = fopen(library, "rb"), *copy = fopen(to, "wb");
    char bytes[4096];
    assert_non_null(from);
    assert_non_null(copy);
    for (size_t count; (count = fread(bytes, 1, sizeof bytes, from)) > 0;)
        assert_int_equal(fwrite(bytes, 1, count, copy), count);
    assert_int_equal(fclose(from) | fclose(copy), 0);
}

/* Run in a process of its own, where nothing is loaded yet: 0 if recording starts with the file of that version and
 * with no other. */
static int start_with(const char *folder, const char *version)
{
    static const char *const versions[] = {"13", "12"};
    static struct gpu_domain domain;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(domain.cupti, sizeof domain.cupti, "%s", folder);
    const seqlstm_status status = gpu_recorder.start((struct seqlstm_instance *)(void *)&domain, 0, &err);
    if (version == NULL)
        return status != SEQLSTM_UNAVAILABLE || strstr(err.message, folder) == NULL;
    for (int k = 0; k < 2; k++) {
        char path[TEMPORARY_BYTES + 20];
        snprintf(path, sizeof path, "%s/libcupti.so.%s", folder, versions[k]);
        if ((dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL) != (strcmp(versions[k], version) == 0))
            return 2;
    }
    return status == SEQLSTM_OK ? 0 : 3;
}

/* Of the versions in a folder the newest is loaded, and that alone. */
static void test_newest_version(void **state)
{
    static const struct {
        bool newer, older;
        const char *loaded;
    } rows[] = {{true, true, "13"}, {true, false, "13"}, {false, true, "12"}, {false, false, NULL}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char folder[TEMPORARY_BYTES], newer[TEMPORARY_BYTES + 20], older[TEMPORARY_BYTES + 20];
        int status = -1;
        assert_non_null(mkdtemp(temporary_template(folder, "cupti")));
        snprintf(newer, sizeof newer, "%s/libcupti.so.13", folder);
        snprintf(older, sizeof older, "%s/libcupti.so.12", folder);
        if (rows[k].newer)
            copy_library(newer);
        if (rows[k].older)
            copy_library(older);
        const pid_t child = fork();
        if (child == 0)
            _exit(start_with(folder, rows[k].loaded));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(unlink(newer) == 0, rows[k].newer);
        assert_int_equal(unlink(older) == 0, rows[k].older);
        assert_int_equal(rmdir(folder), 0);
        if (status != 0)
            fail_msg("row %zu: exit status %d", k, WEXITSTATUS(status));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_newest_version), cmocka_unit_test(test_other_libraries),
                                       cmocka_unit_test(test_names),          cmocka_unit_test(test_late_buffers),
                                       cmocka_unit_test(test_two_devices),    cmocka_unit_test(test_activities),
                                       cmocka_unit_test(test_failures),       cmocka_unit_test(test_limit)};
    library = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
