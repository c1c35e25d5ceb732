/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN, loaded when the backend is opened and never linked against, so that its absence is a sentence and not a
 * dynamic linker's error. Its functions are members of `cdn`, under their names without `cudnn`; they may be called
 * after cdn_library_load succeeded once.
 */
#ifndef CDN_LIBRARY_H
#define CDN_LIBRARY_H

#include <stdbool.h>

#include <cudnn.h>

#include <seqlstm/status.h>

#define CDN_FUNCTIONS(X)                                                                                               \
    X(GetVersion)                                                                                                      \
    X(GetErrorString)                                                                                                  \
    X(GetLastErrorString)                                                                                              \
    X(Create)                                                                                                          \
    X(Destroy)                                                                                                         \
    X(SetStream)                                                                                                       \
    X(CreateTensorDescriptor)                                                                                          \
    X(DestroyTensorDescriptor)                                                                                         \
    X(SetTensorNdDescriptor)                                                                                           \
    X(GetTensorNdDescriptor)                                                                                           \
    X(CreateRNNDescriptor)                                                                                             \
    X(DestroyRNNDescriptor)                                                                                            \
    X(SetRNNDescriptor_v8)                                                                                             \
    X(RNNSetClip_v9)                                                                                                   \
    X(BuildRNNDynamic)                                                                                                 \
    X(GetRNNTempSpaceSizes)                                                                                            \
    X(GetRNNWeightSpaceSize)                                                                                           \
    X(GetRNNWeightParams)                                                                                              \
    X(CreateRNNDataDescriptor)                                                                                         \
    X(DestroyRNNDataDescriptor)                                                                                        \
    X(SetRNNDataDescriptor)                                                                                            \
    X(RNNForward)                                                                                                      \
    X(RNNBackwardData_v8)                                                                                              \
    X(RNNBackwardWeights_v8)

#define CDN_MEMBER(name) __typeof__(&cudnn##name) name;
struct cdn_functions {
    CDN_FUNCTIONS(CDN_MEMBER)
};
#undef CDN_MEMBER
extern struct cdn_functions cdn;

/* Opens the library on the first call. `file`: "auto", the library's path, or a folder that has it (also the
 * site-packages of a Python with cuDNN's wheel). UNAVAILABLE, with the reason: absent, of another major version, or
 * without a function. One process has one: what was loaded first stays. [any] */
seqlstm_status cdn_library_load(const char *file, struct seqlstm_error *err);

/* "9.19.0"; "" before it was loaded. */
const char *cdn_library_version(void);

/* Did cuDNN say no (rather than fail)? Then another algorithm may do. */
bool cdn_is_refusal(cudnnStatus_t status);

/* A status as ours: UNSUPPORTED for a refusal, NO_MEMORY, or DEVICE, with cuDNN's words and code. `what`: the call. */
seqlstm_status cdn_check(cudnnStatus_t status, const char *what, struct seqlstm_error *err);

#endif
