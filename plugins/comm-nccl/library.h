/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL, loaded when the connection is opened and never linked against. Its few functions that the plugin uses are
 * declared here, so that the build needs no headers of NCCL; they are members of `ncc`, named without the prefix
 * `nccl`. Needs NCCL 2.14, the first version whose communicators need not block. */
#ifndef NCC_LIBRARY_H
#define NCC_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

/* ncclResult_t, as far as it matters here. */
enum { NCC_SUCCESS = 0, NCC_REMOTE_ERROR = 6, NCC_IN_PROGRESS = 7 };

/* ncclDataType_t and ncclRedOp_t. */
enum {
    NCC_INT8 = 0,
    NCC_UINT8 = 1,
    NCC_INT32 = 2,
    NCC_FLOAT16 = 6,
    NCC_FLOAT32 = 7,
    NCC_FLOAT64 = 8,
    NCC_BFLOAT16 = 9
};
enum { NCC_SUM = 0, NCC_MAX = 2, NCC_MIN = 3 };

struct ncc_comm; /* what ncclComm_t points to */

struct ncc_id { /* ncclUniqueId */
    char bytes[128];
};

/* ncclConfig_t as NCCL 2.14 has it; later versions read no more than `size` bytes. */
struct ncc_config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
};
enum { NCC_CONFIG_VERSION = 21400 };
#define NCC_CONFIG_MAGIC 0xCAFEBEEFu

#define NCC_FUNCTIONS(X)                                                                                               \
    X(int, GetVersion, (int *version))                                                                                 \
    X(const char *, GetErrorString, (int result))                                                                      \
    X(const char *, GetLastError, (struct ncc_comm * comm))                                                            \
    X(int, GetUniqueId, (struct ncc_id * id))                                                                          \
    X(int, CommInitRankConfig,                                                                                         \
      (struct ncc_comm * *comm, int ranks, struct ncc_id id, int rank, struct ncc_config *config))                     \
    X(int, CommFinalize, (struct ncc_comm * comm))                                                                     \
    X(int, CommDestroy, (struct ncc_comm * comm))                                                                      \
    X(int, CommAbort, (struct ncc_comm * comm))                                                                        \
    X(int, CommGetAsyncError, (struct ncc_comm * comm, int *result))                                                   \
    X(int, AllReduce,                                                                                                  \
      (const void *from, void *to, size_t elems, int dtype, int reduction, struct ncc_comm *comm, void *stream))       \
    X(int, ReduceScatter,                                                                                              \
      (const void *from, void *to, size_t elems, int dtype, int reduction, struct ncc_comm *comm, void *stream))       \
    X(int, AllGather, (const void *from, void *to, size_t elems, int dtype, struct ncc_comm *comm, void *stream))      \
    X(int, Broadcast,                                                                                                  \
      (const void *from, void *to, size_t elems, int dtype, int root, struct ncc_comm *comm, void *stream))            \
    X(int, Send, (const void *from, size_t elems, int dtype, int peer, struct ncc_comm *comm, void *stream))           \
    X(int, Recv, (void *to, size_t elems, int dtype, int peer, struct ncc_comm *comm, void *stream))

#define NCC_MEMBER(type, name, arguments) type(*name) arguments;
struct ncc_functions {
    NCC_FUNCTIONS(NCC_MEMBER)
};
#undef NCC_MEMBER
extern struct ncc_functions ncc;

/* Opens the library on the first call. `place`: "auto", the library's path, or a folder that contains it. UNAVAILABLE,
 * with the reason, if it is absent, too old, or lacks a function. [any] */
seqlstm_status ncc_library_load(const char *place, struct seqlstm_error *err);

/* OK, or DEVICE with NCCL's message and code. NCC_IN_PROGRESS is no error. `comm` may be NULL. */
seqlstm_status ncc_check(int result, const char *what, struct ncc_comm *comm, struct seqlstm_error *err);

#endif
