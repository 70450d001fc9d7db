/*
 * Requests about files (filerecords.h), served by a keeper itself: whatever a file system makes it
 * wait for, it keeps nobody else waiting.
 */
#pragma once

#include <stdbool.h>

/* Until the request is done or its streams break; an exit code. 0: all was answered. tell: see
 * sup_fileio_begin(). */
int sup_files_serve(char *const argv[], int in, int out, void (*tell)(void));

/* Files are touched as this user from here on, and as ourselves again after the second. False with
 * errno as sup_user_find(). */
bool sup_files_become(const char *user);
void sup_files_return(void);
