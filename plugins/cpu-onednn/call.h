/* SPDX-License-Identifier: Apache-2.0 */
/* A primitive with its arguments, ready to execute again and again at other addresses.
 *
 * A call holds one memory object per argument that the primitive has; setting an address and executing do not
 * allocate on our side. Calls are used by one thread at a time; primitives are shared.
 */
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
};

/* `pd` is asked for the arguments, and may be destroyed afterwards. */
seqlstm_status odn_call_init(struct odn_call *call, dnnl_engine_t engine, const_dnnl_primitive_desc_t pd,
                             dnnl_primitive_t primitive, struct seqlstm_error *err);
/* A zeroed call is fine. */
void odn_call_deinit(struct odn_call *call);

/* Sets the address of an argument (DNNL_ARG_…); nothing happens when the primitive has no such argument. */
void odn_call_set(struct odn_call *call, int argument, const void *address);
dnnl_status_t odn_call_run(struct odn_call *call, dnnl_stream_t stream);

/* Bytes of an argument; 0 when the primitive has none of that kind. */
uint64_t odn_argument_bytes(const_dnnl_primitive_desc_t pd, int argument);

/* How many arguments a call of it holds. */
int32_t odn_arguments_count(const_dnnl_primitive_desc_t pd);

/* SEQLSTM_OK, or the library's status in a sentence: out of memory, or DEVICE with what failed. */
seqlstm_status odn_check(dnnl_status_t status, const char *what, struct seqlstm_error *err);

#endif
