/*
 * Processes on the host's side that outlive who started them: the runner adopts them, as they would
 * go to init otherwise, so that none escapes. Main thread of the runner, but for orphans_tell().
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

#include "check/job.h"

/* From now on orphans below this process are its children. */
void orphans_adopt(void);
/* Waits for those that have ended, as init would, and for none of the jobs. */
void orphans_reap(Job *const *jobs, guint count);
/* Ends those that there are; how many. No job may run. */
guint orphans_end(void);
/* What runs that parent has adopted, a line for people; NULL: nothing. Not the process but, which
 * asks. Any process. */
char *orphans_tell(pid_t parent, pid_t but);
