/* decode.c - the one place where results of a backend's functions get their meaning. */
#include "decode.h"

#include <errno.h>
#include <string.h>

GDSFW_EXPORT struct gdsfw_verdict gdsfw_decode(int64_t r, int32_t error, uint32_t file_code_base) {
  if (r >= 0)
    return (struct gdsfw_verdict){.domain = GDSFW_NONE};
  bool has_file_codes = file_code_base != 0;
  if (r == -1 && error == 0)
    return (struct gdsfw_verdict){.domain = GDSFW_GPU, .code = 1};
  if (r == -1) {
    bool from_file = has_file_codes && error > 0 && (uint32_t)error >= file_code_base;
    return (struct gdsfw_verdict){.domain = from_file ? GDSFW_FILE : GDSFW_ERRNO, .code = error};
  }
  /* INT64_MIN has no positive twin. */
  int64_t code = r == INT64_MIN ? INT64_MAX : -r;
  bool from_file = has_file_codes && code >= (int64_t)file_code_base;
  return (struct gdsfw_verdict){.domain = from_file ? GDSFW_FILE : GDSFW_GPU, .code = code};
}

struct gdsfw_io io_copy(const struct gdsfw_io *io) {
  struct gdsfw_io copy = {0};
  memcpy(&copy, io, io->struct_size < sizeof copy ? io->struct_size : sizeof copy);
  return copy;
}

static int64_t decoded(const struct gdsfw_io *io, int64_t r, struct gdsfw_verdict *verdict) {
  *verdict = gdsfw_decode(r, errno, io->file_code_base);
  return r;
}

static int64_t missing(struct gdsfw_verdict *verdict) {
  *verdict = (struct gdsfw_verdict){.domain = GDSFW_ERRNO, .code = EOPNOTSUPP};
  return -1;
}

GDSFW_EXPORT int64_t gdsfw_call_move(const struct gdsfw_io *io, const struct gdsfw_request *request,
                                     struct gdsfw_verdict *verdict) {
  gdsfw_io_fn move = request->opcode ? io->write : io->read;
  if (!move)
    return missing(verdict);
  errno = 0;
  int64_t r = move(request->file, request->buffer_base, request->size, request->file_offset, request->buffer_offset);
  return decoded(io, r, verdict);
}

GDSFW_EXPORT int64_t gdsfw_call_flush(const struct gdsfw_io *io, uint64_t file, int32_t data_only,
                                      struct gdsfw_verdict *verdict) {
  if (!io->flush)
    return missing(verdict);
  errno = 0;
  return decoded(io, io->flush(io->ctx, (void *)(uintptr_t)file, data_only), verdict);
}

GDSFW_EXPORT int64_t gdsfw_call_copy(const struct gdsfw_io *io, uint64_t buffer, int64_t buffer_offset, void *host,
                                     uint64_t size, int32_t direction, struct gdsfw_verdict *verdict) {
  if (!io->copy)
    return missing(verdict);
  errno = 0;
  int64_t r = io->copy(io->ctx, (void *)(uintptr_t)buffer, buffer_offset, host, size, direction);
  return decoded(io, r, verdict);
}

/* Memory that the host can see needs no function of the backend to be filled and verified. */
static uint8_t *host_address(const struct gdsfw_io *io, uint64_t buffer, int64_t buffer_offset) {
  return io->flags & GDSFW_HOST_VISIBLE ? (uint8_t *)(uintptr_t)buffer + buffer_offset : NULL;
}

GDSFW_EXPORT int64_t gdsfw_call_fill(const struct gdsfw_io *io, uint64_t buffer, int64_t buffer_offset, uint64_t size,
                                     int64_t file_offset, const struct gdsfw_pattern *pattern,
                                     struct gdsfw_verdict *verdict) {
  uint8_t *host = host_address(io, buffer, buffer_offset);
  if (!io->fill && !host)
    return missing(verdict);
  errno = 0;
  int64_t r = 0;
  if (io->fill)
    r = io->fill(io->ctx, (void *)(uintptr_t)buffer, buffer_offset, size, file_offset, pattern);
  else
    gdsfw_pattern_fill(host, size, file_offset, pattern);
  return decoded(io, r, verdict);
}

GDSFW_EXPORT int64_t gdsfw_call_make_data(const struct gdsfw_io *io, uint64_t buffer, int64_t buffer_offset,
                                          uint64_t size, const struct gdsfw_block_data *data,
                                          struct gdsfw_verdict *verdict) {
  if (!io->make_data)
    return missing(verdict);
  errno = 0;
  return decoded(io, io->make_data(io->ctx, (void *)(uintptr_t)buffer, buffer_offset, size, data), verdict);
}

GDSFW_EXPORT int64_t gdsfw_call_verify(const struct gdsfw_io *io, uint64_t buffer, int64_t buffer_offset, uint64_t size,
                                       int64_t file_offset, const struct gdsfw_pattern *pattern,
                                       struct gdsfw_mismatch *mismatch, struct gdsfw_verdict *verdict) {
  uint8_t *host = host_address(io, buffer, buffer_offset);
  *mismatch = (struct gdsfw_mismatch){.abi = GDSFW_ABI, .struct_size = sizeof *mismatch};
  if (!io->verify && !host)
    return missing(verdict);
  errno = 0;
  int64_t r = 0;
  if (io->verify)
    r = io->verify(io->ctx, (void *)(uintptr_t)buffer, buffer_offset, size, file_offset, pattern, mismatch);
  else
    gdsfw_pattern_verify(host, size, file_offset, pattern, mismatch);
  return decoded(io, r, verdict);
}

GDSFW_EXPORT int64_t gdsfw_call_register(const struct gdsfw_io *io, uint64_t buffer, uint64_t size,
                                         struct gdsfw_verdict *verdict) {
  if (size ? !io->register_buffer : !io->deregister_buffer)
    return missing(verdict);
  errno = 0;
  int64_t r = size ? io->register_buffer(io->ctx, (void *)(uintptr_t)buffer, size)
                   : io->deregister_buffer(io->ctx, (void *)(uintptr_t)buffer);
  return decoded(io, r, verdict);
}
