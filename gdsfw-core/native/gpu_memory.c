/* gpu_memory.c - copy, fill and verify of device memory for the tables of GPU paths.
 *
 * With kernels the device fills and verifies by itself. Without, both go through pinned host memory; what is verified
 * was copied from the device for the purpose: the staged path's own host copy would prove nothing.
 */
#include "gpu_internal.h"
#include "pattern.h"

#include <string.h>
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

/* ---- by the device ---------------------------------------------------------------------------------------------- */

enum { THREADS = 256, MOST_GRID = 1056, LANE = 4 };

/* One thread for each 32-bit lane of the pattern, a grid at most. */
static int32_t launch_lanes(const struct gdsfw_gpu_path *path, void *kernel, uint64_t size, void **parameters) {
  uint64_t grid = (size / LANE + THREADS + 1) / THREADS;
  return path->gpu->launch(kernel, (uint32_t)(grid < MOST_GRID ? grid : MOST_GRID), 1, 1, THREADS, 1, 1, 0,
                           path->stream, parameters, NULL);
}

static int64_t device_fill(const struct gdsfw_gpu_path *path, uint64_t device, uint64_t size, int64_t file_offset,
                           const struct gdsfw_pattern *pattern) {
  uint64_t key = pattern_file_key(pattern), at = (uint64_t)file_offset;
  void *parameters[] = {&device, &size, &at, &key};
  int32_t answer = launch_lanes(path, path->kernels->fill, size, parameters);
  if (!answer)
    answer = path->gpu->stream_wait(path->stream);
  return answer ? gpu_error(answer) : (int64_t)size;
}

/* What the make kernel takes. */
struct made_block {
  uint64_t file_key, nonce, piece, random;
  uint32_t stamped;
};

static int64_t device_make(const struct gdsfw_gpu_path *path, uint64_t device, uint64_t size,
                           const struct gdsfw_block_data *data) {
  struct gdsfw_pattern pattern = {.seed = data->seed, .file_id = data->file_id};
  struct made_block made = {pattern_file_key(&pattern), data->nonce, data->piece, data->random, data->stamped};
  void *parameters[] = {&device, &size, &made};
  int32_t answer = launch_lanes(path, path->kernels->make, size, parameters);
  if (!answer)
    answer = path->gpu->stream_wait(path->stream);
  return answer ? gpu_error(answer) : (int64_t)size;
}

/* What is where the device found the first difference, and what should be. */
static int64_t describe_first(const struct gdsfw_gpu_path *path, uint64_t device, uint64_t size, int64_t file_offset,
                              const struct gdsfw_pattern *pattern, struct gdsfw_mismatch *mismatch) {
  const struct gdsfw_gpu_finding clean = {0, UINT64_MAX};
  uint64_t left = size - (uint64_t)(mismatch->file_offset - file_offset);
  mismatch->length = left < sizeof mismatch->found ? (uint32_t)left : (uint32_t)sizeof mismatch->found;
  gdsfw_pattern_fill(mismatch->expected, mismatch->length, mismatch->file_offset, pattern);
  device += (uint64_t)(mismatch->file_offset - file_offset);
  int32_t answer = path->gpu->copy_to_host(path->scratch, device, mismatch->length, path->stream);
  if (!answer)
    answer = path->gpu->stream_wait(path->stream);
  memcpy(mismatch->found, path->scratch, mismatch->length);
  memcpy(path->scratch, &clean, sizeof clean);
  if (!answer)
    answer = path->gpu->copy_to_device(path->finding, path->scratch, sizeof clean, path->stream);
  if (!answer)
    answer = path->gpu->stream_wait(path->stream);
  return answer ? gpu_error(answer) : (int64_t)size;
}

static int64_t device_verify(const struct gdsfw_gpu_path *path, uint64_t device, uint64_t size, int64_t file_offset,
                             const struct gdsfw_pattern *pattern, struct gdsfw_mismatch *mismatch) {
  uint64_t key = pattern_file_key(pattern), at = (uint64_t)file_offset, finding = path->finding;
  volatile uint64_t *flag = (volatile uint64_t *)path->scratch; /* pinned: the device writes it where bytes differ */
  void *parameters[] = {&device, &size, &at, &key, &finding, &flag};
  struct gdsfw_gpu_finding found;
  *flag = 0;
  mismatch->bad_bytes = 0;
  int32_t answer = launch_lanes(path, path->kernels->verify, size, parameters);
  if (!answer)
    answer = path->gpu->stream_wait(path->stream);
  if (!answer && !*flag)
    return (int64_t)size;
  if (!answer)
    answer = path->gpu->copy_to_host(path->scratch, finding, sizeof found, path->stream);
  if (!answer)
    answer = path->gpu->stream_wait(path->stream);
  if (answer)
    return gpu_error(answer);
  memcpy(&found, path->scratch, sizeof found);
  mismatch->bad_bytes = found.bad_bytes;
  mismatch->file_offset = (int64_t)found.first;
  return describe_first(path, device, size, file_offset, pattern, mismatch);
}

/* ---- the table's functions -------------------------------------------------------------------------------------- */

GDSFW_EXPORT int64_t gdsfw_gpu_fill(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size,
                                    int64_t file_offset, const struct gdsfw_pattern *pattern) {
  const struct gdsfw_gpu_path *path = ctx;
  if (path->kernels && size)
    return device_fill(path, device_address(buffer_base, buffer_offset), size, file_offset, pattern);
  for (uint64_t done = 0, step; done < size; done += step) {
    step = size - done < path->scratch_size ? size - done : path->scratch_size;
    gdsfw_pattern_fill(path->scratch, step, file_offset + (int64_t)done, pattern);
    int64_t r = gdsfw_gpu_copy(ctx, buffer_base, buffer_offset + (int64_t)done, path->scratch, step, GDSFW_FROM_HOST);
    if (r < 0)
      return r;
  }
  return (int64_t)size;
}

GDSFW_EXPORT int64_t gdsfw_gpu_make_data(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size,
                                         const struct gdsfw_block_data *data) {
  return device_make(ctx, device_address(buffer_base, buffer_offset), size, data);
}

GDSFW_EXPORT int64_t gdsfw_gpu_verify(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size,
                                      int64_t file_offset, const struct gdsfw_pattern *pattern,
                                      struct gdsfw_mismatch *mismatch) {
  const struct gdsfw_gpu_path *path = ctx;
  uint64_t bad = 0;
  if (path->kernels && size)
    return device_verify(path, device_address(buffer_base, buffer_offset), size, file_offset, pattern, mismatch);
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

/* A path without a file library has nobody to register with. */
GDSFW_EXPORT int64_t gdsfw_gpu_register(void *ctx, void *buffer_base, uint64_t size) {
  const struct gdsfw_gpu_path *path = ctx;
  return path->library ? gpu_result(path->library->buffer_register(buffer_base, size, 0)) : 0;
}

GDSFW_EXPORT int64_t gdsfw_gpu_deregister(void *ctx, void *buffer_base) {
  const struct gdsfw_gpu_path *path = ctx;
  return path->library ? gpu_result(path->library->buffer_deregister(buffer_base)) : 0;
}

/* Data of the staged path is with the storage table's files. */
GDSFW_EXPORT int64_t gdsfw_staged_flush(void *ctx, void *file, int32_t data_only) {
  const struct gdsfw_gpu_path *path = ctx;
  return path->storage->flush(path->storage->ctx, file, data_only);
}
