/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run while it grows, for a browser on this machine.
 *
 * It listens on 127.0.0.1 only, and answers only to addresses that begin with its token, which is new each time: other
 * users of the machine, and pages of other sites, cannot guess it. Everything else is answered with 404. The page is
 * made anew for each request, from metrics.jsonl, and the browser asks again every few seconds; once the run has ended,
 * it is report.html. */
#ifndef SL_SERVE_LIVE_LIVE_PAGE_H
#define SL_SERVE_LIVE_LIVE_PAGE_H

#include <stdint.h>

#include <seqlstm/status.h>

struct sl_live_page;

enum { SL_LIVE_ADDRESS_BYTES = 96 };

/* Starts a thread that serves a page. `port` 0: a free one. UNAVAILABLE: the module that serves HTTP is not there; IO:
 * the port is in use. */
seqlstm_status sl_live_page_open(uint16_t port, struct sl_live_page **out_page, struct seqlstm_error *err);
/* From now on the page is that of the run in `folder`, which is copied. Once for each page. NO_MEMORY. */
seqlstm_status sl_live_page_show(struct sl_live_page *page, const char *folder, struct seqlstm_error *err);
/* "http://127.0.0.1:8080/4f…/" */
const char *sl_live_page_get_address(const struct sl_live_page *page);
/* NULL is fine. */
void sl_live_page_close(struct sl_live_page *page);

#endif
