/* registry.c - registered files and buffers. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TMPFS_MAGIC 0x01021994
#define FIRST_HANDLE 0xf51d000000001000ull /* with the top bit set; no address, so that nobody can look behind it */
#define HANDLE_STEP 0x40

enum handle_type { OPAQUE_FD = 1, OPAQUE_WIN32, USERSPACE_FS };

struct description { /* CUfileDescr_t, hipFileDescr_t */
  int type;
  union {
    int fd;
    void *handle;
  } handle;
  const void *operations;
};

struct buffer {
  uint64_t address;
  size_t size;
  struct buffer *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;
static struct buffer *buffers;
static size_t buffer_bytes;
static uint64_t next_handle = FIRST_HANDLE;

/* ---- files ---- */

static int reopen(int fd, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd); /* a symbolic link, which O_NOFOLLOW would refuse */
  return open(path, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
}

static void close_own(const struct file *f) {
  if (f->buffered != f->fd)
    close(f->buffered);
  if (f->direct >= 0 && f->direct != f->fd)
    close(f->direct);
}

/* A second descriptor, so that both kinds of access are there. */
static int open_other(struct file *f, int flags) {
  f->buffered = f->direct = f->fd;
  if (flags & O_DIRECT) {
    f->buffered = reopen(f->fd, flags & ~O_DIRECT);
    return f->buffered < 0 ? FILE_NO_DESCRIPTOR : FILE_OK;
  }
  f->direct = IS_HIP ? reopen(f->fd, flags | O_DIRECT) : -1;
  return IS_HIP && f->direct < 0 && errno != EINVAL ? FILE_NO_DESCRIPTOR : FILE_OK;
}

#if !IS_HIP
static int refused_by_cufile(int fd, int flags, const struct stat *st) {
  const int refused =
      O_APPEND | O_NONBLOCK | O_NOCTTY | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | (O_TMPFILE & ~O_DIRECTORY);
  struct statfs fs;
  if (!S_ISREG(st->st_mode) && !S_ISBLK(st->st_mode))
    return FILE_INVALID_TYPE;
  if (flags & refused)
    return FILE_OPEN_FLAG;
  if (core()->setting("require_direct", 0) && !(flags & O_DIRECT))
    return FILE_DIRECT_NOT_SET;
  if (core()->setting("tmpfs", 1) == 0 && !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC)
    return FILE_INTERNAL; /* no block device behind it */
  return FILE_OK;
}
#endif

static int check_file(int fd, int *flags) {
  struct stat st;
  *flags = fcntl(fd, F_GETFL);
  if (*flags < 0 || fstat(fd, &st))
    return IS_HIP ? FILE_INTERNAL : FILE_INVALID_VALUE;
#if IS_HIP
  return FILE_OK;
#else
  return refused_by_cufile(fd, *flags, &st);
#endif
}

static int add_file(int fd, uint64_t *handle) {
  int flags, code = check_file(fd, &flags);
  if (code)
    return code;
  struct file *f = calloc(1, sizeof *f);
  *f = (struct file){.fd = fd, .users = 1};
  pthread_mutex_lock(&lock);
  for (struct file *other = files; other; other = other->next)
    if (other->fd == fd)
      code = FILE_ALREADY_REGISTERED;
  if (!code)
    code = open_other(f, flags);
  if (!code) {
    *handle = f->handle = next_handle;
    next_handle += HANDLE_STEP;
    f->next = files;
    files = f;
  }
  pthread_mutex_unlock(&lock);
  if (code)
    free(f);
  return code;
}

STANDIN_EXPORT struct status fn_file(HandleRegister)(uint64_t *handle, const struct description *description) {
  ENTER_STATUS(fn_file(HandleRegister));
  struct status status = IS_HIP && (!handle || !description) ? file_status(FILE_OK) : driver_need();
  if (status.code)
    return status;
  if (!handle || !description)
    return file_status(FILE_INVALID_VALUE);
  if (description->type != OPAQUE_FD)
    return file_status(FILE_IO_NOT_SUPPORTED);
  if (!IS_HIP && description->operations) {
    core()->misuse("a file description whose fs_ops is not NULL: the real library would call into it");
    return file_status(FILE_INVALID_VALUE);
  }
  int code = add_file(description->handle.fd, handle);
  if (!code)
    statistics_registered(0);
  return file_status(code);
}

/* Under the lock. */
static void let_go(struct file *f) {
  if (--f->users)
    return;
  close_own(f);
  free(f);
}

STANDIN_EXPORT void fn_file(HandleDeregister)(uint64_t handle) {
  ENTER_VOID(fn_file(HandleDeregister));
  if (!driver_users())
    return;
  pthread_mutex_lock(&lock);
  struct file **link = &files;
  while (*link && (*link)->handle != handle)
    link = &(*link)->next;
  struct file *f = *link;
  int busy = f && f->users > 1;
  if (f && !(busy && IS_HIP)) { /* hipFile leaves a busy file registered */
    *link = f->next;
    let_go(f);
  }
  pthread_mutex_unlock(&lock);
  if (busy || !f)
    core()->misuse(f ? "a file is deregistered while transfers are in flight" : "an unknown file is deregistered");
}

struct file *registry_use(uint64_t handle) {
  pthread_mutex_lock(&lock);
  struct file *f = files;
  while (f && f->handle != handle)
    f = f->next;
  if (f)
    f->users++;
  pthread_mutex_unlock(&lock);
  return f;
}

void registry_done(struct file *f) {
  pthread_mutex_lock(&lock);
  let_go(f);
  pthread_mutex_unlock(&lock);
}

/* ---- buffers ---- */

static struct buffer *registered(uint64_t address) {
  struct buffer *b = buffers;
  while (b && b->address != address)
    b = b->next;
  return b;
}

static int overlaps(uint64_t address, size_t size) {
  for (struct buffer *b = buffers; b; b = b->next)
    if (b->address < address + size && address < b->address + b->size)
      return 1;
  return 0;
}

static struct status check_buffer(uint64_t address, size_t size) {
  struct standin_range range;
  int device = core()->current();
  if (!IS_HIP && device < 0)
    return gpu_status(INVALID_CONTEXT);
  if (!core()->find(address, &range)) {
    if (IS_HIP)
      return file_status(FILE_MEMORY_TYPE_INVALID);
    return file_status(parameter_flag(FLAG_SYSTEM_MEMORY) ? FILE_OK : FILE_MEMORY_TYPE_INVALID);
  }
  if (size > range.size - (address - range.address))
    return file_status(FILE_POINTER_RANGE);
  if (!IS_HIP && range.kind == MEMORY_DEVICE && range.device != device)
    return file_status(FILE_CONTEXT_MISMATCH);
  return file_status(FILE_OK);
}

static int add_buffer(uint64_t address, size_t size) {
  int code = FILE_OK;
  pthread_mutex_lock(&lock);
  size_t limit = parameter_size(PARAMETER_MAX_PINNED_KB) * 1024;
  if (registered(address) || (!IS_HIP && overlaps(address, size)))
    code = FILE_MEMORY_ALREADY;
  else if (!IS_HIP && size > limit - buffer_bytes)
    code = FILE_PINNING;
  if (!code) {
    struct buffer *b = malloc(sizeof *b);
    *b = (struct buffer){address, size, buffers};
    buffers = b;
    buffer_bytes += size;
  }
  pthread_mutex_unlock(&lock);
  return code;
}

STANDIN_EXPORT struct status fn_file(BufRegister)(uint64_t address, size_t size, int flags) {
  ENTER_STATUS(fn_file(BufRegister));
  struct status status = driver_need();
  if (status.code)
    return status;
  if (!address || (!IS_HIP && (!size || flags & ~1)))
    return file_status(FILE_INVALID_VALUE);
  status = check_buffer(address, size);
  if (status.code)
    return status;
  int code = add_buffer(address, size);
  if (!code) {
    core()->pin(address, 1);
    statistics_registered(1);
  }
  return file_status(code);
}

/* Take a buffer out; 0 when it is not registered. */
static int drop_buffer(uint64_t address) {
  pthread_mutex_lock(&lock);
  struct buffer **link = &buffers;
  while (*link && (*link)->address != address)
    link = &(*link)->next;
  struct buffer *b = *link;
  if (b) {
    *link = b->next;
    buffer_bytes -= b->size;
    free(b);
  }
  pthread_mutex_unlock(&lock);
  if (b)
    core()->pin(address, -1);
  return b != NULL;
}

STANDIN_EXPORT struct status fn_file(BufDeregister)(uint64_t address) {
  ENTER_STATUS(fn_file(BufDeregister));
  if (!driver_users())
    return file_status(FILE_DRIVER_CLOSING);
  if (drop_buffer(address))
    return file_status(FILE_OK);
  return file_status(IS_HIP ? FILE_MEMORY_NOT_REGISTERED : FILE_INVALID_VALUE);
}

void registry_clear(void) {
  while (buffers)
    drop_buffer(buffers->address);
  pthread_mutex_lock(&lock);
  for (struct file *f; (f = files);) {
    files = f->next;
    let_go(f);
  }
  pthread_mutex_unlock(&lock);
}

/* ---- memory of a transfer ---- */

/* How much memory there is from a base on: as registered, else what the allocation has left. */
static int extent(uint64_t base, struct standin_range *range, size_t *size, int *is_registered) {
  pthread_mutex_lock(&lock);
  struct buffer *b = registered(base);
  *is_registered = b != NULL;
  *size = b ? b->size : 0;
  pthread_mutex_unlock(&lock);
  if (!core()->find(base, range))
    return 0;
  if (!*is_registered)
    *size = range->size - (base - range->address);
  return 1;
}

static int beyond(const struct transfer *t, size_t size) {
  return (size_t)t->buffer_offset > size || t->size > size - (size_t)t->buffer_offset;
}

#if IS_HIP

int registry_target(const struct transfer *t, struct target *target) {
  struct standin_range range;
  size_t size;
  int is_registered;
  if (!t->base)
    return -FILE_INVALID_VALUE;
  if (!extent(t->base, &range, &size, &is_registered))
    return -FILE_MEMORY_TYPE_INVALID;
  if (range.kind != MEMORY_DEVICE && !is_registered)
    return -FILE_INVALID_VALUE; /* host memory only as a registered buffer */
  if (t->file_offset < 0 || t->buffer_offset < 0) {
    errno = EINVAL;
    return -1;
  }
  if (beyond(t, size))
    return -FILE_INVALID_VALUE;
  uint64_t address = t->base + (uint64_t)t->buffer_offset;
  *target = (struct target){range.alias + (address - range.address), address,
                            range.kind == MEMORY_DEVICE ? range.device : -1};
  return 0;
}

#else

int registry_target(const struct transfer *t, struct target *target) {
  struct standin_range range;
  size_t size;
  int is_registered, device = core()->current();
  if (!t->base || t->file_offset < 0)
    return -FILE_INVALID_VALUE;
  if (t->buffer_offset < 0)
    return -FILE_INTERNAL;
  if (t->check_context && device < 0)
    return -FILE_NO_CONTEXT;
  uint64_t address = t->base + (uint64_t)t->buffer_offset;
  if (!extent(t->base, &range, &size, &is_registered)) {
    *target = (struct target){(uint8_t *)(uintptr_t)address, address, -1};
    return parameter_flag(FLAG_SYSTEM_MEMORY) ? 0 : -FILE_MEMORY_TYPE_INVALID;
  }
  if (beyond(t, size))
    return is_registered ? -FILE_MAPPING_SIZE : -FILE_POINTER_RANGE;
  if (t->check_context && range.kind == MEMORY_DEVICE && range.device != device)
    return -FILE_CONTEXT_MISMATCH;
  *target = (struct target){range.alias + (address - range.address), address,
                            range.kind == MEMORY_DEVICE ? range.device : -1};
  return 0;
}

#endif
