/* copy.c - copies between host and device, and fills.
 *
 * Asynchronous copies of pinned or registered memory read and write the host's bytes when the stream gets there. With
 * memory that is not pinned the call comes back only when the copy is done.
 */
#include "memory.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum direction { TO_DEVICE, TO_HOST, IN_DEVICE };

struct side {
  uint8_t *memory;
  int fd;         /* of device memory */
  off_t position; /* in it */
  int registered; /* host pages that may be a file's */
  int pageable;
};

struct copy {
  struct side to, from;
  size_t size;
  int device;
  int value; /* of a fill */
  int filling;
};

/* Host memory that is a file's pages may be gone by now: a GPU then reads pages that nobody else sees. */
static void copy_registered(const struct copy *c) {
  for (size_t done = 0; done < c->size;) {
    ssize_t moved = pwrite(c->to.fd, c->from.memory + done, c->size - done, c->to.position + (off_t)done);
    if (moved <= 0) {
      memset(c->to.memory + done, 0, c->size - done);
      control_trace("stale bytes=%zu", c->size - done);
      return;
    }
    done += (size_t)moved;
  }
}

static void run_copy(void *argument) {
  static struct standin_site site = {.name = "stream_copy"};
  struct copy *c = argument;
  struct standin_fault fault = {0};
  if (control_enter(&site, &fault))
    device_at(c->device)->error = (int)fault.code; /* sticky, as after a failed kernel */
  else if (c->filling)
    memset(c->to.memory, c->value, c->size);
  else if (c->from.registered && c->to.fd >= 0)
    copy_registered(c);
  else
    memmove(c->to.memory, c->from.memory, c->size);
  free(c);
}

static int device_side(uint64_t address, size_t size, int device, int writing, struct side *side) {
  struct standin_range range;
  if (!memory_find(address, &range) || size > range.size - (address - range.address))
    return INVALID_VALUE;
  uint64_t inside = address - range.address;
  if (range.kind == MEMORY_DEVICE && range.device != device && control_setting("strict", 1))
    return INVALID_VALUE;
  if (writing && range.read_only)
    return INVALID_VALUE;
  *side = (struct side){.memory = range.alias + inside,
                        .fd = range.fd,
                        .position = (off_t)inside,
                        .registered = range.kind == MEMORY_REGISTERED};
  return OK;
}

static int host_side(uint64_t address, size_t size, int writing, struct side *side) {
  struct standin_range range;
  *side = (struct side){.memory = (uint8_t *)(uintptr_t)address, .fd = -1, .pageable = 1};
  if (!memory_find(address, &range))
    return OK;
  if (range.kind == MEMORY_DEVICE || size > range.size - (address - range.address) || (writing && range.read_only))
    return INVALID_VALUE;
  side->memory = range.alias + (address - range.address);
  side->pageable = 0;
  side->registered = range.kind == MEMORY_REGISTERED;
  return OK;
}

static int sides(struct copy *c, uint64_t to, uint64_t from, enum direction direction) {
  int status =
      direction == TO_HOST ? host_side(to, c->size, 1, &c->to) : device_side(to, c->size, c->device, 1, &c->to);
  if (status)
    return status;
  return direction == TO_DEVICE ? host_side(from, c->size, 0, &c->from)
                                : device_side(from, c->size, c->device, 0, &c->from);
}

static int stream_of(void *handle, int device, struct stream **stream) {
  *stream = stream_find(handle, device);
  if (!*stream || (stream_device(*stream) != device && control_setting("strict", 1)))
    return INVALID_HANDLE;
  return OK;
}

static int copy(uint64_t to, uint64_t from, size_t size, enum direction direction, void *handle, int wait) {
  static const char *const names[] = {"to_device", "to_host", "in_device"};
  struct device *device;
  struct stream *stream;
  int status = device_use(&device);
  if (!status)
    status = stream_of(handle, device->ordinal, &stream);
  if (status)
    return status;
  if (!size)
    return OK;
  struct copy *c = calloc(1, sizeof *c);
  *c = (struct copy){.size = size, .device = device->ordinal};
  status = sides(c, to, from, direction);
  if (status) {
    free(c);
    return status;
  }
  int pageable = c->to.pageable || c->from.pageable;
  control_trace("copy %s bytes=%zu device=%d wait=%d pinned=%d", names[direction], size, device->ordinal, wait,
                !pageable);
  if (wait || pageable)
    stream_run(stream, run_copy, c);
  else
    stream_push(stream, run_copy, c);
  return wait ? device->error : OK;
}

STANDIN_EXPORT int fn_to_device(uint64_t to, const void *from, size_t size) {
  ENTER(fn_to_device);
  return answer(copy(to, (uint64_t)(uintptr_t)from, size, TO_DEVICE, NULL, 1));
}

STANDIN_EXPORT int fn_to_host(void *to, uint64_t from, size_t size) {
  ENTER(fn_to_host);
  return answer(copy((uint64_t)(uintptr_t)to, from, size, TO_HOST, NULL, 1));
}

STANDIN_EXPORT int fn_in_device(uint64_t to, uint64_t from, size_t size) {
  ENTER(fn_in_device);
  return answer(copy(to, from, size, IN_DEVICE, NULL, 1));
}

STANDIN_EXPORT int fn_to_device_async(uint64_t to, const void *from, size_t size, void *stream) {
  ENTER(fn_to_device_async);
  return answer(copy(to, (uint64_t)(uintptr_t)from, size, TO_DEVICE, stream, 0));
}

STANDIN_EXPORT int fn_to_host_async(void *to, uint64_t from, size_t size, void *stream) {
  ENTER(fn_to_host_async);
  return answer(copy((uint64_t)(uintptr_t)to, from, size, TO_HOST, stream, 0));
}

STANDIN_EXPORT int fn_in_device_async(uint64_t to, uint64_t from, size_t size, void *stream) {
  ENTER(fn_in_device_async);
  return answer(copy(to, from, size, IN_DEVICE, stream, 0));
}

static int fill(uint64_t to, int value, size_t size, void *handle, int wait) {
  struct device *device;
  struct stream *stream;
  int status = device_use(&device);
  if (!status)
    status = stream_of(handle, device->ordinal, &stream);
  if (status)
    return status;
  struct copy *c = calloc(1, sizeof *c);
  *c = (struct copy){.size = size, .device = device->ordinal, .filling = 1, .value = value};
  status = device_side(to, size, device->ordinal, 1, &c->to);
  if (status) {
    free(c);
    return status;
  }
  (wait ? stream_run : stream_push)(stream, run_copy, c);
  return OK;
}

STANDIN_EXPORT int fn_set8(uint64_t to, unsigned char value, size_t size) {
  ENTER(fn_set8);
  return answer(fill(to, value, size, NULL, 1));
}

STANDIN_EXPORT int fn_set8_async(uint64_t to, unsigned char value, size_t size, void *stream) {
  ENTER(fn_set8_async);
  return answer(fill(to, value, size, stream, 0));
}

/* Where unified addressing finds a pointer. */
static int on_device(uint64_t address) {
  struct standin_range range;
  return memory_find(address, &range) && range.kind == MEMORY_DEVICE;
}

static int infer(uint64_t to, uint64_t from, enum direction *direction) {
  if (!on_device(to) && !on_device(from))
    return INVALID_VALUE;
  *direction = !on_device(from) ? TO_DEVICE : on_device(to) ? IN_DEVICE : TO_HOST;
  return OK;
}

#if IS_HIP

enum { KIND_TO_DEVICE = 1, KIND_TO_HOST, KIND_IN_DEVICE, KIND_DEFAULT };

static int copy_kind(void *to, const void *from, size_t size, int kind, void *stream, int wait) {
  enum direction direction = (enum direction)(kind - KIND_TO_DEVICE);
  uint64_t target = (uint64_t)(uintptr_t)to, source = (uint64_t)(uintptr_t)from;
  if (kind < KIND_TO_DEVICE || kind > KIND_DEFAULT)
    return 21; /* hipErrorInvalidMemcpyDirection */
  if (kind == KIND_DEFAULT && infer(target, source, &direction))
    return INVALID_VALUE;
  return copy(target, source, size, direction, stream, wait);
}

STANDIN_EXPORT int hipMemcpy(void *to, const void *from, size_t size, int kind) {
  ENTER(hipMemcpy);
  return answer(copy_kind(to, from, size, kind, NULL, 1));
}

STANDIN_EXPORT int hipMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
  ENTER(hipMemcpyAsync);
  return answer(copy_kind(to, from, size, kind, stream, 0));
}

STANDIN_EXPORT int hipMemset(void *to, int value, size_t size) {
  ENTER(hipMemset);
  return answer(fill((uint64_t)(uintptr_t)to, value, size, NULL, 1));
}

STANDIN_EXPORT int hipMemsetAsync(void *to, int value, size_t size, void *stream) {
  ENTER(hipMemsetAsync);
  return answer(fill((uint64_t)(uintptr_t)to, value, size, stream, 0));
}

#else

static int copy_anything(uint64_t to, uint64_t from, size_t size, void *stream, int wait) {
  enum direction direction;
  return infer(to, from, &direction) ? INVALID_VALUE : copy(to, from, size, direction, stream, wait);
}

STANDIN_EXPORT int cuMemcpy(uint64_t to, uint64_t from, size_t size) {
  ENTER(cuMemcpy);
  return copy_anything(to, from, size, NULL, 1);
}

STANDIN_EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, void *stream) {
  ENTER(cuMemcpyAsync);
  return copy_anything(to, from, size, stream, 0);
}

#endif
