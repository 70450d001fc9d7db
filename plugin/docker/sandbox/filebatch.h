/*
 * Writing several files without a supervisor, where an engine's exec for each step of each would
 * take seconds a file: they are looked at together, sent one by one, and put in their places
 * together. Blocking; any number at once.
 */
#pragma once

#include "sandbox/files.h"
