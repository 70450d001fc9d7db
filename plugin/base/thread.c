#include "base/thread.h"

#include "base/error.h"

#include <pthread.h>
#include <signal.h>

GThread *spr_thread_start(const char *name, GThreadFunc run, void *data, GError **error)
{
    sigset_t all, before;
    g_autoptr(GError) why = NULL;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    GThread *thread = g_thread_try_new(name, run, data, &why);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!thread)
        spr_fail(error, SPR_E_EXHAUSTED, "no-thread", "no thread could be started: %s",
                 why->message);
    return thread;
}
