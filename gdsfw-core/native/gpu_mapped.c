/* gpu_mapped.c - the mapped queue: blocks between a file's registered pages and device memory, without the CPU.
 *
 * A launch is a run of requests that were submitted together: one kernel that moves them all, or for large blocks
 * one copy each by the copy engine, and an event behind them. Launches end in order, as the stream does. A block is
 * complete when its launch is.
 */
#include "gpu_map.h"

#include <sched.h>
#include <stdlib.h>

/* From this block size on the copy engine reaches the bus's limit by itself and leaves the device free. */
#define COPY_ENGINE_BYTES (128u << 10)
/* Threads of one team, which moves 16 bytes each, and of a block of the grid: see kernels.cpp. */
enum { TEAM = 32, THREADS = 128, MOST_GRID = 1056 };
/* What one team moves of a block: more teams than blocks keep the bus busy when blocks are large and few. */
#define PIECE 4096u

struct mapped_block {
  struct gpu_map *map;
  struct map_window *windows[2];
  uint64_t cookie, size;
  int64_t moved;
};

/* Copies that are not started yet because the next block may lie right behind on both sides. */
struct pending_copy {
  uint8_t *host;
  uint64_t device, size;
  uint32_t opcode;
};

struct launch {
  uint32_t first, blocks, reported; /* in the ring of blocks */
  uint32_t moves;
  uint64_t largest, since, took;
  struct pending_copy pending;
  struct gpu_map *map; /* of the first block */
  int several;         /* other blocks have other maps */
  struct gdsfw_verdict verdict;
};

struct mapped {
  const struct gdsfw_gpu_path *context;
  uint32_t depth;
  struct mapped_block *blocks; /* ring */
  uint32_t next_block, in_flight;
  struct launch *launches; /* ring of nevents; launch i uses event i */
  uint32_t oldest, in_use;
};

/* The block `ahead` places behind `index` in the ring; ahead is no more than the depth. */
static struct mapped_block *block_at(const struct mapped *q, uint32_t index, uint32_t ahead) {
  uint32_t place = index + ahead;
  return &q->blocks[place >= q->depth ? place - q->depth : place];
}

static int64_t mapped_open(void *ctx, const struct gdsfw_queue_options *options, void **queue) {
  struct mapped *q = calloc(1, sizeof *q);
  if (!q)
    return -1;
  *queue = q;
  q->context = ctx;
  q->depth = options->iodepth;
  q->blocks = calloc(q->depth, sizeof *q->blocks);
  q->launches = calloc(q->context->nevents, sizeof *q->launches);
  return q->blocks && q->launches ? 0 : -1;
}

static void unpin(const struct mapped_block *b) {
  for (int i = 0; i < 2; i++)
    if (b->windows[i])
      map_unpin(b->map, b->windows[i]);
}

static void mapped_close(void *queue) {
  struct mapped *q = queue;
  if (!q)
    return;
  q->context->gpu->stream_wait(q->context->stream);
  for (uint32_t i = 0; q->blocks && i < q->in_flight; i++)
    unpin(block_at(q, q->next_block, q->depth - 1 - i));
  free(q->blocks);
  free(q->launches);
  free(q);
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

static struct gdsfw_gpu_move *moves_of(const struct mapped *q, const struct launch *l) {
  return q->context->moves + (size_t)(l - q->launches) * 2 * q->context->group_blocks;
}

/* By the copy engine, from or to the host's address of the pages. */
static int32_t start_copy(const struct mapped *q, struct launch *l) {
  const struct gdsfw_gpu_runtime *gpu = q->context->gpu;
  struct pending_copy c = l->pending;
  l->pending.size = 0;
  if (!c.size)
    return 0;
  return c.opcode ? gpu->copy_to_host(c.host, c.device, c.size, q->context->stream)
                  : gpu->copy_to_device(c.device, c.host, c.size, q->context->stream);
}

/* One copy for blocks that lie next to each other in the file and in the buffer: each copy has its fixed cost. */
static int32_t note_copy(struct mapped *q, struct launch *l, const struct gdsfw_request *r,
                         const struct map_range *range, uint64_t done) {
  uint64_t device = (uint64_t)(uintptr_t)r->buffer_base + (uint64_t)r->buffer_offset + done;
  struct pending_copy *c = &l->pending;
  if (c->size && c->opcode == r->opcode && c->host + c->size == range->host && c->device + c->size == device) {
    c->size += range->size;
    return 0;
  }
  int32_t answer = start_copy(q, l);
  *c = (struct pending_copy){range->host, device, range->size, r->opcode};
  return answer;
}

static void note_move(struct mapped *q, struct launch *l, const struct gdsfw_request *r, const struct map_range *range,
                      uint64_t done) {
  uint64_t device = (uint64_t)(uintptr_t)r->buffer_base + (uint64_t)r->buffer_offset + done;
  struct gdsfw_gpu_move *move = &moves_of(q, l)[l->moves++];
  *move = r->opcode ? (struct gdsfw_gpu_move){device, range->device, range->size}
                    : (struct gdsfw_gpu_move){range->device, device, range->size};
  if (range->size > l->largest)
    l->largest = range->size;
}

/* Put one request into a launch: 1, 0 when its window has to wait, or a negative result. */
static int64_t add_block(struct mapped *q, struct launch *l, const struct gdsfw_request *r, int by_kernel) {
  struct gpu_map *map = r->file;
  struct mapped_block *b = &q->blocks[q->next_block];
  uint64_t offset = (uint64_t)r->file_offset, end = map->start + map->length;
  uint64_t size = offset >= end ? 0 : r->size < end - offset ? r->size : end - offset, done = 0;
  struct map_range ranges[2];
  int parts = 0;
  b->windows[0] = b->windows[1] = NULL;
  b->map = map;
  for (; done < size && parts < 2; done += ranges[parts++].size) {
    int answer = map_pin(map, offset + done, size - done, &ranges[parts]);
    if (answer < 1) {
      int error = errno;
      unpin(b);
      errno = error;
      return answer;
    }
    b->windows[parts] = ranges[parts].window;
  }
  b->cookie = r->cookie;
  b->size = r->size;
  b->moved = (int64_t)done;
  int32_t answer = 0;
  done = 0;
  for (int i = 0; i < parts && !answer; done += ranges[i++].size)
    if (by_kernel)
      note_move(q, l, r, &ranges[i], done);
    else
      answer = note_copy(q, l, r, &ranges[i], done);
  if (answer)
    l->verdict = (struct gdsfw_verdict){.domain = GDSFW_GPU, .code = answer};
  q->next_block = q->next_block + 1 == q->depth ? 0 : q->next_block + 1;
  q->in_flight++;
  if (!l->blocks++)
    l->map = map;
  l->several |= l->map != map;
  return 1;
}

static int32_t start_kernel(struct mapped *q, struct launch *l) {
  struct gdsfw_gpu_move *moves = moves_of(q, l);
  uint32_t n = l->moves, pieces = (uint32_t)((l->largest + PIECE - 1) / PIECE);
  uint64_t piece = PIECE, threads = (uint64_t)n * pieces * TEAM, grid = (threads + THREADS - 1) / THREADS;
  void *parameters[] = {&moves, &n, &pieces, &piece};
  return q->context->gpu->launch(q->context->kernels->move, (uint32_t)(grid < MOST_GRID ? grid : MOST_GRID), 1, 1,
                                 THREADS, 1, 1, 0, q->context->stream, parameters, NULL);
}

static void *event_of(const struct mapped *q, const struct launch *l) { return q->context->events[l - q->launches]; }

/* The files behind a launch's blocks, each looked at when the device is through with them; ESTALE is a verdict. */
static void check_files(const struct mapped *q, struct launch *l) {
  struct gpu_map *last = NULL;
  for (uint32_t i = 0; i < (l->several ? l->blocks : 1) && !l->verdict.domain; i++) {
    struct gpu_map *map = block_at(q, l->first, i)->map;
    if (map != last && gdsfw_gpu_map_intact(map))
      l->verdict = (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = errno};
    last = map;
  }
}

static void start(struct mapped *q, struct launch *l) {
  int32_t answer = 0;
  if (!l->verdict.domain)
    answer = l->moves ? start_kernel(q, l) : start_copy(q, l);
  if (!answer)
    answer = q->context->gpu->event_record(event_of(q, l), q->context->stream);
  if (answer)
    l->verdict = (struct gdsfw_verdict){.domain = GDSFW_GPU, .code = answer};
}

static uint32_t submit_launches(struct mapped *q, const struct gdsfw_request *requests, uint32_t n, int64_t *answer) {
  uint32_t taken = 0;
  while (taken < n && *answer == 1 && q->in_use < q->context->nevents && q->in_flight < q->depth) {
    struct launch *l = &q->launches[(q->oldest + q->in_use) % q->context->nevents];
    *l = (struct launch){.first = q->next_block, .since = monotonic_ns()};
    int by_kernel = q->context->kernels && requests[taken].size < COPY_ENGINE_BYTES;
    while (taken < n && l->blocks < q->context->group_blocks && q->in_flight < q->depth &&
           (*answer = add_block(q, l, &requests[taken], by_kernel)) == 1)
      taken++;
    if (!l->blocks)
      break;
    q->in_use++;
    start(q, l);
  }
  return taken;
}

static int64_t mapped_submit(void *queue, const struct gdsfw_request *requests, uint32_t n) {
  struct mapped *q = queue;
  for (;;) {
    int64_t answer = 1;
    uint32_t taken = submit_launches(q, requests, n, &answer);
    if (taken || answer < 0 || q->in_use)
      return taken ? taken : answer < 0 ? answer : 0;
    /* Other workers' blocks hold every window while this worker holds none: they end without its help. */
    sched_yield();
  }
}

/* ---- ending ----------------------------------------------------------------------------------------------------- */

/* Whether the device is through with the oldest launch; `wait` blocks or spins until it is or the deadline passed. */
static int launch_done(struct mapped *q, struct launch *l, int wait, uint64_t deadline) {
  const struct gdsfw_gpu_runtime *gpu = q->context->gpu;
  int32_t answer = 0;
  if (l->verdict.domain != GDSFW_GPU)
    while ((answer = gpu->event_query(event_of(q, l))) == gpu->not_ready) {
      if (!wait || monotonic_ns() >= deadline)
        return 0;
      if (!q->context->spin && (answer = gpu->event_wait(event_of(q, l))))
        break;
    }
  if (answer)
    l->verdict = (struct gdsfw_verdict){.domain = GDSFW_GPU, .code = answer};
  check_files(q, l);
  l->took = monotonic_ns() - l->since;
  return 1;
}

static void fill_completion(struct gdsfw_completion *done, const struct launch *l, const struct mapped_block *b) {
  *done = (struct gdsfw_completion){.cookie = b->cookie, .count = 1, .result = b->moved, .copy_ns = l->took};
  if (l->verdict.domain) {
    done->domain = l->verdict.domain;
    done->code = l->verdict.code;
  }
}

static int whole(const struct mapped_block *b) { return b->moved == (int64_t)b->size; }

/* Give out completions of a launch that has ended; blocks moved whole with consecutive cookies as one. */
static uint32_t report(struct mapped *q, struct launch *l, struct gdsfw_completion *out, uint32_t room,
                       uint32_t *written) {
  uint32_t before = l->reported;
  while (*written < room && l->reported < l->blocks) {
    const struct mapped_block *b = block_at(q, l->first, l->reported++);
    struct gdsfw_completion *done = &out[(*written)++];
    fill_completion(done, l, b);
    unpin(b);
    while (!done->domain && whole(b) && l->reported < l->blocks) {
      const struct mapped_block *more = block_at(q, l->first, l->reported);
      if (more->cookie != done->cookie + done->count || !whole(more))
        break;
      unpin(more);
      done->count++;
      l->reported++;
    }
  }
  q->in_flight -= l->reported - before;
  return l->reported - before;
}

static int64_t mapped_reap(void *queue, struct gdsfw_completion *completions, uint32_t at_least, uint32_t at_most,
                           int64_t timeout_ns) {
  struct mapped *q = queue;
  uint64_t deadline = at_least ? monotonic_ns() + (uint64_t)timeout_ns : 0;
  uint32_t written = 0, blocks = 0;
  while (q->in_use && written < at_most) {
    struct launch *l = &q->launches[q->oldest];
    if (!l->reported && !launch_done(q, l, blocks < at_least, deadline))
      break;
    blocks += report(q, l, completions, at_most, &written);
    if (l->reported < l->blocks)
      break;
    q->oldest = (q->oldest + 1) % q->context->nevents;
    q->in_use--;
  }
  return written;
}

GDSFW_EXPORT const struct gdsfw_queue gdsfw_gpu_mapped_queue = {
    .abi = GDSFW_ABI,
    .struct_size = sizeof(struct gdsfw_queue),
    .open = mapped_open,
    .submit = mapped_submit,
    .reap = mapped_reap,
    .close = mapped_close,
};
