/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader and the writer of safetensors share. */
#ifndef SL_INTEROP_SAFETENSORS_PRIVATE_H
#define SL_INTEROP_SAFETENSORS_PRIVATE_H

#define SL_SAFETENSORS_METADATA "__metadata__"
#define SL_SAFETENSORS_CHECKSUM "checksum"

enum { SL_SAFETENSORS_LENGTH_BYTES = 8, SL_SAFETENSORS_HEADER_MOST = 100000000 };

#endif
