#include "sandbox/whole.h"

struct DkrWhole {
    GMutex lock;
    GHashTable *created; /* by volume */
};

DkrWhole *dkr_whole_new(void)
{
    DkrWhole *whole = g_new0(DkrWhole, 1);
    g_mutex_init(&whole->lock);
    whole->created = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return whole;
}

void dkr_whole_free(DkrWhole *whole)
{
    if (!whole)
        return;
    g_hash_table_unref(whole->created);
    g_mutex_clear(&whole->lock);
    g_free(whole);
}

bool dkr_whole_is_known(DkrWhole *whole, const char *volume, const char *created)
{
    g_mutex_lock(&whole->lock);
    const char *known = g_hash_table_lookup(whole->created, volume);
    bool is = known && created && g_str_equal(known, created);
    g_mutex_unlock(&whole->lock);
    return is;
}

void dkr_whole_learn(DkrWhole *whole, const char *volume, const char *created)
{
    if (!created || !*created)
        return;
    g_mutex_lock(&whole->lock);
    g_hash_table_replace(whole->created, g_strdup(volume), g_strdup(created));
    g_mutex_unlock(&whole->lock);
}

void dkr_whole_forget(DkrWhole *whole, const char *volume)
{
    g_mutex_lock(&whole->lock);
    g_hash_table_remove(whole->created, volume);
    g_mutex_unlock(&whole->lock);
}
