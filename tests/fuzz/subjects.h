/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of tests/fixtures/interop, into which targets read weights. Run in the root of the repository. */
#ifndef SL_TESTS_FUZZ_SUBJECTS_H
#define SL_TESTS_FUZZ_SUBJECTS_H

#include "graph/graph.h"

enum { SUBJECTS = 7 };

struct sl_data_state;
struct sl_model;

struct subject {
    struct sl_model *model; /* the graph borrows from both */
    struct sl_data_state *state;
    struct sl_graph *graph;
    float **values; /* of its parameters */
};

/* Filled by open_subjects; they live as long as the process. */
extern struct subject subjects[SUBJECTS];
void open_subjects(void);

/* The subject's file of this name as a seed (fuzz_write_seed); nothing where it has none. */
void write_subject_seed(int subject, const char *file, int choice);

#endif
