/* SPDX-License-Identifier: Apache-2.0 */
/* A host of the older or of the newer headers, with the loader of the program: says what it made of a plugin, one
 * `key value` a line. Structs stand alone on the heap, so that the address sanitizer sees a byte too many.
 *
 * growth_host PLUGIN.so
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry/answer.h"
#include "registry/host.h"
#include "registry/instance.h"
#include "registry/loader.h"
#include "growth.h"

static struct sl_arena arena;
static struct sl_host host;
static struct seqlstm_backend table;

/* A zeroed struct of its own, with its size at the front. */
static void *make(size_t bytes)
{
    uint32_t *p = calloc(1, bytes);
    *p = (uint32_t)bytes;
    return p;
}

#ifdef SEQLSTM_GROWN
static int32_t factor(void *context)
{
    (void)context;
    return GROWTH_FACTOR;
}
#define SAY_GROWN(p, name) printf("%s %d\n", name, (int)(p)->grown)
#else
#define SAY_GROWN(p, name) ((void)(p))
#endif

/* Asks about the activation with `grown` set to `option`, and runs it where the answer is yes. */
static void run(struct seqlstm_instance *instance, uint64_t option, const char *name)
{
    struct seqlstm_error *err = make(sizeof *err);
    struct seqlstm_activation_desc *desc = make(sizeof *desc);
    struct seqlstm_answer *answer = make(sizeof *answer);
    struct seqlstm_sizes *sizes = make(sizeof *sizes);
    struct seqlstm_bind *bind = make(sizeof *bind);
    struct seqlstm_forward *args = make(sizeof *args);
    struct seqlstm_op *op = NULL;
    struct seqlstm_binding *binding = NULL;
    float x[GROWTH_FEATURES] = {1, 1, 1, 1}, y[GROWTH_FEATURES] = {0};
    void *slots[SEQLSTM_SLOT_UNARY_COUNT] = {x, y};
    desc->head.op = SEQLSTM_OP_ACTIVATION;
    desc->head.mode = SEQLSTM_MODE_INFERENCE;
    desc->head.max_rows = 1;
    desc->features = GROWTH_FEATURES;
    (void)option;
#ifdef SEQLSTM_GROWN
    desc->grown = option;
    args->grown = 1;
#endif
    if (sl_table_supports(&table, "cpu:any", &desc->head, answer, err) != SEQLSTM_OK)
        printf("%s error %s\n", name, err->message);
    else if (!answer->accepted)
        printf("%s no %s\n", name, answer->reason);
    else {
        bind->rows = 1;
        args->slot_count = SEQLSTM_SLOT_UNARY_COUNT;
        args->slots = slots;
        seqlstm_status rc = table.op_create(instance, 0, &desc->head, answer->variants[0], &op, err);
        rc = rc ? rc : table.op_sizes(op, sizes, err);
        rc = rc ? rc : table.op_bind(op, NULL, bind, &binding, err);
        rc = rc ? rc : table.forward(binding, NULL, args, err);
        printf("%s %s %g\n", name, rc ? err->message : "y", (double)y[GROWTH_FEATURES - 1]);
        SAY_GROWN(answer, "answer");
        SAY_GROWN(sizes, "sizes");
        table.binding_destroy(binding);
        table.op_destroy(op);
    }
    free(err);
    free(desc);
    free(answer);
    free(sizes);
    free(bind);
    free(args);
}

int main(int argc, char **argv)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_backend_record record;
    struct seqlstm_instance *instance = NULL;
    memset(&record, 0, sizeof record);
    if (argc != 2 || sl_loader_load(&arena, &sl_backend_kind, argv[1], true, &record, &table, &err) != SEQLSTM_OK)
        return 2;
    if (record.status == SL_BACKEND_OK) {
        sl_host_init(&host, table.id, NULL, NULL);
#ifdef SEQLSTM_GROWN
        host.services.grown = factor;
        printf("slot %d\n", table.grown ? (int)table.grown(NULL) : 0);
#endif
        if (sl_instance_open(&arena, &table, &host.services, NULL, 0, &record, &instance, &err) != SEQLSTM_OK)
            return 2;
    }
    printf("status %s\n", record.status == SL_BACKEND_OK ? "ok" : record.reason);
    if (instance) {
        struct seqlstm_device_info *info = make(sizeof *info);
        struct seqlstm_error *mine = make(sizeof *mine);
        run(instance, 0, "plain");
        run(instance, 1, "option");
        table.device_info(instance, 0, info, mine);
        SAY_GROWN(info, "device");
        table.device_info(instance, 5, info, mine);
        printf("message %s\n", mine->message);
        free(info);
        free(mine);
        table.close(instance);
        printf("blocks %d\n", (int)host.memory.live_blocks);
    }
    sl_arena_deinit(&arena);
    return 0;
}
