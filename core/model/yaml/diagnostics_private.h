/* SPDX-License-Identifier: Apache-2.0 */
/* What diagnostics.c and diagnostics_render.c share. */
#ifndef SL_MODEL_YAML_DIAGNOSTICS_PRIVATE_H
#define SL_MODEL_YAML_DIAGNOSTICS_PRIVATE_H

#include "base/memory/arena.h"
#include "model/yaml/diagnostics.h"

enum { SL_DIAGNOSTICS_KEPT = 500 };

struct sl_source_file {
    const char *name;
    const char *text;
    size_t text_bytes;
};

/* A path of the model, and how the user wrote it. */
struct sl_written_path {
    const char *absolute, *written;
};

struct sl_diagnostics {
    struct sl_arena arena;          /* all texts */
    struct sl_diagnostic *findings; /* in the order in which they were added */
    size_t finding_count, finding_capacity;
    struct sl_source_file *files; /* in the order in which they were added, which is the order of the output */
    size_t file_count, file_capacity;
    struct sl_written_path *paths;
    size_t path_count, path_capacity;
    size_t counts[2]; /* by severity; may be larger than what is kept */
    bool failed;
};

enum sl_severity sl_diagnostic_get_severity(const struct sl_diagnostic *finding);

/* Whether a finding or a text was lost because there was no memory. */
bool sl_diagnostics_has_failed(const struct sl_diagnostics *diagnostics);

/* Takes back all findings but the first `count`. */
void sl_diagnostics_cut(struct sl_diagnostics *diagnostics, size_t count);

const struct sl_source_file *sl_diagnostics_find_file(const struct sl_diagnostics *diagnostics, const char *name);

#endif
