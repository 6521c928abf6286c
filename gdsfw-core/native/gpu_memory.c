/* gpu_memory.c - copy, fill and verify of device memory for the tables of GPU paths.
 *
 * Fill and verify go through pinned host memory. What is verified was copied from the device for the purpose: the
 * staged path's own host copy would prove nothing.
 */
#include "gpu_internal.h"

#include <unistd.h>

static uint64_t device_address(void *buffer_base, int64_t buffer_offset) {
  return (uint64_t)(uintptr_t)buffer_base + (uint64_t)buffer_offset;
}

GDSFW_EXPORT int64_t gdsfw_gpu_copy(void *ctx, void *buffer_base, int64_t buffer_offset, void *host, uint64_t size,
                                    int32_t direction) {
  const struct gdsfw_gpu_path *path = ctx;
  uint64_t device = device_address(buffer_base, buffer_offset);
  int32_t answer = direction == GDSFW_TO_HOST ? path->gpu->copy_to_host(host, device, size, path->stream)
                                              : path->gpu->copy_to_device(device, host, size, path->stream);
  if (!answer)
    answer = path->gpu->stream_wait(path->stream);
  return answer ? gpu_error(answer) : (int64_t)size;
}

GDSFW_EXPORT int64_t gdsfw_gpu_fill(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size,
                                    int64_t file_offset, const struct gdsfw_pattern *pattern) {
  const struct gdsfw_gpu_path *path = ctx;
  for (uint64_t done = 0, step; done < size; done += step) {
    step = size - done < path->scratch_size ? size - done : path->scratch_size;
    gdsfw_pattern_fill(path->scratch, step, file_offset + (int64_t)done, pattern);
    int64_t r = gdsfw_gpu_copy(ctx, buffer_base, buffer_offset + (int64_t)done, path->scratch, step, GDSFW_FROM_HOST);
    if (r < 0)
      return r;
  }
  return (int64_t)size;
}

GDSFW_EXPORT int64_t gdsfw_gpu_verify(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size,
                                      int64_t file_offset, const struct gdsfw_pattern *pattern,
                                      struct gdsfw_mismatch *mismatch) {
  const struct gdsfw_gpu_path *path = ctx;
  uint64_t bad = 0;
  for (uint64_t done = 0, step; done < size; done += step) {
    step = size - done < path->scratch_size ? size - done : path->scratch_size;
    int64_t r = gdsfw_gpu_copy(ctx, buffer_base, buffer_offset + (int64_t)done, path->scratch, step, GDSFW_TO_HOST);
    if (r < 0)
      return r;
    struct gdsfw_mismatch here = {.abi = GDSFW_ABI, .struct_size = sizeof here};
    gdsfw_pattern_verify(path->scratch, step, file_offset + (int64_t)done, pattern, &here);
    if (here.bad_bytes && !bad)
      *mismatch = here;
    bad += here.bad_bytes;
  }
  mismatch->bad_bytes = bad;
  return (int64_t)size;
}

/* The file libraries flush nothing: that is done on the descriptor behind the file. */
GDSFW_EXPORT int64_t gdsfw_gpu_flush(void *ctx, void *file, int32_t data_only) {
  const struct gdsfw_gpu_path *path = ctx;
  for (uint64_t i = 0; i < path->nfiles; i++)
    if (path->files[i].file == file)
      return data_only ? fdatasync(path->files[i].fd) : fsync(path->files[i].fd);
  errno = EBADF;
  return -1;
}

GDSFW_EXPORT int64_t gdsfw_gpu_register(void *ctx, void *buffer_base, uint64_t size) {
  const struct gdsfw_gpu_path *path = ctx;
  return gpu_result(path->library->buffer_register(buffer_base, size, 0));
}

GDSFW_EXPORT int64_t gdsfw_gpu_deregister(void *ctx, void *buffer_base) {
  const struct gdsfw_gpu_path *path = ctx;
  return gpu_result(path->library->buffer_deregister(buffer_base));
}

/* Data of the staged path is with the storage table's files. */
GDSFW_EXPORT int64_t gdsfw_staged_flush(void *ctx, void *file, int32_t data_only) {
  const struct gdsfw_gpu_path *path = ctx;
  return path->storage->flush(path->storage->ctx, file, data_only);
}
