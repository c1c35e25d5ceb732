/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a training step: work of the device before and after the calls of a step, so that the host can start the
 * next step before it knows how this one ends. `frame_begin` and `frame_end` in ext/draft/memory.h start it.
 *
 *   host      fills a slot of a ring, copies it to the device ┐
 *   device    frame_begin │ calls of the step │ frame_end     ┴ the next slot is filled meanwhile
 *
 * frame_begin copies the fields of the batch, the ids and the step block from the slot to where the calls read them,
 * and corrects the step block by what earlier steps have left in struct seqlstm_progress. frame_end decides by the same
 * rules as the host what the step has done, and reports it in struct seqlstm_outcome.
 *
 * Slots are used in turn: step n reads slot n % slots and writes outcome n % slots. The host starts a step only when
 * the step that used the slot before has ended. All pointers are on the device unless noted. Draft: it may change with
 * any release before 1.0.
 */
#ifndef SEQLSTM_EXT_DRAFT_FRAME_H
#define SEQLSTM_EXT_DRAFT_FRAME_H

#include <seqlstm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SEQLSTM_FRAME_COPIES = 48,     /* the most copies at each end of a frame */
    SEQLSTM_FRAME_STEP_OFFSET = 64 /* of the step block in a slot; the order is at its beginning */
};

enum {
    SEQLSTM_BIT_ORDER_SETTLED = 1u << 0, /* no step is running: the host's numbers replace those of the device */
    SEQLSTM_BIT_ORDER_RESET = 1u << 1,   /* the carried states begin at zero */
    SEQLSTM_BIT_ORDER_FIRST = 1u << 2,   /* the first step of an update */
    SEQLSTM_BIT_ORDER_UPDATE = 1u << 3,  /* the step makes an update */
    SEQLSTM_BIT_ORDER_SCALES = 1u << 4,  /* the loss scale follows overflows */
    SEQLSTM_BIT_ORDER_GOES_ON = 1u << 5  /* after a loss or gradient that is not finite, updates go on, with carried
                                          * states of zero; otherwise no later update changes anything */
};

/* What the host says of a step, besides the step block. */
struct seqlstm_order {
    uint32_t flags;   /* SEQLSTM_BIT_ORDER_… */
    uint32_t good;    /* SETTLED: updates since the loss scale changed */
    uint64_t updates; /* SETTLED: updates that have changed something */
    double loss;      /* SETTLED: sums over the earlier steps of this update */
    double weight;
    uint32_t good_enough; /* after so many updates the loss scale is doubled */
    float scale_most;     /* the largest loss scale */
};

/* What the device keeps from step to step. Zero at first. */
struct seqlstm_progress {
    uint64_t steps;   /* that have ended */
    uint64_t updates; /* that have changed something */
    double loss;      /* sums over the steps of the present update */
    double weight;
    float loss_scale; /* of the next update */
    uint32_t good;    /* updates since it changed */
    uint32_t stopped; /* no later update may change anything */
    uint32_t reset;   /* the carried states begin at zero */
};

/* How a step has ended. */
struct seqlstm_outcome {
    uint64_t step; /* number, from 1 */
    double loss;   /* the sums of the losses of this step */
    double weight;
    double squares;   /* sum over the gradients, which contain loss_scale */
    float loss_scale; /* that the step used */
    uint32_t reserved0;
};

/* One copy. */
struct seqlstm_frame_copy {
    void *to;
    const void *from; /* frame_begin: NULL: the slot at `offset` */
    uint64_t offset;
    uint64_t bytes; /* a multiple of 4 */
};

/* One end of a frame. */
struct seqlstm_frame {
    uint32_t struct_size;
    uint32_t slots;
    uint64_t slot_bytes;               /* a multiple of 64 */
    const void *ring;                  /* [slots] of slot_bytes */
    struct seqlstm_progress *progress; /* [1] */
    struct seqlstm_outcome *outcomes;  /* [slots] SEQLSTM_MEMORY_PINNED */
    struct seqlstm_step *step;         /* [1] the block that the calls read */
    double *sums;                      /* [2] of the losses; frame_begin clears them */
    double *squares;                   /* [1] likewise */
    void *states;                      /* carried states */
    uint64_t state_bytes;              /* a multiple of 4 */
    uint32_t copy_count;
    uint32_t reserved0;
    struct seqlstm_frame_copy copies[SEQLSTM_FRAME_COPIES]; /* frame_end: final states to carried states */
};

#ifdef __cplusplus
}
#endif

#endif
