/* SPDX-License-Identifier: Apache-2.0 */
/* Where everything of a block lies, for host and device. See resident.h.
 *
 *   shared memory   struct cg_layer | constants of the units [CONSTANTS][32] | inverse scales of the rows | weights
 *                   [parts][rows][pitch] | slices [STAGES] of [columns][parts][chunk + 4] and of weights
 * [parts][rows][chunk + 4], then sums [splits][rows][columns
 *                   + 1]
 *   scatter         the same up to the weights [tiles][steps][parts][lanes][4] | gradients of the gates
 * [columns][parts] [depth / 2 + 4] | their inverse scales [columns] | sums of threads [THREADS] */
#ifndef CG_RESIDENT_SHAPE_H
#define CG_RESIDENT_SHAPE_H

#include "cuda-generic/recurrent/resident/resident.h"

enum {
    CG_RESIDENT_UNITS_MOST = 32,
    CG_RESIDENT_CONSTANTS_AT = 704,
    CG_RESIDENT_CONSTANTS = 13, /* of a unit: see cg_cluster_constant */
    CG_RESIDENT_SCALES_AT = CG_RESIDENT_CONSTANTS_AT + CG_RESIDENT_CONSTANTS * 4 * CG_RESIDENT_UNITS_MOST,
};

/* Columns of a warp's sums: as many as registers hold beside those of linked cells. */
CG_HD int32_t cg_resident_columns(const struct cg_resident *r)
{
    return r->parts == 2 || (r->linked && r->row_tiles == 2) ? 32 : 64;
}

CG_HD int64_t cg_resident_weights_at(const struct cg_resident *r)
{
    return CG_RESIDENT_SCALES_AT + 4 * (int64_t)r->rows;
}

CG_HD int64_t cg_resident_slices_at(const struct cg_resident *r)
{
    return cg_resident_weights_at(r) + 4 * (int64_t)r->parts * (r->scatter ? 16 * r->kept : r->rows) * r->pitch;
}

/* Words of a slice. */
CG_HD int32_t cg_resident_slice_words(const struct cg_resident *r)
{
    const int32_t rows = r->kept < cg_resident_depth(r) ? r->rows : 0;
    return (r->columns + rows) * r->parts * (r->chunk + 4);
}

CG_HD int64_t cg_resident_count_bytes(const struct cg_resident *r)
{
    if (r->scatter)
        return cg_resident_slices_at(r) +
               4 * ((int64_t)r->columns * (r->parts * (r->segment / 2 + 4) + 1) + CG_RESIDENT_THREADS);
    const int64_t slices = (int64_t)CG_RESIDENT_STAGES * cg_resident_slice_words(r);
    const int64_t sums = (int64_t)r->splits * r->rows * (r->columns + 1);
    return cg_resident_slices_at(r) + 4 * (slices > sums ? slices : sums);
}

#endif
