/* statistics.c - the file library's own counters, which tell direct transfers from others, and hipFile's error texts.
 */
#include "file.h"

#include <pthread.h>
#include <string.h>

#define MAX_DEVICES 16

struct counter {
  uint64_t ok, failed;
};

struct direction {
  uint64_t bytes, transfers, p2p, nvfs, posix, unaligned, failed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct direction counts[MAX_DEVICES][2];
static uint64_t registrations[2];
static int level = IS_HIP; /* cuFile counts only when it is told to */
static int counting = IS_HIP;

void statistics_add(int device, enum opcode opcode, enum route route, ssize_t moved, int aligned) {
  if (!counting)
    return;
  pthread_mutex_lock(&lock);
  struct direction *d = &counts[device][opcode];
  d->transfers += moved >= 0;
  d->failed += moved < 0;
  d->bytes += moved > 0 ? (uint64_t)moved : 0;
  d->p2p += moved >= 0 && route == ROUTE_P2P;
  d->nvfs += moved >= 0 && route == ROUTE_NVFS;
  d->posix += moved >= 0 && route == ROUTE_POSIX;
  d->unaligned += !aligned;
  pthread_mutex_unlock(&lock);
}

void statistics_registered(int buffer) { registrations[buffer] += (uint64_t)counting; }

struct level1 { /* the fields up to the vectored ones, which came later */
  struct counter reads, writes, handle_register, handle_deregister, buffer_register, buffer_deregister;
  uint64_t read_bytes, written_bytes, rates[2], averages[2], operations[2], sums[2];
  struct counter batch[15];
  uint64_t batch_numbers[12];
#if !IS_HIP
  struct counter vectored[2];
  uint64_t vectored_numbers[10];
#endif
};

struct level2 {
  struct level1 basic;
  uint64_t read_sizes[32], write_sizes[32];
};

struct per_gpu {
  char uuid[16];
  uint64_t read_bytes, read_rate, read_utilization, read_us;
  uint64_t reads, p2p_reads, nvfs_reads, posix_reads, unaligned_reads, routed_reads, sparse, inlined, read_errors;
  uint64_t written_bytes, write_rate, write_utilization, write_us;
  uint64_t writes, p2p_writes, nvfs_writes, posix_writes, unaligned_writes, routed_writes, write_errors;
  uint64_t registrations[5];
};

struct level3 {
  struct level2 detailed;
  uint32_t gpus;
  struct per_gpu per_gpu[MAX_DEVICES];
};

static void fill1(struct level1 *out) {
  memset(out, 0, sizeof *out);
  for (int i = 0; i < MAX_DEVICES; i++) {
    out->reads.ok += counts[i][READ].transfers;
    out->reads.failed += counts[i][READ].failed;
    out->writes.ok += counts[i][WRITE].transfers;
    out->writes.failed += counts[i][WRITE].failed;
    out->read_bytes += counts[i][READ].bytes;
    out->written_bytes += counts[i][WRITE].bytes;
  }
  out->handle_register.ok = registrations[0];
  out->buffer_register.ok = registrations[1];
}

static void fill_gpu(struct per_gpu *out, int device) {
  const struct direction *r = &counts[device][READ], *w = &counts[device][WRITE];
  core()->uuid(device, (unsigned char *)out->uuid);
  out->read_bytes = r->bytes;
  out->reads = r->transfers;
  out->p2p_reads = r->p2p;
  out->nvfs_reads = r->nvfs;
  out->posix_reads = r->posix;
  out->unaligned_reads = r->unaligned;
  out->read_errors = r->failed;
  out->written_bytes = w->bytes;
  out->writes = w->transfers;
  out->p2p_writes = w->p2p;
  out->nvfs_writes = w->nvfs;
  out->posix_writes = w->posix;
  out->unaligned_writes = w->unaligned;
  out->write_errors = w->failed;
}

static struct status readable(const void *out, int needed) {
  if (!IS_HIP && !driver_users())
    return file_status(FILE_DRIVER_NOT_INITIALIZED);
  return file_status(!out || (!IS_HIP && level < needed) ? FILE_INVALID_VALUE : FILE_OK);
}

STANDIN_EXPORT struct status fn_file(GetStatsL1)(struct level1 *out) {
  ENTER_STATUS(fn_file(GetStatsL1));
  struct status status = readable(out, 1);
  pthread_mutex_lock(&lock);
  if (!status.code)
    fill1(out);
  pthread_mutex_unlock(&lock);
  return status;
}

STANDIN_EXPORT struct status fn_file(GetStatsL2)(struct level2 *out) {
  ENTER_STATUS(fn_file(GetStatsL2));
  struct status status = readable(out, 2);
  pthread_mutex_lock(&lock);
  if (!status.code) {
    memset(out, 0, sizeof *out);
    fill1(&out->basic);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

STANDIN_EXPORT struct status fn_file(GetStatsL3)(struct level3 *out) {
  ENTER_STATUS(fn_file(GetStatsL3));
  struct status status = readable(out, 3);
  if (status.code || !core())
    return status;
  pthread_mutex_lock(&lock);
  memset(out, 0, sizeof *out);
  fill1(&out->detailed.basic);
  out->gpus = (uint32_t)core()->devices();
  for (int i = 0; i < core()->devices(); i++)
    fill_gpu(&out->per_gpu[i], i);
  pthread_mutex_unlock(&lock);
  return status;
}

#if IS_HIP

STANDIN_EXPORT const char *hipFileGetOpErrorString(int code) {
  switch (code) {
  case FILE_OK:
    return "hipFile operation completed successfully";
  case FILE_DRIVER_NOT_INITIALIZED:
    return "GPU IO driver is not loaded";
  case FILE_DRIVER_CLOSING:
    return "GPU IO driver is closing";
  case FILE_IO_NOT_SUPPORTED:
    return "hipFile is not supported on the selected file";
  case FILE_GPU_DRIVER_ERROR:
    return "GPU driver error";
  case FILE_MEMORY_TYPE_INVALID:
    return "Memory type is incompatible with hipFile";
  case FILE_POINTER_RANGE:
    return "Pointer range exceeds allocated memory region";
  case FILE_INVALID_VALUE:
    return "One or more arguments have an invalid value";
  case FILE_MEMORY_ALREADY:
    return "Device pointer is already registered";
  case FILE_MEMORY_NOT_REGISTERED:
    return "Device pointer is not registered";
  case FILE_NOT_REGISTERED:
    return "File handle is not registered";
  case FILE_ALREADY_REGISTERED:
    return "File handle is already registered";
  case FILE_INTERNAL:
    return "Internal GPU IO library error";
  case FILE_NO_DESCRIPTOR:
    return "Unable to obtain a new file descriptor";
  case FILE_BATCH_FULL:
    return "Batch operation queue is full";
  case 5038:
    return "hipFile async IO is not supported";
  default:
    return "Unknown hipFile error";
  }
}

#else

STANDIN_EXPORT struct status cuFileSetStatsLevel(int wanted) {
  ENTER_STATUS(cuFileSetStatsLevel);
  if (wanted < 0 || wanted > 3)
    return file_status(FILE_INVALID_VALUE);
  level = wanted;
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status cuFileGetStatsLevel(int *out) {
  ENTER_STATUS(cuFileGetStatsLevel);
  if (out)
    *out = level;
  return file_status(out ? FILE_OK : FILE_INVALID_VALUE);
}

static struct status switch_counting(int on) {
  if (!driver_users())
    return file_status(FILE_DRIVER_NOT_INITIALIZED);
  counting = on && level > 0;
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status cuFileStatsStart(void) {
  ENTER_STATUS(cuFileStatsStart);
  return switch_counting(1);
}

STANDIN_EXPORT struct status cuFileStatsStop(void) {
  ENTER_STATUS(cuFileStatsStop);
  return switch_counting(0);
}

STANDIN_EXPORT struct status cuFileStatsReset(void) {
  ENTER_STATUS(cuFileStatsReset);
  pthread_mutex_lock(&lock);
  memset(counts, 0, sizeof counts);
  memset(registrations, 0, sizeof registrations);
  pthread_mutex_unlock(&lock);
  return file_status(driver_users() ? FILE_OK : FILE_DRIVER_NOT_INITIALIZED);
}

#endif
