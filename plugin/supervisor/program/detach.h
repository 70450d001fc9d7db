/*
 * On the host's side, where there is no engine: starts what a sandbox runs in, as nobody's child.
 */
#pragma once

/* Runs argv in `directory`, in a session and (unless NULL) a cgroup of its own, with its output in
 * the file "log" there; prints its pid. Returns the exit code; an argv that can't be run says so in
 * the log and ends with 127. */
int sup_detach(const char *directory, const char *cgroup, char *const argv[]);
