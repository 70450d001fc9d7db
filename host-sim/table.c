#include "table.h"

#include <string.h>

#include "error.h"

void hs_table_take(void *ctx, const char *text, size_t size)
{
    json_t *found = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    if (object)
        json_array_append_new(found, object);
}

static char *cell(json_t *row, const char *key)
{
    json_t *value = json_object_get(row, key);
    if (json_is_string(value))
        return hs_one_line(json_string_value(value));
    if (!value || json_is_null(value))
        return g_strdup("-");
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    char *line = hs_one_line(text);
    free(text);
    return line;
}

static void pad(GString *out, const char *text, glong width, bool last)
{
    g_string_append(out, text);
    for (glong n = g_utf8_strlen(text, -1); !last && n < width + 2; n++)
        g_string_append_c(out, ' ');
    if (last)
        g_string_append_c(out, '\n');
}

char *hs_table(json_t *found, const HsColumn *columns)
{
    gsize n_columns = 0;
    while (columns[n_columns].title)
        n_columns++;
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    g_autofree glong *widths = g_new0(glong, n_columns);
    size_t i;
    json_t *row;
    for (gsize c = 0; c < n_columns; c++)
        g_ptr_array_add(cells, g_strdup(columns[c].title));
    json_array_foreach(found, i, row)
    {
        for (gsize c = 0; c < n_columns; c++)
            g_ptr_array_add(cells, cell(row, columns[c].key));
    }
    for (guint n = 0; n < cells->len; n++)
        widths[n % n_columns] = MAX(widths[n % n_columns], g_utf8_strlen(cells->pdata[n], -1));
    g_autoptr(GString) out = g_string_new(NULL);
    for (guint n = 0; n < cells->len; n++)
        pad(out, cells->pdata[n], widths[n % n_columns], n % n_columns == n_columns - 1);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *hs_table_lines(json_t *found)
{
    GString *out = g_string_new(NULL);
    size_t i;
    json_t *row;
    json_array_foreach(found, i, row)
    {
        char *line = json_dumps(row, JSON_COMPACT);
        g_string_append_printf(out, "%s\n", line);
        free(line);
    }
    return g_string_free(out, FALSE);
}
