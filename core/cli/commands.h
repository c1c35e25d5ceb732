/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, in the order in which `seqlstm help` lists them.
 *
 * A new command is a file below commands/ which defines `cli_command_NAME`, and a line here.
 */
#ifndef SL_CLI_COMMANDS_H
#define SL_CLI_COMMANDS_H

#define CLI_COMMANDS(COMMAND)                                                                                          \
    COMMAND(run)                                                                                                       \
    COMMAND(check)                                                                                                     \
    COMMAND(plan)                                                                                                      \
    COMMAND(profile)                                                                                                   \
    COMMAND(backends)                                                                                                  \
    COMMAND(resume)                                                                                                    \
    COMMAND(eval)                                                                                                      \
    COMMAND(predict)                                                                                                   \
    COMMAND(generate)                                                                                                  \
    COMMAND(embed)                                                                                                     \
    COMMAND(export)                                                                                                    \
    COMMAND(import)                                                                                                    \
    COMMAND(quantize)                                                                                                  \
    COMMAND(serve)                                                                                                     \
    COMMAND(watch)                                                                                                     \
    COMMAND(stop)                                                                                                      \
    COMMAND(runs)                                                                                                      \
    COMMAND(runs_compare)                                                                                              \
    COMMAND(runs_delete)                                                                                               \
    COMMAND(completion)                                                                                                \
    COMMAND(data_stats)                                                                                                \
    COMMAND(inspect)                                                                                                   \
    COMMAND(config)                                                                                                    \
    COMMAND(schema)                                                                                                    \
    COMMAND(explain)                                                                                                   \
    COMMAND(doctor)                                                                                                    \
    COMMAND(help)                                                                                                      \
    COMMAND(version)                                                                                                   \
    COMMAND(ab)                                                                                                        \
    COMMAND(bench)                                                                                                     \
    COMMAND(verify)                                                                                                    \
    COMMAND(conformance)                                                                                               \
    COMMAND(new_backend)                                                                                               \
    COMMAND(new_model)

struct cli_command;
#define CLI_DECLARE_COMMAND(name) extern const struct cli_command cli_command_##name;
CLI_COMMANDS(CLI_DECLARE_COMMAND)

extern const struct cli_command *const cli_commands[]; /* NULL-terminated */

#endif
