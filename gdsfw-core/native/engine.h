/* engine.h - what Python and the engine hand each other: one worker's loop, its result and its live counters.
 *
 * Private to gdsfw (a backend sees include/gdsfw_backend.h only). engine/native.py declares the same structs; a
 * change here raises GDSFW_ENGINE_ABI. Sizes and offsets are bytes, times nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef GDSFW_ENGINE_H
#define GDSFW_ENGINE_H

#include "gdsfw_backend.h"
#include "histogram.h"

#include <stdbool.h>

#define GDSFW_ENGINE_ABI 2u
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

struct gdsfw_span {
  uint64_t start;
  uint64_t length;
};

struct gdsfw_loop_file {
  uint64_t value; /* what the table's functions get as `file` */
  uint64_t file_id;
  uint64_t pattern_seed;
  uint64_t start;
  uint64_t length;
  const struct gdsfw_span *known; /* sorted and merged: what holds the pattern; NULL for everything */
  uint64_t known_count;
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

/* What the main thread reads while the loop runs. The worker stores, nobody else; `stop` goes the other way. */
struct gdsfw_live {
  _Alignas(64) uint32_t stop; /* gdsfw_stop sets it and wakes the worker */
  _Alignas(64) uint64_t ios[2];
  uint64_t bytes[2];
  uint64_t errors;
  uint32_t measuring; /* the ramp is over, and the counters above began at zero again */
  uint32_t operation; /* oldest call or request in flight, OPERATION_NONE for none */
  uint32_t file;
  uint32_t reserved;
  uint64_t offset;
  uint64_t size;
  uint64_t since_ns;
};

struct gdsfw_config {
  uint32_t abi, struct_size;
  const struct gdsfw_io *io;
  struct gdsfw_live *live;
  struct gdsfw_shape shape;
  uint64_t buffer; /* the backend's value for the worker's one buffer */
  uint64_t buffer_size;
  uint64_t buffer_offset;
  uint64_t slot_stride;
  uint32_t iodepth;
  uint32_t batch_submit;
  uint32_t batch_complete;
  uint32_t latencies;
  uint64_t runtime_ns;
  uint64_t ramp_ns;
  uint64_t rate_bytes[2]; /* per second, by direction; 0 for no limit */
  uint64_t rate_iops[2];
  uint64_t think_time_ns;
  uint64_t fsync_every; /* writes */
  uint64_t fdatasync_every;
  uint64_t error_limit; /* errors to carry on through */
  uint32_t poisson;
  uint32_t end_fsync;
  uint32_t write_fill; /* enum write_fill */
  uint32_t compress_percent;
  uint32_t dedupe_percent;
  uint32_t check;       /* verify reads */
  uint32_t generations; /* rewrites of a block count in its pattern */
  uint32_t register_per_io;
  int32_t log_fd; /* one line for each I/O, -1 for none */
  uint32_t reserved;
  struct gdsfw_range *written; /* room for written_room merged ranges, NULL for no tracking */
  uint64_t written_room;
};

/* One I/O of the sequence. */
struct gdsfw_planned_io {
  uint32_t direction;
  uint32_t file;
  uint64_t offset;
  uint64_t size;
};

struct gdsfw_range {
  uint64_t file;
  uint64_t start;
  uint64_t length;
};

struct gdsfw_failure {
  uint32_t operation; /* enum operation */
  uint32_t file;
  uint64_t offset;
  uint64_t size;
  uint32_t domain; /* enum gdsfw_domain */
  uint32_t reserved;
  int64_t code;
};

struct gdsfw_bad_block {
  uint64_t file;
  struct gdsfw_mismatch mismatch;
};

struct gdsfw_stats {
  uint64_t ios;
  uint64_t bytes;
  uint64_t short_ios;
  uint64_t errors;
  struct gdsfw_histogram clat; /* issue to completion */
  struct gdsfw_histogram lat;  /* from the scheduled start; used with a rate or a queue */
  struct gdsfw_histogram slat; /* the submission; used with a queue */
};

enum { RESULT_FAILURES = 16, RESULT_BAD_BLOCKS = 16, RESULT_DEPTHS = 16 };

/* Written by gdsfw_run; the caller sets abi and struct_size. */
struct gdsfw_result {
  uint32_t abi, struct_size;
  uint32_t ended_by;     /* enum ended_by */
  uint32_t separate_lat; /* `lat` was measured; otherwise it equals clat */
  uint64_t started_ns, ended_ns;
  uint64_t total_ios, total_bytes; /* moved in all, ramp and parts of failed blocks included */
  uint64_t flushes, flush_ns;
  uint64_t storage_ns, copy_ns;
  uint64_t cpu_ns;
  uint64_t checked_bytes, expected_bytes, checked_blocks, bad_blocks;
  uint64_t unknown_bytes;         /* read, but nobody can say what they should be */
  uint64_t failure_count;         /* all of them; the first RESULT_FAILURES are described */
  uint64_t written_count;         /* ranges in config->written, UINT64_MAX when there are more than fit */
  uint64_t log_errno;             /* why the I/O log is incomplete, 0 when it is not */
  uint64_t depths[RESULT_DEPTHS]; /* [i]: completions seen with 2^i .. 2^(i+1) - 1 requests in flight */
  struct gdsfw_failure failures[RESULT_FAILURES];
  struct gdsfw_bad_block bad[RESULT_BAD_BLOCKS];
  struct gdsfw_stats stats[2];
};

/* Run one worker's loop on the calling thread. Returns 0, or the errno of a preparation that failed: nothing was
 * issued then. What goes wrong later is in the result. */
int32_t gdsfw_run(const struct gdsfw_config *config, struct gdsfw_result *result);
/* Ask a running loop to end soon; async-signal-safe. */
void gdsfw_stop(struct gdsfw_live *live);
/* GDSFW_ENGINE_ABI that the library was built with. */
uint32_t gdsfw_engine_abi(void);

#endif
