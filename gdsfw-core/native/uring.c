/* uring.c - io_uring as a queue.
 *
 * submit hands its requests to the kernel at once, so that the device is never left waiting for the rest of a refill;
 * those that fill the queue wait for reap, which must come next and does both in one call (at depth 1: one call for
 * each I/O). A request stays in a table until its completion is handed out, so that one which the kernel sends back
 * (EAGAIN, EINTR) is issued again.
 */
#define _GNU_SOURCE
#include "decode.h"
#include "psync.h"
#include "uring_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

/* The kernel takes at most 1 GiB for one registered buffer. */
#define LARGEST_FIXED (1ull << 30)
#define CANCEL_MARK UINT64_MAX
#define CANCEL_ALL 1u
#define CANCEL_ANY 4u

enum { SQPOLL_SPINS = 1000 };

enum { OPCODE_ASYNC_CANCEL = 14, OPCODE_READ = 22, OPCODE_WRITE = 23 };

struct uring_file {
  const struct gdsfw_fd_file *file;
  uint32_t index; /* of fd among the registered ones; tail_fd is the next */
};

struct uring_queue {
  struct uring_ring ring;
  struct gdsfw_request *requests; /* by user_data */
  uint32_t *free_requests;
  uint32_t free_count, depth;
  uint64_t buffer, fixed_size; /* registered memory */
  struct uring_file *files;    /* sorted by address; empty unless registered */
  uint32_t file_count;
  bool polls_device;
  struct gdsfw_completion *direct; /* done at submission: buffered tails of a ring that polls its device */
  uint32_t direct_count;
};

static int by_address(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)((const struct uring_file *)a)->file, y = (uintptr_t)((const struct uring_file *)b)->file;
  return x < y ? -1 : x > y;
}

static int register_buffer(struct uring_queue *q, const struct gdsfw_queue_options *o) {
  struct iovec pieces[64];
  uint32_t count = 0;
  uint64_t at = 0;
  for (; at < o->buffer_size && count < 64; count++) {
    uint64_t size = o->buffer_size - at < LARGEST_FIXED ? o->buffer_size - at : LARGEST_FIXED;
    pieces[count] = (struct iovec){(uint8_t *)o->buffer_base + at, size};
    at += size;
  }
  int error = uring_ring_register(&q->ring, IORING_REGISTER_BUFFERS, pieces, count);
  if (!error) {
    q->buffer = (uint64_t)(uintptr_t)o->buffer_base;
    q->fixed_size = at;
  }
  return error;
}

static int register_files(struct uring_queue *q, const struct gdsfw_queue_options *o) {
  int32_t *descriptors = calloc(o->nfiles, 2 * sizeof *descriptors);
  q->files = calloc(o->nfiles, sizeof *q->files);
  int error = descriptors && q->files ? 0 : ENOMEM;
  for (uint32_t i = 0; !error && i < o->nfiles; i++) {
    q->files[i] = (struct uring_file){o->files[i], 2 * i};
    descriptors[2 * i] = q->files[i].file->fd;
    descriptors[2 * i + 1] = q->files[i].file->tail_fd;
  }
  if (!error)
    error = uring_ring_register(&q->ring, IORING_REGISTER_FILES, descriptors, 2 * o->nfiles);
  free(descriptors);
  if (error)
    return error;
  q->file_count = o->nfiles;
  qsort(q->files, q->file_count, sizeof *q->files, by_address);
  return 0;
}

static int allocate(struct uring_queue *q, uint32_t depth) {
  q->requests = calloc(depth, sizeof *q->requests);
  q->free_requests = calloc(depth, sizeof *q->free_requests);
  q->direct = calloc(depth, sizeof *q->direct);
  q->depth = q->free_count = depth;
  for (uint32_t i = 0; q->free_requests && i < depth; i++)
    q->free_requests[i] = i;
  return q->requests && q->free_requests && q->direct ? 0 : -1;
}

static void uring_close(void *queue) {
  struct uring_queue *q = queue;
  /* The kernel takes a closed ring down later; the memory must not count as locked until then. */
  if (q->fixed_size)
    uring_ring_register(&q->ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
  uring_ring_close(&q->ring);
  free(q->requests);
  free(q->free_requests);
  free(q->direct);
  free(q->files);
  free(q);
}

static struct gdsfw_uring_options options_copy(const struct gdsfw_uring_options *given) {
  struct gdsfw_uring_options options = {0};
  if (given)
    __builtin_memcpy(&options, given, given->struct_size < sizeof options ? given->struct_size : sizeof options);
  return options;
}

/* Returns an errno, and in the report which step it was. */
static int open_with_report(const struct gdsfw_uring_options *given, const struct gdsfw_queue_options *o,
                            struct uring_queue **opened, struct gdsfw_uring_report *report) {
  struct gdsfw_uring_options options = options_copy(given);
  struct uring_queue *q = calloc(1, sizeof *q);
  report->step = GDSFW_URING_WORKS;
  report->error = 0;
  if (!q)
    return report->step = GDSFW_URING_MAP, report->error = ENOMEM;
  q->ring.fd = -1;
  q->polls_device = options.iopoll;
  /* One entry more than the depth, for a cancellation. */
  if (uring_ring_open(&q->ring, &options, o->iodepth + 1, report) == 0) {
    if (allocate(q, o->iodepth))
      report->step = GDSFW_URING_MAP, report->error = ENOMEM;
    if (!report->error && options.fixed_buffers && (report->error = register_buffer(q, o)))
      report->step = GDSFW_URING_BUFFERS;
    if (!report->error && options.fixed_files && o->nfiles && (report->error = register_files(q, o)))
      report->step = GDSFW_URING_FILES;
  }
  if (report->error)
    uring_close(q);
  else
    *opened = q;
  return report->error;
}

static int64_t uring_open(void *ctx, const struct gdsfw_queue_options *options, void **queue) {
  struct gdsfw_uring_report report = {0};
  struct uring_queue *q = NULL;
  int error = open_with_report(ctx, options, &q, &report);
  *queue = q;
  errno = error;
  return error ? -1 : 0;
}

GDSFW_EXPORT int64_t gdsfw_uring_try(const struct gdsfw_uring_options *options, const struct gdsfw_queue_options *queue,
                                     struct gdsfw_uring_report *report) {
  struct uring_queue *q = NULL;
  if (open_with_report(options, queue, &q, report))
    return -1;
  uring_close(q);
  return 0;
}

static const struct uring_file *find_file(const struct uring_queue *q, const void *file) {
  if (q->file_count == 1)
    return &q->files[0];
  struct uring_file key = {.file = file};
  return q->file_count ? bsearch(&key, q->files, q->file_count, sizeof *q->files, by_address) : NULL;
}

/* Fill in a ring entry; false when the ring is full. */
static bool queue_entry(struct uring_queue *q, uint32_t index) {
  const struct gdsfw_request *r = &q->requests[index];
  const struct gdsfw_fd_file *file = r->file;
  struct io_uring_sqe *sqe = uring_ring_next(&q->ring);
  if (!sqe)
    return false;
  const struct uring_file *registered = find_file(q, r->file);
  bool tail = needs_tail_fd(file, r->size, r->file_offset);
  sqe->opcode = r->opcode ? OPCODE_WRITE : OPCODE_READ;
  sqe->fd = registered ? (int32_t)(registered->index + tail) : tail ? file->tail_fd : file->fd;
  sqe->flags = registered ? IOSQE_FIXED_FILE : 0;
  sqe->addr = (uint64_t)(uintptr_t)r->buffer_base + (uint64_t)r->buffer_offset;
  sqe->off = (uint64_t)r->file_offset;
  sqe->len = (uint32_t)r->size;
  sqe->user_data = index;
  uint64_t at = sqe->addr - q->buffer, piece = at / LARGEST_FIXED;
  if (sqe->addr >= q->buffer && at + r->size <= q->fixed_size && (at + r->size - 1) / LARGEST_FIXED == piece) {
    sqe->opcode = r->opcode ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
    sqe->buf_index = (uint16_t)piece;
  }
  return true;
}

/* A ring that polls its device cannot do buffered I/O: the odd tail of a file is moved here and now. */
static void move_directly(struct uring_queue *q, const struct gdsfw_request *r) {
  struct gdsfw_verdict verdict;
  int64_t moved = gdsfw_call_move(&gdsfw_psync, r, &verdict);
  q->direct[q->direct_count++] = (struct gdsfw_completion){
      .cookie = r->cookie,
      .count = 1,
      .domain = verdict.domain,
      .result = moved,
      .code = verdict.code,
  };
}

static void wake_kernel_thread(struct uring_ring *ring) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (__atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP)
    uring_ring_enter(ring, 0, 0, 0);
}

static int64_t uring_submit(void *queue, const struct gdsfw_request *requests, uint32_t n) {
  struct uring_queue *q = queue;
  uint32_t done = 0;
  for (; done < n && q->free_count > q->direct_count; done++) {
    if (q->polls_device && needs_tail_fd(requests[done].file, requests[done].size, requests[done].file_offset)) {
      move_directly(q, &requests[done]);
      continue;
    }
    uint32_t index = q->free_requests[q->free_count - 1];
    q->requests[index] = requests[done];
    if (!queue_entry(q, index))
      break;
    q->free_count--;
  }
  uring_ring_publish(&q->ring);
  if (q->ring.setup_flags & IORING_SETUP_SQPOLL)
    wake_kernel_thread(&q->ring);
  else if (q->free_count)
    uring_ring_submit(&q->ring);
  return done;
}

/* Copy completions out of the ring; requests that the kernel sent back are queued again. */
static uint32_t take_completions(struct uring_queue *q, struct gdsfw_completion *out, uint32_t at_most) {
  struct uring_ring *ring = &q->ring;
  uint32_t n = 0, head = *ring->cq_head, ready = uring_ring_ready(ring);
  while (q->direct_count && n < at_most)
    out[n++] = q->direct[--q->direct_count];
  for (; ready && n < at_most; ready--, head++) {
    const struct io_uring_cqe *cqe = &ring->cqes[head & ring->cq_mask];
    if (cqe->user_data == CANCEL_MARK)
      continue;
    uint32_t index = (uint32_t)cqe->user_data;
    if ((cqe->res == -EAGAIN || cqe->res == -EINTR) && queue_entry(q, index))
      continue;
    out[n++] = (struct gdsfw_completion){
        .cookie = q->requests[index].cookie,
        .count = 1,
        .domain = cqe->res < 0 ? GDSFW_ERRNO : GDSFW_NONE,
        .result = cqe->res < 0 ? -1 : cqe->res,
        .code = cqe->res < 0 ? -cqe->res : 0,
    };
    q->free_requests[q->free_count++] = index;
  }
  __atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
  uring_ring_publish(ring);
  return n;
}

/* Enter the kernel with what waits to be submitted. 0, or -1 with errno when nothing more is to be expected. */
static int enter(struct uring_queue *q, uint32_t at_least, int64_t timeout_ns) {
  struct uring_ring *ring = &q->ring;
  bool kernel_submits = ring->setup_flags & IORING_SETUP_SQPOLL;
  uint32_t to_submit = kernel_submits ? 0 : ring->tail - ring->submitted;
  int r = uring_ring_enter(ring, to_submit, at_least, timeout_ns);
  if (r >= 0) {
    ring->submitted += kernel_submits ? 0 : (uint32_t)r;
    return 0;
  }
  if (errno == EINTR || errno == ETIME)
    return 0;
  if (errno != EAGAIN && errno != EBUSY)
    return -1;
  /* Out of memory or of room for completions, for the moment: wait for some of what is under way. */
  if (uring_ring_ready(ring) == 0)
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  uring_ring_enter(ring, 0, 0, 0);
  return 0;
}

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int64_t uring_reap(void *queue, struct gdsfw_completion *out, uint32_t at_least, uint32_t at_most,
                          int64_t timeout_ns) {
  struct uring_queue *q = queue;
  struct uring_ring *ring = &q->ring;
  bool kernel_submits = ring->setup_flags & IORING_SETUP_SQPOLL;
  at_least = at_least > q->direct_count ? at_least - q->direct_count : 0;
  /* A kernel thread is at work: what it will have done in a moment costs no call. */
  for (int i = 0; kernel_submits && i < SQPOLL_SPINS && uring_ring_ready(ring) < at_least; i++)
    relax();
  uint64_t until = 0;
  for (;;) {
    uint32_t ready = uring_ring_ready(ring);
    bool nothing_to_submit = kernel_submits || ring->tail == ring->submitted;
    if (nothing_to_submit && ready >= at_least && (ready || kernel_submits))
      break;
    /* Polling a device ends with the completions, not with a timeout: ask again and again. */
    if (enter(q, q->polls_device ? 0 : at_least, timeout_ns) < 0)
      return -1;
    if (uring_ring_ready(ring) >= at_least || timeout_ns <= 0 || !q->polls_device)
      break;
    uint64_t now = now_ns();
    until = until ? until : now + (uint64_t)timeout_ns;
    if (now >= until)
      break;
  }
  return take_completions(q, out, at_most);
}

static int64_t uring_cancel(void *queue) {
  struct uring_queue *q = queue;
  struct io_uring_sqe *sqe = uring_ring_next(&q->ring);
  if (!sqe)
    return 0;
  sqe->opcode = OPCODE_ASYNC_CANCEL;
  sqe->fd = -1;
  sqe->rw_flags = CANCEL_ALL | CANCEL_ANY;
  sqe->user_data = CANCEL_MARK;
  uring_ring_publish(&q->ring);
  return enter(q, 0, 0);
}

static const struct gdsfw_queue uring_queue = {
    .abi = GDSFW_ABI,
    .struct_size = sizeof(struct gdsfw_queue),
    .open = uring_open,
    .submit = uring_submit,
    .reap = uring_reap,
    .cancel = uring_cancel,
    .close = uring_close,
};

GDSFW_EXPORT const struct gdsfw_io gdsfw_uring = {
    .abi = GDSFW_ABI,
    .struct_size = sizeof(struct gdsfw_io),
    .flags = GDSFW_HOST_VISIBLE | GDSFW_CAN_READ | GDSFW_CAN_WRITE,
    .max_transfer = LINUX_MOST_BYTES,
    .read = psync_read,
    .write = psync_write,
    .flush = psync_flush,
    .copy = host_copy,
    .queue = &uring_queue,
};
