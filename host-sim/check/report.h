/*
 * The report on standard output: TAP 14, one test point a case in the order of the tables, and
 * the line that counts. Main thread of the runner.
 */
#pragma once

#include "check/run.h"

void report_begin(guint cases);
/* A line for people; TAP ignores it. */
void report_note(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* The whole run is off. */
void report_bail_out(const char *why);
void report_case(guint number, const CheckResult *result);
void report_end(const CheckRun *run);

/* A page in a file: replaced at once, or written to where it is a device or a link. */
bool report_write(const char *path, const char *page, GError **error);
/* Whether that can be done; leaves nothing. */
bool report_can_be_written(const char *path, GError **error);
