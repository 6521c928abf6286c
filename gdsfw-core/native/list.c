/* list.c - moves a given list of blocks, outside any loop: no clock, no histogram, no verification. */
#include "list.h"

#include <errno.h>
#include <stdlib.h>

#define TIMEOUT_NS 1000000000ll /* of one wait; there is always another */

struct list {
  const struct gdsfw_io *io;
  const struct gdsfw_request *requests;
  uint64_t *left; /* bytes of each that are still to be moved */
  uint64_t n;
  struct gdsfw_list_result *result;
};

static struct gdsfw_request rest_of(const struct list *l, uint64_t i) {
  struct gdsfw_request r = l->requests[i];
  uint64_t done = r.size - l->left[i];
  r.file_offset += (int64_t)done;
  r.buffer_offset += (int64_t)done;
  r.size = l->left[i];
  r.cookie = i;
  return r;
}

static void fail(struct list *l, uint64_t i, uint32_t domain, int64_t code) {
  if (l->result->domain)
    return;
  l->result->index = i;
  l->result->domain = domain;
  l->result->code = code;
}

/* What became of a block: true while some of it is left. 0 bytes are the end of the file, before the block's. */
static bool account(struct list *l, uint64_t i, int64_t moved, struct gdsfw_verdict verdict) {
  if (verdict.domain)
    fail(l, i, verdict.domain, verdict.code);
  else if (moved == 0)
    fail(l, i, GDSFW_ERRNO, ENODATA);
  if (verdict.domain || moved <= 0)
    return false;
  l->left[i] -= (uint64_t)moved;
  l->result->bytes += (uint64_t)moved;
  return l->left[i] > 0;
}

static void one_by_one(struct list *l) {
  for (uint64_t i = 0; i < l->n && !l->result->domain; i++) {
    bool more = l->left[i] > 0;
    while (more) {
      struct gdsfw_request r = rest_of(l, i);
      struct gdsfw_verdict verdict;
      if (l->io->max_transfer && r.size > l->io->max_transfer)
        r.size = l->io->max_transfer;
      int64_t moved = gdsfw_call_move(l->io, &r, &verdict);
      more = account(l, i, moved, verdict);
    }
  }
}

struct window {
  struct gdsfw_request *requests;
  struct gdsfw_completion *done;
  uint64_t *again; /* blocks that came back short */
  uint64_t again_count, next;
  uint32_t prepared, in_flight, depth;
};

static void prepare(struct list *l, struct window *w) {
  while (w->prepared + w->in_flight < w->depth && !l->result->domain) {
    uint64_t i;
    if (w->again_count)
      i = w->again[--w->again_count];
    else if (w->next < l->n)
      i = w->next++;
    else
      return;
    if (l->left[i])
      w->requests[w->prepared++] = rest_of(l, i);
  }
}

static void submit(struct list *l, struct window *w, const struct gdsfw_queue *queue, void *handle) {
  if (!w->prepared)
    return;
  errno = 0;
  int64_t taken = queue->submit(handle, w->requests, w->prepared);
  if (taken < 0 || (taken == 0 && !w->in_flight)) {
    struct gdsfw_verdict v = gdsfw_decode(taken ? taken : -1, taken ? errno : EAGAIN, l->io->file_code_base);
    fail(l, w->requests[0].cookie, v.domain, v.code);
    w->prepared = 0;
    return;
  }
  w->in_flight += (uint32_t)taken;
  w->prepared -= (uint32_t)taken;
  for (uint32_t i = 0; i < w->prepared; i++)
    w->requests[i] = w->requests[i + (uint32_t)taken];
}

static void collect(struct list *l, struct window *w, const struct gdsfw_queue *queue, void *handle) {
  errno = 0;
  int64_t n = queue->reap(handle, w->done, 1, w->depth, TIMEOUT_NS);
  if (n < 0) {
    struct gdsfw_verdict v = gdsfw_decode(n, errno, l->io->file_code_base);
    fail(l, 0, v.domain, v.code);
    w->in_flight = 0; /* nothing more is to be had of this queue */
  }
  for (int64_t k = 0; k < n; k++) {
    const struct gdsfw_completion *c = &w->done[k];
    for (uint32_t j = 0; j < c->count; j++) {
      uint64_t i = c->cookie + j;
      w->in_flight--;
      struct gdsfw_verdict verdict = {.domain = c->domain, .code = c->code};
      if (account(l, i, c->count > 1 ? (int64_t)l->left[i] : c->result, verdict))
        w->again[w->again_count++] = i;
    }
  }
}

static void through_queue(struct list *l, struct window *w, const struct gdsfw_queue *queue, void *handle) {
  do {
    prepare(l, w);
    submit(l, w, queue, handle);
    if (w->in_flight)
      collect(l, w, queue, handle);
  } while (w->in_flight || (!l->result->domain && (w->prepared || w->again_count || w->next < l->n)));
}

static int64_t with_queue(struct list *l, const struct gdsfw_queue_options *options) {
  const struct gdsfw_queue *queue = l->io->queue;
  struct window w = {.depth = options->iodepth};
  void *handle = NULL;
  w.requests = calloc(w.depth, sizeof *w.requests);
  w.done = calloc(w.depth, sizeof *w.done);
  w.again = calloc(w.depth, sizeof *w.again);
  int64_t answer = w.requests && w.done && w.again ? 0 : -ENOMEM;
  errno = 0;
  if (!answer && (answer = queue->open(l->io->ctx, options, &handle)) < 0) {
    struct gdsfw_verdict v = gdsfw_decode(answer, errno, l->io->file_code_base);
    fail(l, 0, v.domain, v.code);
  } else if (!answer)
    through_queue(l, &w, queue, handle);
  if (handle)
    queue->close(handle);
  free(w.requests);
  free(w.done);
  free(w.again);
  return answer == -ENOMEM ? answer : 0;
}

GDSFW_EXPORT int64_t gdsfw_move_list(const struct gdsfw_io *table, const struct gdsfw_queue_options *options,
                                     const struct gdsfw_request *requests, uint64_t n,
                                     struct gdsfw_list_result *result) {
  struct gdsfw_io io = io_copy(table);
  struct list l = {&io, requests, malloc(n * sizeof(uint64_t) + 1), n, result};
  if (!l.left)
    return -ENOMEM;
  *result = (struct gdsfw_list_result){0};
  for (uint64_t i = 0; i < n; i++)
    l.left[i] = requests[i].size;
  int64_t answer = 0;
  if (io.queue)
    answer = with_queue(&l, options);
  else
    one_by_one(&l);
  free(l.left);
  return answer;
}
