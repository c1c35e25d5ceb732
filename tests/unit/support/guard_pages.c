/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of executors ends where a page ends, behind which nothing can be read or written: what is too small ends
 * the test. Linked with --wrap for the functions below; memory of devices stays as it is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "registry/domain.h"

enum { PAGE = 4096, BLOCKS = 4096 };

struct block {
    char *pages, *payload; /* NULL: free */
    size_t bytes;
};

static struct block blocks[BLOCKS];

seqlstm_status __real_sl_domain_allocate(struct sl_domain *domain, int64_t bytes, void **out_pointer,
                                         struct seqlstm_error *err);
seqlstm_status __wrap_sl_domain_allocate(struct sl_domain *domain, int64_t bytes, void **out_pointer,
                                         struct seqlstm_error *err);
void __real_sl_domain_release(struct sl_domain *domain, void *pointer);
void __wrap_sl_domain_release(struct sl_domain *domain, void *pointer);

static struct block *find_block(const void *payload)
{
    for (int k = 0; k < BLOCKS; k++)
        if (blocks[k].payload == payload)
            return &blocks[k];
    return NULL;
}

seqlstm_status __wrap_sl_domain_allocate(struct sl_domain *domain, int64_t bytes, void **out_pointer,
                                         struct seqlstm_error *err)
{
    struct block *block = find_block(NULL);
    if (!sl_domain_is_host(domain) || !block || bytes > INT64_C(1) << 30)
        return __real_sl_domain_allocate(domain, bytes, out_pointer, err);
    const size_t room = (size_t)(bytes + SEQLSTM_ALIGNMENT - 1) / SEQLSTM_ALIGNMENT * SEQLSTM_ALIGNMENT,
                 inner = (room + PAGE - 1) / PAGE * PAGE;
    char *pages = mmap(NULL, inner + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + PAGE, inner, PROT_READ | PROT_WRITE) != 0) {
        perror("guard_pages");
        abort();
    }
    *block = (struct block){pages, pages + PAGE + inner - room, inner + 2 * PAGE};
    *out_pointer = block->payload;
    return SEQLSTM_OK;
}

void __wrap_sl_domain_release(struct sl_domain *domain, void *pointer)
{
    struct block *block = pointer ? find_block(pointer) : NULL;
    if (!block) {
        __real_sl_domain_release(domain, pointer);
        return;
    }
    munmap(block->pages, block->bytes);
    memset(block, 0, sizeof *block);
}
