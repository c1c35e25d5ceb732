/* SPDX-License-Identifier: Apache-2.0 */
/* The errors and warnings about the user's files and flags: collected, sorted by place, printed all at once.
 *
 * Every later phase may add to them (the graph, the data, the dispatch), as long as the places come
 * from a model that was loaded with the same diagnostics: these keep the texts of the files, so
 * that the source line and the caret can be shown.
 *
 * Codes: E0001-E0099 file and YAML, E0100 values, E0200 keys, E0300 meaning, E0400 what this
 * version lacks, E0500 what only data and backends show, E0600 errors of a running command, E0700 run folders;
 * W0001... warnings. `sl_explain_find` has a paragraph on each.
 *
 * Invariants:
 * 1. All texts are copied: nothing that was added need outlive the call.
 * 2. Running out of memory while adding is remembered and makes rendering fail with
 * SEQLSTM_NO_MEMORY;
 *    adding itself never fails and always counts.
 */
#ifndef SL_MODEL_YAML_DIAGNOSTICS_H
#define SL_MODEL_YAML_DIAGNOSTICS_H

#include <stdbool.h>
#include <stddef.h>

#include <seqlstm/status.h>

#include "model/place.h"

struct sl_buf;
struct sl_diagnostics;

enum sl_severity { SL_SEVERITY_ERROR, SL_SEVERITY_WARNING };

/* One finding. Every text but `message` may be NULL. */
struct sl_diagnostic {
    const char *code;      /* "E0203" */
    struct sl_place place; /* line 0: of the whole file, or of nothing */
    const char *message;   /* "unknown key `hidden_size` in an lstm layer" */
    const char *label;     /* next to the carets: "PyTorch's name" */
    const char *help;      /* "use `units: 650`" */
    const char *note;
};

seqlstm_status sl_diagnostics_create(struct sl_diagnostics **out, struct seqlstm_error *err);
void sl_diagnostics_destroy(struct sl_diagnostics *diagnostics);

/* Keeps a copy of the text that places with this file name point into. */
void sl_diagnostics_add_file(struct sl_diagnostics *diagnostics, const char *file, const char *text, size_t text_bytes);

/* Remembers how the user wrote a path that was made absolute; what is printed then shows it so. */
void sl_diagnostics_add_path(struct sl_diagnostics *diagnostics, const char *absolute, const char *written);

/* Appends a text with the paths that it contains as the user wrote them. Failure is sticky in the buffer. */
void sl_diagnostics_write_text(const struct sl_diagnostics *diagnostics, const char *text, struct sl_buf *out);

/* The severity follows from the code's letter. A finding equal to one already there is not added.
 * */
void sl_diagnostics_add(struct sl_diagnostics *diagnostics, const struct sl_diagnostic *finding);

/* The same with a formatted message and nothing else. */
void sl_diagnostics_addf(struct sl_diagnostics *diagnostics, const char *code, struct sl_place place,
                         const char *format, ...) SEQLSTM_PRINTF(4, 5);

/* Forgets the findings, after they were printed, and keeps the texts of the files. */
void sl_diagnostics_forget(struct sl_diagnostics *diagnostics);

size_t sl_diagnostics_count(const struct sl_diagnostics *diagnostics, enum sl_severity severity);

/* Appends how many errors there are, and in which files and flags: "3 errors in a.yaml, over.yaml and --set seed".
 * `file` is named where no error has a place. */
void sl_diagnostics_write_count(const struct sl_diagnostics *diagnostics, const char *file, struct sl_buf *out);

/* Appends all of them, sorted by file, line and column, in the form of rustc's:
 *
 *   error[E0203]: unknown key `hidden_size` in an lstm layer
 *     --> ptb.yaml:22:18
 *      |
 *   22 |   - {type: lstm, hidden_size: 650, return_sequences: true}
 *      |                  ^^^^^^^^^^^ PyTorch's name
 *      = help: use `units: 650`
 *
 * with a blank line after each. `color` adds ANSI sequences. */
seqlstm_status sl_diagnostics_render(const struct sl_diagnostics *diagnostics, bool color, struct sl_buf *out,
                                     struct seqlstm_error *err);

/* Appends a JSON array of {severity, code, file, line, column, length, message, label, help,
 * note}. */
seqlstm_status sl_diagnostics_write_json(const struct sl_diagnostics *diagnostics, struct sl_buf *out,
                                         struct seqlstm_error *err);

#endif
