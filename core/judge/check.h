/* SPDX-License-Identifier: Apache-2.0 */
/* A check: compares results of a backend with those of the reference, and gives the verdict. */
#ifndef SL_JUDGE_CHECK_H
#define SL_JUDGE_CHECK_H

#include "registry/host.h"
#include "registry/watch/outlet.h"
#include "judge/case.h"
#include "judge/condition.h"
#include "judge/runner.h"

enum sl_verdict {
    SL_VERDICT_PASS = 0,
    SL_VERDICT_FAIL,
    SL_VERDICT_CRASH,       /* the process died or hung */
    SL_VERDICT_SKIP,        /* cannot be tested here; the detail says why */
    SL_VERDICT_UNSUPPORTED, /* the backend refuses it, with a reason */
    SL_VERDICT_XFAIL,       /* it failed, as the author's claims expect (claims.h) */
    SL_VERDICT_XPASS,       /* it passed, although the claims expect a failure */
    SL_VERDICT_COUNT
};

/* "pass", "fail", "crash", "skip", "unsupported", "xfail", "xpass". */
const char *sl_verdict_name(enum sl_verdict verdict);
/* FAIL, CRASH and XPASS, which need attention. */
bool sl_verdict_is_bad(enum sl_verdict verdict);

struct sl_check_result {
    enum sl_verdict verdict;
    double worst;                            /* largest error / tolerance; 0 if nothing was compared */
    char variant[SEQLSTM_MAX_VARIANT_BYTES]; /* the variant that failed, or had the largest error */
    char detail[512];                        /* one sentence; "" when it passed */
};

enum { SL_MISDEED_BYTES = 800 };

/* Everything a check needs. */
struct sl_bench {
    struct sl_subject subject;   /* under test */
    struct sl_subject reference; /* the oracle, with float64 */
    struct sl_host *host;        /* the subject's host: allocation counters, failing allocations */
    struct sl_outlet *outlet;    /* watches what the subject prints; NULL: it is not watched */
    char *misdeed;               /* [SL_MISDEED_BYTES] what the watch has reported of the subject; NULL: nothing */
    uint64_t seed;
    const char *variant;     /* test only this one; NULL: all */
    struct sl_queue *queues; /* [queue_count] further queues with 1, 2 and 3 members */
    int32_t queue_count;
    struct sl_domain *domains; /* [queue_count] the same for a device: domains with a stream each; NULL: the host */
};

/* The state of a check while it runs. */
struct sl_check {
    struct sl_bench *bench;
    const struct sl_data *data;
    const char *variant;
    struct sl_arena *arena;
    struct sl_check_result *result;
    struct sl_condition *condition; /* created when first needed */
    bool no_memory;                 /* it failed because memory ran out, which says nothing about results */
};

/* Sets FAIL and the detail, unless the check has already failed. */
void sl_check_fail(struct sl_check *check, const char *format, ...) SEQLSTM_PRINTF(2, 3);

/* Handles a status: UNSUPPORTED becomes that verdict, any other error becomes FAIL; NO_MEMORY is noted. Returns true
 * for OK. */
bool sl_check_status(struct sl_check *check, seqlstm_status rc, const char *what, const struct seqlstm_error *err);

/* Compares all results of two runs; `what` names the comparison. The results of the first runner are tested, those
 * of the second are expected. `gradients`: compares gradients, too. */
void sl_check_compare(struct sl_check *check, const struct sl_runner *got, const struct sl_runner *expected,
                      bool gradients, uint32_t parts, const char *what);

#endif
