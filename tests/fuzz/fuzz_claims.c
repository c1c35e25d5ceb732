/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of a backend's author: a text is refused with a message, or its claims can judge a case. */
#include <stdlib.h>
#include <string.h>

#include "conformance/claims.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena;
    struct sl_claim *claims = NULL;
    uint32_t count = 0;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char *text = malloc(size + 1);
    fuzz_require(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    sl_arena_init(&arena);
    const seqlstm_status status = sl_claims_parse(&arena, text, &claims, &count, &err);
    fuzz_require(status == SEQLSTM_OK ||
                 fuzz_failed_well(status, &err, SEQLSTM_INVALID_CONFIG, SEQLSTM_INVALID_CONFIG));
    if (status == SEQLSTM_OK) {
        struct sl_check_result result = {0};
        sl_claims_judge(claims, count, "cpu:x86-64-v4", "lstm:bwd:T7B5I6H9:f32:ragged:peephole", &result);
    }
    sl_arena_deinit(&arena);
    free(text);
    return 0;
}
