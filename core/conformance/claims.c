/* SPDX-License-Identifier: Apache-2.0 */
/* Reads claims and compares results with them. */
#include "conformance/claims.h"

#include <string.h>

#include "base/value/text.h"

#define BLANKS " \t\r"

bool sl_pattern_matches(const char *pattern, const char *text)
{
    for (; *pattern; pattern++, text++) {
        if (*pattern == '*') {
            while (*pattern == '*')
                pattern++;
            for (; *text; text++)
                if (sl_pattern_matches(pattern, text))
                    return true;
            return *pattern == 0;
        }
        if (*text == 0 || (*pattern != '?' && *pattern != *text))
            return false;
    }
    return *text == 0;
}

/* ---- the file ------------------------------------------------------------------------------------ */

/* Cuts off the next word of a line. *line then points to the text after it. */
static char *take_word(char **line)
{
    char *word = *line + strspn(*line, BLANKS);
    char *end = word + strcspn(word, BLANKS);
    *line = end + (*end != 0);
    *end = 0;
    *line += strspn(*line, BLANKS);
    return word;
}

static seqlstm_status parse_line(struct sl_arena *arena, char *line, int number, struct sl_claim *out,
                                 struct seqlstm_error *err)
{
    static const char *const words[] = {"claim", "unsupported", "xfail"};
    const char *word = take_word(&line), *pattern = take_word(&line);
    int kind = 0;
    for (size_t end = strlen(line); end > 0 && strchr(BLANKS, line[end - 1]); end--)
        line[end - 1] = 0;
    while (kind < 3 && strcmp(words[kind], word) != 0)
        kind++;
    if (kind == 3)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "line %d begins with `%.40s`; expected `claim PATTERN`, `unsupported PATTERN reason` or "
                     "`xfail PATTERN reason`",
                     number, word);
    if (!pattern[0])
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "line %d: `%s` without a pattern", number, word);
    const char *device_class = "*";
    if (kind == SL_CLAIM_SUPPORTED && line[0]) {
        char *rest = line;
        if (strcmp(take_word(&rest), "on") != 0)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                         "line %d: `%.40s` behind the pattern of a claim; expected nothing or `on DEVICE_CLASS`",
                         number, line);
        device_class = take_word(&rest);
        if (!device_class[0] || rest[0])
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "line %d: `on` needs one pattern of device classes behind it",
                         number);
        line = rest;
    }
    if (kind != SL_CLAIM_SUPPORTED && !line[0])
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "line %d: `%s` needs a reason behind its pattern", number, word);
    *out = (struct sl_claim){.kind = (enum sl_claim_kind)kind,
                             .pattern = sl_arena_strdup(arena, pattern),
                             .device_class = sl_arena_strdup(arena, device_class),
                             .reason = sl_arena_strdup(arena, line),
                             .line = number};
    if (!out->pattern || !out->device_class || !out->reason)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the claims");
    return SEQLSTM_OK;
}

seqlstm_status sl_claims_parse(struct sl_arena *arena, char *text, struct sl_claim **out_claims, uint32_t *out_count,
                               struct seqlstm_error *err)
{
    uint32_t lines = 1, count = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    struct sl_claim *claims = SL_ARENA_ARRAY(arena, struct sl_claim, lines);
    if (!claims)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the claims");
    int number = 0;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        number++;
        line[strcspn(line, "#")] = 0;
        if (line[strspn(line, BLANKS)])
            SEQLSTM_TRY(parse_line(arena, line, number, &claims[count++], err));
    }
    *out_claims = claims;
    *out_count = count;
    return SEQLSTM_OK;
}

/* ---- judging ------------------------------------------------------------------------------------- */

/* Replaces the verdict. The check's own message follows the new detail. */
static void change(struct sl_check_result *result, enum sl_verdict verdict, const char *text, const char *detail)
{
    char said[sizeof result->detail];
    sl_text_snprintf(said, sizeof said, "%s", result->detail);
    sl_text_snprintf(result->detail, sizeof result->detail, "%s (%.200s)%s%.250s", text, detail, said[0] ? ": " : "",
                     said);
    result->verdict = verdict;
}

static const struct sl_claim *find(const struct sl_claim *claims, uint32_t count, enum sl_claim_kind kind,
                                   const char *device_class, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (claims[i].kind == kind && sl_pattern_matches(claims[i].pattern, name) &&
            sl_pattern_matches(claims[i].device_class, device_class))
            return &claims[i];
    return NULL;
}

void sl_claims_judge(const struct sl_claim *claims, uint32_t count, const char *device_class, const char *name,
                     struct sl_check_result *result)
{
    const struct sl_claim *claim = find(claims, count, SL_CLAIM_SUPPORTED, device_class, name);
    const struct sl_claim *without = find(claims, count, SL_CLAIM_UNSUPPORTED, device_class, name);
    const struct sl_claim *fails = find(claims, count, SL_CLAIM_FAILS, device_class, name);
    const enum sl_verdict v = result->verdict;
    if (v == SL_VERDICT_UNSUPPORTED && claim && !without)
        change(result, SL_VERDICT_FAIL, "it is claimed, yet refused", claim->pattern);
    else if (v == SL_VERDICT_PASS && without)
        change(result, SL_VERDICT_FAIL, "it passed, yet the claims say that it is not supported", without->reason);
    else if ((v == SL_VERDICT_FAIL || v == SL_VERDICT_CRASH) && fails)
        change(result, SL_VERDICT_XFAIL, "it is expected to fail", fails->reason);
    else if (v == SL_VERDICT_PASS && fails)
        change(result, SL_VERDICT_XPASS, "it passed, yet it is expected to fail", fails->reason);
}
