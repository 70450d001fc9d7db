/*
 * The capabilities that there are. No sandbox of this provider has any, so a name is only checked.
 * Pure; any thread.
 */
#pragma once

/* For DkrJsonField.wrong: a name of Linux, with or without "CAP_", or "ALL". */
const char *local_wrong_capability(const char *key, const char *name);
