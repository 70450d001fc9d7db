/*
 * The functions that dkr_template_build() needs, on a real engine. Used by glue and by the start
 * of a sandbox from a template; a DkrClient serves any number of builds at once.
 */
#pragma once

#include "engine/client.h"
#include "template/build.h"

/* As dkr_template_build(); a base image that the engine lacks is pulled first. */
bool dkr_template_build_on(DkrClient *client, const DkrRecipe *recipe,
                           const DkrBuildRequest *request, const SprWait *wait,
                           DkrTemplateImage **ret_image, GError **error);

/* The names of the containers that were made of the image, stopped ones too, for a message: "a, b
 * and 3 more". NULL when there is none, or the engine cannot tell. */
char *dkr_template_users(DkrClient *client, const char *template_id, const SprWait *wait);
