/* SPDX-License-Identifier: Apache-2.0 */
/* The only device of a CPU backend: the processor that it runs on. */
#include "common/cpu_device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cpu_device_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt") || !__builtin_cpu_supports("ssse3"))
        return 1;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2"))
        return 2;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return 3;
    return 4;
#else
    return 0;
#endif
}

int32_t cpu_device_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_CONF);
    return count < 1 ? 1 : count > 256 ? 256 : (int32_t)count;
}

/* Reads the value of the first "model name" line. Returns false if there is none (another architecture, no /proc). */
static int read_model_name(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL)
        return 0;
    char line[256];
    int found = 0;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "model name", 10) != 0)
            continue;
        const char *value = strchr(line, ':');
        if (value == NULL)
            continue;
        value += strspn(value, ": \t");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        found = out[0] != '\0';
    }
    fclose(file);
    return found;
}

void cpu_device_describe(int level, const char *library, struct seqlstm_device_info *info)
{
    char model[sizeof info->name], suffix[24];
    if (!read_model_name(model, sizeof model))
        snprintf(model, sizeof model, "CPU");
    int length = snprintf(suffix, sizeof suffix, ", %.21s", library);
    snprintf(info->name, sizeof info->name, "%.*s%s", (int)sizeof info->name - 1 - length, model, suffix);
    if (level >= 2)
        snprintf(info->device_class, sizeof info->device_class, "cpu:x86-64-v%d", level);
    else
        snprintf(info->device_class, sizeof info->device_class, "%s", level == 1 ? "cpu:x86-64" : "cpu");
    snprintf(info->domain, sizeof info->domain, "host");
    info->flags = 0;
    info->memory_bytes = 0;
}

seqlstm_status cpu_device_report_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                       struct seqlstm_error *err)
{
    (void)instance;
    (void)err;
    *out_count = 1;
    return SEQLSTM_OK;
}

seqlstm_status cpu_device_check(uint32_t device, const char *id, struct seqlstm_error *err)
{
    if (device != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "device %u does not exist: %s has one", (unsigned)device, id);
    return SEQLSTM_OK;
}
