/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm bench RUN --serve WHERE`: latency of a server over its load. */
#ifndef SL_CLI_BENCH_SERVE_H
#define SL_CLI_BENCH_SERVE_H

struct cli_context;

int cli_bench_serve(struct cli_context *cli);

#endif
