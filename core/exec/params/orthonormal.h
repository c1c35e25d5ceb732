/* SPDX-License-Identifier: Apache-2.0 */
/* Rows made orthonormal, one after the other, as Gram and Schmidt do it. */
#ifndef SL_EXEC_ORTHONORMAL_H
#define SL_EXEC_ORTHONORMAL_H

#include <stdbool.h>
#include <stdint.h>

/* m [rows, columns], rows <= columns, in place: row i becomes the unit vector of what it has beyond the rows before it.
 * A row that has nothing of its own becomes zero. Of up to 256 rows each is taken alone, of more in panels of so many.
 * False: no memory; m is then as it was. Source: Giraud, Langou, Rozloznik and van den Eshof, "Rounding error analysis
 * of the classical Gram-Schmidt orthogonalization process", 2005 ("twice is enough"). [any thread] */
bool sl_orthonormalize(double *m, int64_t rows, int64_t columns);

#endif
