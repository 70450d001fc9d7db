/*
 * A multi handle of libcurl without descriptors that children of the host would inherit: versions
 * before 8 make the socket pair of curl_multi_wakeup() without close-on-exec, and no function
 * tells its numbers. For lane.c; any thread.
 */
#pragma once

#include <curl/curl.h>

CURLM *dkr_multi_new(void);
