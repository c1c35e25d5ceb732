/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm conformance`, on results that the test makes up: what its flags ask for, how a worker and a rank are
 * started, what is shown of the results, and the exit statuses. */
#include "cli/cli.h"
#include "conformance/collectives/kit.h"
#include "conformance/conformance.h"
#include "registry/collectives/connection.h"
#include "registry/kind/elf.h"
#include "registry/search.h"

#include "report.h"

/* What the layers below answer. */
static struct {
    seqlstm_status run, bench, load, kit, work, list;
    const char *untested;
    uint32_t first, result_count; /* those of `results` that are given */
    enum sl_backend_status status;
} answer;

/* All differ, and not in the order of their levels. */
static const struct sl_conformance_result results[] = {
    {SL_LEVEL_CONTRACT, "contract:hosts", {SL_VERDICT_FAIL, 0, "", "a host is refused"}, 0},
    {SL_LEVEL_BACKWARD, "lstm:bwd:T7B5I6H9:f32:ragged", {SL_VERDICT_PASS, 0.5, "fast", ""}, 0},
    {SL_LEVEL_FORWARD, "rnn:fwd:T7B5I6H9:f32:ragged", {SL_VERDICT_UNSUPPORTED, 0, "", "no rnn"}, 0},
    {SL_LEVEL_FORWARD, "gru:fwd:T7B5I6H9:f32:ragged", {SL_VERDICT_FAIL, 3, "slow", "y[3] is 4, expected 5"}, 0},
    {SL_LEVEL_FORWARD, "dense:fwd:T7B5I6O9:f32:ragged", {SL_VERDICT_CRASH, 0, "", "it died"}, 0},
    {SL_LEVEL_FORWARD, "lstm:fwd:T7B5I6H9:f32:ragged", {SL_VERDICT_PASS, 0.25, "slow", ""}, 0},
    {SL_LEVEL_CLAIMS, "claims:nothing", {SL_VERDICT_FAIL, 0, "", "it matches no case"}, 0},
    {SL_LEVEL_LOAD, "load:exports", {SL_VERDICT_FAIL, 0, "", "it exports f"}, 0},
    {SL_LEVEL_MEMORY, "lstm:mem:T7B5I6H9:f32:ragged", {SL_VERDICT_PASS, 0, "", ""}, 0},
    {SL_LEVEL_BACKWARD, "gru:bwd:T7B5I6H9:f32:ragged", {SL_VERDICT_XFAIL, 0, "", "as the claims say"}, 0},
    {SL_LEVEL_BACKWARD, "rnn:bwd:T7B5I6H9:f32:ragged", {SL_VERDICT_PASS, 0, "", ""}, 0},
};
enum { RESULTS = sizeof results / sizeof *results };

static seqlstm_status give(seqlstm_status status, struct seqlstm_error *err)
{
    return status == SEQLSTM_OK ? SEQLSTM_OK : seqlstm_error_set(err, status, "a.c", 1, "it fails; use another");
}

seqlstm_status __wrap_sl_search_init(struct sl_search *search, struct sl_arena *arena, const char *const *folders,
                                     uint32_t folder_count, bool only_folders, struct seqlstm_error *err);
seqlstm_status __wrap_sl_search_find(const struct sl_search *search, struct sl_arena *arena,
                                     const struct sl_plugin_kind *kind, const char *id, const char ***out_files,
                                     uint32_t *out_count, struct seqlstm_error *err);
seqlstm_status __wrap_sl_elf_check_plugin(const char *path, const struct sl_plugin_kind *kind,
                                          struct seqlstm_error *err);
seqlstm_status __wrap_sl_conformance_run(const struct sl_conformance_request *request,
                                         struct sl_conformance_report **out_report, struct seqlstm_error *err);
seqlstm_status __wrap_sl_conformance_list(const struct sl_conformance_request *request, struct sl_buf *buf,
                                          struct seqlstm_error *err);
seqlstm_status __wrap_sl_conformance_work(const struct sl_conformance_request *request, int in, int to,
                                          struct seqlstm_error *err);
seqlstm_status __wrap_sl_case_bench_run(const struct sl_case_bench_request *request, struct seqlstm_error *err);
void __wrap_sl_conformance_report_destroy(struct sl_conformance_report *report);
uint32_t __wrap_sl_conformance_report_get_count(const struct sl_conformance_report *report, enum sl_verdict verdict);
const char *__wrap_sl_conformance_report_find_untested(const struct sl_conformance_report *report);
uint32_t __wrap_sl_conformance_report_count_bad(const struct sl_conformance_report *report);
uint32_t __wrap_sl_conformance_report_get_size(const struct sl_conformance_report *report);
const struct sl_conformance_result *__wrap_sl_conformance_report_get(const struct sl_conformance_report *report,
                                                                     uint32_t index);
const struct sl_backend_record *__wrap_sl_conformance_report_get_record(const struct sl_conformance_report *report);
void __wrap_sl_conformance_report_set_times(struct sl_conformance_report *report, const struct sl_case_time *times,
                                            uint32_t count);
void __wrap_sl_conformance_report_print_json(const struct sl_conformance_report *report, struct sl_buf *buf);
void __wrap_sl_conformance_report_print_junit(const struct sl_conformance_report *report, struct sl_buf *buf);
seqlstm_status __wrap_sl_collectives_load(struct sl_arena *arena, const struct sl_connection_request *request,
                                          struct sl_backend_record *record, struct seqlstm_collectives *table,
                                          struct seqlstm_error *err);
seqlstm_status __wrap_sl_collectives_kit_run(const struct sl_collectives_kit_request *request,
                                             struct seqlstm_error *err);
seqlstm_status __wrap_sl_collectives_kit_work(const struct sl_collectives_kit_request *request, const char *name,
                                              int32_t rank, const char *job, int to, struct seqlstm_error *err);

/* ---- which plugin ----------------------------------------------------------------------------------------------- */

seqlstm_status __wrap_sl_search_init(struct sl_search *search, struct sl_arena *arena, const char *const *folders,
                                     uint32_t folder_count, bool only_folders, struct seqlstm_error *err)
{
    (void)arena, (void)folders, (void)folder_count, (void)only_folders, (void)err;
    *search = (struct sl_search){.folder_count = 0};
    return SEQLSTM_OK;
}

/* Backends b-… are in two folders, and collectives c-… in one. */
seqlstm_status __wrap_sl_search_find(const struct sl_search *search, struct sl_arena *arena,
                                     const struct sl_plugin_kind *kind, const char *id, const char ***out_files,
                                     uint32_t *out_count, struct seqlstm_error *err)
{
    static const char *files[] = {"/first/b.so", "/second/b.so"};
    (void)search, (void)arena, (void)err;
    *out_files = files;
    *out_count = kind == &sl_backend_kind ? (id[0] == 'b' ? 2 : 0) : id[0] == 'c';
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_elf_check_plugin(const char *path, const struct sl_plugin_kind *kind,
                                          struct seqlstm_error *err)
{
    (void)kind;
    return strstr(path, "/c.so") ? SEQLSTM_OK : give(SEQLSTM_ABI_MISMATCH, err);
}

/* The scratch folder, of which the name is never the same, is FOLDER. */
static void note_path(const char *path)
{
    const size_t bytes = strlen(scratch_folder);
    if (path && strncmp(path, scratch_folder, bytes) == 0)
        sl_buf_printf(&noted, "FOLDER%s", path + bytes);
    else
        sl_buf_append_text(&noted, path ? path : "(nothing)");
}

static void note_words(const char *title, const char *const *words)
{
    sl_buf_printf(&noted, "  %s:", title);
    for (; *words; words++) {
        sl_buf_append_char(&noted, ' ');
        note_path(*words);
    }
    sl_buf_append_char(&noted, '\n');
}

/* ---- backends --------------------------------------------------------------------------------------------------- */

static void note_request(const char *what, const struct sl_conformance_request *r)
{
    sl_buf_printf(&noted, "%s ", what);
    note_path(r->file);
    sl_buf_printf(&noted, "%s%s, variant %s, levels %x, random %u, seed %llu, timeout %lld\n",
                  r->trust ? ", trusted" : "", r->full ? ", full" : "", r->variant ? r->variant : "any", r->levels,
                  r->random, (unsigned long long)r->seed, (long long)r->timeout_ns);
    for (uint32_t k = 0; k < r->setting_count; k++)
        sl_buf_printf(&noted, "  setting %s: %s\n", r->settings[k].key, r->settings[k].value);
    for (uint32_t k = 0; k < r->case_count; k++)
        sl_buf_printf(&noted, "  case %s\n", r->cases[k]);
    for (uint32_t k = 0; k < r->claim_count; k++)
        sl_buf_printf(&noted, "  claim %d %s %s\n", (int)r->claims[k].kind, r->claims[k].pattern, r->claims[k].reason);
    if (r->worker)
        note_words("worker", r->worker);
}

seqlstm_status __wrap_sl_conformance_run(const struct sl_conformance_request *request,
                                         struct sl_conformance_report **out_report, struct seqlstm_error *err)
{
    note_request("tests", request);
    for (uint32_t k = 0; k < answer.result_count; k++)
        request->on_result(request->context, &results[answer.first + k]);
    *out_report = (struct sl_conformance_report *)(void *)&answer;
    return give(answer.run, err);
}

seqlstm_status __wrap_sl_conformance_list(const struct sl_conformance_request *request, struct sl_buf *buf,
                                          struct seqlstm_error *err)
{
    note_request("lists", request);
    sl_buf_append_text(buf, "the cases\n");
    return give(answer.list, err);
}

seqlstm_status __wrap_sl_conformance_work(const struct sl_conformance_request *request, int in, int to,
                                          struct seqlstm_error *err)
{
    note_request("works on", request);
    sl_buf_printf(&noted, "  reads %d, writes %d\n", in, to);
    return give(SEQLSTM_UNAVAILABLE, err); /* else it would end this program */
}

seqlstm_status __wrap_sl_case_bench_run(const struct sl_case_bench_request *r, struct seqlstm_error *err)
{
    struct sl_case_time time = {.name = "one", .variant = "v", .median_ns = 1500, .spread = 0.25, .gflops = 3};
    sl_buf_append_text(&noted, "times ");
    note_path(r->backend.name);
    sl_buf_printf(&noted, "%s, variant %s, threads %d, seconds %g, seed %llu, settings %u\n",
                  r->trust ? ", trusted" : "", r->variant ? r->variant : "any", r->threads, r->seconds,
                  (unsigned long long)r->seed, r->backend.setting_count);
    for (uint32_t k = 0; k < r->case_count; k++)
        sl_buf_printf(&noted, "  %s\n", r->cases[k]);
    time.fraction = 0.125;
    for (int k = 0; k < 3; k++) { /* two variants of the first case, one of the second */
        time.name = k < 2 ? "one" : "two";
        strcpy(time.variant, k == 1 ? "w" : "v");
        time.interval = (struct sl_interval){.ratio = 1.5 + k, .low = 1.25 + k, .high = 1.75 + k};
        time.median_ns *= 2;
        const seqlstm_status status = r->on_time(r->context, &time, err);
        if (status != SEQLSTM_OK)
            return status;
    }
    return give(answer.bench, err);
}

void __wrap_sl_conformance_report_destroy(struct sl_conformance_report *report)
{
    (void)report;
}

uint32_t __wrap_sl_conformance_report_get_count(const struct sl_conformance_report *report, enum sl_verdict verdict)
{
    uint32_t count = 0;
    (void)report;
    for (uint32_t k = 0; k < answer.result_count; k++)
        count += results[answer.first + k].check.verdict == verdict;
    return count;
}

const char *__wrap_sl_conformance_report_find_untested(const struct sl_conformance_report *report)
{
    (void)report;
    return answer.untested;
}

uint32_t __wrap_sl_conformance_report_count_bad(const struct sl_conformance_report *report)
{
    uint32_t count = 0;
    (void)report;
    for (uint32_t k = 0; k < answer.result_count; k++)
        count += sl_verdict_is_bad(results[answer.first + k].check.verdict);
    return count;
}

uint32_t __wrap_sl_conformance_report_get_size(const struct sl_conformance_report *report)
{
    (void)report;
    return answer.result_count;
}

const struct sl_conformance_result *__wrap_sl_conformance_report_get(const struct sl_conformance_report *report,
                                                                     uint32_t index)
{
    (void)report;
    return &results[answer.first + index];
}

const struct sl_backend_record *__wrap_sl_conformance_report_get_record(const struct sl_conformance_report *report)
{
    static const struct seqlstm_device_info devices[] = {{.name = "Processor", .device_class = "cpu-x"},
                                                         {.name = "Card", .device_class = "gpu-y"}};
    static const struct sl_backend_record record = {
        .id = "mine", .version = "1.2", .vendor = "me", .devices = devices, .device_count = 2};
    (void)report;
    return &record;
}

void __wrap_sl_conformance_report_set_times(struct sl_conformance_report *report, const struct sl_case_time *times,
                                            uint32_t count)
{
    (void)report, (void)times;
    sl_buf_printf(&noted, "reports %u times\n", count);
}

void __wrap_sl_conformance_report_print_json(const struct sl_conformance_report *report, struct sl_buf *buf)
{
    (void)report;
    sl_buf_append_text(buf, "{the report}\n");
}

void __wrap_sl_conformance_report_print_junit(const struct sl_conformance_report *report, struct sl_buf *buf)
{
    (void)report;
    sl_buf_append_text(buf, "<the report/>\n");
}

static void run_backends(void)
{
    static const char *const lines[] = {
        "conformance b-mine",
        "conformance reference -v",
        "conformance b-mine -q",
        "conformance none",
        "conformance ./none.so",
        "conformance ./b.so --trust --variant fast --seed 7 --option a=1 --option b=c=d --full --timeout 3",
        "conformance b.so --in-process --random 9 --level forward --level load --case x --case y*",
        "conformance b-mine --level threads --level memory --level claims --level contract --level backward",
        "conformance b-mine --level none",
        "conformance b-mine --option a",
        "conformance b-mine --option =a",
        "conformance b-mine --seed 9223372036854775807 --timeout 86400 --random 100000000",
        "conformance b-mine --seed -1",
        "conformance b-mine --timeout 0",
        "conformance b-mine --timeout 86401",
        "conformance b-mine --random 100000001",
        "conformance b-mine --threads 2",
        "conformance b-mine --seconds 2",
        "conformance b-mine --json",
        "conformance b-mine --junit",
        "conformance b-mine --claims claims.txt",
        "conformance b-mine --claims bad.txt",
        "conformance b-mine --claims none.txt",
        "conformance b-mine --list --random 3 --seed 4",
        "conformance b-mine --worker --variant v --option a=1",
        "conformance b-mine --bench",
        "conformance b-mine --bench --junit",
        "conformance ./b.so --bench --trust --seconds 2.5 --threads 3 --seed 5 --variant v --option a=1 --case z "
        "--json",
        "conformance b-mine --bench --threads 0",
        "conformance b-mine --bench --seconds 0.009",
        "conformance b-mine --ranks 4",
        "conformance b-mine --rank 1",
        "conformance b-mine --job j",
        "conformance b-mine --launcher mpirun",
        "conformance b-mine --results r",
    };
    answer.result_count = RESULTS;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run(lines[k]);
    struct sl_buf many = {0};
    sl_buf_append_text(&many, "conformance b-mine");
    for (int k = 0; k <= SL_BACKEND_SETTINGS_MOST; k++)
        sl_buf_printf(&many, " --option %c=%d", 'a' + k % 26, k);
    run(sl_buf_text(&many));
    sl_buf_deinit(&many);
    sl_buf_append_text(&out, "== no result\n");
    answer.result_count = 0;
    run("conformance b-mine");
    sl_buf_append_text(&out, "== three results, all of them good\n");
    answer.first = 8;
    answer.result_count = 3;
    run("conformance b-mine");
    run("conformance b-mine --variant v");
    answer.untested = "it needs a card";
    run("conformance b-mine");
    run("conformance b-mine --variant v");
    answer.untested = NULL;
    sl_buf_append_text(&out, "== one result\n");
    answer.first = 0;
    answer.result_count = 1;
    run("conformance b-mine --variant v");
    sl_buf_append_text(&out, "== it fails\n");
    static const seqlstm_status failures[] = {SEQLSTM_UNAVAILABLE, SEQLSTM_NOT_FOUND, SEQLSTM_INVALID_ARGUMENT,
                                              SEQLSTM_NO_MEMORY, SEQLSTM_CANCELLED};
    for (size_t k = 0; k < sizeof failures / sizeof *failures; k++) {
        answer.run = failures[k];
        run("conformance b-mine -q");
    }
    answer.run = SEQLSTM_OK;
    answer.bench = SEQLSTM_NUMERIC;
    run("conformance b-mine --bench -q");
    answer.bench = SEQLSTM_OK;
    answer.list = SEQLSTM_INVALID_ARGUMENT;
    run("conformance b-mine --list");
    answer.list = SEQLSTM_OK;
}

/* ---- collectives ------------------------------------------------------------------------------------------------ */

static void note_kit(const char *what, const struct sl_collectives_kit_request *r)
{
    sl_buf_printf(&noted, "%s ", what);
    note_path(r->connection.name);
    sl_buf_printf(&noted, "%s%s%s, ranks %d, seed %llu, timeout %lld, results %s\n",
                  r->connection.trust ? ", trusted" : "", r->full ? ", full" : "", r->times ? ", times" : "", r->ranks,
                  (unsigned long long)r->seed, (long long)r->timeout_ns, r->results ? r->results : "none");
    for (uint32_t k = 0; k < r->case_count; k++)
        sl_buf_printf(&noted, "  case %s\n", r->cases[k]);
    if (r->launcher)
        note_words("launcher", r->launcher);
    if (r->worker)
        note_words("worker", r->worker);
}

seqlstm_status __wrap_sl_collectives_load(struct sl_arena *arena, const struct sl_connection_request *request,
                                          struct sl_backend_record *record, struct seqlstm_collectives *table,
                                          struct seqlstm_error *err)
{
    (void)arena, (void)request, (void)table;
    *record = (struct sl_backend_record){
        .id = "comm-x", .version = "3.4", .build = "for y", .status = answer.status, .reason = "it is too old"};
    return give(answer.load, err);
}

seqlstm_status __wrap_sl_collectives_kit_run(const struct sl_collectives_kit_request *request,
                                             struct seqlstm_error *err)
{
    static const struct sl_collectives_result all[] = {
        {.name = "sum", .verdict = SL_VERDICT_PASS, .took_ns = 1500000000},
        {.name = "move", .verdict = SL_VERDICT_FAIL, .detail = "late"},
        {.name = "die", .verdict = SL_VERDICT_SKIP, .detail = "not here"},
        {.name = "time", .verdict = SL_VERDICT_CRASH, .detail = "died"}};
    note_kit("tries", request);
    for (uint32_t k = 0; k < answer.result_count; k++)
        request->on_result(request->context, &all[k]);
    return give(answer.kit, err);
}

seqlstm_status __wrap_sl_collectives_kit_work(const struct sl_collectives_kit_request *request, const char *name,
                                              int32_t rank, const char *job, int to, struct seqlstm_error *err)
{
    note_kit("is a rank of", request);
    sl_buf_printf(&noted, "  rank %d of job %s, case %s, writes %d\n", rank, job, name, to);
    return give(answer.work, err);
}

static void run_collectives(void)
{
    static const char *const lines[] = {
        "conformance comm-shm",
        "conformance c-mine --ranks 2 --seed 7 --timeout 3 --trust --full --case a --case b -v",
        "conformance ./c.so --ranks 64 --bench",
        "conformance c.so -q",
        "conformance c-mine --json",
        "conformance c-mine --ranks 1",
        "conformance c-mine --ranks 65",
        "conformance c-mine --timeout 86401",
        "conformance c-mine --level load",
        "conformance c-mine --variant v",
        "conformance c-mine --option a=1",
        "conformance c-mine --random 1",
        "conformance c-mine --claims f",
        "conformance c-mine --seconds 1",
        "conformance c-mine --threads 1",
        "conformance c-mine --in-process",
        "conformance c-mine --junit",
        "conformance c-mine --worker",
        "conformance c-mine --list",
        "conformance c-mine --launcher mpirun",
        "conformance c-mine --rank 3 --job j --case a",
        "conformance c-mine --rank 3 --case a",
        "conformance c-mine --rank 3 --job j",
        "conformance c-mine --rank 3 --job j --case a --case b",
        "conformance c-mine --rank 64 --job j --case a",
        "conformance c-mine --results r --job j --case a",
    };
    answer.result_count = 4;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run(lines[k]);
    sl_buf_append_text(&out, "== rank 2 of 5, as a launcher says\n");
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "5", 1);
    run("conformance c-mine --results r --job j --case a --ranks 5");
    run("conformance c-mine --results r --job j --case a --ranks 4");
    run("conformance c-mine --rank 1 --job j --case a --ranks 4");
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    sl_buf_append_text(&out, "== one case, which passes\n");
    answer.result_count = 1;
    run("conformance c-mine");
    sl_buf_append_text(&out, "== it fails\n");
    answer.kit = SEQLSTM_IO;
    run("conformance c-mine");
    answer.kit = SEQLSTM_CANCELLED;
    run("conformance c-mine");
    answer.kit = SEQLSTM_OK;
    answer.work = SEQLSTM_UNAVAILABLE;
    run("conformance c-mine --rank 0 --job j --case a");
    answer.load = SEQLSTM_NOT_FOUND;
    run("conformance c-mine");
    answer.load = SEQLSTM_OK;
    answer.status = SL_BACKEND_OK + 1;
    run("conformance c-mine");
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void run_all(void)
{
    run_backends();
    run_collectives();
}

static void prepare(void)
{
    assert_int_equal(chdir(scratch_folder), 0);
    write_file("b.so", "");
    write_file("c.so", "");
    write_file("claims.txt", "claim lstm:*\n# nothing\nxfail gru:* it is slow\nunsupported rnn:* not wanted\n");
    write_file("bad.txt", "claim lstm:*\nclaims gru:*\n");
}

int main(void)
{
    return report_main((struct report){run_all, "reports/kits.txt", &answer, sizeof answer, prepare});
}
