/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a server about its models and about itself, compared with tests/fixtures/reports/serve_pages.txt (see
 * golden.h); and who may ask it: tokens, and addresses of the own machine. */
#include "oom.h"
#include "golden.h"

#include "serve/http/access.h"
#include "serve/pages.h"

static const struct sl_vocabulary *const some_classes = (const void *)"classes";

static void pages_name_what_a_model_reads_and_writes(void **state)
{
    (void)state;
    const struct sl_served_model models[] = {
        {.name = "values",
         .reads_steps = true,
         .gives_steps = true,
         .input_features = 2,
         .output_features = 3,
         .steps = 4},
        {.name = "row <b>\"", .input_features = 1, .output_features = 1, .steps = 5},
        {.name = "wide", .input_features = 3, .output_features = 1, .steps = 12},
        {.name = "narrow", .input_features = 1, .output_features = 4, .steps = 13},
        {.name = "ids",
         .reads_ids = true,
         .reads_steps = true,
         .input_features = 1,
         .input_classes = 6,
         .output_features = 2,
         .steps = 7,
         .classes = some_classes},
        {.name = "texts",
         .reads_ids = true,
         .reads_steps = true,
         .reads_text = true,
         .input_features = 1,
         .input_classes = 8,
         .output_features = 9,
         .steps = 10},
        {.name = "decoder",
         .reads_text = true,
         .decodes = true,
         .input_features = 1,
         .output_features = 1,
         .steps = 11}};
    enum { MODELS = sizeof models / sizeof *models };
    const struct sl_served_model *list[MODELS];
    struct sl_counters counters;
    struct sl_buf out = {0};
    sl_buf_append_text(&out, "== models\n");
    for (int m = 0; m < MODELS; m++) {
        list[m] = &models[m];
        sl_pages_write_model(&models[m], &out);
    }
    sl_buf_append_text(&out, "== lists\n");
    for (int count = 0; count <= 2; count++)
        sl_pages_write_list(list, count, &out);
    sl_counters_init(&counters);
    for (int status = 200; status < 600; status += 50)
        for (int k = 0; k < status / 50; k++)
            sl_counters_note_reply(&counters, status);
    sl_buf_append_text(&out, "== status, before any request\n");
    struct sl_counter_gauges gauges = {.waiting = 0};
    struct sl_counters none;
    sl_counters_init(&none);
    sl_pages_write_status(list, 0, &none, &gauges, 0.4, &out);
    sl_counters_deinit(&none);
    sl_buf_append_text(&out, "== status\n");
    gauges = (struct sl_counter_gauges){.waiting = 31, .streams = 32, .expired = 33};
    sl_counters_note_batch(&counters, 3, 40, 0.5e-3);
    sl_counters_note_batch(&counters, 4, 60, 1.25e-3);
    sl_counters_note_sequences(&counters, 17);
    sl_pages_write_status(list, MODELS, &counters, &gauges, 1234.5678, &out);
    sl_counters_deinit(&counters);
    golden_expect("reports/serve_pages.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* ---- who may ask ------------------------------------------------------------------------------------------------ */

struct seqlstm_http_request {
    const char *authorization, *host;
};

static const char *find_header(const struct seqlstm_http_request *request, const char *name)
{
    if (strcmp(name, "Authorization") == 0)
        return request->authorization;
    assert_string_equal(name, "Host");
    return request->host;
}

static const struct seqlstm_http_module http = {.struct_size = sizeof http, .find_header = find_header};

static void tokens_are_compared_as_a_whole(void **state)
{
    (void)state;
    static const char *const tokens[] = {"secret", "other", "secretary", NULL}, *const none[] = {NULL};
    static const struct {
        const char *header;
        int found;
    } cases[] = {{"Bearer secret", 0},
                 {"bearer other", 1},
                 {"BEARER secretary", 2},
                 {"Bearer secre", -1},
                 {"Bearer secrets", -1},
                 {"Bearer ", -1},
                 {"Bearer", -1},
                 {"Bearer  secret", -1},
                 {"Basic secret", -1},
                 {"secret", -1},
                 {"Bearer Secret", -1},
                 {"Bearer secretsecret", -1},
                 {"Bearer othe", -1},
                 {"Bearer tecret", -1},
                 {"Bearer secreu", -1},
                 {"", -1},
                 {NULL, -1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct seqlstm_http_request request = {.authorization = cases[k].header};
        assert_int_equal(sl_access_find_token(&http, &request, tokens), cases[k].found);
        assert_int_equal(sl_access_find_token(&http, &request, none), -1);
    }
    assert_true(sl_access_is_equal("", "") && !sl_access_is_equal("a", "") && !sl_access_is_equal("", "a"));
}

static void addresses_of_the_own_machine(void **state)
{
    (void)state;
    static const char *const own[] = {"127.0.0.1", "127.9.8.7", "::1", "localhost"},
                             *const others[] = {"0.0.0.0",    "::",  "10.0.0.1", "128.0.0.1", "localhost.example",
                                                "1127.0.0.1", "127", "::10",     ""};
    static const char *const names[] = {"localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:1"},
                             *const foreign[] = {
                                 "localhosts", "localhost.example", "127.0.0.12", "127.0.0.1.example:80",
                                 "::1",        "example.org",       "",           NULL};
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        assert_true(sl_access_is_loopback(own[k]));
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        assert_false(sl_access_is_loopback(others[k]));
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        assert_true(sl_access_names_loopback(&http, &(struct seqlstm_http_request){.host = names[k]}));
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
        assert_false(sl_access_names_loopback(&http, &(struct seqlstm_http_request){.host = foreign[k]}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_name_what_a_model_reads_and_writes),
        cmocka_unit_test(tokens_are_compared_as_a_whole),
        cmocka_unit_test(addresses_of_the_own_machine),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
