/*
 * The command a sandbox is there for, when the supervisor is its main process: started first, sent
 * every signal the supervisor gets, its end is the supervisor's.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* 0, or the exit code of a shell for what could not be started, told on stderr. */
int sup_main_start(char *const argv[]);

bool sup_main_is_there(void);

/* A child that is no keeper has ended. */
void sup_main_ended(pid_t pid, bool exited, int status);

/* A signal came from outside: forwarded, or the end when there is only the keep-alive. */
void sup_main_signal(int signal);
