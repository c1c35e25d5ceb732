/* SPDX-License-Identifier: Apache-2.0 */
/* A primitive with its arguments, which can be executed repeatedly with different addresses.
 *
 * A call holds one memory object per argument of the primitive. Setting an address and executing allocate nothing on
 * our side. A call is used by one thread at a time; primitives are shared. */
#ifndef ODN_CALL_H
#define ODN_CALL_H

#include <seqlstm/status.h>

#include "cpu-onednn/library.h"

enum { ODN_CALL_ARGUMENTS = 32 };

struct odn_call {
    dnnl_primitive_t primitive; /* borrowed */
    int count;
    dnnl_exec_arg_t arguments[ODN_CALL_ARGUMENTS];
    void *addresses[ODN_CALL_ARGUMENTS];
    uint32_t unset;       /* bit of each argument whose address the library has refused */
    dnnl_status_t reason; /* of the last refusal */
};

/* Queries `pd` for the arguments; the caller may destroy `pd` afterwards. */
seqlstm_status odn_call_init(struct odn_call *call, dnnl_engine_t engine, const_dnnl_primitive_desc_t pd,
                             dnnl_primitive_t primitive, struct seqlstm_error *err);
/* Accepts a zeroed call. */
void odn_call_deinit(struct odn_call *call);

/* The addresses that were set may be those of other memory now: all are set anew. */
void odn_call_forget(struct odn_call *call);

/* Sets the address of an argument (DNNL_ARG_…). Does nothing if the primitive has no such argument. If the library
 * refuses it, the call does not run. */
void odn_call_set(struct odn_call *call, int argument, const void *address);
dnnl_status_t odn_call_run(struct odn_call *call, dnnl_stream_t stream);

/* Bytes of an argument; 0 if the primitive has none of this kind. */
uint64_t odn_argument_bytes(const_dnnl_primitive_desc_t pd, int argument);

/* The number of arguments of a call. */
int32_t odn_arguments_count(const_dnnl_primitive_desc_t pd);

/* SEQLSTM_OK, or an error for the library's status: NO_MEMORY, or DEVICE with what failed. */
seqlstm_status odn_check(dnnl_status_t status, const char *what, struct seqlstm_error *err);

#endif
