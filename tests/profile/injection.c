/* SPDX-License-Identifier: Apache-2.0 */
/* What a profiler of NVIDIA injects: writes each range into the file of INJECTION_FILE, as `+name` and `-`. With the
 * headers of NVTX 3, the types are theirs. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef HAS_NVTX_HEADERS
#include <nvtx3/nvToolsExt.h>
#else
enum { NVTX_ETID_CALLBACKS = 1, NVTX_ETID_VERSIONINFO = 3, NVTX_CB_MODULE_CORE = 1, NVTX_CB_MODULE_CORE2 = 5 };
enum { NVTX_CBID_CORE_RangePushA = 9, NVTX_CBID_CORE_RangePop = 11, NVTX_CBID_CORE_SIZE = 16 };
enum { NVTX_CBID_CORE2_SIZE = 16 };
typedef void (*NvtxFunctionPointer)(void);
typedef NvtxFunctionPointer **NvtxFunctionTable;
typedef struct {
    size_t struct_size;
    int (*GetModuleFunctionTable)(int module, NvtxFunctionTable *out_table, unsigned int *out_size);
} NvtxExportTableCallbacks;
typedef struct {
    size_t struct_size;
    uint32_t version, reserved0;
    void (*SetInjectionNvtxVersion)(uint32_t version);
} NvtxExportTableVersionInfo;
#endif

static FILE *file;
static _Thread_local int depth;

static int push(const char *text)
{
    fprintf(file, "+%s\n", text);
    return depth++;
}

static int pop(void)
{
    fputs("-\n", file);
    return --depth;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
    const NvtxExportTableVersionInfo *version = get_table(NVTX_ETID_VERSIONINFO);
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL, other = NULL;
    unsigned int size = 0, other_size = 0;
    if (!version || version->struct_size < sizeof *version || version->version != 3 || !callbacks ||
        callbacks->struct_size < sizeof *callbacks || get_table(99))
        return 0;
    version->SetInjectionNvtxVersion(3);
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) || size < NVTX_CBID_CORE_SIZE ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &other, &other_size) ||
        other_size < NVTX_CBID_CORE2_SIZE || !other[1])
        return 0;
    const char *path = getenv("INJECTION_FILE");
    file = path ? fopen(path, "w") : NULL;
    if (!file)
        return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    setvbuf(file, NULL, _IOLBF, 0);
    return 1;
}
