/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm doctor: checks that this machine is ready, and what would slow it down. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/system/pool.h"
#include "cli/cli.h"
#include "registry/registry.h"

/* Variables that change how libraries of backends run; `trap`: a warning if setting it is known to hurt. */
static const struct {
    const char *name, *trap;
} variables[] = {
    {"OPENBLAS_CORETYPE", "makes OpenBLAS use the kernels for this type of core, even on another processor"},
    {"OPENBLAS_NUM_THREADS", NULL},
    {"OMP_NUM_THREADS", NULL},
    {"OMP_WAIT_POLICY", NULL},
    {"GOMP_SPINCOUNT", NULL},
    {"MKL_NUM_THREADS", NULL},
    {"SEQLSTM_BACKEND_PATH", NULL},
    {"SEQLSTM_THREADS", NULL},
    {"LD_PRELOAD", "this library is loaded into every program, including this one"},
};

static int print_backends(struct cli_context *cli)
{
    struct sl_registry *registry = NULL;
    int code = cli_open_registry(cli, false, &registry);
    if (code != CLI_OK)
        return code;
    uint32_t fine = 0;
    for (uint32_t r = 0; r < sl_registry_get_record_count(registry); r++) {
        const struct sl_backend_record *record = sl_registry_get_record(registry, r);
        cli_say(stdout, "backend    %s: %s%s%s\n", record->id[0] ? record->id : record->file,
                sl_backend_status_name(record->status),
                record->reason  ? ", "
                : record->build ? ", "
                                : "",
                record->reason  ? record->reason
                : record->build ? record->build
                                : "");
        fine += record->status == SL_BACKEND_OK;
    }
    sl_registry_destroy(registry);
    if (fine > 0)
        return CLI_OK;
    cli_say(stdout, "PROBLEM    no fast backend: only the slow reference backend would run\n");
    return CLI_MISSING;
}

static int doctor(struct cli_context *cli)
{
    int code = cli_prepare(cli, NULL);
    if (code != CLI_OK)
        return code;
    cli_say(stdout, "seqlstm    %s, %s\n", SL_VERSION, SL_COMPILER);
    cli_say(stdout, "processor  %d usable core%s of %ld\n", sl_cpu_count(), sl_cpu_count() == 1 ? "" : "s",
            sysconf(_SC_NPROCESSORS_ONLN));
    for (size_t v = 0; v < sizeof variables / sizeof *variables; v++) {
        const char *value = getenv(variables[v].name);
        if (value)
            cli_say(stdout, "variable   %s=%s%s%s%s\n", variables[v].name, value, variables[v].trap ? ": " : "",
                    variables[v].trap ? variables[v].trap : "",
                    cli_has_set(variables[v].name) ? " (not set; chosen by the program)" : "");
    }
    double load;
    if (getloadavg(&load, 1) == 1 && load > 0.7 * sl_cpu_count())
        cli_say(stdout, "note       other programs use the processor (load %.1f), so training will be slower\n", load);
    return print_backends(cli);
}

const struct cli_command cli_command_doctor = {
    .name = "doctor",
    .has_no_json = true,
    .summary = "check this machine: cores, backends, and environment variables",
    .usage = "",
    .takes_backend_flags = true,
    .run = doctor,
};
