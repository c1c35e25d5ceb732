/* SPDX-License-Identifier: Apache-2.0 */
/* What the conformance kit says of each mistake of faulty.c. */
#ifndef TESTS_CONFORMANCE_PLANTED_H
#define TESTS_CONFORMANCE_PLANTED_H

struct planted {
    const char *fault, *text, *detail; /* the case that must fail, and a part of the message */
};

static const struct planted planted[] = {
    {"value", "lstm:inf:T7B5I6H9:f32:ragged", "y["},
    {"behind-a-refusal", "lstm:inf:T7B5I6H9:f32:ragged", "y["}, /* in a variant behind one that is refused */
    {"nan", "lstm:bwd:T7B5I6H9:f32:ragged", "dw_h.l0.forward[0, 0] is nan"},
    {"nan", "gru:bwd:T3B2I3H5L2D2:f32:ragged", "dw_h"},
    {"swapped-gates", "lstm:inf:T7B5I6H9:f32:ragged", "y["},
    {"off-by-one", "lstm:inf:T7B5I6H9:f32:ragged", "y["},
    {"guard", "lstm:inf:T7B5I6H9:f32:ragged", "behind the end of y"},
    {"guard-before", "lstm:inf:T7B5I6H9:f32:ragged", "before y"},
    {"leaked-state", "lstm:repeat:T7B5I6H9:f32:ragged", "other bits"},
    {"keeps-data", "lstm:repeat:T7B5I6H9:f32:ragged", "after a call with other data"},
    {"nondeterminism", "lstm:repeat:T7B5I6H9:f32:ragged", "the same call on the same binding gave other bits"},
    {"unset-row", "lstm:inf:T7B5I6H9:f32:ragged", "nan"},
    {"ignores-option", "lstm:bwd:T7B5I6H9:f32:ragged:recurrent_dropout", "y["},
    {"changes-input", "lstm:inf:T7B5I6H9:f32:ragged", "changed element 0 of the input x"},
    {"no-accumulate", "lstm:bwd:T7B5I6H9:f32:ragged", "accumulating"},
    {"no-accumulate", "dense:bwd:R9I5O7:f32:flat", "accumulating"},
    {"no-dx", "lstm:bwd:T7B5I6H9:f32:ragged", "dx alone"},
    {"no-dw", "lstm:bwd:T7B5I6H9:f32:ragged", "dW alone"},
    {"no-dh0", "lstm:bwd:T7B5I6H9:f32:ragged:initial", "dh0 and dc0 alone"},
    {"forgets-range", "dropout:ranges:T7B5C9:f32:ragged:mask=step", "three segments against the whole"},
    {"no-accumulate", "lstm:ranges:T7B5I6H9:f32:ragged:initial,final", "three segments against the whole"},
    {"rebind-forgets-range", "dropout:ranges:T7B5C9:f32:ragged:mask=step", "on bindings that rebind had changed"},
    {"rebinds-once", "lstm:ranges:T7B5I6H9:f32:ragged:initial,final", "rebind had changed them again"},
    {"rebind-allocates", "lstm:ranges:T7B5I6H9:f32:ragged:initial,final", "no memory for another shape"},
    {"slope", "lstm:fd:T3B2I3H5:f32:ragged", "the difference quotient"},
    {"nan-slope", "lstm:fd:T3B2I3H5:f32:ragged", "is nan, the difference quotient"},
    {"input-slope", "lstm:fd:T3B2I3H5:f32:ragged", "dx["},
    {"slight-slope", "lstm:fd:T3B2I3H5:f32:ragged", "the difference quotient"},
    {"workspace", "lstm:inf:T7B5I6H9:f32:ragged", "nan"},
    {"allocates", "lstm:memory:T7B5I6H9:f32:ragged", "allocations, expected none"},
    {"mallocs", "lstm:inf:T7B5I6H9:f32:ragged", "past the host (malloc or its like)"},
    {"leaves-folder", "lstm:inf:T7B5I6H9:f32:ragged", "its forward changed the current folder"},
    {"leaks-memory", "lstm:memory:T7B5I6H9:f32:ragged", "still held"},
    {"threads", "lstm:threads:T7B5I6H9:f32:ragged", "3 members"},
    {"threads-backward", "lstm:threads:T7B5I6H9:f32:ragged", "3 members: dw_x"},
    {"shared-by-more", "lstm:threads:T7B5I6H9:f32:ragged", "two queues at once gave other bits"},
    {"shared", "lstm:threads:T7B5I6H9:f32:ragged", "two queues at once gave other bits"},
    {"knows-everything", "lstm:claim:T7B5I6H9:f32:ragged", "which no version defines"},
    {"fickle", "lstm:claim:T7B5I6H9:f32:ragged", "differently when asked again"},
    {"slow-answers", "lstm:claim:T7B5I6H9:f32:ragged", "us at best, allowed are 1000"},
#if defined(__x86_64__)
    {"ftz", "dense:inf:R9I5O7:f32:flat", "forward changed the floating-point mode"},
#endif
    {"prints", "lstm:inf:T7B5I6H9:f32:ragged",
     "wrote 10 bytes to stdout or stderr, and may use the host's log only: forward 1"},
    {"touches-idle", "lstm:idle:T7B5I6H9:f32:ragged", "of workspace: idle_ranges said that"},
    {"touches-idle-in-inference", "lstm:idle:T7B5I6H9:f32:ragged", "inference: "},
    {"idle-beyond", "lstm:idle:T7B5I6H9:f32:ragged", "of the workspace as idle"},
    {"hides-nan", "pool:inf:T7B9C4:f32:ragged:kind=max,nan", "expected nan"},
    {"hides-earlier-nan", "pool:bwd:T7B9C4:f32:ragged:kind=max,nan", "expected nan"},
    {"samples-zero", "loss:inf:R9C7:f32:flat:kind=mse", "sums"},
};

#endif
