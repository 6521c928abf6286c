/* gpu_batch.c - the batch queue: the file library's own batch interface. Every event's status and count is read: a
 * status call that succeeds says nothing about the I/Os.
 *
 * A handle of the library takes one submission at a time: entries of a second one that is submitted before the first
 * is through may never be reported (seen with a library of 2026 that bounced through host memory). So there are as many
 * handles as submissions can be in flight. Entries stay where they are until the last one of their submission has
 * completed, since the library may look at them until then; each entry's cookie leads back to its submission.
 */
#include "gpu_internal.h"

#include <stdlib.h>

struct submission {
  void *handle;
  struct gdsfw_gpu_batch_entry *entries;
  uint32_t left; /* entries not yet completed; 0: free for another submission */
};

struct record {
  uint64_t cookie;
  struct submission *submission;
  struct record *next_free;
};

struct batch {
  const struct gdsfw_gpu_path *path;
  uint32_t depth, in_flight;
  uint32_t handles, entries_each;
  struct submission *submissions; /* ring of `handles` */
  uint32_t oldest, in_use;
  struct gdsfw_gpu_batch_entry *entries;
  struct record *records;
  struct record *free_records;
  struct gdsfw_gpu_batch_event *events;
};

static int64_t make_handles(struct batch *q) {
  for (uint32_t i = 0; i < q->handles; i++) {
    struct submission *s = &q->submissions[i];
    s->entries = q->entries + (size_t)i * q->entries_each;
    int64_t error = gpu_result(q->path->library->batch_setup(&s->handle, q->entries_each));
    if (error < 0) {
      s->handle = NULL;
      return error;
    }
  }
  return 0;
}

static int64_t batch_open(void *ctx, const struct gdsfw_queue_options *options, void **queue) {
  struct batch *q = calloc(1, sizeof *q);
  if (!q)
    return -1;
  *queue = q;
  q->path = ctx;
  q->depth = options->iodepth;
  q->entries_each = options->iodepth_batch ? options->iodepth_batch : 1;
  q->handles = (q->depth + q->entries_each - 1) / q->entries_each;
  q->submissions = calloc(q->handles, sizeof *q->submissions);
  q->entries = calloc((size_t)q->handles * q->entries_each, sizeof *q->entries);
  q->records = calloc(q->depth, sizeof *q->records);
  q->events = calloc(q->depth, sizeof *q->events);
  if (!q->submissions || !q->entries || !q->records || !q->events)
    return -1;
  for (uint32_t i = 0; i < q->depth; i++) {
    q->records[i].next_free = q->free_records;
    q->free_records = &q->records[i];
  }
  return make_handles(q);
}

static void batch_close(void *queue) {
  struct batch *q = queue;
  if (!q)
    return;
  for (uint32_t i = 0; q->submissions && i < q->handles; i++)
    if (q->submissions[i].handle)
      q->path->library->batch_destroy(q->submissions[i].handle);
  free(q->submissions);
  free(q->entries);
  free(q->records);
  free(q->events);
  free(q);
}

static struct submission *submission_at(struct batch *q, uint32_t age) {
  return &q->submissions[(q->oldest + age) % q->handles];
}

/* Hand the oldest submissions back whose entries have all completed. */
static void retire(struct batch *q) {
  while (q->in_use && !submission_at(q, 0)->left) {
    q->oldest = (q->oldest + 1) % q->handles;
    q->in_use--;
  }
}

static void fill_entry(struct batch *q, struct submission *s, const struct gdsfw_request *r) {
  struct record *record = q->free_records;
  q->free_records = record->next_free;
  record->cookie = r->cookie;
  record->submission = s;
  s->entries[s->left++] = (struct gdsfw_gpu_batch_entry){
      .mode = 1,
      .buffer_base = r->buffer_base,
      .file_offset = r->file_offset,
      .buffer_offset = r->buffer_offset,
      .size = r->size,
      .file = r->file,
      .opcode = (int32_t)r->opcode,
      .cookie = record,
  };
}

static void release(struct batch *q, struct record *record) {
  record->submission->left--;
  record->next_free = q->free_records;
  q->free_records = record;
}

static int64_t batch_submit(void *queue, const struct gdsfw_request *requests, uint32_t n) {
  struct batch *q = queue;
  if (n > q->depth - q->in_flight)
    n = q->depth - q->in_flight;
  if (n > q->entries_each)
    n = q->entries_each;
  if (!n || q->in_use == q->handles)
    return 0;
  struct submission *s = submission_at(q, q->in_use);
  for (uint32_t i = 0; i < n; i++)
    fill_entry(q, s, &requests[i]);
  int64_t error = gpu_result(q->path->library->batch_submit(s->handle, n, s->entries, 0));
  if (error < 0) {
    for (uint32_t i = n; i > 0; i--)
      release(q, s->entries[i - 1].cookie);
    return error;
  }
  q->in_use++;
  q->in_flight += n;
  return n;
}

static struct gdsfw_completion failed(struct gdsfw_completion done, struct gdsfw_verdict verdict) {
  done.domain = verdict.domain;
  done.code = verdict.code;
  return done;
}

static struct gdsfw_completion completion(struct batch *q, const struct gdsfw_gpu_batch_event *event) {
  struct record *record = event->cookie;
  struct gdsfw_completion done = {.cookie = record->cookie, .count = 1};
  int64_t moved = (int64_t)event->result; /* unsigned in the interface, carries negated errors all the same */
  release(q, record);
  q->in_flight--;
  if (event->status == GDSFW_GPU_BATCH_COMPLETE && moved >= 0) {
    done.result = moved;
    return done;
  }
  if (moved < 0)
    return failed(done, gdsfw_decode(moved, EIO, q->path->file_code_base));
  int64_t code = EIO;
  if (event->status == GDSFW_GPU_BATCH_CANCELED)
    code = ECANCELED;
  else if (event->status == GDSFW_GPU_BATCH_TIMEOUT)
    code = ETIMEDOUT;
  return failed(done, (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = code});
}

static int ended(const struct gdsfw_gpu_batch_event *event) {
  return event->status != GDSFW_GPU_BATCH_WAITING && event->status != GDSFW_GPU_BATCH_PENDING;
}

/* Collect from one submission; waits for one entry at most, and no longer than the timeout. */
static int64_t collect(struct batch *q, struct submission *s, uint32_t at_least, uint64_t wait_ns,
                       struct gdsfw_completion *completions, uint32_t room) {
  uint32_t n = room < s->left ? room : s->left, written = 0;
  struct timespec timeout = {.tv_sec = (time_t)(wait_ns / 1000000000u), .tv_nsec = (long)(wait_ns % 1000000000u)};
  int64_t error = gpu_result(q->path->library->batch_status(s->handle, at_least, &n, q->events, &timeout));
  if (error < 0)
    return error;
  for (uint32_t i = 0; i < n; i++)
    if (ended(&q->events[i]))
      completions[written++] = completion(q, &q->events[i]);
  return written;
}

static int64_t batch_reap(void *queue, struct gdsfw_completion *completions, uint32_t at_least, uint32_t at_most,
                          int64_t timeout_ns) {
  struct batch *q = queue;
  uint64_t deadline = monotonic_ns() + (uint64_t)timeout_ns;
  uint32_t written = 0;
  while (q->in_flight && written < at_most) {
    uint64_t now = monotonic_ns(), left = now < deadline ? deadline - now : 0;
    uint32_t before = written;
    for (uint32_t age = 0; age < q->in_use && written < at_most; age++) {
      struct submission *s = submission_at(q, age);
      /* Only the oldest is waited for; the others are looked at. */
      int wait = age == 0 && written < at_least;
      int64_t got = s->left ? collect(q, s, wait, wait ? left : 0, completions + written, at_most - written) : 0;
      if (got < 0)
        return got;
      written += (uint32_t)got;
    }
    retire(q);
    if (written >= at_least || (written == before && !left))
      break;
  }
  return written;
}

static int64_t batch_cancel(void *queue) {
  struct batch *q = queue;
  int64_t first = 0;
  for (uint32_t age = 0; age < q->in_use; age++) {
    int64_t error = gpu_result(q->path->library->batch_cancel(submission_at(q, age)->handle));
    if (error < 0 && !first)
      first = error;
  }
  return first;
}

GDSFW_EXPORT const struct gdsfw_queue gdsfw_gpu_batch_queue = {
    .abi = GDSFW_ABI,
    .struct_size = sizeof(struct gdsfw_queue),
    .open = batch_open,
    .submit = batch_submit,
    .reap = batch_reap,
    .cancel = batch_cancel,
    .close = batch_close,
};
