/* engine.h - what Python and the engine hand each other: one worker's loop, its result and its live counters.
 *
 * Private to gdsfw (a backend sees include/gdsfw_backend.h only). engine/native.py declares the same structs; a
 * change here raises GDSFW_ENGINE_ABI. Sizes and offsets are bytes, times nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef GDSFW_ENGINE_H
#define GDSFW_ENGINE_H

#include "gdsfw_backend.h"

#include <stdbool.h>

#define GDSFW_ENGINE_ABI 1u
#define GDSFW_EXPORT __attribute__((visibility("default")))

enum { DIRECTION_READ = 0, DIRECTION_WRITE = 1 };

enum file_service { SERVICE_ROUNDROBIN = 0, SERVICE_RANDOM = 1, SERVICE_SEQUENTIAL = 2 };

enum distribution_kind {
  DISTRIBUTION_UNIFORM = 0,
  DISTRIBUTION_ZIPF = 1,
  DISTRIBUTION_PARETO = 2,
  DISTRIBUTION_NORMAL = 3,
  DISTRIBUTION_RUNS = 4,
};

enum write_fill { FILL_RANDOM = 0, FILL_ZERO = 1, FILL_PATTERN = 2 };

enum ended_by { ENDED_IO_SIZE = 0, ENDED_RUNTIME = 1, ENDED_STOP = 2, ENDED_ERROR = 3 };

/* The call that failed or is in flight. */
enum operation {
  OPERATION_NONE = 0,
  OPERATION_READ = 1,
  OPERATION_WRITE = 2,
  OPERATION_FLUSH = 3,
  OPERATION_FILL = 4,
  OPERATION_COPY = 5,
  OPERATION_VERIFY = 6,
  OPERATION_SUBMIT = 7,
  OPERATION_REAP = 8,
  OPERATION_OPEN = 9,
  OPERATION_REGISTER = 10,
};

struct gdsfw_block_choice {
  uint64_t size;
  uint64_t weight;
};

/* Block sizes of one direction: weighted choices, or with `step` the range choices[0].size .. choices[1].size. */
struct gdsfw_blocks {
  const struct gdsfw_block_choice *choices;
  uint64_t count;
  uint64_t step;
};

struct gdsfw_loop_file {
  uint64_t value; /* what the table's functions get as `file` */
  uint64_t file_id;
  uint64_t pattern_seed;
  uint64_t start;
  uint64_t length;
};

/* How offsets are drawn. theta: zipf exponent, pareto h, normal deviation in percent, mean length of runs. */
struct gdsfw_shape {
  uint32_t reads, writes; /* directions issued, 0 or 1 */
  uint32_t read_percent;
  uint32_t random;
  uint32_t distribution;
  uint32_t once_per_block;
  uint32_t file_service;
  uint32_t file_count;
  double theta;
  uint64_t block_align;
  uint64_t seed;
  uint64_t io_size;
  uint64_t loops;
  uint64_t unlimited; /* go on until the runtime ends when io_size is 0 */
  struct gdsfw_blocks blocks[2];
  const struct gdsfw_loop_file *files;
};

/* One I/O of the sequence. */
struct gdsfw_planned_io {
  uint32_t direction;
  uint32_t file;
  uint64_t offset;
  uint64_t size;
};

#endif
