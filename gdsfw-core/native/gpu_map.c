/* gpu_map.c - the pages of a file, mapped, populated and registered with the device in windows.
 *
 * The CPU never touches the mapping: a page that has gone would be a SIGBUS. Pages stay pinned while registered, and
 * a file that shrinks meanwhile leaves the device with pages that nobody else sees, without an error: the file's size
 * and links are compared before and after each use.
 */
#include "gpu_map.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* The runtimes' flags of host_register, the same numbers for both vendors. */
enum { REGISTER_PORTABLE = 1, REGISTER_MAPPED = 2, REGISTER_READ_ONLY = 8 };

/* Bytes asked about in one mincore call: bounds the answer, a byte a page. */
#define COLD_STEP (256ull << 20)

static int64_t failed(struct gpu_map *m, enum gdsfw_gpu_map_step step, int32_t code) {
  m->report.step = step;
  m->report.code = code;
  if (step >= GDSFW_GPU_MAP_REGISTER)
    return gpu_error(code);
  errno = code;
  return -1;
}

/* Bytes of a fresh mapping that are not in memory. */
static uint64_t cold_bytes(uint8_t *host, uint64_t size) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), cold = 0;
  unsigned char *answer = malloc(COLD_STEP / page);
  for (uint64_t at = 0, step; answer && at < size; at += step) {
    step = size - at < COLD_STEP ? size - at : COLD_STEP;
    if (mincore(host + at, step, answer))
      break;
    for (uint64_t i = 0; i < (step + page - 1) / page; i++)
      cold += answer[i] & 1 ? 0 : page;
  }
  free(answer);
  return cold;
}

static int populate(const struct gpu_map *m, uint8_t *host, uint64_t size) {
  if (!madvise(host, size, m->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
    return 0;
  return errno == EINVAL ? 0 : -1; /* a kernel before 5.14: registering faults the pages in, only slower */
}

/* Under the lock. */
static int64_t map_window(struct gpu_map *m, struct map_window *w) {
  uint64_t index = (uint64_t)(w - m->window), offset = m->start + index * m->window_size;
  int protection = PROT_READ | (m->writable ? PROT_WRITE : 0);
  uint8_t *host = mmap(NULL, w->size, protection, MAP_SHARED, m->fd, (off_t)offset);
  if (host == MAP_FAILED)
    return failed(m, GDSFW_GPU_MAP_MMAP, errno);
  uint64_t began = monotonic_ns();
  m->report.cold_bytes += cold_bytes(host, w->size);
  int64_t error = populate(m, host, w->size) ? failed(m, GDSFW_GPU_MAP_POPULATE, errno) : 0;
  uint64_t populated = monotonic_ns();
  if (!error) {
    uint32_t flags = REGISTER_PORTABLE | REGISTER_MAPPED | (m->writable ? 0 : REGISTER_READ_ONLY);
    int32_t answer = m->gpu->host_register(host, w->size, flags);
    if (answer)
      error = failed(m, GDSFW_GPU_MAP_REGISTER, answer);
    else if ((answer = m->gpu->host_pointer(&w->device, host, 0))) {
      m->gpu->host_unregister(host);
      error = failed(m, GDSFW_GPU_MAP_ADDRESS, answer);
    }
  }
  if (error) {
    munmap(host, w->size);
    return error;
  }
  w->host = host;
  m->resident++;
  m->pinned += w->size;
  m->report.populate_ns += populated - began;
  m->report.register_ns += monotonic_ns() - populated;
  m->report.registrations++;
  m->report.registered_bytes += w->size;
  if (m->pinned > m->report.most_pinned)
    m->report.most_pinned = m->pinned;
  return 0;
}

static void unmap_window(struct gpu_map *m, struct map_window *w) {
  m->gpu->host_unregister(w->host);
  munmap(w->host, w->size);
  w->host = NULL;
  m->resident--;
  m->pinned -= w->size;
}

/* Under the lock: room for one more window, from the one not used for longest; 0 when all have blocks in flight. */
static int make_room(struct gpu_map *m) {
  if (m->resident < m->resident_most)
    return 1;
  struct map_window *oldest = NULL;
  for (uint32_t i = 0; i < m->windows; i++) {
    struct map_window *w = &m->window[i];
    if (w->host && !w->pins && (!oldest || w->used < oldest->used))
      oldest = w;
  }
  if (!oldest)
    return 0;
  unmap_window(m, oldest);
  return 1;
}

static void locate(struct map_window *w, uint64_t inside, uint64_t size, struct map_range *range) {
  *range =
      (struct map_range){w, w->host + inside, w->device + inside, size < w->size - inside ? size : w->size - inside};
}

int map_pin_window(struct gpu_map *m, uint64_t offset, uint64_t size, struct map_range *range) {
  if (offset < m->start || offset - m->start >= m->length) {
    errno = EINVAL;
    return -1;
  }
  struct map_window *w = &m->window[(offset - m->start) / m->window_size];
  pthread_mutex_lock(&m->lock);
  int64_t answer = 1;
  if (!w->host && (answer = make_room(m)) == 1) {
    answer = map_window(m, w);
    answer = answer < 0 ? answer : 1;
  }
  if (answer == 1) {
    w->pins++;
    w->used = ++m->uses;
    locate(w, (offset - m->start) % m->window_size, size, range);
  }
  int error = errno;
  pthread_mutex_unlock(&m->lock);
  errno = error;
  return (int)answer;
}

void map_unpin_window(struct gpu_map *m, struct map_window *w) {
  pthread_mutex_lock(&m->lock);
  w->pins--;
  pthread_mutex_unlock(&m->lock);
}

GDSFW_EXPORT int64_t gdsfw_gpu_map_open(const struct gdsfw_gpu_runtime *gpu,
                                        const struct gdsfw_gpu_map_options *options, void **map,
                                        struct gdsfw_gpu_map_report *report) {
  uint64_t window = options->window < options->length ? options->window : options->length;
  uint64_t windows = (options->length + window - 1) / window;
  struct gpu_map *m = calloc(1, sizeof *m + windows * sizeof m->window[0]);
  if (!m)
    return -1;
  m->gpu = gpu;
  m->fd = options->fd;
  m->writable = options->writable;
  m->start = options->start;
  m->length = options->length;
  m->window_size = window;
  m->windows = (uint32_t)windows;
  m->resident_most = options->resident;
  m->report.abi = GDSFW_ABI;
  m->report.struct_size = sizeof m->report;
  pthread_mutex_init(&m->lock, NULL);
  for (uint64_t i = 0; i < windows; i++)
    m->window[i].size = i + 1 < windows ? window : options->length - i * window;
  int64_t error = fstat(m->fd, &m->before);
  if (!error && windows == 1)
    error = map_window(m, &m->window[0]);
  *report = m->report;
  if (error) {
    int saved = errno;
    gdsfw_gpu_map_close(m);
    errno = saved;
    return error;
  }
  *map = m;
  return 0;
}

GDSFW_EXPORT void gdsfw_gpu_map_look(void *map, struct gdsfw_gpu_map_report *report) {
  struct gpu_map *m = map;
  pthread_mutex_lock(&m->lock);
  *report = m->report;
  pthread_mutex_unlock(&m->lock);
}

GDSFW_EXPORT uint64_t gdsfw_gpu_map_address(void *map, uint64_t offset) {
  const struct gpu_map *m = map;
  return m->windows == 1 && offset >= m->start && offset - m->start < m->length
             ? m->window[0].device + (offset - m->start)
             : 0;
}

GDSFW_EXPORT int64_t gdsfw_gpu_map_intact(void *map) {
  const struct gpu_map *m = map;
  struct stat now;
  if (fstat(m->fd, &now))
    return -1;
  if (now.st_size >= m->before.st_size && (now.st_nlink || !m->before.st_nlink))
    return 0;
  errno = ESTALE;
  return -1;
}

GDSFW_EXPORT void gdsfw_gpu_map_close(void *map) {
  struct gpu_map *m = map;
  if (!m)
    return;
  for (uint32_t i = 0; i < m->windows; i++)
    if (m->window[i].host)
      unmap_window(m, &m->window[i]);
  pthread_mutex_destroy(&m->lock);
  free(m);
}

GDSFW_EXPORT int64_t gdsfw_gpu_map_flush(void *ctx, void *file, int32_t data_only) {
  (void)ctx;
  const struct gpu_map *m = file;
  return data_only ? fdatasync(m->fd) : fsync(m->fd);
}
