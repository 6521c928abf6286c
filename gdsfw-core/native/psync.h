/* psync.h - what the tables for descriptors and host memory share. */
#ifndef GDSFW_PSYNC_H
#define GDSFW_PSYNC_H

#include "engine.h"

/* What Linux moves at most in one read or write: INT_MAX rounded down to a page. */
#define LINUX_MOST_BYTES 0x7ffff000ull

/* Direct I/O takes whole multiples of the alignment (a power of two); the tail of an odd-sized file goes round it. */
static inline bool needs_tail_fd(const struct gdsfw_fd_file *file, uint64_t size, int64_t offset) {
  uint64_t rest = (size | (uint64_t)offset) & (file->alignment - 1u);
  return rest && file->alignment && file->tail_fd >= 0;
}

int64_t psync_read(void *file, void *base, uint64_t size, int64_t offset, int64_t buffer_offset);
int64_t psync_write(void *file, void *base, uint64_t size, int64_t offset, int64_t buffer_offset);
int64_t psync_flush(void *ctx, void *file, int32_t data_only);
int64_t host_copy(void *ctx, void *base, int64_t buffer_offset, void *host, uint64_t size, int32_t direction);

#endif
