/*
 * Who made what on an engine: the value of the label sprov.owner, "<boot id>:<pid>:<start time>"
 * of this process. Any thread.
 */
#pragma once

/* Read from /proc at the first call and kept. */
const char *dkr_owner(void);
