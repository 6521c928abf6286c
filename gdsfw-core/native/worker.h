/* worker.h - state of one running loop, and what the synchronous and the queue loop share. */
#ifndef GDSFW_WORKER_H
#define GDSFW_WORKER_H

#include "clock.h"
#include "decode.h"
#include "log.h"
#include "offsets.h"
#include "pace.h"
#include "track.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Blocks that ended well and alike. A queue gives them back by the hundred, and they are counted at once. */
struct tally {
  uint64_t blocks, size;
  uint64_t clat_ns, lat_ns, slat_ns;
  uint32_t direction;
};

struct worker {
  const struct gdsfw_config *config;
  struct gdsfw_result *result;
  struct gdsfw_live *live;
  uint64_t deadline_ns; /* end of the ramp, then of the runtime; UINT64_MAX for none */
  struct clock clock;
  struct offsets offsets;
  struct offset_file *offset_files;
  struct gdsfw_io io;
  struct gdsfw_queue queue;

  uint64_t begun_ns; /* first I/O, ramp included */
  uint64_t cpu_start_ns;
  bool ended;

  struct pace pace[2];
  struct stream arrivals;
  bool paced;

  struct stream nonces;
  uint64_t stamp_piece, stamp_random; /* of every so many bytes the first so many are random */
  bool stamps;                        /* write buffers get a mark that makes each block unique */
  bool remakes;                       /* each block is made by the table's make_data before it is written */
  bool *stale;                        /* by slot: something else has replaced the data to write */
  uint8_t *pool;                      /* random bytes that small blocks are made from, NULL without any */

  struct tally tally;

  struct track track;
  bool *unsynced; /* by file: written since the last flush */
  uint64_t writes_to_fsync, writes_to_fdatasync;

  struct io_log log;
};

/* Prepare for config; 0 or an errno. worker_free in either case. */
int worker_init(struct worker *w, const struct gdsfw_config *config, struct gdsfw_result *result);
void worker_free(struct worker *w);

void worker_begin(struct worker *w);
void worker_finish(struct worker *w);

/* End the loop for a reason; the first reason stays. */
void worker_end(struct worker *w, enum ended_by reason);

/* deadline_ns has come: the measured part begins, or it is over (false). */
bool worker_deadline(struct worker *w, uint64_t now);

/* Sleep until then; false when the loop is to end before. */
bool worker_wait(struct worker *w, uint64_t until_ns);

/* Sleep, but not beyond `until_ns` and no longer than until a stop. */
void worker_sleep(struct worker *w, uint64_t until_ns);

/* Record a failed call. False when that ends the loop. */
bool worker_fail(struct worker *w, enum operation operation, const struct gdsfw_planned_io *io,
                 struct gdsfw_verdict verdict);

/* When the I/O is scheduled to start, 0 without a rate for its direction. */
uint64_t worker_schedule(struct worker *w, const struct gdsfw_planned_io *io);

/* Count what has been tallied; loops call it before anyone looks at the counters. */
void worker_settle(struct worker *w);

/* The end of an I/O. `moved` bytes of it, all of them unless the verdict names an error. Does accounting up to
 * worker_settle, tracking, log, verification and flushes; false when the loop is to end. */
struct finished_io {
  struct gdsfw_planned_io io;
  uint64_t moved;
  uint64_t buffer_offset;
  uint64_t scheduled_ns; /* 0: none */
  uint64_t started_ns, issued_ns, done_ns;
  bool was_short;
  struct gdsfw_verdict verdict;
};
bool worker_complete(struct worker *w, const struct finished_io *done);

/* Flush every file written to since the last time. */
bool worker_flush(struct worker *w, bool data_only);

/* buffers.c: fill all slots before the loop; 0 or an errno. */
int buffers_init(struct worker *w);
/* Make the slot's data ready for a write; false when the loop is to end, *skip when this I/O cannot be issued. */
bool buffers_prepare(struct worker *w, const struct gdsfw_planned_io *io, uint64_t buffer_offset, uint32_t slot,
                     bool *skip);

/* verify.c: compare what a read brought; false when the loop is to end. */
bool verify_block(struct worker *w, const struct gdsfw_planned_io *io, uint64_t buffer_offset);
/* Write the pattern for a block into its slot; false with a verdict when the call failed. */
bool verify_fill(struct worker *w, const struct gdsfw_planned_io *io, uint64_t buffer_offset,
                 struct gdsfw_verdict *verdict);

/* The loops, from worker_begin to worker_finish. */
void loop_sync(struct worker *w);
void loop_queue(struct worker *w);

static inline bool worker_stopped(const struct worker *w) {
  return __atomic_load_n(&w->live->stop, __ATOMIC_RELAXED) != 0;
}

static inline uint64_t worker_file(const struct worker *w, uint32_t file) { return w->config->shape.files[file].value; }

static inline void store_64(uint64_t *to, uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }

static inline void store_32(uint32_t *to, uint32_t value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }

/* Publish the oldest call in flight. Readers look twice; the worker only stores. */
static inline void worker_publish(struct worker *w, enum operation operation, const struct gdsfw_planned_io *io,
                                  uint64_t since_ns) {
  struct gdsfw_live *live = w->live;
  store_32(&live->file, io->file);
  store_64(&live->offset, io->offset);
  store_64(&live->size, io->size);
  store_64(&live->since_ns, since_ns);
  store_32(&live->operation, operation);
}

static inline void worker_publish_none(struct worker *w) { store_32(&w->live->operation, OPERATION_NONE); }

static inline void worker_count(struct worker *w, uint32_t direction, uint64_t ios, uint64_t bytes) {
  store_64(&w->live->ios[direction], w->live->ios[direction] + ios);
  store_64(&w->live->bytes[direction], w->live->bytes[direction] + bytes);
}

/* Note a block that ended well; one that is like those before costs next to nothing. */
static inline void worker_tally(struct worker *w, uint32_t direction, uint64_t size, uint64_t clat_ns, uint64_t lat_ns,
                                uint64_t slat_ns) {
  struct tally *t = &w->tally;
  if (unlikely(((t->size ^ size) | (t->clat_ns ^ clat_ns) | (t->lat_ns ^ lat_ns) | (t->slat_ns ^ slat_ns) |
                (t->direction ^ direction)) != 0)) {
    worker_settle(w);
    *t = (struct tally){0, size, clat_ns, lat_ns, slat_ns, direction};
  }
  t->blocks++;
}

static inline struct gdsfw_histogram *worker_clat(struct worker *w, uint32_t direction) {
  return &w->result->stats[direction].clat;
}

#endif
