/* SPDX-License-Identifier: Apache-2.0 */
/* See metric_rows.h. */
#include "runs/metric_rows.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/json_tree.h"
#include "base/value/path.h"

enum { METRICS_LIMIT = 256 << 20 }; /* bytes of metrics.jsonl */

json_t *sl_metric_rows_read(const char *folder)
{
    char *path = sl_path_join(folder, "metrics.jsonl"), *text = NULL, *rest = NULL;
    json_t *rows = json_array();
    seqlstm_status status = path ? SEQLSTM_NOT_FOUND : SEQLSTM_NO_MEMORY;
    if (path && sl_file_is_regular(path))
        status = sl_file_read(path, METRICS_LIMIT, &text, NULL, NULL);
    if (status == SEQLSTM_OK)
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            bool no_memory;
            json_t *row = sl_json_load(line, strlen(line), 0, NULL, &no_memory);
            if (row || no_memory)
                rows = sl_json_add(rows, row);
        }
    free(text);
    free(path);
    if (status == SEQLSTM_NO_MEMORY) {
        json_decref(rows);
        rows = NULL;
    }
    return rows;
}

double sl_metric_row_find_number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *sl_metric_row_get_text(json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

double sl_metric_row_find_metric(json_t *row, const char *name)
{
    return sl_metric_row_find_number(json_object_get(row, "metrics"), name);
}
