/* offsets.h - the sequence of I/O: which direction, file, offset and size come next. See offsets.c. */
#ifndef GDSFW_OFFSETS_H
#define GDSFW_OFFSETS_H

#include "engine.h"
#include "permutation.h"

/* Constants of a rank distribution over n positions, kept while n stays the same. */
struct rank_cache {
  uint64_t n;
  double a, b, c;
  struct permutation spread;
};

struct offset_file {
  uint64_t start, length;
  uint64_t position[2];  /* sequential: bytes done in this pass, by direction */
  uint64_t done;         /* random: bytes, or cells with once_per_block, done in this pass */
  uint64_t pass_length;  /* of `done`, at which the pass is over */
  uint64_t run_position; /* runs: position that would continue the run, UINT64_MAX for none */
  uint32_t finished;     /* the pass is over in every direction */
  uint32_t reserved;
  struct permutation order;   /* once_per_block */
  struct rank_cache ranks[2]; /* by direction, whose units differ */
};

struct offset_blocks {
  const struct gdsfw_block_choice *choices;
  uint64_t count;
  uint64_t single; /* the one size, 0 when there is a choice */
  uint64_t total_weight;
  uint64_t low, step, steps; /* range: low + step * [0, steps) */
  uint64_t unit;             /* random offsets are multiples of it */
};

struct offsets {
  struct stream direction_stream, size_stream, file_stream, offset_stream;
  struct offset_blocks blocks[2];
  struct offset_file *files;
  uint32_t file_count;
  uint32_t unfinished;
  uint32_t current; /* file of the last I/O */
  uint32_t file_service;
  uint32_t random, once, mixed, only; /* `only`: the direction when not mixed */
  uint32_t read_percent;
  uint32_t distribution;
  double theta;
  uint64_t largest; /* block */
  uint64_t cell;
  uint64_t seed, pass;
  uint64_t issued, limit; /* bytes */
};

/* Prepare the sequence of `shape` over `files` (room for shape->file_count, owned by the caller).
 * Returns 0, or EINVAL when the shape cannot issue anything. */
int offsets_init(struct offsets *offsets, const struct gdsfw_shape *shape, struct offset_file *files);

/* The next I/O; false at the end of the sequence. */
bool offsets_next(struct offsets *offsets, struct gdsfw_planned_io *io);

/* distribution.c: a position in [0, positions) by the shape's distribution. */
uint64_t distribution_draw(struct offsets *offsets, struct offset_file *file, uint32_t direction, uint64_t positions);

#endif
