/* uring_ring.c - io_uring by its system calls; no library is needed. */
#define _GNU_SOURCE
#include "uring_ring.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers that older kernel headers lack; whether this kernel knows them shows at run time. */
enum {
  SETUP_SUBMIT_ALL = 1 << 7,
  SETUP_COOP_TASKRUN = 1 << 8,
  SETUP_SINGLE_ISSUER = 1 << 12,
  SETUP_DEFER_TASKRUN = 1 << 13,
  ENTER_EXT_ARG = 1 << 3,
  ENTER_REGISTERED_RING = 1 << 4,
  FEATURE_RW_CUR_POS = 1 << 3, /* since 5.6, as plain read and write are */
  FEATURE_EXT_ARG = 1 << 8,
  REGISTER_RING_FDS = 20,
  UNREGISTER_RING_FDS = 21,
};

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#define SYS_io_uring_register 427
#endif

struct wait_argument { /* struct io_uring_getevents_arg */
  uint64_t sigmask;
  uint32_t sigmask_size, pad;
  uint64_t timespec;
};

struct ring_update { /* struct io_uring_rsrc_update */
  uint32_t offset, reserved;
  uint64_t data;
};

/* The best setup the kernel knows. A kernel thread that polls submissions excludes deferred task work. */
static int setup(struct io_uring_params *params, const struct gdsfw_uring_options *options, uint32_t entries) {
  static const uint32_t best_first[] = {
      SETUP_SUBMIT_ALL | SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN, /* 6.1 */
      SETUP_SUBMIT_ALL | SETUP_SINGLE_ISSUER | SETUP_COOP_TASKRUN,  /* 6.0 */
      SETUP_SUBMIT_ALL | SETUP_COOP_TASKRUN,                        /* 5.19 */
      0,
  };
  static const uint32_t with_sqpoll[] = {SETUP_SUBMIT_ALL | SETUP_SINGLE_ISSUER, SETUP_SUBMIT_ALL, 0};
  const uint32_t *flags = options->sqpoll ? with_sqpoll : best_first;
  uint32_t asked = (options->sqpoll ? IORING_SETUP_SQPOLL : 0) | (options->iopoll ? IORING_SETUP_IOPOLL : 0);
  for (;; flags++) {
    *params = (struct io_uring_params){.flags = asked | *flags, .sq_thread_idle = options->sqpoll_idle_ms};
    int fd = (int)syscall(SYS_io_uring_setup, entries, params);
    if (fd >= 0 || errno != EINVAL || *flags == 0)
      return fd;
  }
}

static int map_rings(struct uring_ring *ring, const struct io_uring_params *p) {
  size_t sq_size = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
  size_t cq_size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
  ring->map_size = sq_size > cq_size ? sq_size : cq_size;
  ring->sqes_size = p->sq_entries * sizeof(struct io_uring_sqe);
  int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
  ring->map = mmap(NULL, ring->map_size, protection, flags, ring->fd, IORING_OFF_SQ_RING);
  ring->sqes = mmap(NULL, ring->sqes_size, protection, flags, ring->fd, IORING_OFF_SQES);
  if (ring->map == MAP_FAILED || ring->sqes == MAP_FAILED)
    return -1;
  uint8_t *base = ring->map;
  ring->sq_head = (uint32_t *)(base + p->sq_off.head);
  ring->sq_tail = (uint32_t *)(base + p->sq_off.tail);
  ring->sq_flags = (uint32_t *)(base + p->sq_off.flags);
  ring->cq_head = (uint32_t *)(base + p->cq_off.head);
  ring->cq_tail = (uint32_t *)(base + p->cq_off.tail);
  ring->cqes = (struct io_uring_cqe *)(base + p->cq_off.cqes);
  ring->entries = p->sq_entries;
  ring->sq_mask = *(uint32_t *)(base + p->sq_off.ring_mask);
  ring->cq_mask = *(uint32_t *)(base + p->cq_off.ring_mask);
  /* Entries are always used in ring order, so the indirection is written once. */
  uint32_t *array = (uint32_t *)(base + p->sq_off.array);
  for (uint32_t i = 0; i < p->sq_entries; i++)
    array[i] = i;
  return 0;
}

/* Saves a look-up of the descriptor in every call; kernels before 5.18 do without. */
static void register_own_descriptor(struct uring_ring *ring) {
  struct ring_update update = {.offset = UINT32_MAX, .data = (uint64_t)ring->fd};
  if (syscall(SYS_io_uring_register, ring->fd, REGISTER_RING_FDS, &update, 1) == 1) {
    ring->enter_fd = (int)update.offset;
    ring->enter_flags = ENTER_REGISTERED_RING;
  }
}

static int failed(struct gdsfw_uring_report *report, enum gdsfw_uring_step step, int error) {
  report->step = step;
  report->error = error;
  return -1;
}

int uring_ring_open(struct uring_ring *ring, const struct gdsfw_uring_options *options, uint32_t entries,
                    struct gdsfw_uring_report *report) {
  struct io_uring_params params;
  *ring = (struct uring_ring){.fd = -1, .map = MAP_FAILED, .sqes = MAP_FAILED};
  ring->fd = setup(&params, options, entries);
  if (ring->fd < 0)
    return failed(report, GDSFW_URING_SETUP, errno);
  ring->enter_fd = ring->fd;
  ring->setup_flags = report->setup_flags = params.flags;
  ring->features = report->features = params.features;
  if (!(params.features & IORING_FEAT_SINGLE_MMAP) || !(params.features & FEATURE_RW_CUR_POS))
    return failed(report, GDSFW_URING_SETUP, EOPNOTSUPP);
  if (map_rings(ring, &params))
    return failed(report, GDSFW_URING_MAP, errno);
  register_own_descriptor(ring);
  return 0;
}

void uring_ring_close(struct uring_ring *ring) {
  if (ring->enter_flags & ENTER_REGISTERED_RING) {
    struct ring_update update = {.offset = (uint32_t)ring->enter_fd};
    syscall(SYS_io_uring_register, ring->fd, UNREGISTER_RING_FDS, &update, 1);
  }
  if (ring->sqes != MAP_FAILED)
    munmap(ring->sqes, ring->sqes_size);
  if (ring->map != MAP_FAILED)
    munmap(ring->map, ring->map_size);
  if (ring->fd >= 0)
    close(ring->fd);
}

int uring_ring_register(struct uring_ring *ring, uint32_t what, const void *argument, uint32_t count) {
  return syscall(SYS_io_uring_register, ring->fd, what, argument, count) < 0 ? errno : 0;
}

struct io_uring_sqe *uring_ring_next(struct uring_ring *ring) {
  if (ring->tail - __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE) >= ring->entries)
    return NULL;
  struct io_uring_sqe *sqe = &ring->sqes[ring->tail++ & ring->sq_mask];
  memset(sqe, 0, sizeof *sqe);
  return sqe;
}

/* Kernels before 5.11 cannot bound a wait in io_uring_enter, but the descriptor can be polled. */
static void wait_by_poll(const struct uring_ring *ring, int64_t timeout_ns) {
  struct pollfd one = {.fd = ring->fd, .events = POLLIN};
  poll(&one, 1, (int)((timeout_ns + 999999) / 1000000));
}

void uring_ring_submit(struct uring_ring *ring) {
  uint32_t count = ring->tail - ring->submitted;
  int r = (int)syscall(SYS_io_uring_enter, ring->enter_fd, count, 0, ring->enter_flags, NULL, 0);
  if (r > 0)
    ring->submitted += (uint32_t)r;
}

int uring_ring_enter(struct uring_ring *ring, uint32_t to_submit, uint32_t at_least, int64_t timeout_ns) {
  uint32_t flags = ring->enter_flags | IORING_ENTER_GETEVENTS;
  if (ring->setup_flags & IORING_SETUP_SQPOLL) {
    to_submit = 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP)
      flags |= IORING_ENTER_SQ_WAKEUP;
  }
  if (at_least == 0 || timeout_ns <= 0)
    return (int)syscall(SYS_io_uring_enter, ring->enter_fd, to_submit, 0, flags, NULL, 0);
  if (!(ring->features & FEATURE_EXT_ARG)) {
    int r = (int)syscall(SYS_io_uring_enter, ring->enter_fd, to_submit, 0, flags, NULL, 0);
    if (uring_ring_ready(ring) < at_least)
      wait_by_poll(ring, timeout_ns);
    return r;
  }
  struct timespec_64 {
    int64_t seconds, nanoseconds;
  } timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  struct wait_argument argument = {.timespec = (uint64_t)(uintptr_t)&timeout};
  flags |= ENTER_EXT_ARG;
  return (int)syscall(SYS_io_uring_enter, ring->enter_fd, to_submit, at_least, flags, &argument, sizeof argument);
}
