/* gpu_map.h - windows of a file's own pages, registered with the device. */
#ifndef GDSFW_GPU_MAP_H
#define GDSFW_GPU_MAP_H

#include "gpu_internal.h"

#include <pthread.h>
#include <sys/stat.h>

struct map_window {
  uint8_t *host;   /* NULL while it is not mapped */
  uint64_t device; /* the device's address of it */
  uint64_t size;
  uint64_t used; /* when, in uses of the map */
  uint32_t pins; /* blocks in flight */
};

struct gpu_map {
  const struct gdsfw_gpu_runtime *gpu;
  int fd;
  uint32_t writable;
  uint64_t start, length, window_size;
  uint32_t windows, resident_most, resident;
  uint64_t uses, pinned;
  struct stat before;
  pthread_mutex_t lock;
  struct gdsfw_gpu_map_report report;
  struct map_window window[];
};

/* A stretch of the file that lies in one window. */
struct map_range {
  struct map_window *window;
  uint8_t *host;
  uint64_t device;
  uint64_t size; /* up to what was asked for, cut at the window's end */
};

int map_pin_window(struct gpu_map *map, uint64_t offset, uint64_t size, struct map_range *range);
void map_unpin_window(struct gpu_map *map, struct map_window *window);

/* Find [offset, offset + size), registering a window if need be; the window stays until it is unpinned.
 * Returns 1, 0 when every window that could make room has blocks in flight, or a negative result. A range that is one
 * window is registered for good: nothing to look for, to count or to lock. */
static inline int map_pin(struct gpu_map *map, uint64_t offset, uint64_t size, struct map_range *range) {
  uint64_t inside = offset - map->start;
  if (map->windows != 1 || inside >= map->length)
    return map_pin_window(map, offset, size, range);
  struct map_window *w = &map->window[0];
  uint64_t left = map->length - inside;
  *range = (struct map_range){w, w->host + inside, w->device + inside, size < left ? size : left};
  return 1;
}

static inline void map_unpin(struct gpu_map *map, struct map_window *window) {
  if (map->windows != 1)
    map_unpin_window(map, window);
}

#endif
