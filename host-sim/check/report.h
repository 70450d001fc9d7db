/*
 * The report on standard output: TAP 14, one test point a case in the order of the tables, and
 * the line that counts. Main thread of the runner.
 */
#pragma once

#include "check/job.h"

typedef struct {
    int passed, failed, skipped; /* failed: crash, timeout and harness error too */
} Report;

void report_begin(guint cases);
/* A line for people; TAP ignores it. */
void report_note(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* The whole run is off. */
void report_bail_out(const char *why);
void report_case(Report *report, guint number, const Case *one, const Job *job);
void report_end(const Report *report);
