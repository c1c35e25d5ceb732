/* SPDX-License-Identifier: Apache-2.0 */
/* The files of core/scaffold/templates/, carried in the program (tools/embed.py). */
#ifndef SL_SCAFFOLD_TEMPLATES_H
#define SL_SCAFFOLD_TEMPLATES_H

#include <stddef.h>

struct sl_template {
    const char *name; /* "backend/plugin.c", "model/classify/model.yaml" */
    const char *text; /* NUL-terminated; may hold placeholders, @NAME@ */
    size_t bytes;
};

/* In order of their names; the last has no name. */
extern const struct sl_template sl_templates[];

#endif
