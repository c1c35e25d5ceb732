/* SPDX-License-Identifier: Apache-2.0 */
/* The dtypes and reductions of the contract, in MPI. */
#ifndef COMM_MPI_ELEMENTS_H
#define COMM_MPI_ELEMENTS_H

#include <mpi.h>
#include <stdint.h>

MPI_Datatype mpi_elem_type(uint32_t dtype);
/* MPI_OP_NULL: it could not be made. After MPI_Init, under the lock. */
MPI_Op mpi_get_operation(uint32_t dtype, uint32_t reduction);

#endif
