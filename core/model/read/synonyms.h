/* SPDX-License-Identifier: Apache-2.0 */
/* Names that other frameworks use. */
#ifndef SL_MODEL_READ_SYNONYMS_H
#define SL_MODEL_READ_SYNONYMS_H

struct sl_section;

struct sl_synonym {
    const char *word;
    const char *section; /* path of the section, "layer", "train", …; NULL: anywhere */
    const char *key;     /* the key here, or NULL: there is none */
    const char *owner;   /* "PyTorch's name" */
    const char *help;    /* "use `units`"; NULL: built from the key and the value */
};
/* The synonym of that word in the section, or that of any section; NULL: none. */
const struct sl_synonym *sl_synonym_find(const char *word, const struct sl_section *section);

#endif
