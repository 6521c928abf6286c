/* worker.c - begin, end and accounting of a loop. */
#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A sleeping thread wakes up to this late (timer slack and scheduling); the rest of a wait is spun. */
#define WAKE_LATE_NS 100000

static uint64_t thread_cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void worker_end(struct worker *w, enum ended_by reason) {
  if (!w->ended)
    w->result->ended_by = reason;
  w->ended = true;
}

static void add_totals(struct worker *w) {
  w->result->total_ios += w->live->ios[0] + w->live->ios[1];
  w->result->total_bytes += w->live->bytes[0] + w->live->bytes[1];
}

void worker_settle(struct worker *w) {
  struct tally *t = &w->tally;
  if (!t->blocks)
    return;
  worker_count(w, t->direction, t->blocks, t->blocks * t->size);
  if (w->config->latencies) {
    struct gdsfw_stats *stats = &w->result->stats[t->direction];
    histogram_add_many(&stats->clat, t->clat_ns, t->blocks);
    if (w->result->separate_lat)
      histogram_add_many(&stats->lat, t->lat_ns, t->blocks);
    if (w->io.queue)
      histogram_add_many(&stats->slat, t->slat_ns, t->blocks);
  }
  t->blocks = 0;
}

static void begin_measuring(struct worker *w, uint64_t now) {
  struct gdsfw_result *r = w->result;
  struct gdsfw_live *live = w->live;
  worker_settle(w);
  add_totals(w);
  for (int d = 0; d < 2; d++) {
    store_64(&live->ios[d], 0);
    store_64(&live->bytes[d], 0);
    r->stats[d].short_ios = r->stats[d].errors = 0;
    histogram_clear(&r->stats[d].clat);
    histogram_clear(&r->stats[d].lat);
    histogram_clear(&r->stats[d].slat);
  }
  store_64(&live->errors, 0);
  store_32(&live->measuring, 1);
  r->flushes = r->flush_ns = r->storage_ns = r->copy_ns = 0;
  memset(r->depths, 0, sizeof r->depths);
  r->started_ns = now;
  w->deadline_ns = w->config->runtime_ns ? now + w->config->runtime_ns : UINT64_MAX;
  w->cpu_start_ns = thread_cpu_ns();
}

bool worker_deadline(struct worker *w, uint64_t now) {
  if (!w->live->measuring) {
    begin_measuring(w, now);
    return true;
  }
  worker_end(w, ENDED_RUNTIME);
  return false;
}

void worker_begin(struct worker *w) {
  clock_start(&w->clock);
  uint64_t now = clock_now(&w->clock);
  w->begun_ns = now;
  for (int d = 0; d < 2; d++)
    w->pace[d].start_ns = now;
  if (w->config->ramp_ns)
    w->deadline_ns = now + w->config->ramp_ns;
  else
    begin_measuring(w, now);
}

void worker_finish(struct worker *w) {
  struct gdsfw_result *r = w->result;
  if (w->config->end_fsync && r->ended_by != ENDED_ERROR && !worker_flush(w, false))
    r->ended_by = ENDED_ERROR;
  worker_publish_none(w);
  worker_settle(w);
  uint64_t now = clock_now(&w->clock);
  if (!w->live->measuring)
    begin_measuring(w, now);
  r->ended_ns = now;
  r->cpu_ns = thread_cpu_ns() - w->cpu_start_ns;
  add_totals(w);
  for (int d = 0; d < 2; d++) {
    r->stats[d].ios = w->live->ios[d];
    r->stats[d].bytes = w->live->bytes[d];
  }
  log_flush(&w->log);
  r->log_errno = w->log.error;
  if (w->config->written)
    r->written_count =
        w->track.files ? track_ranges(&w->track, w->config->written, w->config->written_room) : UINT64_MAX;
}

void worker_sleep(struct worker *w, uint64_t until_ns) {
  uint64_t now = clock_now(&w->clock);
  if (until_ns <= now + WAKE_LATE_NS)
    return;
  uint64_t wake = until_ns - WAKE_LATE_NS;
  struct timespec at = {(time_t)(wake / 1000000000u), (long)(wake % 1000000000u)};
  /* Returns at once when `stop` is not 0 any more, and when gdsfw_stop wakes it. */
  syscall(SYS_futex, &w->live->stop, FUTEX_WAIT_BITSET_PRIVATE, 0, &at, NULL, FUTEX_BITSET_MATCH_ANY);
}

GDSFW_EXPORT void gdsfw_stop(struct gdsfw_live *live) {
  store_32(&live->stop, 1);
  syscall(SYS_futex, &live->stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool worker_wait(struct worker *w, uint64_t until_ns) {
  for (;;) {
    uint64_t now = clock_now(&w->clock);
    if (now >= until_ns)
      return true;
    if (worker_stopped(w)) {
      worker_end(w, ENDED_STOP);
      return false;
    }
    if (now >= w->deadline_ns) {
      if (!worker_deadline(w, now))
        return false;
      continue;
    }
    worker_sleep(w, until_ns < w->deadline_ns ? until_ns : w->deadline_ns);
  }
}

bool worker_fail(struct worker *w, enum operation operation, const struct gdsfw_planned_io *io,
                 struct gdsfw_verdict verdict) {
  struct gdsfw_result *r = w->result;
  if (r->failure_count < RESULT_FAILURES)
    r->failures[r->failure_count] = (struct gdsfw_failure){
        operation, io->file, io->offset, io->size, verdict.domain, 0, verdict.code,
    };
  r->failure_count++;
  r->stats[io->direction].errors++;
  store_64(&w->live->errors, w->live->errors + 1);
  if (r->failure_count <= w->config->error_limit)
    return true;
  worker_end(w, ENDED_ERROR);
  return false;
}

uint64_t worker_schedule(struct worker *w, const struct gdsfw_planned_io *io) {
  struct pace *pace = &w->pace[io->direction];
  return pace_limits(pace) ? pace_schedule(pace, io->size, &w->arrivals) : 0;
}

bool worker_flush(struct worker *w, bool data_only) {
  for (uint32_t i = 0; i < w->config->shape.file_count; i++) {
    if (!w->unsynced[i])
      continue;
    w->unsynced[i] = false;
    struct gdsfw_planned_io io = {.direction = DIRECTION_WRITE, .file = i};
    struct gdsfw_verdict verdict;
    uint64_t before = clock_now(&w->clock);
    worker_publish(w, OPERATION_FLUSH, &io, before);
    gdsfw_call_flush(&w->io, worker_file(w, i), data_only, &verdict);
    worker_publish_none(w);
    w->result->flush_ns += clock_now(&w->clock) - before;
    w->result->flushes++;
    if (verdict.domain != GDSFW_NONE && !worker_fail(w, OPERATION_FLUSH, &io, verdict))
      return false;
  }
  return true;
}

static void log_io(struct worker *w, const struct finished_io *f) {
  if (w->log.fd < 0)
    return;
  uint64_t from = f->scheduled_ns ? f->scheduled_ns : f->started_ns;
  struct log_entry entry = {
      .time_ns = f->done_ns - w->begun_ns,
      .operation = f->io.direction == DIRECTION_READ ? "read" : "write",
      .file = f->io.file,
      .offset = f->io.offset,
      .size = f->io.size,
      .latency_ns = f->done_ns - from,
      .domain = f->verdict.domain,
      .code = (uint64_t)f->verdict.code,
  };
  log_add(&w->log, &entry);
}

static bool after_write(struct worker *w, const struct finished_io *f) {
  if (w->track.files)
    track_written(&w->track, &f->io, true);
  if (w->writes_to_fsync && --w->writes_to_fsync == 0) {
    w->writes_to_fsync = w->config->fsync_every;
    return worker_flush(w, false);
  }
  if (w->writes_to_fdatasync && --w->writes_to_fdatasync == 0) {
    w->writes_to_fdatasync = w->config->fdatasync_every;
    return worker_flush(w, true);
  }
  return true;
}

bool worker_complete(struct worker *w, const struct finished_io *f) {
  log_io(w, f);
  /* A write that failed may have moved a part. */
  if (f->io.direction == DIRECTION_WRITE)
    w->unsynced[f->io.file] = true;
  if (unlikely(f->verdict.domain != GDSFW_NONE)) {
    w->result->total_bytes += f->moved;
    if (f->io.direction == DIRECTION_WRITE && w->track.files)
      track_written(&w->track, &f->io, false);
    return worker_fail(w, f->io.direction == DIRECTION_READ ? OPERATION_READ : OPERATION_WRITE, &f->io, f->verdict);
  }
  w->result->stats[f->io.direction].short_ios += f->was_short;
  worker_tally(w, f->io.direction, f->io.size, f->done_ns - f->issued_ns,
               f->done_ns - (f->scheduled_ns ? f->scheduled_ns : f->started_ns), f->issued_ns - f->started_ns);
  if (f->io.direction == DIRECTION_WRITE)
    return after_write(w, f);
  return !w->config->check || verify_block(w, &f->io, f->buffer_offset);
}
