/* gpu_staged.c - the staged queue: storage <-> pinned host memory <-> device, one copy for each group of blocks.
 *
 * A group is a run of requests that were submitted together. Reads: storage fills the host mirror of the group, then
 * one copy (one more for each gap between blocks) and an event go onto the stream. Writes: the copy to the host and its
 * event first, storage once the event has passed. Groups complete whole, in any order, so the engine frees adjacent
 * slots together and the next group is adjacent again. While one group's copy runs, storage works on others.
 */
#include "gpu_internal.h"

#include <stdlib.h>

/* Blocks closer together than this are copied in one go: a copy costs more than the bytes of the gap. */
#define GDSFW_MERGE_GAP 4096

enum group_state { GROUP_STORAGE, GROUP_COPY };

struct group;

struct block {
  struct gdsfw_request request;
  struct group *group;
  int64_t moved;
  struct gdsfw_verdict verdict;
};

struct group {
  struct block *members; /* `group_blocks` of them */
  uint32_t blocks;
  uint32_t waiting;  /* blocks that storage has not answered yet */
  uint32_t reported; /* blocks that reap has already given out */
  enum group_state state;
  uint64_t storage_ns, copy_ns, since;
  int32_t copy_error;
};

struct staged {
  const struct gdsfw_gpu_path *context;
  uint32_t depth;
  struct block *blocks; /* of all groups */
  uint32_t blocks_in_use;
  struct group *groups; /* nevents of them; group i uses event i */
  uint32_t *order;      /* indices of groups: those in use, oldest first, then the free ones */
  uint32_t groups_in_use;
  void *storage_queue;
  struct gdsfw_request *storage_requests; /* of one group */
  struct gdsfw_completion *storage_done;
};

static struct group *group_at(struct staged *q, uint32_t age) { return &q->groups[q->order[age]]; }

static void *event_of(struct staged *q, const struct group *g) { return q->context->events[g - q->groups]; }

/* ---- storage ---------------------------------------------------------------------------------------------------- */

static struct gdsfw_request storage_request(struct staged *q, const struct block *b, uint64_t cookie) {
  struct gdsfw_request r = b->request;
  r.buffer_base = q->context->mirror;
  r.size -= (uint64_t)b->moved;
  r.file_offset += b->moved;
  r.buffer_offset += b->moved;
  r.cookie = cookie;
  return r;
}

/* One block through the synchronous table, short counts continued. */
static void move_block(struct staged *q, struct block *b) {
  const struct gdsfw_io *io = q->context->storage;
  gdsfw_io_fn call = b->request.opcode ? io->write : io->read;
  while (b->moved < (int64_t)b->request.size) {
    struct gdsfw_request r = storage_request(q, b, 0);
    errno = 0;
    int64_t n = call(r.file, r.buffer_base, r.size, r.file_offset, r.buffer_offset);
    if (n == 0)
      return; /* end of file: the engine judges the short block */
    if (n < 0) {
      b->verdict = gdsfw_decode(n, errno, io->file_code_base);
      return;
    }
    b->moved += n;
  }
}

/* The cookie of a block in the storage queue is its place in the array of all blocks. */
static int64_t queue_blocks(struct staged *q, struct group *g) {
  const struct gdsfw_queue *queue = q->context->storage->queue;
  for (uint32_t i = 0; i < g->blocks; i++)
    q->storage_requests[i] = storage_request(q, &g->members[i], (uint64_t)(&g->members[i] - q->blocks));
  for (uint32_t done = 0; done < g->blocks;) {
    int64_t taken = queue->submit(q->storage_queue, q->storage_requests + done, g->blocks - done);
    if (taken < 0)
      return taken;
    if (taken == 0) {
      errno = EAGAIN;
      return -1;
    }
    done += (uint32_t)taken;
  }
  return 0;
}

static int64_t start_storage(struct staged *q, struct group *g) {
  g->state = GROUP_STORAGE;
  g->since = monotonic_ns();
  g->waiting = g->blocks;
  if (q->storage_queue)
    return queue_blocks(q, g);
  for (uint32_t i = 0; i < g->blocks; i++)
    move_block(q, &g->members[i]);
  g->waiting = 0;
  g->storage_ns = monotonic_ns() - g->since;
  return 0;
}

/* Take in what the storage queue has finished; a short block goes back for its rest. */
static int64_t collect_storage(struct staged *q, uint32_t at_least, int64_t timeout_ns) {
  const struct gdsfw_queue *queue = q->context->storage->queue;
  int64_t n = queue->reap(q->storage_queue, q->storage_done, at_least, q->depth, timeout_ns);
  for (int64_t k = 0; k < n; k++) {
    const struct gdsfw_completion *done = &q->storage_done[k];
    for (uint32_t i = 0; i < done->count; i++) {
      uint32_t index = (uint32_t)(done->cookie + i);
      struct block *b = &q->blocks[index];
      struct group *g = b->group;
      int64_t moved = done->count > 1 ? (int64_t)b->request.size - b->moved : done->result;
      if (done->domain) {
        b->verdict = (struct gdsfw_verdict){.domain = done->domain, .code = done->code};
      } else if (moved > 0 && (b->moved += moved) < (int64_t)b->request.size) {
        struct gdsfw_request rest = storage_request(q, b, index);
        if (queue->submit(q->storage_queue, &rest, 1) == 1)
          continue;
      }
      if (--g->waiting == 0)
        g->storage_ns = monotonic_ns() - g->since;
    }
  }
  return n < 0 ? n : 0;
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

static int32_t copy_range(struct staged *q, const struct block *b, int64_t begin, int64_t end) {
  const struct gdsfw_gpu_path *c = q->context;
  uint64_t device = (uint64_t)(uintptr_t)b->request.buffer_base + (uint64_t)begin;
  uint8_t *host = c->mirror + begin;
  size_t size = (size_t)(end - begin);
  return b->request.opcode ? c->gpu->copy_to_host(host, device, size, c->stream)
                           : c->gpu->copy_to_device(device, host, size, c->stream);
}

/* One copy for each run of blocks that lie next to each other, then the group's event. */
static void start_copy(struct staged *q, struct group *g) {
  g->state = GROUP_COPY;
  g->since = monotonic_ns();
  const struct block *b = &g->members[0];
  int64_t begin = b->request.buffer_offset, end = begin + (int64_t)b->request.size;
  int32_t error = 0;
  for (uint32_t i = 1; i < g->blocks && !error; i++) {
    const struct gdsfw_request *r = &g->members[i].request;
    if (r->buffer_offset < end || r->buffer_offset - end > GDSFW_MERGE_GAP) {
      error = copy_range(q, b, begin, end);
      begin = r->buffer_offset;
    }
    end = r->buffer_offset + (int64_t)r->size;
  }
  if (!error)
    error = copy_range(q, b, begin, end);
  if (!error)
    error = q->context->gpu->event_record(event_of(q, g), q->context->stream);
  g->copy_error = error;
}

/* Whether the device is through with the group; `wait` blocks or spins until it is or the deadline has passed. */
static int copy_done(struct staged *q, struct group *g, int wait, uint64_t deadline) {
  const struct gdsfw_gpu_runtime *gpu = q->context->gpu;
  int32_t answer = g->copy_error;
  while (!answer && (answer = gpu->event_query(event_of(q, g))) == gpu->not_ready) {
    if (!wait || monotonic_ns() >= deadline)
      return 0;
    answer = q->context->spin ? 0 : gpu->event_wait(event_of(q, g));
  }
  g->copy_error = answer;
  g->copy_ns = monotonic_ns() - g->since;
  return 1;
}

/* ---- the queue -------------------------------------------------------------------------------------------------- */

static int allocate(struct staged *q) {
  const struct gdsfw_gpu_path *c = q->context;
  size_t each = c->group_blocks;
  q->blocks = calloc(c->nevents * each, sizeof *q->blocks);
  q->groups = calloc(c->nevents, sizeof *q->groups);
  q->order = calloc(c->nevents, sizeof *q->order);
  q->storage_requests = calloc(each, sizeof *q->storage_requests);
  q->storage_done = calloc(q->depth, sizeof *q->storage_done);
  if (!q->blocks || !q->groups || !q->order || !q->storage_requests || !q->storage_done)
    return -1;
  for (uint32_t i = 0; i < c->nevents; i++) {
    q->groups[i].members = q->blocks + i * each;
    q->order[i] = i;
  }
  return 0;
}

static int64_t staged_open(void *ctx, const struct gdsfw_queue_options *options, void **queue) {
  const struct gdsfw_gpu_path *c = ctx;
  struct staged *q = calloc(1, sizeof *q);
  if (!q)
    return -1;
  *queue = q;
  q->context = c;
  q->depth = options->iodepth;
  if (allocate(q))
    return -1;
  if (!c->storage->queue)
    return 0;
  struct gdsfw_queue_options inner = *options;
  inner.buffer_base = c->mirror;
  inner.buffer_size = c->mirror_size;
  return c->storage->queue->open(c->storage->ctx, &inner, &q->storage_queue);
}

static void staged_close(void *queue) {
  struct staged *q = queue;
  if (!q)
    return;
  q->context->gpu->stream_wait(q->context->stream);
  if (q->storage_queue)
    q->context->storage->queue->close(q->storage_queue);
  free(q->blocks);
  free(q->groups);
  free(q->order);
  free(q->storage_requests);
  free(q->storage_done);
  free(q);
}

static struct group *open_group(struct staged *q) {
  struct group *g = group_at(q, q->groups_in_use++);
  *g = (struct group){.members = g->members};
  return g;
}

/* Free a group: it goes behind those in use, whose order stays. */
static void retire(struct staged *q, uint32_t age) {
  uint32_t index = q->order[age];
  q->blocks_in_use -= q->groups[index].blocks;
  q->groups_in_use--;
  for (uint32_t i = age; i < q->groups_in_use; i++)
    q->order[i] = q->order[i + 1];
  q->order[q->groups_in_use] = index;
}

static int64_t staged_submit(void *queue, const struct gdsfw_request *requests, uint32_t n) {
  struct staged *q = queue;
  uint32_t taken = 0;
  while (taken < n && q->groups_in_use < q->context->nevents && q->blocks_in_use < q->depth) {
    struct group *g = open_group(q);
    uint32_t opcode = requests[taken].opcode;
    while (taken < n && g->blocks < q->context->group_blocks && q->blocks_in_use < q->depth &&
           requests[taken].opcode == opcode) {
      g->members[g->blocks++] = (struct block){.request = requests[taken++], .group = g};
      q->blocks_in_use++;
    }
    if (opcode) {
      start_copy(q, g);
      continue;
    }
    int64_t error = start_storage(q, g);
    if (error < 0)
      return error;
    if (!g->waiting)
      start_copy(q, g);
  }
  return taken;
}

static int writes(const struct group *g) { return g->members[0].request.opcode != 0; }

/* Move every group on as far as it goes without waiting. */
static int64_t advance(struct staged *q) {
  if (q->storage_queue) {
    int64_t error = collect_storage(q, 0, 0);
    if (error < 0)
      return error;
  }
  for (uint32_t age = 0; age < q->groups_in_use; age++) {
    struct group *g = group_at(q, age);
    if (!writes(g) && g->state == GROUP_STORAGE && !g->waiting)
      start_copy(q, g);
    if (writes(g) && g->state == GROUP_COPY && copy_done(q, g, 0, 0)) {
      int64_t error = g->copy_error ? 0 : start_storage(q, g);
      if (error < 0)
        return error;
      g->state = GROUP_STORAGE;
    }
  }
  return 0;
}

static int finished(struct staged *q, struct group *g) {
  if (writes(g))
    return g->state == GROUP_STORAGE && !g->waiting;
  return g->state == GROUP_COPY && copy_done(q, g, 0, 0);
}

/* Wait for storage as long as it has work, else for the oldest copy. */
static int64_t wait_for_any(struct staged *q, uint64_t deadline) {
  for (uint32_t age = 0; age < q->groups_in_use; age++)
    if (q->storage_queue && group_at(q, age)->waiting) {
      int64_t left = (int64_t)(deadline - monotonic_ns());
      /* With a copy under way too, only a look: whichever comes first. */
      int copying = age > 0;
      for (uint32_t other = age + 1; !copying && other < q->groups_in_use; other++)
        copying = group_at(q, other)->state == GROUP_COPY;
      return collect_storage(q, !copying, copying || left < 0 ? 0 : left);
    }
  copy_done(q, group_at(q, 0), 1, deadline);
  return 0;
}

static struct gdsfw_completion completion(const struct group *g, const struct block *b) {
  struct gdsfw_completion done = {.cookie = b->request.cookie, .count = 1, .result = b->moved};
  done.storage_ns = g->storage_ns;
  done.copy_ns = g->copy_ns;
  if (g->copy_error) {
    done.domain = GDSFW_GPU;
    done.code = g->copy_error;
  } else if (b->verdict.domain) {
    done.domain = b->verdict.domain;
    done.code = b->verdict.code;
  }
  return done;
}

static int whole(const struct block *b) { return !b->verdict.domain && b->moved == (int64_t)b->request.size; }

/* Give out completions of a finished group, whole blocks with consecutive cookies as one; returns blocks. */
static uint32_t report(struct group *g, struct gdsfw_completion *out, uint32_t room, uint32_t *written) {
  uint32_t before = g->reported;
  while (*written < room && g->reported < g->blocks) {
    const struct block *b = &g->members[g->reported++];
    struct gdsfw_completion *done = &out[(*written)++];
    *done = completion(g, b);
    while (!done->domain && whole(b) && g->reported < g->blocks) {
      const struct block *more = &g->members[g->reported];
      if (!whole(more) || more->request.cookie != done->cookie + done->count)
        break;
      done->count++;
      g->reported++;
    }
  }
  return g->reported - before;
}

static int64_t staged_reap(void *queue, struct gdsfw_completion *completions, uint32_t at_least, uint32_t at_most,
                           int64_t timeout_ns) {
  struct staged *q = queue;
  uint64_t deadline = monotonic_ns() + (uint64_t)timeout_ns;
  uint32_t written = 0, blocks = 0;
  while (q->groups_in_use && written < at_most) {
    int64_t error = advance(q);
    if (error < 0)
      return error;
    for (uint32_t age = 0; age < q->groups_in_use && written < at_most;) {
      struct group *g = group_at(q, age);
      if (finished(q, g))
        blocks += report(g, completions, at_most, &written);
      if (g->reported == g->blocks)
        retire(q, age);
      else
        age++;
    }
    if (blocks >= at_least || monotonic_ns() >= deadline || !q->groups_in_use)
      break;
    if ((error = wait_for_any(q, deadline)) < 0)
      return error;
  }
  return written;
}

static int64_t staged_cancel(void *queue) {
  struct staged *q = queue;
  const struct gdsfw_queue *storage = q->context->storage->queue;
  return storage && storage->cancel ? storage->cancel(q->storage_queue) : 0;
}

GDSFW_EXPORT const struct gdsfw_queue gdsfw_staged_queue = {
    .abi = GDSFW_ABI,
    .struct_size = sizeof(struct gdsfw_queue),
    .open = staged_open,
    .submit = staged_submit,
    .reap = staged_reap,
    .cancel = staged_cancel,
    .close = staged_close,
};
