/*
 * How much else this machine had to do, by what Linux counts (/proc/pressure): the calibration at
 * the start of a run knows nothing of a load that comes later. Any thread.
 */
#pragma once

#include <glib.h>

typedef struct {
    gint64 at_us;
    guint64 stalled_us[2]; /* of processors and of disks */
} CheckLoad;

CheckLoad check_load_now(void);

/* How many times as long things take since then as on a machine that has nothing else to do: 1, or
 * more up to CHECK_LOAD_MOST. 1 where the kernel does not count. */
double check_load_since(const CheckLoad *since);

/* The same of two numbers: work had to wait for so much of the time. */
double check_load_factor(guint64 stalled_us, gint64 passed_us);

/* What hangs is found all the same. */
#define CHECK_LOAD_MOST 5.0
