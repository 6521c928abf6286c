/* transfer.c - moving bytes between a file and memory: directly where that is reported to work, else by POSIX I/O. */
#include "file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ALIGNMENT 4096
#define MOST_AT_ONCE 0x7ffff000ll /* hipFile cuts what is larger, as read(2) does */
#define EXT4_MAGIC 0xef53
#define XFS_MAGIC 0x58465342

static int aligned(const struct transfer *t, const struct target *target) {
  return !((uint64_t)t->file_offset % ALIGNMENT || t->size % ALIGNMENT || target->address % ALIGNMENT);
}

static int on_supported_file_system(int fd) {
  struct statfs fs;
  return !fstatfs(fd, &fs) && (fs.f_type == EXT4_MAGIC || fs.f_type == XFS_MAGIC || core()->setting("tmpfs", 1));
}

/* The way a transfer goes, -1 when there is none. */
static int choose(const struct transfer *t, const struct file *file, const struct target *target) {
  const char *way = driver_direct();
  int direct = *way && target->device >= 0 && file->direct >= 0;
  if (!IS_HIP && direct)
    return !strcmp(way, "nvfs") ? ROUTE_NVFS : ROUTE_P2P; /* what is not aligned bounces inside the GPU */
  if (IS_HIP && direct && aligned(t, target) && on_supported_file_system(file->fd))
    return ROUTE_NVFS;
  return !IS_HIP || (driver_compat_allowed() && target->device >= 0) ? ROUTE_POSIX : -1;
}

static ssize_t once(const struct transfer *t, int fd, uint8_t *memory, size_t size, off_t offset) {
  return t->opcode == READ ? pread(fd, memory, size, offset) : pwrite(fd, memory, size, offset);
}

/* All of it, or up to the end of the file, or up to an error that comes after some bytes. */
static ssize_t move(const struct transfer *t, int fd, uint8_t *memory, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t moved = once(t, fd, memory + done, size - done, t->file_offset + (off_t)done);
    if (moved < 0 && errno == EINTR)
      continue;
    if (moved < 0)
      return done ? (ssize_t)done : -1;
    if (!moved)
      break;
    done += (size_t)moved;
  }
  return (ssize_t)done;
}

static ssize_t run_on(const struct transfer *t, const struct file *file, const struct target *target, size_t size) {
  static const char *const names[] = {"posix", "nvfs", "p2pdma"};
  struct transfer cut = *t;
  cut.size = size;
  int route = choose(&cut, file, target);
  if (route < 0)
    return -FILE_INTERNAL;
  int all_aligned = aligned(&cut, target);
  int fd = all_aligned && file->direct >= 0 && (!IS_HIP || route != ROUTE_POSIX) ? file->direct : file->buffered;
  ssize_t moved = move(&cut, fd, target->memory, size);
  int error = errno;
  core()->trace("io %s bytes=%zu file_offset=%ld device=%d way=%s result=%zd", t->opcode == READ ? "read" : "write",
                size, (long)t->file_offset, target->device, names[route], moved);
  if (target->device >= 0)
    statistics_add(target->device, t->opcode, (enum route)route, moved, all_aligned);
  errno = error;
  return moved;
}

ssize_t transfer_run(const struct transfer *t, const struct standin_fault *fault, int *error) {
  struct target target;
  struct file *file = registry_use(t->handle);
  if (!file)
    return -FILE_NOT_REGISTERED;
  struct transfer cut = *t;
  int64_t most = core()->setting("max_io", IS_HIP ? MOST_AT_ONCE : 0);
  if (most && cut.size > (size_t)most)
    cut.size = (size_t)most;
  errno = 0;
  ssize_t moved = registry_target(&cut, &target);
  if (!moved) {
    size_t size = fault->limit && cut.size > (size_t)fault->limit ? (size_t)fault->limit : cut.size;
    moved = run_on(&cut, file, &target, size);
  }
  *error = errno;
  registry_done(file);
  return moved;
}

static ssize_t sync_call(struct standin_site *site, uint64_t handle, uint64_t base, size_t size, off_t file_offset,
                         off_t buffer_offset, enum opcode opcode) {
  struct standin_fault fault = {0};
  if (enter(site, &fault)) {
    errno = fault.code == -1 ? fault.error : errno;
    return fault.code > 0 ? -fault.code : fault.code;
  }
  if (!driver_users()) {
    errno = EINVAL;
    return -1;
  }
  struct transfer t = {handle, base, size, file_offset, buffer_offset, opcode, core()->setting("strict", 1) != 0};
  int error = 0;
  ssize_t moved = transfer_run(&t, &fault, &error);
  if (moved == -1)
    errno = error;
  return moved;
}

STANDIN_EXPORT ssize_t fn_file(Read)(uint64_t handle, uint64_t base, size_t size, off_t file_offset, off_t offset) {
  static struct standin_site site = {.name = STANDIN_TEXT(fn_file(Read))};
  return sync_call(&site, handle, base, size, file_offset, offset, READ);
}

STANDIN_EXPORT ssize_t fn_file(Write)(uint64_t handle, uint64_t base, size_t size, off_t file_offset, off_t offset) {
  static struct standin_site site = {.name = STANDIN_TEXT(fn_file(Write))};
  return sync_call(&site, handle, base, size, file_offset, offset, WRITE);
}
