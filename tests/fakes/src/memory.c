/* memory.c - allocation and registration of memory.
 *
 * Device memory is pages of a memfd that are mapped twice: without any access at the address handed out, so that host
 * code that touches it dies of SIGSEGV and system calls answer EFAULT, and readable and writable at an alias that only
 * the stand-in knows. Freed addresses are never used again.
 */
#include "memory.h"
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define POISON 0xdb /* content of fresh device memory */
#define POISON_MOST (64u << 20)
#define REGISTER_READ_ONLY 8 /* CU_MEMHOSTREGISTER_READ_ONLY, hipHostRegisterReadOnly */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static size_t pinned;

static size_t pages(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

static void add(struct block *block) {
  pthread_mutex_lock(&lock);
  block->next = blocks;
  blocks = block;
  pthread_mutex_unlock(&lock);
}

static int holds(uint64_t start, size_t size, uint64_t address) { return address >= start && address - start < size; }

/* Under the lock. */
static struct block *holding(uint64_t address) {
  for (struct block *b = blocks; b; b = b->next)
    if (holds(b->address, b->size, address) || holds(b->device_address, b->size, address))
      return b;
  return NULL;
}

/* Take out the block that starts at an address; NULL when there is none of that kind. */
static struct block *take(uint64_t address, enum standin_kind kind, int device) {
  pthread_mutex_lock(&lock);
  struct block **link = &blocks, *found;
  while (*link && ((*link)->address != address || (*link)->kind != kind || (device >= 0 && (*link)->device != device)))
    link = &(*link)->next;
  found = *link;
  if (found)
    *link = found->next;
  pthread_mutex_unlock(&lock);
  return found;
}

int memory_find(uint64_t address, struct standin_range *range) {
  pthread_mutex_lock(&lock);
  struct block *b = holding(address);
  if (b)
    *range = (struct standin_range){.address = holds(b->address, b->size, address) ? b->address : b->device_address,
                                    .size = b->size,
                                    .alias = b->alias,
                                    .kind = b->kind,
                                    .device = b->device,
                                    .read_only = b->kind == MEMORY_REGISTERED && (b->flags & REGISTER_READ_ONLY),
                                    .fd = b->fd};
  pthread_mutex_unlock(&lock);
  return b != NULL;
}

void memory_pin(uint64_t address, int by) {
  pthread_mutex_lock(&lock);
  struct block *b = holding(address);
  if (b)
    b->pins += by;
  pthread_mutex_unlock(&lock);
}

void memory_open(int device, int open) {
  static int running[MAX_DEVICES];
  pthread_mutex_lock(&lock);
  int before = running[device];
  running[device] += open ? 1 : -1;
  if (!before || !running[device]) {
    int access = open ? PROT_READ | PROT_WRITE : PROT_NONE;
    for (struct block *b = blocks; b; b = b->next) {
      int view = b->kind == MEMORY_REGISTERED && b->device_address != b->address;
      if (b->kind == MEMORY_DEVICE && b->device == device)
        mprotect((void *)(uintptr_t)b->address, b->mapped, access);
      else if (view)
        mprotect((void *)(uintptr_t)b->device_address, b->mapped,
                 b->flags & REGISTER_READ_ONLY ? access & PROT_READ : access);
    }
  }
  pthread_mutex_unlock(&lock);
}

static int map_twice(struct block *b) {
  b->fd = memfd_create("stand-in device memory", MFD_CLOEXEC);
  if (b->fd < 0 || ftruncate(b->fd, (off_t)b->mapped))
    return OUT_OF_MEMORY;
  void *address = mmap(NULL, b->mapped, PROT_NONE, MAP_SHARED, b->fd, 0);
  void *alias = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
  if (address == MAP_FAILED || alias == MAP_FAILED)
    return OUT_OF_MEMORY;
  b->address = (uint64_t)(uintptr_t)address;
  b->alias = alias;
  memset(alias, POISON, b->size < POISON_MOST ? b->size : POISON_MOST);
  return OK;
}

STANDIN_EXPORT int fn_alloc(uint64_t *address, size_t size) {
  ENTER(fn_alloc);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  if (!size && IS_HIP) {
    *address = 0;
    return OK;
  }
  if (!size)
    return answer(INVALID_VALUE);
  if (pages(size) > device->memory - device->used)
    return answer(OUT_OF_MEMORY);
  struct block *b = calloc(1, sizeof *b);
  *b = (struct block){.size = size, .mapped = pages(size), .kind = MEMORY_DEVICE, .device = device->ordinal};
  status = map_twice(b);
  if (status)
    return answer(status);
  device->used += b->mapped;
  add(b);
  control_trace("alloc device=%d bytes=%zu", b->device, size);
  *address = b->address;
  return OK;
}

#define STALE 64

/* The address stays taken for a while, so that a stale use is a fault and not somebody else's memory. */
static void make_stale(const struct block *b) {
  static struct {
    void *address;
    size_t size;
  } stale[STALE];
  static unsigned next;
  void *address = (void *)(uintptr_t)b->address;
  mmap(address, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  pthread_mutex_lock(&lock);
  void *oldest = stale[next].address;
  size_t size = stale[next].size;
  stale[next].address = address;
  stale[next].size = b->mapped;
  next = (next + 1) % STALE;
  pthread_mutex_unlock(&lock);
  if (oldest)
    munmap(oldest, size);
}

static void release(struct block *b) {
  if (b->pins)
    control_misuse("device memory freed while it is registered with the file library");
  if (b->kind == MEMORY_DEVICE) {
    make_stale(b);
    munmap(b->alias, b->mapped);
    close(b->fd);
    device_at(b->device)->used -= b->mapped;
  } else if (b->kind == MEMORY_PINNED) {
    munmap(b->alias, b->mapped);
  } else if (b->device_address != b->address) {
    munmap((void *)(uintptr_t)b->device_address, b->mapped);
  }
  if (b->kind != MEMORY_DEVICE)
    pinned -= b->mapped;
  free(b);
}

void memory_drop(int device) {
  for (;;) {
    struct block *b;
    pthread_mutex_lock(&lock);
    for (b = blocks; b && (b->kind != MEMORY_DEVICE || b->device != device);)
      b = b->next;
    pthread_mutex_unlock(&lock);
    if (!b)
      return;
    release(take(b->address, MEMORY_DEVICE, device));
  }
}

STANDIN_EXPORT int fn_free(uint64_t address) {
  ENTER(fn_free);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  if (!address)
    return IS_HIP ? OK : INVALID_VALUE;
  struct block *b = take(address, MEMORY_DEVICE, control_setting("strict", 1) ? device->ordinal : -1);
  if (!b)
    return answer(INVALID_VALUE);
  stream_finish(b->device); /* freeing waits for the device */
  release(b);
  return OK;
}

static int pin_more(size_t size) {
  int64_t most = control_setting("pinned", INT64_MAX);
  pthread_mutex_lock(&lock);
  int fits = size <= (size_t)most - pinned;
  if (fits)
    pinned += size;
  pthread_mutex_unlock(&lock);
  return fits;
}

STANDIN_EXPORT int fn_host_alloc(void **address, size_t size, unsigned flags) {
  ENTER(fn_host_alloc);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  if (!size)
    return answer(INVALID_VALUE);
  if (!pin_more(pages(size)))
    return answer(OUT_OF_MEMORY);
  void *memory = mmap(NULL, pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return answer(OUT_OF_MEMORY);
  struct block *b = calloc(1, sizeof *b);
  *b = (struct block){.address = (uint64_t)(uintptr_t)memory,
                      .size = size,
                      .mapped = pages(size),
                      .alias = memory,
                      .kind = MEMORY_PINNED,
                      .device = device->ordinal,
                      .flags = flags,
                      .fd = -1};
  add(b);
  *address = memory;
  return OK;
}

STANDIN_EXPORT int fn_host_free(void *address) {
  ENTER(fn_host_free);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  if (!address && IS_HIP)
    return OK;
  struct block *b = take((uint64_t)(uintptr_t)address, MEMORY_PINNED, -1);
  if (!b)
    return answer(INVALID_VALUE);
  for (int i = 0; i < device_count(); i++)
    stream_finish(i);
  release(b);
  return OK;
}

static int overlaps(uint64_t address, size_t size) {
  int found = 0;
  pthread_mutex_lock(&lock);
  for (struct block *b = blocks; b; b = b->next)
    found |= b->kind != MEMORY_DEVICE && address < b->address + b->size && b->address < address + size;
  pthread_mutex_unlock(&lock);
  return found;
}

/* The device's own view of registered memory: the host's address, or one that the host cannot use. */
static uint64_t device_view(uint64_t address, size_t size) {
  if (control_setting("host_pointer", 1))
    return address;
  /* Size 0 asks for a second mapping of the same shared pages. */
  void *view = mremap((void *)(uintptr_t)address, 0, size, MREMAP_MAYMOVE);
  if (view == MAP_FAILED) /* private pages */
    view = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (view == MAP_FAILED)
    return address;
  mprotect(view, size, PROT_NONE);
  return (uint64_t)(uintptr_t)view;
}

STANDIN_EXPORT int fn_host_register(void *memory, size_t size, unsigned flags) {
  ENTER(fn_host_register);
  struct device *device;
  int status = device_use(&device), read_only = (flags & REGISTER_READ_ONLY) != 0, file_backed;
  uint64_t address = (uint64_t)(uintptr_t)memory;
  if (status)
    return answer(status);
  if (!memory || !size || flags & ~15u)
    return answer(INVALID_VALUE);
  if (read_only && !control_setting("read_only_register", 1))
    return answer(NOT_SUPPORTED);
  if (overlaps(address, size))
    return answer(HOST_ALREADY_REGISTERED);
  status = hostmap_check(address, size, read_only, &file_backed);
  if (status)
    return answer(status);
  if (!pin_more(pages(size)))
    return answer(OUT_OF_MEMORY);
  struct block *b = calloc(1, sizeof *b);
  *b = (struct block){.address = address,
                      .size = size,
                      .mapped = pages(size),
                      .alias = memory,
                      .kind = MEMORY_REGISTERED,
                      .device = device->ordinal,
                      .flags = flags,
                      .fd = -1,
                      .device_address = device_view(address, pages(size))};
  add(b);
  control_trace("register bytes=%zu read_only=%d file=%d", size, read_only, file_backed);
  return OK;
}

STANDIN_EXPORT int fn_host_unregister(void *memory) {
  ENTER(fn_host_unregister);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  struct block *b = take((uint64_t)(uintptr_t)memory, MEMORY_REGISTERED, -1);
  if (!b)
    return answer(HOST_NOT_REGISTERED);
  for (int i = 0; i < device_count(); i++)
    stream_finish(i);
  release(b);
  return OK;
}

STANDIN_EXPORT int fn_host_pointer(uint64_t *address, void *memory, unsigned flags) {
  ENTER(fn_host_pointer);
  struct device *device;
  uint64_t host = (uint64_t)(uintptr_t)memory;
  int status = device_use(&device);
  if (status)
    return answer(status);
  pthread_mutex_lock(&lock);
  struct block *b = flags ? NULL : holding(host);
  if (b && b->kind != MEMORY_DEVICE)
    *address = b->kind == MEMORY_PINNED ? host : b->device_address + (host - b->address);
  else
    status = INVALID_VALUE;
  pthread_mutex_unlock(&lock);
  return answer(status);
}

STANDIN_EXPORT int fn_host_flags(unsigned *flags, void *memory) {
  ENTER(fn_host_flags);
  pthread_mutex_lock(&lock);
  struct block *b = holding((uint64_t)(uintptr_t)memory);
  int status = b && b->kind == MEMORY_PINNED ? OK : INVALID_VALUE;
  if (!status)
    *flags = b->flags;
  pthread_mutex_unlock(&lock);
  return answer(status);
}

STANDIN_EXPORT int fn_mem_info(size_t *left, size_t *total) {
  ENTER(fn_mem_info);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  *left = device->memory - device->used;
  *total = device->memory;
  return OK;
}

STANDIN_EXPORT int fn_address_range(uint64_t *base, size_t *size, uint64_t address) {
  ENTER(fn_address_range);
  struct standin_range range;
  if (!memory_find(address, &range))
    return answer(IS_HIP ? NOT_FOUND : INVALID_VALUE);
  if (base)
    *base = range.address;
  if (size)
    *size = range.size;
  return OK;
}

STANDIN_EXPORT int fn_pointer_attribute(void *value, int attribute, uint64_t address) {
  ENTER(fn_pointer_attribute);
  struct standin_range range;
  if (!memory_find(address, &range))
    return answer(INVALID_VALUE);
  uint64_t inside = address - range.address;
  switch (attribute) {
  case POINTER_MEMORY_TYPE:
    *(unsigned *)value = range.kind == MEMORY_DEVICE ? 2 : 1;
    return OK;
  case POINTER_ORDINAL:
    *(int *)value = range.device;
    return OK;
  case POINTER_DEVICE_POINTER:
    *(uint64_t *)value = range.address + inside;
    return OK;
  case POINTER_HOST_POINTER:
    *(uint64_t *)value = range.kind == MEMORY_DEVICE ? 0 : (uint64_t)(uintptr_t)range.alias + inside;
    return OK;
  default:
    return answer(NOT_SUPPORTED);
  }
}

#if IS_HIP
struct pointer_attributes { /* hipPointerAttribute_t */
  int type, device;
  void *device_pointer, *host_pointer;
  int is_managed;
  unsigned flags;
};

STANDIN_EXPORT int hipPointerGetAttributes(struct pointer_attributes *attributes, const void *pointer) {
  ENTER(hipPointerGetAttributes);
  struct standin_range range;
  *attributes = (struct pointer_attributes){.device = -2};
  if (!memory_find((uint64_t)(uintptr_t)pointer, &range))
    return OK; /* hipMemoryTypeUnregistered */
  attributes->type = range.kind == MEMORY_DEVICE ? 2 : 1;
  attributes->device = range.device;
  attributes->device_pointer = (void *)(uintptr_t)pointer;
  if (range.kind != MEMORY_DEVICE)
    attributes->host_pointer = range.alias + ((uint64_t)(uintptr_t)pointer - range.address);
  return OK;
}
#endif

/* Content of device memory, for tests that look without the API. */
STANDIN_EXPORT int fn_peek(uint64_t address, void *into, size_t size) {
  struct standin_range range;
  if (!memory_find(address, &range) || size > range.size - (address - range.address))
    return -1;
  memcpy(into, range.alias + (address - range.address), size);
  return 0;
}
