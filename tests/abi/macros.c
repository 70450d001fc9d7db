/*
 * Every header at once, inside extern "C" as careless hosts do it, and the macros as hosts write
 * them. Compiled as C and as C++ by headers.sh.
 */
#ifdef __cplusplus
extern "C" {
#endif
#include "ext/archive.h"
#include "ext/files.h"
#include "ext/host.h"
#include "ext/lifecycle.h"
#include "ext/processes.h"
#include "ext/provider.h"
#include "ext/templates.h"
#ifdef __cplusplus
}
#endif

int64_t default_timeout(const sprov_host *host, const sprov_ext_files *files);

int64_t default_timeout(const sprov_host *host, const sprov_ext_files *files)
{
    sprov_call call = SPROV_INIT(sprov_call);
    if (SPROV_HAS(sprov_host, host, log) && SPROV_KNOWS(sprov_host, host, abi_minor)) {
        host->log(host->ctx, SPROV_LOG_INFO, "test", SPROV_ENTRY_SYMBOL);
    }
    return SPROV_HAS(sprov_ext_files, files, rename) ? call.timeout_ms : SPROV_ABI_MAJOR;
}
