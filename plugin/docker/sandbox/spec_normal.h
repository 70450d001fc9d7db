/*
 * One form for what an engine may write in several: capabilities, security options, binds, image
 * names. For the comparison of spec_compare.c; pure, any thread. Texts are g_free()d.
 */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

typedef char *(*DkrNormalise)(const char *text);

/* "cap_chown" and "CHOWN" are one. */
char *dkr_normal_capability(const char *text);

/* "no-new-privileges", "no-new-privileges:true" and "no-new-privileges=true" are one. */
char *dkr_normal_security_option(const char *text);

/* "source:/target[:options]", without those that engines add or leave out. */
char *dkr_normal_bind(const char *text);

/* "0" is root, however it is written. */
char *dkr_normal_user(const char *text);

/* "debian" is "docker.io/library/debian:latest". */
char *dkr_normal_image(const char *text);

/* Both arrays of words as one text; either may be NULL. */
char *dkr_normal_words(const json_t *first, const json_t *second);

/* Whether every text of members is in array, in its normal form. Neither has to be an array. */
bool dkr_normal_covers(const json_t *array, const json_t *members, DkrNormalise normalise);

/* Whether text itself is in array. */
bool dkr_normal_contains(const json_t *array, const char *text);
