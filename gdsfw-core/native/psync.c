/* psync.c - pread and pwrite on host memory: one system call for each call, short counts go back to the engine. */
#define _GNU_SOURCE
#include "psync.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static inline int descriptor_for(const struct gdsfw_fd_file *file, uint64_t size, int64_t offset) {
  return needs_tail_fd(file, size, offset) ? file->tail_fd : file->fd;
}

int64_t psync_read(void *file, void *base, uint64_t size, int64_t offset, int64_t buffer_offset) {
  int fd = descriptor_for(file, size, offset);
  ssize_t r;
  do
    r = pread(fd, (uint8_t *)base + buffer_offset, size, offset);
  while (__builtin_expect(r < 0 && errno == EINTR, 0));
  return r;
}

int64_t psync_write(void *file, void *base, uint64_t size, int64_t offset, int64_t buffer_offset) {
  int fd = descriptor_for(file, size, offset);
  ssize_t r;
  do
    r = pwrite(fd, (const uint8_t *)base + buffer_offset, size, offset);
  while (__builtin_expect(r < 0 && errno == EINTR, 0));
  return r;
}

int64_t psync_flush(void *ctx, void *file, int32_t data_only) {
  (void)ctx;
  int fd = ((const struct gdsfw_fd_file *)file)->fd;
  int r;
  do
    r = data_only ? fdatasync(fd) : fsync(fd);
  while (r < 0 && errno == EINTR);
  return r;
}

int64_t host_copy(void *ctx, void *base, int64_t buffer_offset, void *host, uint64_t size, int32_t direction) {
  (void)ctx;
  uint8_t *buffer = (uint8_t *)base + buffer_offset;
  if (direction == GDSFW_TO_HOST)
    memcpy(host, buffer, size);
  else
    memcpy(buffer, host, size);
  return (int64_t)size;
}

GDSFW_EXPORT const struct gdsfw_io gdsfw_psync = {
    .abi = GDSFW_ABI,
    .struct_size = sizeof(struct gdsfw_io),
    .flags = GDSFW_HOST_VISIBLE | GDSFW_CAN_READ | GDSFW_CAN_WRITE,
    .max_transfer = LINUX_MOST_BYTES,
    .read = psync_read,
    .write = psync_write,
    .flush = psync_flush,
    .copy = host_copy,
};
