/*
 * In the C locale libarchive 3.6 crashes on names that are not ASCII; the host's locale is not ours
 * to set, a thread's own is. Around every use of libarchive; any thread.
 */
#pragma once

#include <locale.h>

locale_t spr_tar_enter_utf8(void);
void spr_tar_leave_utf8(locale_t before);
