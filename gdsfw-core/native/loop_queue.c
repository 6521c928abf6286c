/* loop_queue.c - up to iodepth requests in flight through a table's queue.
 *
 * Each turn: issue all that may be issued now, at most batch_submit in one submission, then reap. Waiting happens in
 * reap, in slices short enough for the stop flag. A block is one slot until it is complete: short counts and blocks
 * above max_transfer are continued by another request of the same slot. The queue is closed only when nothing is in
 * flight; a queue that does not give its requests back keeps this thread, and the main thread sees the oldest request
 * and judges.
 */
#include "slots.h"
#include "worker.h"

#include <errno.h>
#include <stdlib.h>

#define WAIT_SLICE_NS 10000000ull

struct queue_loop {
  struct worker *w;
  void *queue;
  struct slots slots;
  struct gdsfw_request *requests; /* prepared, not yet accepted: of `request_slots` */
  uint32_t *request_slots;
  uint32_t prepared;
  struct gdsfw_completion *completions;
  uint32_t *unfinished; /* slots with bytes left, to be issued again */
  uint32_t unfinished_count;
  uint32_t in_flight;
  uint64_t next_cookie;
  struct gdsfw_planned_io next; /* drawn, not yet issued */
  bool has_next;
  uint64_t next_scheduled_ns;
  uint64_t think_until_ns;
  uint32_t published;
  void **files;
  bool cancelled;
  bool plain; /* nothing is done to a block that has been read but to count it */
};

static uint64_t slot_offset(const struct queue_loop *q, uint32_t slot) {
  return q->w->config->buffer_offset + slot * q->w->config->slot_stride;
}

static enum operation operation_of(const struct gdsfw_planned_io *io) {
  return io->direction == DIRECTION_READ ? OPERATION_READ : OPERATION_WRITE;
}

/* Show the oldest request from outside, when it is another one. */
static void publish_oldest(struct queue_loop *q) {
  uint32_t oldest = q->slots.oldest;
  if (oldest == NO_SLOT) {
    if (q->published != NO_SLOT)
      worker_publish_none(q->w);
    q->published = oldest;
    return;
  }
  const struct slot *slot = &q->slots.slots[oldest];
  const struct gdsfw_live *live = q->w->live;
  /* A flush in between has shown itself and left nothing. */
  if (q->published != oldest || live->since_ns != slot->started_ns || live->operation == OPERATION_NONE)
    worker_publish(q->w, operation_of(&slot->io), &slot->io, slot->started_ns);
  q->published = oldest;
}

/* Queue the next request for a slot: all that is left of its block, as far as one call may go. */
static void prepare_request(struct queue_loop *q, uint32_t index) {
  const struct gdsfw_config *c = q->w->config;
  struct slot *slot = &q->slots.slots[index];
  uint64_t left = slot->io.size - slot->moved, most = q->w->io.max_transfer;
  slot->asked = most && left > most ? most : left;
  uint64_t base = c->buffer, at = slot_offset(q, index);
  if (slot->registered) {
    base += at;
    at = 0;
  }
  q->requests[q->prepared] = (struct gdsfw_request){
      .opcode = slot->io.direction,
      .file = (void *)(uintptr_t)worker_file(q->w, slot->io.file),
      .buffer_base = (void *)(uintptr_t)base,
      .size = slot->asked,
      .file_offset = (int64_t)(slot->io.offset + slot->moved),
      .buffer_offset = (int64_t)(at + slot->moved),
      .cookie = q->next_cookie,
  };
  slots_set_cookie(&q->slots, index, q->next_cookie++);
  q->request_slots[q->prepared++] = index;
}

/* Registration of one block, when every I/O has its own; false with a verdict when it failed. */
static bool register_slot(struct queue_loop *q, uint32_t index, bool on, struct gdsfw_verdict *verdict) {
  struct slot *slot = &q->slots.slots[index];
  uint64_t base = q->w->config->buffer + slot_offset(q, index);
  gdsfw_call_register(&q->w->io, base, on ? slot->io.size : 0, verdict);
  slot->registered = on && verdict->domain == GDSFW_NONE;
  return verdict->domain == GDSFW_NONE;
}

/* Draw the next I/O if none is waiting. False at the end of the sequence. */
static bool have_next(struct queue_loop *q) {
  if (q->has_next)
    return true;
  if (!offsets_next(&q->w->offsets, &q->next)) {
    worker_end(q->w, ENDED_IO_SIZE);
    return false;
  }
  q->next_scheduled_ns = worker_schedule(q->w, &q->next);
  return q->has_next = true;
}

/* May the next I/O be issued at this moment? */
static bool may_issue(const struct queue_loop *q, uint64_t now) {
  if (q->slots.free_count == 0 || q->next_scheduled_ns > now)
    return false;
  if (q->w->config->think_time_ns && (q->slots.oldest != NO_SLOT || q->think_until_ns > now))
    return false;
  /* With generations the order of overlapping requests decides what the bytes must be. */
  return !q->w->track.generations || !slots_conflict(&q->slots, &q->next);
}

/* Put the next I/O into a slot; false when that ended the loop. */
static bool start_next(struct queue_loop *q, uint64_t now) {
  struct worker *w = q->w;
  uint32_t index = slots_take(&q->slots);
  struct slot *slot = &q->slots.slots[index];
  slot->io = q->next;
  slot->scheduled_ns = q->next_scheduled_ns;
  slot->started_ns = now;
  q->has_next = false;
  if (slot->io.direction == DIRECTION_WRITE) {
    bool skip;
    bool go_on = buffers_prepare(w, &slot->io, slot_offset(q, index), index, &skip);
    if (skip || !go_on) {
      slots_give_back(&q->slots, index);
      return go_on;
    }
    slot->started_ns = clock_now(&w->clock);
  }
  struct gdsfw_verdict verdict;
  if (w->config->register_per_io && !register_slot(q, index, true, &verdict)) {
    struct gdsfw_planned_io io = slot->io;
    slots_give_back(&q->slots, index);
    return worker_fail(w, OPERATION_REGISTER, &io, verdict);
  }
  prepare_request(q, index);
  return true;
}

static void prepare(struct queue_loop *q, uint64_t now) {
  uint32_t most = q->w->config->batch_submit;
  while (q->unfinished_count)
    prepare_request(q, q->unfinished[--q->unfinished_count]);
  while (!q->w->ended && q->prepared < most && have_next(q) && may_issue(q, now))
    if (!start_next(q, now))
      return;
}

/* Asked to end early, this block is neither done nor an error. */
static void withdraw(struct queue_loop *q, const struct slot *slot) {
  q->w->result->total_bytes += slot->moved;
  if (slot->io.direction == DIRECTION_WRITE && q->w->track.files)
    track_written(&q->w->track, &slot->io, false);
}

/* The block has come to its end: account for it and free its slot. */
static void finish_any(struct queue_loop *q, uint32_t index, uint64_t now, struct gdsfw_verdict verdict) {
  struct slot *slot = &q->slots.slots[index];
  struct worker *w = q->w;
  struct finished_io f = {
      .io = slot->io,
      .moved = slot->moved,
      .buffer_offset = slot_offset(q, index),
      .scheduled_ns = slot->scheduled_ns,
      .started_ns = slot->started_ns,
      .issued_ns = slot->issued_ns,
      .done_ns = now,
      .was_short = slot->was_short,
      .verdict = verdict,
  };
  struct gdsfw_verdict deregistered = {0};
  if (slot->registered)
    register_slot(q, index, false, &deregistered);
  if (slot->io.direction == DIRECTION_READ)
    w->stale[index] = true;
  q->think_until_ns = now + w->config->think_time_ns;
  if (q->cancelled && verdict.domain == GDSFW_ERRNO && verdict.code == ECANCELED)
    withdraw(q, slot);
  else
    worker_complete(w, &f);
  if (deregistered.domain != GDSFW_NONE)
    worker_fail(w, OPERATION_REGISTER, &slot->io, deregistered);
  slots_give_back(&q->slots, index);
}

/* finish_any without what a plain block does not need. */
static inline void finish_slot(struct queue_loop *q, uint32_t index, uint64_t now, struct gdsfw_verdict verdict) {
  struct slot *slot = &q->slots.slots[index];
  if (unlikely(!q->plain || slot->io.direction != DIRECTION_READ || verdict.domain != GDSFW_NONE || slot->was_short)) {
    finish_any(q, index, now, verdict);
    return;
  }
  uint64_t from = slot->scheduled_ns ? slot->scheduled_ns : slot->started_ns;
  worker_tally(q->w, DIRECTION_READ, slot->io.size, now - slot->issued_ns, now - from,
               slot->issued_ns - slot->started_ns);
  q->w->stale[index] = true;
  slots_give_back(&q->slots, index);
}

/* The first prepared request cannot be submitted. */
static void refuse_first(struct queue_loop *q, struct gdsfw_verdict verdict) {
  uint32_t index = q->request_slots[0];
  struct gdsfw_planned_io io = q->slots.slots[index].io;
  slots_find(&q->slots, q->requests[0].cookie);
  if (io.direction == DIRECTION_WRITE && q->w->track.files)
    track_written(&q->w->track, &io, false);
  slots_give_back(&q->slots, index);
  worker_fail(q->w, OPERATION_SUBMIT, &io, verdict);
}

/* Drop the first n prepared requests from the list. */
static void shift_prepared(struct queue_loop *q, uint32_t n) {
  q->prepared -= n;
  for (uint32_t i = 0; i < q->prepared; i++) {
    q->requests[i] = q->requests[i + n];
    q->request_slots[i] = q->request_slots[i + n];
  }
}

static void submit(struct queue_loop *q) {
  struct worker *w = q->w;
  if (q->prepared == 0)
    return;
  errno = 0;
  int64_t r = w->queue.submit(q->queue, q->requests, q->prepared);
  int error = errno;
  if (r > 0) {
    uint64_t now = clock_now(&w->clock);
    uint32_t taken = r < (int64_t)q->prepared ? (uint32_t)r : q->prepared;
    for (uint32_t i = 0; i < taken; i++) {
      struct slot *slot = &q->slots.slots[q->request_slots[i]];
      if (slot->issued_ns == 0)
        slot->issued_ns = now;
    }
    q->in_flight += taken;
    shift_prepared(q, taken);
  } else if (r < 0 || q->in_flight == 0) {
    /* A queue that is full although nothing is in flight would never take anything. */
    struct gdsfw_verdict full = {.domain = GDSFW_ERRNO, .code = EAGAIN};
    refuse_first(q, r < 0 ? gdsfw_decode(r, error, w->io.file_code_base) : full);
    shift_prepared(q, 1);
  }
}

/* Fill the queue: the depth that was asked for is kept before anything is waited for. */
static void issue(struct queue_loop *q, uint64_t now) {
  uint32_t before;
  do {
    prepare(q, now);
    before = q->in_flight;
    submit(q);
  } while (q->in_flight > before && q->prepared == 0 && q->slots.free_count);
}

static inline struct gdsfw_verdict judge(const struct slot *slot, const struct gdsfw_completion *c, uint64_t moved) {
  if (likely(c->domain == GDSFW_NONE && moved == slot->asked && moved))
    return (struct gdsfw_verdict){0};
  if (c->domain != GDSFW_NONE)
    return (struct gdsfw_verdict){.domain = c->domain, .code = c->code};
  if (moved == 0)
    return (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = slot->io.direction == DIRECTION_READ ? ENODATA : EIO};
  if (moved > slot->asked)
    return (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = EPROTO};
  return (struct gdsfw_verdict){0};
}

/* The queue gave back what it does not have. */
static void refuse_completion(struct queue_loop *q) {
  struct gdsfw_planned_io none = {0};
  worker_fail(q->w, OPERATION_REAP, &none, (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = EPROTO});
}

static void complete_one(struct queue_loop *q, const struct gdsfw_completion *c, uint64_t cookie, uint64_t now) {
  uint32_t index = slots_find(&q->slots, cookie);
  if (index == NO_SLOT) {
    refuse_completion(q);
    return;
  }
  struct slot *slot = &q->slots.slots[index];
  uint64_t moved = c->count > 1 ? slot->asked : c->result > 0 ? (uint64_t)c->result : 0;
  struct gdsfw_verdict verdict = judge(slot, c, moved);
  q->in_flight--;
  if (verdict.domain == GDSFW_NONE) {
    slot->moved += moved;
    slot->was_short |= moved < slot->asked;
    if (slot->moved < slot->io.size && !q->cancelled) {
      q->unfinished[q->unfinished_count++] = index;
      return;
    }
    if (slot->moved < slot->io.size)
      verdict = (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = ECANCELED};
  }
  finish_slot(q, index, now, verdict);
}

static void complete(struct queue_loop *q, const struct gdsfw_completion *c, uint32_t bucket, uint64_t now) {
  struct gdsfw_result *result = q->w->result;
  uint32_t count = c->count ? c->count : 1;
  if (count > q->in_flight) {
    refuse_completion(q);
    return;
  }
  result->storage_ns += c->storage_ns;
  result->copy_ns += c->copy_ns;
  result->depths[bucket] += count;
  for (uint32_t k = 0; k < count; k++)
    complete_one(q, c, c->cookie + k, now);
}

static uint32_t depth_bucket(uint32_t in_flight) {
  uint32_t bucket = 31 - (uint32_t)__builtin_clz(in_flight | 1);
  return bucket < RESULT_DEPTHS ? bucket : RESULT_DEPTHS - 1;
}

/* How long reap may wait, and for how many. */
static int64_t patience(struct queue_loop *q, uint64_t now, uint32_t *at_least) {
  const struct worker *w = q->w;
  if (q->prepared) {
    *at_least = 1; /* the queue was full */
    return WAIT_SLICE_NS;
  }
  uint64_t until = now + WAIT_SLICE_NS;
  if (!w->ended && w->deadline_ns < until)
    until = w->deadline_ns;
  if (!w->ended && q->has_next && q->next_scheduled_ns > now && q->next_scheduled_ns < until)
    until = q->next_scheduled_ns;
  uint32_t batch = w->config->batch_complete;
  *at_least = q->in_flight < batch ? q->in_flight : batch;
  return until > now ? (int64_t)(until - now) : 0;
}

static void reap(struct queue_loop *q, uint64_t now) {
  struct worker *w = q->w;
  uint32_t at_least;
  int64_t timeout = patience(q, now, &at_least);
  errno = 0;
  int64_t n = w->queue.reap(q->queue, q->completions, at_least, w->config->iodepth, timeout);
  int error = errno;
  if (n == -1 && error == EINTR)
    n = 0;
  if (n < 0) {
    struct gdsfw_planned_io none = {0};
    if (!w->ended)
      worker_fail(w, OPERATION_REAP, &none, gdsfw_decode(n, error, w->io.file_code_base));
    worker_end(w, ENDED_ERROR);
    /* What is in flight keeps this thread; it asks again until the main thread gives up on it. */
    nanosleep(&(struct timespec){.tv_nsec = WAIT_SLICE_NS}, NULL);
    return;
  }
  uint64_t done = clock_now(&w->clock);
  uint32_t bucket = depth_bucket(q->in_flight);
  for (int64_t i = 0; i < n && i < w->config->iodepth; i++)
    complete(q, &q->completions[i], bucket, done);
  worker_settle(w);
}

/* Nothing is in flight and nothing may be issued yet: sleep until it may. */
static void idle(struct queue_loop *q) {
  uint64_t until = q->next_scheduled_ns > q->think_until_ns ? q->next_scheduled_ns : q->think_until_ns;
  worker_wait(q->w, until);
}

/* An ended loop withdraws what is prepared; a stop or an error also asks for what is in flight to end early. */
static void wind_down(struct queue_loop *q) {
  struct gdsfw_verdict cancelled = {.domain = GDSFW_ERRNO, .code = ECANCELED};
  if (!worker_stopped(q->w) && q->w->result->ended_by != ENDED_ERROR)
    return;
  if (!q->cancelled && q->w->queue.cancel && q->in_flight)
    q->w->queue.cancel(q->queue);
  q->cancelled = true;
  uint64_t now = clock_now(&q->w->clock);
  for (uint32_t i = 0; i < q->prepared; i++) {
    slots_find(&q->slots, q->requests[i].cookie);
    finish_slot(q, q->request_slots[i], now, cancelled);
  }
  q->prepared = 0;
  while (q->unfinished_count)
    finish_slot(q, q->unfinished[--q->unfinished_count], now, cancelled);
}

static void run(struct queue_loop *q) {
  struct worker *w = q->w;
  while (!w->ended || q->in_flight || q->prepared || q->unfinished_count) {
    uint64_t now = clock_now(&w->clock);
    if (worker_stopped(w))
      worker_end(w, ENDED_STOP);
    if (!w->ended && now >= w->deadline_ns)
      worker_deadline(w, now);
    if (w->ended)
      wind_down(q);
    issue(q, now);
    publish_oldest(q);
    if (q->in_flight)
      reap(q, clock_now(&w->clock));
    else if (!w->ended && q->has_next && !q->prepared && !q->unfinished_count)
      idle(q);
    publish_oldest(q);
  }
}

static int allocate(struct queue_loop *q) {
  uint32_t depth = q->w->config->iodepth;
  q->requests = calloc(depth, sizeof *q->requests);
  q->request_slots = calloc(depth, sizeof *q->request_slots);
  q->completions = calloc(depth, sizeof *q->completions);
  q->unfinished = calloc(depth, sizeof *q->unfinished);
  q->files = calloc(q->w->config->shape.file_count, sizeof *q->files);
  int error = slots_init(&q->slots, depth);
  return q->requests && q->request_slots && q->completions && q->unfinished && q->files ? error : ENOMEM;
}

static void release(struct queue_loop *q) {
  slots_free(&q->slots);
  free(q->requests);
  free(q->request_slots);
  free(q->completions);
  free(q->unfinished);
  free(q->files);
}

static bool open_queue(struct queue_loop *q) {
  const struct gdsfw_config *c = q->w->config;
  for (uint32_t i = 0; i < c->shape.file_count; i++)
    q->files[i] = (void *)(uintptr_t)c->shape.files[i].value;
  struct gdsfw_queue_options options = {
      .abi = GDSFW_ABI,
      .struct_size = sizeof options,
      .iodepth = c->iodepth,
      .iodepth_batch = c->batch_submit,
      .buffer_base = (void *)(uintptr_t)c->buffer,
      .buffer_size = c->buffer_size,
      .max_block = q->w->offsets.largest,
      .files = q->files,
      .nfiles = c->shape.file_count,
  };
  errno = 0;
  int64_t r = q->w->queue.open(q->w->io.ctx, &options, &q->queue);
  int error = errno;
  struct gdsfw_planned_io none = {0};
  if (r < 0) {
    worker_fail(q->w, OPERATION_OPEN, &none, gdsfw_decode(r, error, q->w->io.file_code_base));
    worker_end(q->w, ENDED_ERROR);
  }
  return r >= 0;
}

void loop_queue(struct worker *w) {
  const struct gdsfw_config *c = w->config;
  struct queue_loop q = {
      .w = w,
      .published = NO_SLOT,
      .plain = !c->check && !c->register_per_io && !c->think_time_ns && c->log_fd < 0,
  };
  bool opened = false;
  if (allocate(&q)) {
    struct gdsfw_planned_io none = {0};
    worker_fail(w, OPERATION_OPEN, &none, (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = ENOMEM});
    worker_end(w, ENDED_ERROR);
  } else if (!w->ended) {
    opened = open_queue(&q);
  }
  /* Opening and closing, which may pin memory, are outside the measured time. */
  worker_begin(w);
  run(&q);
  worker_finish(w);
  if (opened)
    w->queue.close(q.queue);
  release(&q);
}
