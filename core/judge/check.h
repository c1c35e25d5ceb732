/* SPDX-License-Identifier: Apache-2.0 */
/* A check: results of a backend compared with those of the reference, and the verdict. */
#ifndef SL_JUDGE_CHECK_H
#define SL_JUDGE_CHECK_H

#include "registry/host.h"
#include "judge/case.h"
#include "judge/condition.h"
#include "judge/outlet.h"
#include "judge/runner.h"

enum sl_verdict {
    SL_VERDICT_PASS = 0,
    SL_VERDICT_FAIL,
    SL_VERDICT_CRASH,       /* the process died or hung */
    SL_VERDICT_SKIP,        /* cannot be tried here: the detail says why */
    SL_VERDICT_UNSUPPORTED, /* the backend refuses it, with a reason */
    SL_VERDICT_XFAIL,       /* it failed, as the author's claims say (claims.h) */
    SL_VERDICT_XPASS,       /* it passed, though the claims say that it fails */
    SL_VERDICT_COUNT
};

/* "pass", "fail", "crash", "skip", "unsupported", "xfail", "xpass". */
const char *sl_verdict_name(enum sl_verdict verdict);
/* FAIL, CRASH and XPASS, which need attention. */
bool sl_verdict_is_bad(enum sl_verdict verdict);

struct sl_check_result {
    enum sl_verdict verdict;
    double worst;                            /* largest error / tolerance seen; 0 where nothing was compared */
    char variant[SEQLSTM_MAX_VARIANT_BYTES]; /* the variant that failed or was the worst */
    char detail[512];                        /* one sentence; "" when it passed */
};

/* Everything a check needs. */
struct sl_bench {
    struct sl_subject subject;   /* under test */
    struct sl_subject reference; /* the oracle, with float64 */
    struct sl_host *host;        /* the subject's: allocation counters, failure */
    struct sl_outlet *outlet;    /* watches the subject; NULL: it is not watched */
    uint64_t seed;
    const char *variant;     /* test this one only; NULL: all */
    struct sl_queue *queues; /* [queue_count] further queues, 1, 2 and 3 members */
    int32_t queue_count;
    struct sl_domain *domains; /* [queue_count] the same of a device: domains with a stream each; NULL: the host */
};

/* State of a check under way. */
struct sl_check {
    struct sl_bench *bench;
    const struct sl_data *data;
    const char *variant;
    struct sl_arena *arena;
    struct sl_check_result *result;
    struct sl_condition *condition; /* made when first needed */
};

/* Sets FAIL and the detail, unless there is a failure already. */
void sl_check_fail(struct sl_check *check, const char *format, ...) SEQLSTM_PRINTF(2, 3);

/* A status other than OK: UNSUPPORTED becomes that verdict, anything else FAIL. True when OK. */
bool sl_check_status(struct sl_check *check, seqlstm_status rc, const char *what, const struct seqlstm_error *err);

/* Compares all results of two runs; `what` names the comparison. The first runner's are tested against the
 * second's. `gradients`: those too. */
void sl_check_compare(struct sl_check *check, const struct sl_runner *got, const struct sl_runner *expected,
                      bool gradients, uint32_t parts, const char *what);

#endif
