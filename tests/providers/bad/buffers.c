/* Sin: keeps all output and hands it over at the end of the command. */
#include "filter.h"

static sprov_flow keep_it(BadFilter *filter, const char *data, size_t size)
{
    bad_keep(filter, data, size);
    return SPROV_FLOW_CONTINUE;
}

static void pass_all_on(BadFilter *filter)
{
    bad_pass_on(filter, filter->kept, filter->kept_size);
}

BAD_FILTER_ENTRY(keep_it, pass_all_on)
