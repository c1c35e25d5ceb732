/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance kit as a program for the test suite. It needs only core/conformance, and prints TAP: one line per
 * level, or one line per case with --verbose.
 *
 *   conformance FILE.so|reference [--level NAME]... [--case NAME|GLOB]... [--variant NAME] [--full]
 *               [--claims FILE] [--claim GLOB]... [--option KEY=VALUE]... [--random N]
 *               [--seed N] [--seconds N] [--in-process] [--list] [--json] [--verbose]
 *
 * --seconds: processor time of one case; 60, which is too little for large cases under a sanitizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/text.h"
#include "conformance/conformance.h"
#include "conformance/workers.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

enum { ARGUMENTS_MAX = 320, KEY_BYTES = 64, SECONDS_MAX = 86400 };

struct options {
    struct sl_conformance_request request;
    const char *cases[ARGUMENTS_MAX];
    struct sl_claim claims[ARGUMENTS_MAX];
    const char *claims_file;
    struct sl_arena arena; /* holds the contents of the claims file */
    const char *worker[ARGUMENTS_MAX];
    struct seqlstm_setting settings[ARGUMENTS_MAX];
    char keys[ARGUMENTS_MAX][KEY_BYTES];
    char path[4096];
    bool list, json, verbose, is_worker, in_process;
};

static void print_result(void *context, const struct sl_conformance_result *r)
{
    const struct options *o = context;
    bool bad = sl_verdict_is_bad(r->check.verdict);
    if (o->json || (!o->verbose && !bad))
        return;
    printf("# %-11s %-9s %s  worst %.3g %s%s%s\n", sl_verdict_name(r->check.verdict), sl_level_name(r->level), r->name,
           r->check.worst, r->check.variant, r->check.detail[0] ? "\n#             " : "", r->check.detail);
    fflush(stdout);
}

static bool parse(int argc, char **argv, struct options *o)
{
    struct sl_conformance_request *q = &o->request;
    q->cases = o->cases;
    q->claims = o->claims;
    q->settings = o->settings;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        int64_t number;
        if (strcmp(a, "--full") == 0)
            q->full = true;
        else if (strcmp(a, "--trust") == 0)
            q->trust = true;
        else if (strcmp(a, "--list") == 0)
            o->list = true;
        else if (strcmp(a, "--json") == 0)
            o->json = true;
        else if (strcmp(a, "--verbose") == 0)
            o->verbose = true;
        else if (strcmp(a, "--in-process") == 0)
            o->in_process = true;
        else if (strcmp(a, "--worker") == 0)
            o->is_worker = true;
        else if (a[0] != '-' && !q->file)
            q->file = a;
        else if (!next)
            return false;
        else if (strcmp(a, "--case") == 0 && q->case_count < ARGUMENTS_MAX)
            o->cases[q->case_count++] = argv[++i];
        else if (strcmp(a, "--claim") == 0 && q->claim_count < ARGUMENTS_MAX)
            o->claims[q->claim_count++] = (struct sl_claim){.pattern = argv[++i], .device_class = "*", .reason = ""};
        else if (strcmp(a, "--claims") == 0)
            o->claims_file = argv[++i];
        else if (strcmp(a, "--option") == 0 && strchr(next, '=') && q->setting_count < ARGUMENTS_MAX) {
            struct seqlstm_setting *setting = &o->settings[q->setting_count++];
            snprintf(o->keys[q->setting_count - 1], KEY_BYTES, "%.*s", (int)(strchr(next, '=') - next), next);
            setting->key = o->keys[q->setting_count - 1];
            setting->value = strchr(next, '=') + 1;
            i++;
        } else if (strcmp(a, "--random") == 0 && sl_text_parse_int64(next, strlen(next), &number)) {
            q->random = (uint32_t)number;
            i++;
        } else if (strcmp(a, "--variant") == 0)
            q->variant = argv[++i];
        else if (strcmp(a, "--level") == 0 && sl_level_find(next) < SL_LEVEL_COUNT)
            q->levels |= 1u << sl_level_find(argv[++i]);
        else if (strcmp(a, "--seed") == 0 && sl_text_parse_int64(next, strlen(next), &number)) {
            q->seed = (uint64_t)number;
            i++;
        } else if (strcmp(a, "--seconds") == 0 && sl_text_parse_int64(next, strlen(next), &number) && number > 0 &&
                   number <= SECONDS_MAX) {
            q->timeout_ns = number * 1000000000;
            i++;
        } else
            return false;
    }
    return q->file != NULL;
}

/* The claims of the file, followed by those of the command line. */
static seqlstm_status read_claims(struct options *o, struct seqlstm_error *err)
{
    struct sl_conformance_request *q = &o->request;
    struct sl_claim *claims;
    uint32_t count;
    char *text;
    SEQLSTM_TRY(sl_file_read(o->claims_file, 1 << 20, &text, NULL, err));
    const seqlstm_status rc = sl_claims_parse(&o->arena, text, &claims, &count, err);
    free(text);
    if (rc != SEQLSTM_OK)
        return rc;
    if (count > ARGUMENTS_MAX - q->claim_count)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "more than %d claims", ARGUMENTS_MAX);
    memcpy(o->claims + q->claim_count, claims, count * sizeof *claims);
    q->claim_count += count;
    return SEQLSTM_OK;
}

/* The plan is known only at the end, where TAP allows it. A test of a variant that no case has is skipped. */
static int print_tap(const struct sl_conformance_report *report, const char *variant)
{
    const char *untested = variant ? sl_conformance_report_find_untested(report) : NULL;
    if (untested && sl_conformance_report_count_bad(report) == 0) {
        printf("1..0 # SKIP %s\n", untested);
        return 0;
    }
    uint32_t bad = 0;
    int number = 0;
    for (int level = 0; level < SL_LEVEL_COUNT; level++) {
        uint32_t count[SL_VERDICT_COUNT] = {0}, all = 0;
        for (uint32_t i = 0; i < sl_conformance_report_get_size(report); i++) {
            const struct sl_conformance_result *r = sl_conformance_report_get(report, i);
            if (r->level == (enum sl_level)level) {
                count[r->check.verdict]++;
                all++;
            }
        }
        if (all == 0)
            continue;
        uint32_t wrong = count[SL_VERDICT_FAIL] + count[SL_VERDICT_CRASH] + count[SL_VERDICT_XPASS];
        bad += wrong;
        printf("%s %d %s: %u passed, %u failed, %u crashed, %u skipped, %u unsupported\n", wrong ? "not ok" : "ok",
               ++number, sl_level_name((enum sl_level)level), count[SL_VERDICT_PASS], count[SL_VERDICT_FAIL],
               count[SL_VERDICT_CRASH], count[SL_VERDICT_SKIP], count[SL_VERDICT_UNSUPPORTED]);
    }
    if (number == 0)
        printf("not ok 1 no case was selected\n");
    printf("1..%d\n", number ? number : 1);
    return bad || number == 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    static const struct sl_backend_builtin builtin = {"reference", seqlstm_reference_query_v0};
    static struct options o;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report;
    struct sl_buf text = {0};
    seqlstm_status rc;
    int status = 0;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: conformance FILE.so|reference [--level NAME] [--case NAME] [--variant NAME] [--full] "
                        "[--claims FILE] [--seed N] [--seconds N] [--in-process] [--list] [--json] [--verbose]\n");
        return 2;
    }
    if (o.claims_file && read_claims(&o, &err) != SEQLSTM_OK) {
        fprintf(stderr, "conformance: %s\n", err.message);
        sl_arena_deinit(&o.arena);
        return 2;
    }
    o.request.builtins = &builtin;
    o.request.builtin_count = 1;
    o.request.reference = seqlstm_reference_query_v0;
    o.request.on_result = print_result;
    o.request.context = &o;
    if (strchr(o.request.file, '/') && realpath(o.request.file, o.path))
        o.request.file = o.path;
    if (o.is_worker) {
        if (sl_conformance_work(&o.request, SL_WORKER_IN, SL_WORKER_OUT, &err) == SEQLSTM_OK)
            return 0;
        fprintf(stderr, "conformance: worker: %s\n", err.message);
        return 1;
    }
    if (!o.in_process) {
        o.worker[0] = "/proc/self/exe";
        int n = 1;
        for (int i = 1; i < argc && n < ARGUMENTS_MAX - 2; i++)
            o.worker[n++] = argv[i];
        o.worker[n] = "--worker";
        o.request.worker = o.worker;
    }
    if (o.list) {
        if (sl_conformance_list(&o.request, &text, &err) == SEQLSTM_OK)
            fputs(sl_buf_text(&text), stdout);
    } else if ((rc = sl_conformance_run(&o.request, &report, &err)) == SEQLSTM_UNAVAILABLE) {
        printf("1..0 # SKIP %s\n", err.message);
    } else if (rc != SEQLSTM_OK) {
        printf("Bail out! %s\n", err.message);
        status = 3;
    } else {
        if (o.json) {
            sl_conformance_report_print_json(report, &text);
            fputs(sl_buf_text(&text), stdout);
        } else {
            status = print_tap(report, o.request.variant);
        }
        sl_conformance_report_destroy(report);
    }
    sl_buf_deinit(&text);
    sl_arena_deinit(&o.arena);
    return status;
}
