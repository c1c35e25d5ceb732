/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of the conformance kit, by level. */
#ifndef SL_CONFORMANCE_CASES_CATALOGUE_H
#define SL_CONFORMANCE_CASES_CATALOGUE_H

#include <stdbool.h>
#include <stdint.h>

#include "judge/case.h"

enum sl_level {
    SL_LEVEL_LOAD = 0, /* exports, dependencies, effects of loading: no cases, see level_load.c */
    SL_LEVEL_CONTRACT, /* hosts, struct sizes, failing memory in open: no cases, see level_contract.c */
    SL_LEVEL_CLAIMS,
    SL_LEVEL_FORWARD,
    SL_LEVEL_BACKWARD,
    SL_LEVEL_MEMORY,
    SL_LEVEL_THREADS,
    SL_LEVEL_COUNT
};

/* "load", "contract", … */
const char *sl_level_name(enum sl_level level);
/* SL_LEVEL_COUNT if there is none of that name. */
enum sl_level sl_level_find(const char *name);

typedef void sl_catalogue_fn(void *context, enum sl_level level, const char *text);

/* Calls fn for each case of the level. `full`: every option at every shape; otherwise the quick suite. */
void sl_catalogue_each(enum sl_level level, bool full, sl_catalogue_fn *fn, void *context);

/* Case `index` of an endless random sequence: a recurrent layer of any cell, size and combination of options. It is
 * always well formed, and depends only on seed and index. */
void sl_catalogue_random(uint64_t seed, uint64_t index, char out_text[SL_CASE_TEXT_BYTES]);

#endif
