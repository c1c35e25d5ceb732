/* SPDX-License-Identifier: Apache-2.0 */
/* See cost_key.h. */
#include "dispatch/cost/cost_key.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/cpu.h"
#include "base/value/hash.h"

/* Raise it when what is timed, or how, changes. */
enum { HARNESS_VERSION = 2 };

extern char **environ;

static void mix(struct sl_cost_key *key, const void *data, size_t bytes)
{
    for (uint64_t w = 0; w < 2; w++)
        key->words[w] = sl_hash_combine(key->words[w], sl_hash_bytes(data, bytes, 0x6c73746d + w));
}

static void mix_number(struct sl_cost_key *key, int64_t number)
{
    mix(key, &number, sizeof number);
}

static void mix_text(struct sl_cost_key *key, const char *text)
{
    mix(key, text ? text : "", text ? strlen(text) : 0);
}

/* Name, family, model and stepping of the first processor. */
static void mix_processor(struct sl_cost_key *key)
{
    static const char *const wanted[] = {"model name", "cpu family", "model\t", "stepping", "CPU part", "CPU variant"};
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];
    while (file && fgets(line, sizeof line, file) && line[0] != '\n')
        for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++)
            if (strncmp(line, wanted[w], strlen(wanted[w])) == 0)
                mix_text(key, line);
    if (file)
        fclose(file);
}

/* Variables by which users steer the libraries behind the plugins; their order does not matter. */
static void mix_environment(struct sl_cost_key *key)
{
    static const char *const prefixes[] = {"OPENBLAS_", "OMP_",  "GOMP_",   "KMP_",   "DNNL_",  "ONEDNN_",
                                           "MKL_",      "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_"};
    uint64_t sum = 0;
    for (char **variable = environ; *variable; variable++)
        for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
            if (strncmp(*variable, prefixes[p], strlen(prefixes[p])) == 0)
                sum += sl_hash_text(*variable);
    mix(key, &sum, sizeof sum);
}

struct sl_cost_key sl_cost_key_begin(int32_t threads, const struct sl_profiles *profiles)
{
    struct sl_cost_key key = {{1, 2}};
    cpu_set_t affinity;
    mix_number(&key, HARNESS_VERSION);
    mix_processor(&key);
    CPU_ZERO(&affinity);
    if (sched_getaffinity(0, sizeof affinity, &affinity) == 0)
        mix(&key, &affinity, sizeof affinity);
    mix_number(&key, sl_cpu_quota_milli(""));
    mix_number(&key, threads);
    mix_environment(&key);
    mix_number(&key, profiles->stream);
    for (int32_t p = 0; p < profiles->count; p++) {
        const struct sl_profile *profile = &profiles->items[p];
        mix_number(&key, profile->sequences);
        mix(&key, &profile->weight, sizeof profile->weight);
        if (profile->lengths)
            mix(&key, profile->lengths, (size_t)profile->sequences * sizeof *profile->lengths);
        if (profile->source_lengths)
            mix(&key, profile->source_lengths, (size_t)profile->sequences * sizeof *profile->source_lengths);
    }
    return key;
}

/* A file without a Build-ID is told apart by its size and the time of its last change; so is this program, of which
 * built-in backends are a part. */
static void mix_file(struct sl_cost_key *key, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return;
    mix_number(key, status.st_size);
    mix_number(key, status.st_mtim.tv_sec);
    mix_number(key, status.st_mtim.tv_nsec);
}

struct sl_cost_key sl_cost_key_get(const struct sl_cost_key *process, const struct sl_backend *backend, uint32_t device,
                                   const char *variant, const union seqlstm_any_desc *desc, uint32_t parts)
{
    struct sl_cost_key key = *process;
    const struct sl_backend_record *record = sl_backend_get_record(backend);
    const struct seqlstm_device_info *info = sl_backend_get_device(backend, device);
    mix_text(&key, sl_backend_get_id(backend));
    mix_text(&key, variant);
    mix_text(&key, record->version);
    mix_text(&key, record->build);
    for (uint32_t f = 0; f < record->file_count; f++)
        if (record->files[f].build_id[0])
            mix_text(&key, record->files[f].build_id);
        else
            mix_file(&key, record->files[f].path);
    if (record->file_count == 0)
        mix_file(&key, "/proc/self/exe");
    mix(&key, &record->settings_hash, sizeof record->settings_hash);
    mix_text(&key, info->name);
    mix_text(&key, info->device_class);
    mix_text(&key, info->domain);
    union seqlstm_any_desc plain = *desc; /* without what does not change the time */
    if (plain.head.op == SEQLSTM_OP_RECURRENT)
        plain.recurrent.stream_base = 0, plain.recurrent.data_scale = plain.recurrent.data_shift = 0;
    else if (plain.head.op == SEQLSTM_OP_DROPOUT)
        plain.dropout.stream = 0;
    mix(&key, &plain, plain.head.struct_size);
    mix_number(&key, parts);
    return key;
}

void sl_cost_key_join(struct sl_cost_key *key, const struct sl_cost_key *part)
{
    mix(key, part->words, sizeof part->words);
}
