/*
 * The command a sandbox is there for, when the supervisor is its main process: started first, sent
 * every signal the supervisor gets, its end is the supervisor's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* 0, or the exit code of a shell for what could not be started, told on stderr. */
int sup_main_start(char *const argv[]);

bool sup_main_is_there(void);

/* An entrypoint that hands on to what follows it has become that: how many of the last words of
 * argv are the whole command line of the main process now, and it sleeps. 0: none. */
uint64_t sup_main_rest(void);

/* A child that is no keeper has ended. */
void sup_main_ended(pid_t pid, bool exited, int status);

/* A signal came from outside: forwarded, or the end when there is only the keep-alive. */
void sup_main_signal(int signal);
