/*
 * The look of the page that report_html.c makes, and the few lines of script that filter it. It
 * reads without the script, too.
 */
#pragma once

extern const char check_page_style[];
extern const char check_page_script[];
