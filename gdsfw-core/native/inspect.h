/* inspect.h - entry points into parts of the engine, for previews and property tests. */
#ifndef GDSFW_INSPECT_H
#define GDSFW_INSPECT_H

#include "engine.h"

#include <stdlib.h>

/* The first n I/Os of a sequence; returns how many there are, or a negative errno. */
int64_t gdsfw_preview(const struct gdsfw_shape *shape, struct gdsfw_planned_io *ios, uint64_t n);
/* out[i] = where the permutation of [0, n) puts first + i. */
void gdsfw_permute(uint64_t seed, uint64_t file_index, uint64_t pass, uint64_t n, uint64_t first, uint64_t count,
                   uint64_t *out);
/* The bucket that a latency is counted in. */
uint32_t gdsfw_histogram_index(uint64_t value);
/* sizeof config, result, live, shape, io, queue: what the other side's declarations must agree with. */
uint64_t gdsfw_engine_sizes(uint32_t which);

#endif
