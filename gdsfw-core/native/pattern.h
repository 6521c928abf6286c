/* pattern.h - what the host's and the devices' halves of the pattern share. */
#ifndef GDSFW_PATTERN_H
#define GDSFW_PATTERN_H

#include "gdsfw_backend.h"

/* The part of every chunk's key that is the file's: seed, file and generation. */
uint64_t pattern_file_key(const struct gdsfw_pattern *pattern);

#endif
