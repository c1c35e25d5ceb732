/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is left, without the address sanitizer: tests that are linked with live.c count the blocks that the whole
 * process holds. */
#ifndef SL_TESTS_LIVE_H
#define SL_TESTS_LIVE_H

/* Blocks of malloc and its like that were not freed. Always 0 under a sanitizer, which has its own malloc. */
long live_count(void);

#endif
