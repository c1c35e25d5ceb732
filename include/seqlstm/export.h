/* SPDX-License-Identifier: Apache-2.0 */
/* What marks the functions of the C library: programs may call them. */
#ifndef SEQLSTM_EXPORT_H
#define SEQLSTM_EXPORT_H

#if defined(__GNUC__)
#define SEQLSTM_API __attribute__((visibility("default")))
#else
#define SEQLSTM_API
#endif

#endif
