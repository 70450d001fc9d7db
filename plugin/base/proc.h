/*
 * What the kernel tells of processes of this machine: enough to know one again after its pid may
 * have been given away. Any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* When it began, in the kernel's own unit; 0 for one that is not there. */
guint64 spr_proc_start_time(pid_t pid);

/* The process that it is a child of; 0 for one that is not there. */
pid_t spr_proc_parent(pid_t pid);

/* Whether somebody stopped it (SIGSTOP), so that it does nothing until it is told to go on. */
bool spr_proc_is_stopped(pid_t pid);

/* Of this boot of the machine; "unknown" where the kernel does not tell. */
const char *spr_proc_boot_id(void);

/* A descriptor (close-on-exec) that is readable once the process has ended; -1 when it is not there
 * any more or is another one than began at start_time. */
int spr_proc_open(pid_t pid, guint64 start_time);

/* Such descriptors of the processes whose parent is pid. */
GArray *spr_proc_open_children(pid_t pid);
