/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN, loaded when the backend is opened and never linked against, so that its absence gives a clear message rather
 * than an error of the dynamic linker. Its functions are members of `cdn`, named without their prefix `cudnn`. They may
 * be called once cdn_library_load has succeeded. */
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

/* Opens the library on the first call. `file`: "auto", the library's path, or a folder that contains it (also the
 * site-packages of a Python with cuDNN's wheel). UNAVAILABLE, with the reason, if it is absent, has another major
 * version or lacks a function. A process has only one: the one that was loaded first stays. [any] */
seqlstm_status cdn_library_load(const char *file, struct seqlstm_error *err);

/* Such as "9.19.0"; "" before it is loaded. */
const char *cdn_library_version(void);

/* Did cuDNN refuse (rather than fail)? Then another algorithm may work. */
bool cdn_is_refusal(cudnnStatus_t status);

/* Translates a status of cuDNN: UNSUPPORTED for a refusal, NO_MEMORY or DEVICE, with cuDNN's message and code. `what`:
 * the call. */
seqlstm_status cdn_check(cudnnStatus_t status, const char *what, struct seqlstm_error *err);

#endif
