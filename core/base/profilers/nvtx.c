/* SPDX-License-Identifier: Apache-2.0 */
/* See nvtx.h. Numbers and layouts are those of NVTX 3. */
#include "base/profilers/nvtx.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/profilers/library.h"
#include "base/system/trace.h"

enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3, MODULE_CORE = 1, MODULE_CORE2 = 5, VERSION = 3 };
enum { CORE_PUSH = 9, CORE_POP = 11, CORE_SIZE = 16 };

typedef void function(void);

/* What the library may enter; both modules have as many. */
static function *core[CORE_SIZE], *core2[CORE_SIZE];
static function **core_table[CORE_SIZE + 1], **core2_table[CORE_SIZE + 1]; /* [0] and the last are NULL */
static int (*push)(const char *text);
static int (*pop)(void);

static int get_module(uint32_t module, function ****out_table, uint32_t *out_size)
{
    if (module != MODULE_CORE && module != MODULE_CORE2)
        return 0;
    if (out_size)
        *out_size = CORE_SIZE;
    if (out_table)
        *out_table = module == MODULE_CORE ? core_table : core2_table;
    return 1;
}

static void ignore_version(uint32_t version)
{
    (void)version;
}

static const void *get_table(uint32_t id)
{
    static const struct {
        size_t bytes;
        int (*get_module)(uint32_t module, function ****out_table, uint32_t *out_size);
    } callbacks = {sizeof callbacks, get_module};
    static const struct {
        size_t bytes;
        uint32_t version, reserved;
        void (*set_version)(uint32_t version);
    } version = {sizeof version, VERSION, 0, ignore_version};
    return id == TABLE_CALLBACKS ? (const void *)&callbacks : id == TABLE_VERSION ? (const void *)&version : NULL;
}

static void begin_range(enum sl_activity_kind kind, const char *name)
{
    char text[160];
    snprintf(text, sizeof text, "%s%s%s", sl_activity_kind_get_name(kind), name ? " " : "", name ? name : "");
    push(text);
}

static void end_range(void)
{
    pop();
}

void sl_nvtx_attach(void)
{
    static const struct sl_trace_marker marker = {begin_range, end_range};
    int (*initialize)(const void *(*get_table)(uint32_t id));
    void *library = sl_profiler_library_open("NVTX_INJECTION64_PATH");
    void *symbol = library ? sl_profiler_library_find(library, "InitializeInjectionNvtx2") : NULL;
    if (!symbol)
        return;
    for (int k = 1; k < CORE_SIZE; k++) {
        core_table[k] = &core[k];
        core2_table[k] = &core2[k];
    }
    memcpy(&initialize, &symbol, sizeof initialize);
    if (!initialize(get_table) || !core[CORE_PUSH] || !core[CORE_POP])
        return;
    memcpy(&push, &core[CORE_PUSH], sizeof push);
    memcpy(&pop, &core[CORE_POP], sizeof pop);
    sl_trace_add_marker(&marker);
}
