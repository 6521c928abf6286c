/* gpu_stream.c - the stream queue: I/O that the file library puts onto a stream, one event behind each submission.
 *
 * The library reads size and offsets, and writes the count, when the stream runs and not at the call: each request's
 * parameters live in its own slot here until the event of its submission has passed.
 */
#include "gpu_internal.h"

#include <stdlib.h>

struct parameters {
  size_t size;
  off_t file_offset, buffer_offset;
  ssize_t moved;
  uint64_t cookie;
};

struct submission {
  uint32_t first, requests;
};

struct stream {
  const struct gdsfw_gpu_path *context;
  uint32_t depth;
  struct parameters *slots; /* ring */
  uint32_t next_slot, in_flight;
  struct submission *submissions; /* ring of nevents; submission i uses event i */
  uint32_t oldest, in_use;
  uint32_t reported; /* requests of the oldest submission that reap has given out */
};

static int64_t stream_open(void *ctx, const struct gdsfw_queue_options *options, void **queue) {
  struct stream *q = calloc(1, sizeof *q);
  if (!q)
    return -1;
  *queue = q;
  q->context = ctx;
  q->depth = options->iodepth;
  q->slots = calloc(q->depth, sizeof *q->slots);
  q->submissions = calloc(q->context->nevents, sizeof *q->submissions);
  return q->slots && q->submissions ? 0 : -1;
}

static void stream_close(void *queue) {
  struct stream *q = queue;
  if (!q)
    return;
  q->context->gpu->stream_wait(q->context->stream);
  free(q->slots);
  free(q->submissions);
  free(q);
}

static int64_t enqueue(struct stream *q, const struct gdsfw_request *r) {
  const struct gdsfw_gpu_file_library *library = q->context->library;
  struct parameters *p = &q->slots[q->next_slot];
  *p = (struct parameters){r->size, r->file_offset, r->buffer_offset, 0, r->cookie};
  struct gdsfw_gpu_status (*call)(void *, void *, size_t *, off_t *, off_t *, ssize_t *, void *) =
      r->opcode ? library->write_async : library->read_async;
  return gpu_result(
      call(r->file, r->buffer_base, &p->size, &p->file_offset, &p->buffer_offset, &p->moved, q->context->stream));
}

static int64_t stream_submit(void *queue, const struct gdsfw_request *requests, uint32_t n) {
  struct stream *q = queue;
  if (q->in_use == q->context->nevents)
    return 0;
  uint32_t index = (q->oldest + q->in_use) % q->context->nevents;
  struct submission *s = &q->submissions[index];
  *s = (struct submission){.first = q->next_slot};
  int64_t error = 0;
  while (s->requests < n && q->in_flight < q->depth && !(error = enqueue(q, &requests[s->requests]))) {
    q->next_slot = (q->next_slot + 1) % q->depth;
    q->in_flight++;
    s->requests++;
  }
  if (!s->requests)
    return error;
  int32_t answer = q->context->gpu->event_record(q->context->events[index], q->context->stream);
  q->in_use++;
  if (!answer)
    return s->requests;
  return gpu_error(answer);
}

static struct gdsfw_completion completion(const struct stream *q, const struct parameters *p, int32_t gpu_error) {
  struct gdsfw_completion done = {.cookie = p->cookie, .count = 1, .result = p->moved};
  if (gpu_error) {
    done.domain = GDSFW_GPU;
    done.code = gpu_error;
  } else if (p->moved < 0) {
    /* The call ran on another thread, so there is no errno to go with -1: it is the library's word for EIO. */
    struct gdsfw_verdict verdict = gdsfw_decode(p->moved, EIO, q->context->file_code_base);
    done.domain = verdict.domain;
    done.code = verdict.code;
  }
  return done;
}

static uint32_t report(struct stream *q, struct gdsfw_completion *out, uint32_t room, int32_t gpu_error) {
  struct submission *s = &q->submissions[q->oldest];
  uint32_t written = 0;
  for (; written < room && q->reported < s->requests; q->reported++)
    out[written++] = completion(q, &q->slots[(s->first + q->reported) % q->depth], gpu_error);
  q->in_flight -= written;
  if (q->reported == s->requests) {
    q->oldest = (q->oldest + 1) % q->context->nevents;
    q->in_use--;
    q->reported = 0;
  }
  return written;
}

static int64_t stream_reap(void *queue, struct gdsfw_completion *completions, uint32_t at_least, uint32_t at_most,
                           int64_t timeout_ns) {
  struct stream *q = queue;
  const struct gdsfw_gpu_runtime *gpu = q->context->gpu;
  uint64_t deadline = monotonic_ns() + (uint64_t)timeout_ns;
  uint32_t written = 0;
  while (q->in_use && written < at_most) {
    int32_t answer = gpu->event_query(q->context->events[q->oldest]);
    if (answer == gpu->not_ready) {
      if (written >= at_least || monotonic_ns() >= deadline)
        break;
      continue;
    }
    written += report(q, completions + written, at_most - written, answer);
  }
  return written;
}

GDSFW_EXPORT const struct gdsfw_queue gdsfw_gpu_stream_queue = {
    .abi = GDSFW_ABI,
    .struct_size = sizeof(struct gdsfw_queue),
    .open = stream_open,
    .submit = stream_submit,
    .reap = stream_reap,
    .close = stream_close,
};
