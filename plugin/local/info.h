/*
 * What describe(), info() and list() tell about a local sandbox, as JSON of the form that
 * abi/schema/info.json describes. Any thread.
 */
#pragma once

#include "local/store.h"

/* By what the handle knows; workdir NULL: as the options say. g_free() them. */
char *local_info_described(const DkrSandboxOptions *options, const char *workdir,
                           const char *status);

/* By its record, and whether it runs. instructions NULL: the default text. */
char *local_info_recorded(const LocalRecord *record, const char *instructions);
