#include "check/load.h"

#include <stdio.h>

/* What "some avg10=0.00 avg60=0.00 avg300=0.00 total=N" ends with; 0 without. */
static guint64 read_total(const char *path)
{
    guint64 total = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "some %*s %*s %*s total=%" G_GUINT64_FORMAT, &total) != 1)
        total = 0;
    fclose(file);
    return total;
}

CheckLoad check_load_now(void)
{
    return (CheckLoad){
        .at_us = g_get_monotonic_time(),
        .stalled_us = {read_total("/proc/pressure/cpu"), read_total("/proc/pressure/io")}};
}

double check_load_factor(guint64 stalled_us, gint64 passed_us)
{
    if (passed_us <= 0)
        return 1;
    double part = (double)stalled_us / (double)passed_us;
    return part > 1 - 1 / CHECK_LOAD_MOST ? CHECK_LOAD_MOST : 1 / (1 - part);
}

double check_load_since(const CheckLoad *since)
{
    CheckLoad now = check_load_now();
    guint64 stalled = 0;
    for (int i = 0; i < 2; i++)
        if (now.stalled_us[i] > since->stalled_us[i])
            stalled = MAX(stalled, now.stalled_us[i] - since->stalled_us[i]);
    return check_load_factor(stalled, now.at_us - since->at_us);
}
