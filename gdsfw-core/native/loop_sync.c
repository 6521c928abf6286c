/* loop_sync.c - one I/O at a time.
 *
 * Two loops do the same: run_plain has what a job without rates, verification and the like needs, reads the clock once
 * for each I/O (an I/O begins when the one before it was done) and leaves everything rare to functions that are not
 * inlined. run_full has it all, and takes a second reading so that preparing a buffer is not counted as latency.
 */
#include "worker.h"

#include <errno.h>

struct call {
  void *file, *buffer;
  int64_t buffer_offset;
  gdsfw_io_fn move;
};

static inline void *pointer(uint64_t value) { return (void *)(uintptr_t)value; }

static struct call call_for(const struct worker *w, const struct gdsfw_planned_io *io) {
  return (struct call){
      .file = pointer(worker_file(w, io->file)),
      .buffer = pointer(w->config->buffer),
      .buffer_offset = (int64_t)w->config->buffer_offset,
      .move = io->direction == DIRECTION_READ ? w->io.read : w->io.write,
  };
}

static struct gdsfw_verdict ended_early(uint32_t direction) {
  return (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = direction == DIRECTION_READ ? ENODATA : EIO};
}

/* Move what is left of a block of which `f->moved` bytes are done. */
static void move_rest(struct worker *w, const struct call *call, struct finished_io *f) {
  uint64_t most = w->io.max_transfer ? w->io.max_transfer : UINT64_MAX;
  while (f->moved < f->io.size && f->verdict.domain == GDSFW_NONE) {
    uint64_t left = f->io.size - f->moved, size = left < most ? left : most;
    errno = 0;
    int64_t r = call->move(call->file, call->buffer, size, (int64_t)(f->io.offset + f->moved),
                           call->buffer_offset + (int64_t)f->moved);
    int error = errno;
    if (r < 0)
      f->verdict = gdsfw_decode(r, error, w->io.file_code_base);
    else if (r == 0)
      f->verdict = ended_early(f->io.direction);
    else if ((uint64_t)r > size)
      f->verdict = (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = EPROTO};
    else
      f->moved += (uint64_t)r;
    f->was_short |= r > 0 && (uint64_t)r < size;
  }
}

/* The first call of a plain block returned something else than its size. */
__attribute__((noinline)) static bool finish_plain(struct worker *w, const struct gdsfw_planned_io *io, int64_t r,
                                                   int error, uint64_t issued) {
  struct finished_io f = {.io = *io, .issued_ns = issued, .started_ns = issued};
  struct call call = call_for(w, io);
  f.buffer_offset = w->config->buffer_offset;
  if (r < 0) {
    f.verdict = gdsfw_decode(r, error, w->io.file_code_base);
  } else if (r == 0) {
    f.verdict = ended_early(io->direction);
  } else if ((uint64_t)r > io->size) {
    f.verdict = (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = EPROTO};
  } else {
    f.moved = (uint64_t)r;
    f.was_short = true;
    move_rest(w, &call, &f);
  }
  f.done_ns = clock_now(&w->clock);
  bool go_on = worker_complete(w, &f);
  worker_settle(w);
  return go_on;
}

static inline __attribute__((always_inline)) void run_plain(struct worker *w, const bool latencies) {
  const struct gdsfw_loop_file *files = w->config->shape.files;
  void *buffer = pointer(w->config->buffer);
  const int64_t buffer_offset = (int64_t)w->config->buffer_offset;
  const gdsfw_io_fn moves[2] = {w->io.read, w->io.write};
  int *error = &errno;
  struct gdsfw_planned_io io;
  uint64_t now = clock_now(&w->clock);
  for (;;) {
    if (unlikely(worker_stopped(w))) {
      worker_end(w, ENDED_STOP);
      return;
    }
    if (unlikely(now >= w->deadline_ns) && !worker_deadline(w, now))
      return;
    if (unlikely(!offsets_next(&w->offsets, &io))) {
      worker_end(w, ENDED_IO_SIZE);
      return;
    }
    enum operation operation = io.direction == DIRECTION_READ ? OPERATION_READ : OPERATION_WRITE;
    worker_publish(w, operation, &io, now);
    *error = 0;
    int64_t r = moves[io.direction](pointer(files[io.file].value), buffer, io.size, (int64_t)io.offset, buffer_offset);
    if (likely(r == (int64_t)io.size)) {
      uint64_t done = clock_now(&w->clock);
      if (latencies)
        histogram_add(worker_clat(w, io.direction), done - now);
      worker_count(w, io.direction, 1, io.size);
      now = done;
    } else {
      if (!finish_plain(w, &io, r, *error, now))
        return;
      now = clock_now(&w->clock);
    }
    if (io.direction == DIRECTION_WRITE)
      w->unsynced[io.file] = true;
  }
}

static bool register_block(struct worker *w, struct call *call, const struct gdsfw_planned_io *io, bool on,
                           struct gdsfw_verdict *verdict) {
  uint64_t base = w->config->buffer + w->config->buffer_offset;
  gdsfw_call_register(&w->io, base, on ? io->size : 0, verdict);
  /* A library knows a registered buffer by the address it was registered with. */
  call->buffer = pointer(base);
  call->buffer_offset = 0;
  return verdict->domain == GDSFW_NONE;
}

static bool issue(struct worker *w, const struct gdsfw_planned_io *io, uint64_t scheduled) {
  struct finished_io f = {.io = *io, .scheduled_ns = scheduled, .buffer_offset = w->config->buffer_offset};
  struct call call = call_for(w, io);
  f.started_ns = f.issued_ns = clock_now(&w->clock);
  bool registers = w->config->register_per_io;
  if (registers) {
    worker_publish(w, OPERATION_REGISTER, io, f.issued_ns);
    if (!register_block(w, &call, io, true, &f.verdict))
      return worker_fail(w, OPERATION_REGISTER, io, f.verdict);
  }
  worker_publish(w, io->direction == DIRECTION_READ ? OPERATION_READ : OPERATION_WRITE, io, f.issued_ns);
  move_rest(w, &call, &f);
  struct gdsfw_verdict deregistered = {0};
  if (registers)
    register_block(w, &call, io, false, &deregistered);
  f.done_ns = clock_now(&w->clock);
  worker_publish_none(w);
  if (io->direction == DIRECTION_READ)
    w->stale[0] = true;
  bool go_on = worker_complete(w, &f);
  worker_settle(w);
  if (!go_on)
    return false;
  return deregistered.domain == GDSFW_NONE || worker_fail(w, OPERATION_REGISTER, io, deregistered);
}

/* One I/O with everything that a job can ask for; false when the loop is to end. */
static bool step_full(struct worker *w) {
  struct gdsfw_planned_io io;
  if (!offsets_next(&w->offsets, &io)) {
    worker_end(w, ENDED_IO_SIZE);
    return false;
  }
  uint64_t scheduled = worker_schedule(w, &io);
  if (scheduled && !worker_wait(w, scheduled))
    return false;
  bool skip = false;
  if (io.direction == DIRECTION_WRITE && !buffers_prepare(w, &io, w->config->buffer_offset, 0, &skip))
    return false;
  if (!skip && !issue(w, &io, scheduled))
    return false;
  return !w->config->think_time_ns || worker_wait(w, clock_now(&w->clock) + w->config->think_time_ns);
}

static void run_full(struct worker *w) {
  do {
    uint64_t now = clock_now(&w->clock);
    if (worker_stopped(w)) {
      worker_end(w, ENDED_STOP);
      return;
    }
    if (now >= w->deadline_ns && !worker_deadline(w, now))
      return;
  } while (step_full(w));
}

static bool is_plain(const struct worker *w) {
  const struct gdsfw_config *c = w->config;
  bool host = w->io.flags & GDSFW_HOST_VISIBLE;
  bool makes = c->write_fill == FILL_PATTERN || w->remakes || (host && (w->stamps || c->shape.reads));
  bool prepares = c->shape.writes && makes;
  bool flushes = c->shape.writes && (c->fsync_every || c->fdatasync_every);
  bool watches = c->check || w->track.files || w->log.fd >= 0 || c->register_per_io;
  bool splits = w->io.max_transfer && w->offsets.largest > w->io.max_transfer;
  return !prepares && !flushes && !watches && !w->paced && !c->think_time_ns && !splits;
}

void loop_sync(struct worker *w) {
  worker_begin(w);
  if (w->ended)
    ; /* the buffers could not be filled */
  else if (!is_plain(w))
    run_full(w);
  else if (w->config->latencies)
    run_plain(w, true);
  else
    run_plain(w, false);
  worker_finish(w);
}
