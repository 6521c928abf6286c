/* uring_ring.h - the two rings that io_uring shares with the kernel, and its three system calls. */
#ifndef GDSFW_URING_RING_H
#define GDSFW_URING_RING_H

#include "engine.h"

#include <linux/io_uring.h>

struct uring_ring {
  int fd;
  int enter_fd;         /* the descriptor, or its registered index */
  uint32_t enter_flags; /* that all io_uring_enter calls have */
  uint32_t setup_flags, features;
  uint32_t entries, sq_mask, cq_mask;
  uint32_t *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
  struct io_uring_sqe *sqes;
  struct io_uring_cqe *cqes;
  uint32_t tail;      /* of what was filled in; the kernel sees it after uring_ring_publish */
  uint32_t submitted; /* of what the kernel was told to take */
  void *map;
  size_t map_size, sqes_size;
};

/* Set up with at least `entries`; the report says what failed. Returns 0 or -1. */
int uring_ring_open(struct uring_ring *ring, const struct gdsfw_uring_options *options, uint32_t entries,
                    struct gdsfw_uring_report *report);
void uring_ring_close(struct uring_ring *ring);

/* io_uring_register; 0 or an errno. */
int uring_ring_register(struct uring_ring *ring, uint32_t what, const void *argument, uint32_t count);

/* io_uring_enter, only to submit; what is not taken stays for the next time. */
void uring_ring_submit(struct uring_ring *ring);

/* io_uring_enter: submit what was filled in and wait for at_least completions, at most timeout_ns.
 * Returns what the kernel returned, with errno. */
int uring_ring_enter(struct uring_ring *ring, uint32_t to_submit, uint32_t at_least, int64_t timeout_ns);

static inline uint32_t uring_ring_ready(const struct uring_ring *ring) {
  return __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE) - *ring->cq_head;
}

/* A zeroed entry to fill in, NULL when the ring is full. */
struct io_uring_sqe *uring_ring_next(struct uring_ring *ring);

/* Let the kernel see what was filled in. */
static inline void uring_ring_publish(struct uring_ring *ring) {
  __atomic_store_n(ring->sq_tail, ring->tail, __ATOMIC_RELEASE);
}

#endif
