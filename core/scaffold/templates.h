/* SPDX-License-Identifier: Apache-2.0 */
/* The files of core/scaffold/templates/, embedded in the program by tools/embed.py. */
#ifndef SL_SCAFFOLD_TEMPLATES_H
#define SL_SCAFFOLD_TEMPLATES_H

#include <stddef.h>

struct sl_template {
    const char *name; /* "backend/plugin.c", "model/classify/model.yaml" */
    const char *text; /* NUL-terminated; may contain the placeholder @NAME@ */
    size_t bytes;
};

/* Sorted by name; an element without a name ends the array. */
extern const struct sl_template sl_templates[];

#endif
