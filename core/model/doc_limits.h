/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a model file with what it includes. They are macros, so that messages are made from them. */
#ifndef SL_MODEL_DOC_LIMITS_H
#define SL_MODEL_DOC_LIMITS_H

#define SL_DOC_MAX_MIB   4
#define SL_DOC_MAX_BYTES ((size_t)SL_DOC_MAX_MIB << 20)
#define SL_DOC_MAX_NODES 50000 /* aliases count as often as they are used */
#define SL_DOC_MAX_DEPTH 64
#define SL_DOC_MAX_KEYS  10000 /* of one map */

#define SL_NAME_MOST 128 /* letters of a name: the graph puts what is in a layer behind it, in 256 bytes */

#endif
