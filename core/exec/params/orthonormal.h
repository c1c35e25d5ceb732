/* SPDX-License-Identifier: Apache-2.0 */
/* Makes rows orthonormal, one after the other, by the method of Gram and Schmidt. */
#ifndef SL_EXEC_ORTHONORMAL_H
#define SL_EXEC_ORTHONORMAL_H

#include <stdbool.h>
#include <stdint.h>

/* m [rows, columns], rows <= columns, in place: row i becomes the unit vector of its part that is orthogonal to the
 * rows before it. A row that has no such part becomes zero. Up to 256 rows are done one by one, more in panels of 256.
 * False: no memory; m is then unchanged. Source: Giraud, Langou, Rozloznik and van den Eshof, "Rounding error analysis
 * of the classical Gram-Schmidt orthogonalization process", 2005 ("twice is enough"). [any thread] */
bool sl_orthonormalize(double *m, int64_t rows, int64_t columns);

#endif
