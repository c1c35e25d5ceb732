/* SPDX-License-Identifier: Apache-2.0 */
/* The claims of a backend's author: which cases the backend passes, which it refuses, and which are known to fail.
 * The claims are kept with the backend, never in the kit, and each of them is checked:
 *
 *   claim        PATTERN           a matching case that is refused fails
 *   claim        PATTERN on CLASS  the same, but only on devices of a matching class
 *   unsupported  PATTERN  reason   a matching case must be refused, even if a claim matches; if accepted, it fails
 *   xfail        PATTERN  reason   a matching case that fails or crashes is `xfail`; if it passes, `xpass`, an error
 *
 * One claim per line; # begins a comment. In patterns, also in that of a device class, * is any text and ? is any
 * character.
 */
#ifndef SL_CONFORMANCE_CLAIMS_H
#define SL_CONFORMANCE_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/arena.h"
#include "judge/check.h"

enum sl_claim_kind { SL_CLAIM_SUPPORTED = 0, SL_CLAIM_UNSUPPORTED, SL_CLAIM_FAILS };

struct sl_claim {
    enum sl_claim_kind kind;
    const char *pattern;
    const char *device_class; /* pattern of seqlstm_device_info.device_class; "*" unless SUPPORTED */
    const char *reason;       /* "" for SUPPORTED */
    int line;                 /* of the file; 0: none */
};

/* Reads the text of a claims file, which is changed. Errors: INVALID_CONFIG with the line, NO_MEMORY. */
seqlstm_status sl_claims_parse(struct sl_arena *arena, char *text, struct sl_claim **out_claims, uint32_t *out_count,
                               struct seqlstm_error *err);

/* Applies the claims to the verdict on a case that ran on a device of this class. */
void sl_claims_judge(const struct sl_claim *claims, uint32_t count, const char *device_class, const char *name,
                     struct sl_check_result *result);

/* Does the text match the pattern? */
bool sl_pattern_matches(const char *pattern, const char *text);

#endif
