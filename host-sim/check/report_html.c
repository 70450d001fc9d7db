/*
 * Runs as one page that needs nothing but itself: what they came to, the cases by area with the
 * runs side by side, output of failures, environment and gates.
 */
#include "check/run.h"

#include <string.h>

#include "check/report_style.h"

static const struct {
    const char *prefix, *name;
} areas[] = {
    {"ABI", "Loading and the rules of calls"},
    {"LIF", "Life of a sandbox"},
    {"REC", "Reconnecting"},
    {"EXE", "Commands"},
    {"ENV", "Environment"},
    {"STR", "Streams"},
    {"TMO", "Deadlines"},
    {"CAN", "Cancelling"},
    {"RDF", "Reading files"},
    {"WRF", "Writing files"},
    {"FIL", "Files and directories"},
    {"ARC", "Many files at once"},
    {"PRC", "Processes"},
    {"STD", "Standard input"},
    {"CON", "At the same time"},
    {"INF", "What a sandbox tells"},
    {"CLN", "Copies of options"},
    {"MNT", "Mounts"},
    {"LIM", "Limits"},
    {"TPL", "Templates"},
    {"BLD", "Builds"},
    {"SEC", "Secrets"},
    {"REP", "Repository templates"},
    {"WIR", "The way to the engine"},
    {"SOK", "Long load"},
    {"LEK", "Nothing is left"},
};

static guint area_of(const char *id)
{
    for (guint i = 0; i < G_N_ELEMENTS(areas); i++) {
        if (strncmp(areas[i].prefix, id, 3) == 0)
            return i;
    }
    return G_N_ELEMENTS(areas);
}

/* One line of the page: a case, and its result in each run, or NULL. */
typedef struct {
    const CheckResult *any;
    const CheckResult **results;
} Row;

static void put(GString *out, const char *text)
{
    g_autofree char *escaped = g_markup_escape_text(text, -1);
    g_string_append(out, escaped);
}

/* Texts between tags, which are passed as they are. */
static void put_in(GString *out, const char *before, const char *text, const char *behind)
{
    g_string_append(out, before);
    put(out, text);
    g_string_append(out, behind);
}

/* What tells it from others best: its profile, or the name and version of its engine. */
static char *short_name(const CheckRun *run)
{
    g_autofree char *kind = g_strdup(check_run_fact(run, "profile"));
    if (!*kind) {
        g_auto(GStrv) engine = g_strsplit(check_run_fact(run, "engine"), ",", 2);
        g_free(kind);
        kind = g_strdup(engine[0] ? engine[0] : "");
    }
    return g_strdup_printf("%s %s%s%s", check_run_fact(run, "provider"),
                           check_run_fact(run, "providerVersion"), *kind ? ", " : "", kind);
}

/* With a number when several are called so. */
static char *name_of(const GPtrArray *runs, guint r)
{
    g_autofree char *name = short_name(runs->pdata[r]);
    guint same = 0;
    guint before = 0;
    for (guint other = 0; other < runs->len; other++) {
        g_autofree char *its = short_name(runs->pdata[other]);
        same += strcmp(its, name) == 0;
        before += strcmp(its, name) == 0 && other < r;
    }
    return same > 1 ? g_strdup_printf("%s (%u)", name, before + 1) : g_steal_pointer(&name);
}

/* ---- rows */

static int compare_rows(gconstpointer a, gconstpointer b)
{
    const char *left = (*(const Row *const *)a)->any->id;
    const char *right = (*(const Row *const *)b)->any->id;
    guint areas_apart[] = {area_of(left), area_of(right)};
    return areas_apart[0] != areas_apart[1] ? (int)areas_apart[0] - (int)areas_apart[1]
                                            : strcmp(left, right);
}

static void free_row(gpointer data)
{
    Row *row = data;
    g_free(row->results);
    g_free(row);
}

static GPtrArray *make_rows(const GPtrArray *runs)
{
    g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
    GPtrArray *rows = g_ptr_array_new_with_free_func(free_row);
    for (guint r = 0; r < runs->len; r++) {
        const CheckRun *run = runs->pdata[r];
        for (guint i = 0; i < run->results->len; i++) {
            const CheckResult *result = run->results->pdata[i];
            Row *row = g_hash_table_lookup(known, result->id);
            if (!row) {
                row = g_new0(Row, 1);
                row->any = result;
                row->results = g_new0(const CheckResult *, runs->len);
                g_ptr_array_add(rows, row);
                g_hash_table_insert(known, result->id, row);
            }
            row->results[r] = result;
        }
    }
    g_ptr_array_sort(rows, compare_rows);
    return rows;
}

static bool has(const Row *row, guint runs, JobCounts counts)
{
    for (guint r = 0; r < runs; r++) {
        if (row->results[r] && job_verdict_counts(row->results[r]->verdict) == counts)
            return true;
    }
    return false;
}

static bool differs(const Row *row, guint runs)
{
    for (guint r = 1; r < runs; r++) {
        const CheckResult *first = row->results[0];
        const CheckResult *other = row->results[r];
        if (!first != !other || (first && first->verdict != other->verdict))
            return true;
    }
    return false;
}

/* ---- parts of the page */

static void put_share(GString *out, const CheckRun *run)
{
    const struct {
        const char *name;
        int count;
    } parts[] = {{"passed", run->passed}, {"failed", run->failed}, {"skipped", run->skipped}};
    double all = MAX(1, run->passed + run->failed + run->skipped);
    g_string_append(out, "<div class=\"share\">");
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        g_string_append_printf(out, "<i class=\"%s\" style=\"width:%.2f%%\"></i>", parts[i].name,
                               100.0 * parts[i].count / all);
    g_string_append(out, "</div>");
}

static void put_failures(GString *out, const CheckRun *run)
{
    if (run->failed == 0)
        return;
    g_string_append(out, "<p>failed:");
    for (guint i = 0; i < run->results->len; i++) {
        const CheckResult *result = run->results->pdata[i];
        if (job_verdict_counts(result->verdict) == JOB_COUNTS_FAILED)
            g_string_append_printf(out, " <a href=\"#%s\">%s</a>", result->id, result->id);
    }
    g_string_append(out, "</p>");
}

static void put_run(GString *out, const GPtrArray *runs, guint r)
{
    const CheckRun *run = runs->pdata[r];
    g_autofree char *name = name_of(runs, r);
    put_in(out, "<div class=\"run\"><h3>", name, "</h3>");
    put_in(out, "<p>", check_run_fact(run, "endpoint"), "</p>");
    put_in(out, "<p>", check_run_fact(run, "engine"), "</p>");
    g_string_append_printf(
        out,
        "<p class=\"counts\"><b>%d passed, %d failed, %d skipped</b> <span>in %.1f s</span></p>",
        run->passed, run->failed, run->skipped, (double)run->took_ms / 1000);
    put_share(out, run);
    put_failures(out, run);
    put_in(out, "<p>level ", check_run_fact(run, "level"), "");
    put_in(out, ", <span>seed ", check_run_fact(run, "seed"), "</span>");
    put_in(out, ", <span>", check_run_fact(run, "time"), "</span></p></div>\n");
}

static void put_result(GString *out, const CheckResult *result, gint64 longest)
{
    g_string_append(out, "<td class=\"cell\">");
    if (!result) {
        g_string_append(out, "<span class=\"v v-skip\">not run</span></td>");
        return;
    }
    const char *verdict = job_verdict_name(result->verdict);
    g_string_append_printf(out, "<span class=\"v v-%s\">%s</span>", verdict, verdict);
    if (result->verdict != JOB_SKIP)
        g_string_append_printf(
            out, "<div class=\"time\"><i style=\"width:%.1f%%\"></i>%" G_GINT64_FORMAT " ms</div>",
            60.0 * (double)result->took_ms / (double)MAX(longest, 1), result->took_ms);
    if (result->message)
        put_in(out, "<div class=\"why\">", result->message, "</div>");
    if (*result->output && job_verdict_counts(result->verdict) == JOB_COUNTS_FAILED)
        put_in(out, "<details><summary>output</summary><pre>", result->output, "</pre></details>");
    g_string_append(out, "</td>");
}

static void put_row(GString *out, const Row *row, const GPtrArray *runs, gint64 longest)
{
    const CheckResult *any = row->any;
    g_string_append_printf(out, "<tr class=\"row%s%s%s\" id=\"%s\"><td class=\"id\">%s</td>",
                           has(row, runs->len, JOB_COUNTS_FAILED) ? " bad" : "",
                           has(row, runs->len, JOB_COUNTS_SKIPPED) ? " skipped" : "",
                           differs(row, runs->len) ? " differs" : "", any->id, any->id);
    g_string_append_printf(out, "<td class=\"level\">%d</td>", any->level);
    put_in(out, "<td class=\"what\">", any->sentence, "");
    put_in(out, "<div class=\"why\">docs/abi.md#", any->clause, "</div></td>");
    for (guint r = 0; r < runs->len; r++)
        put_result(out, row->results[r], longest);
    g_string_append(out, "</tr>\n");
}

/* "31 passed, 2 skipped": what the cases of an area came to in a run. */
static void put_area_counts(GString *out, const CheckRun *run, guint area)
{
    static const char *const names[] = {[JOB_COUNTS_PASSED] = "passed",
                                        [JOB_COUNTS_FAILED] = "failed",
                                        [JOB_COUNTS_SKIPPED] = "skipped"};
    int counts[G_N_ELEMENTS(names)] = {0};
    for (guint i = 0; i < run->results->len; i++) {
        const CheckResult *result = run->results->pdata[i];
        if (area_of(result->id) == area)
            counts[job_verdict_counts(result->verdict)]++;
    }
    const char *between = "";
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (counts[i] == 0)
            continue;
        g_string_append_printf(out, "%s<span class=\"%s\">%d %s</span>", between, names[i],
                               counts[i], names[i]);
        between = ", ";
    }
}

static void begin_area(GString *out, const char *id, const GPtrArray *runs)
{
    guint area = area_of(id);
    g_string_append_printf(out, "<section class=\"area\"><h2>%.3s", id);
    put_in(out, " <span>", area < G_N_ELEMENTS(areas) ? areas[area].name : "", "</span></h2>");
    g_string_append(out, "<div class=\"wide\"><table><tr><th>case</th><th class=\"level\">level"
                         "</th><th>what holds</th>");
    for (guint r = 0; r < runs->len; r++) {
        g_autofree char *name = name_of(runs, r);
        put_in(out, "<th>", name, "<div class=\"sum\">");
        put_area_counts(out, runs->pdata[r], area);
        g_string_append(out, "</div></th>");
    }
    g_string_append(out, "</tr>\n");
}

static void put_areas(GString *out, const GPtrArray *runs)
{
    g_autoptr(GPtrArray) rows = make_rows(runs);
    gint64 longest = 1;
    const char *open = NULL;
    for (guint r = 0; r < runs->len; r++) {
        const CheckRun *run = runs->pdata[r];
        for (guint i = 0; i < run->results->len; i++)
            longest = MAX(longest, ((const CheckResult *)run->results->pdata[i])->took_ms);
    }
    for (guint i = 0; i < rows->len; i++) {
        const Row *row = rows->pdata[i];
        bool is_new = !open || strncmp(open, row->any->id, 3) != 0;
        if (is_new && open)
            g_string_append(out, "</table></div></section>\n");
        if (is_new)
            begin_area(out, row->any->id, runs);
        open = row->any->id;
        put_row(out, row, runs, longest);
    }
    if (open)
        g_string_append(out, "</table></div></section>\n");
}

/* The members of one object of each run, a line a key. */
static void put_facts(GString *out, const char *title, const GPtrArray *runs, gsize offset,
                      const char *when_null)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_string_append_printf(out, "<h2>%s</h2><div class=\"wide\"><table class=\"facts\">\n", title);
    for (guint r = 0; r < runs->len; r++) {
        const char *key;
        json_t *value;
        json_object_foreach(G_STRUCT_MEMBER(json_t *, runs->pdata[r], offset), key, value)
        {
            if (!g_hash_table_add(seen, (char *)key))
                continue;
            put_in(out, "<tr><td>", key, "</td>");
            for (guint other = 0; other < runs->len; other++) {
                json_t *fact =
                    json_object_get(G_STRUCT_MEMBER(json_t *, runs->pdata[other], offset), key);
                const char *text = json_string_value(fact);
                put_in(out, "<td>", text ? text : json_is_null(fact) ? when_null : "", "</td>");
            }
            g_string_append(out, "</tr>\n");
        }
    }
    g_string_append(out, "</table></div>\n");
}

static void put_filters(GString *out, guint runs)
{
    g_string_append(out, "<nav><button value=\"all\" aria-pressed=\"true\">all</button>"
                         "<button value=\"bad\" aria-pressed=\"false\">failed</button>"
                         "<button value=\"skipped\" aria-pressed=\"false\">skipped</button>");
    if (runs > 1)
        g_string_append(out, "<button value=\"differs\" aria-pressed=\"false\">where they differ"
                             "</button>");
    g_string_append(out, "</nav>\n");
}

char *check_report_html(const GPtrArray *runs)
{
    GString *out = g_string_new("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
                                "<meta name=\"viewport\" content=\"width=device-width\">"
                                "<title>Sandbox provider conformance</title>\n<style>");
    g_string_append_printf(out, "%s</style>\n<body data-only=\"all\" style=\"--runs:%u\">",
                           check_page_style, runs->len);
    g_string_append(out, "<h1>Sandbox provider conformance</h1>\n<div class=\"runs\">\n");
    for (guint r = 0; r < runs->len; r++)
        put_run(out, runs, r);
    g_string_append(out, "</div>\n");
    put_filters(out, runs->len);
    put_areas(out, runs);
    put_facts(out, "Environment", runs, G_STRUCT_OFFSET(CheckRun, environment), "");
    put_facts(out, "Gates", runs, G_STRUCT_OFFSET(CheckRun, gates), "open");
    g_string_append_printf(out, "<script>%s</script>\n</body></html>\n", check_page_script);
    return g_string_free(out, FALSE);
}
