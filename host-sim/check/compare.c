#include "check/check.h"

#include <stdio.h>

#include "check/report.h"
#include "check/run.h"

int check_compare(char **paths, const char *html)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func((GDestroyNotify)check_run_free);
    for (char **path = paths; *path; path++) {
        CheckRun *run = NULL;
        if (!check_report_read(*path, &run, &error)) {
            fprintf(stderr, "host-sim check: %s\n", error->message);
            return CHECK_EXIT_USAGE;
        }
        g_ptr_array_add(runs, run);
    }
    g_autofree char *page = check_report_html(runs);
    if (report_write(html, page, &error))
        return CHECK_EXIT_PASSED;
    fprintf(stderr, "host-sim check: %s\n", error->message);
    return CHECK_EXIT_FAILED;
}
