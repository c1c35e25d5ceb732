/* SPDX-License-Identifier: Apache-2.0 */
/* Files of weights in formats that are not read here, known by their first bytes. */
#ifndef SL_INTEROP_FOREIGN_H
#define SL_INTEROP_FOREIGN_H

#include <seqlstm/status.h>

/* INVALID_ARGUMENT with the line of Python that converts the file: it is PyTorch's (.pt, .pth), NumPy's (.npz, .npy) or
 * Keras's (.h5, .keras). OK: none of these, or it cannot be opened. [any thread] */
seqlstm_status sl_foreign_refuse(const char *path, struct seqlstm_error *err);

#endif
