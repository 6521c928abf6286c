/* gdsfw_gpu.h - GPU queues that the engine offers to backends of one family.
 *
 * The GPU runtimes of the two large vendors are twins, and so are their file libraries: same functions, same shapes,
 * same numbers. A backend of that family hands over addresses of its vendor's symbols; the queues here drive them.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef GDSFW_GPU_H
#define GDSFW_GPU_H

#include "gdsfw_backend.h"

#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Symbols of the GPU runtime. Each returns 0 or a positive error code. Device addresses are 64-bit numbers, streams and
 * events opaque pointers; the calling thread has the device's context current. */
struct gdsfw_gpu_runtime {
  uint32_t abi, struct_size;
  int32_t (*copy_to_device)(uint64_t device, const void *host, size_t size, void *stream);
  int32_t (*copy_to_host)(void *host, uint64_t device, size_t size, void *stream);
  int32_t (*event_record)(void *event, void *stream);
  int32_t (*event_query)(void *event);
  int32_t (*event_wait)(void *event);
  int32_t (*stream_wait)(void *stream);
  int32_t not_ready; /* what event_query answers while work is pending */
  uint32_t reserved;
  /* The mapped path and the device kernels; NULL where nobody asked for them. */
  int32_t (*launch)(void *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                    uint32_t block_y, uint32_t block_z, uint32_t shared_bytes, void *stream, void **parameters,
                    void **extra);
  int32_t (*host_register)(void *host, size_t size, uint32_t flags);
  int32_t (*host_unregister)(void *host);
  int32_t (*host_pointer)(uint64_t *device, void *host, uint32_t flags);
};

/* Device functions compiled from gdsfw/gpu/kernels.cpp, as `launch` takes them. */
struct gdsfw_gpu_kernels {
  uint32_t abi, struct_size;
  void *move;   /* gather and scatter: any number of blocks in one launch */
  void *fill;   /* the pattern's bytes */
  void *verify; /* bytes that differ from the pattern */
  void *make;   /* a block of struct gdsfw_block_data */
};

/* Status that the file libraries return by value: their own code and the runtime's. 0, 0 is success. */
struct gdsfw_gpu_status {
  int32_t file_code;
  int32_t gpu_code;
};

/* One entry of a batch, and one event of it, in the layout that both file libraries use. */
struct gdsfw_gpu_batch_entry {
  int32_t mode; /* 1: batch */
  int32_t padding;
  void *buffer_base;
  int64_t file_offset;
  int64_t buffer_offset;
  size_t size;
  void *file;
  int32_t opcode; /* 0 read, 1 write */
  int32_t padding2;
  void *cookie;
};

struct gdsfw_gpu_batch_event {
  void *cookie;
  int32_t status; /* GDSFW_GPU_BATCH_... */
  int32_t padding;
  size_t result;
};

enum gdsfw_gpu_batch_status {
  GDSFW_GPU_BATCH_WAITING = 1,
  GDSFW_GPU_BATCH_PENDING = 2,
  GDSFW_GPU_BATCH_INVALID = 4,
  GDSFW_GPU_BATCH_CANCELED = 8,
  GDSFW_GPU_BATCH_COMPLETE = 16,
  GDSFW_GPU_BATCH_TIMEOUT = 32,
  GDSFW_GPU_BATCH_FAILED = 64,
};

/* Symbols of the file library; a member is NULL where the library lacks it. */
struct gdsfw_gpu_file_library {
  uint32_t abi, struct_size;
  struct gdsfw_gpu_status (*batch_setup)(void **batch, uint32_t entries);
  struct gdsfw_gpu_status (*batch_submit)(void *batch, uint32_t n, struct gdsfw_gpu_batch_entry *entries,
                                          uint32_t flags);
  struct gdsfw_gpu_status (*batch_status)(void *batch, uint32_t at_least, uint32_t *n,
                                          struct gdsfw_gpu_batch_event *events, struct timespec *timeout);
  struct gdsfw_gpu_status (*batch_cancel)(void *batch);
  void (*batch_destroy)(void *batch);
  struct gdsfw_gpu_status (*read_async)(void *file, void *buffer_base, size_t *size, off_t *file_offset,
                                        off_t *buffer_offset, ssize_t *moved, void *stream);
  struct gdsfw_gpu_status (*write_async)(void *file, void *buffer_base, size_t *size, off_t *file_offset,
                                         off_t *buffer_offset, ssize_t *moved, void *stream);
  struct gdsfw_gpu_status (*buffer_register)(const void *buffer_base, size_t size, int32_t flags);
  struct gdsfw_gpu_status (*buffer_deregister)(const void *buffer_base);
};

/* The descriptor behind a file of the library, for flush. */
struct gdsfw_gpu_file {
  void *file;
  int32_t fd;
  int32_t reserved;
};

/* ctx of a GPU path's table and queue; the members that a path does not use may be zero. */
struct gdsfw_gpu_path {
  uint32_t abi, struct_size;
  const struct gdsfw_gpu_runtime *gpu;
  const struct gdsfw_gpu_file_library *library; /* batch and stream */
  void *stream;                                 /* the worker's own */
  void **events;                                /* `nevents` of them; at most so many groups are in flight */
  uint32_t nevents;
  uint32_t group_blocks;          /* staged: most blocks of one group */
  const struct gdsfw_io *storage; /* staged: table for host memory; its queue when it has one, else read and write */
  uint8_t *mirror;                /* staged: pinned host memory; the block at buffer_offset x is staged at mirror + x */
  uint64_t mirror_size;
  uint8_t *scratch; /* pinned host memory for fill and verify, at least one block */
  uint64_t scratch_size;
  uint32_t spin; /* 1: busy-wait for the device, 0: block */
  uint32_t file_code_base;
  const struct gdsfw_gpu_file *files; /* sync, batch and stream: all files of the worker */
  uint64_t nfiles;
  const struct gdsfw_gpu_kernels *kernels; /* NULL: no compiler; copies take their place */
  struct gdsfw_gpu_move *moves;            /* mapped with kernels: pinned, 2 * group_blocks for each event */
  uint64_t finding;                        /* device memory for one struct gdsfw_gpu_finding, with kernels */
};

/* One block for the move kernel: addresses as the device sees them. */
struct gdsfw_gpu_move {
  uint64_t source, target, size;
};

/* What the verify kernel found. */
struct gdsfw_gpu_finding {
  uint64_t bad_bytes;
  uint64_t first; /* file offset of the first bad byte; all ones for none */
};

/* ---- a file's own pages, registered with the device ---------------------------------------------------------- */

struct gdsfw_gpu_map_options {
  uint32_t abi, struct_size;
  int32_t fd;
  uint32_t writable;
  uint64_t start; /* of the range, a multiple of the page size */
  uint64_t length;
  uint64_t window;   /* bytes registered at once, a multiple of the page size; `length` or more: the whole range */
  uint32_t resident; /* most windows registered at a time */
  uint32_t reserved;
};

enum gdsfw_gpu_map_step {
  GDSFW_GPU_MAP_WORKS = 0,
  GDSFW_GPU_MAP_MMAP = 1,     /* errno */
  GDSFW_GPU_MAP_POPULATE = 2, /* errno */
  GDSFW_GPU_MAP_REGISTER = 3, /* the runtime's code */
  GDSFW_GPU_MAP_ADDRESS = 4,  /* the runtime's code: the device's address of registered memory */
};

struct gdsfw_gpu_map_report {
  uint32_t abi, struct_size;
  uint64_t registrations;    /* windows registered so far */
  uint64_t registered_bytes; /* in all of them */
  uint64_t most_pinned;      /* bytes at a time */
  uint64_t cold_bytes;       /* of them not in memory before */
  uint64_t populate_ns, register_ns;
  uint32_t step; /* enum gdsfw_gpu_map_step: what failed last */
  int32_t code;  /* of it */
};

/* One map serves all workers that read or write the range; the value that the mapped path takes as `file` is its
 * address. With one window, open registers it and leaves the reason in the report when it cannot; with more, windows
 * are registered when they are first needed. Called with the device's context current, as are all calls below. */
int64_t gdsfw_gpu_map_open(const struct gdsfw_gpu_runtime *gpu, const struct gdsfw_gpu_map_options *options, void **map,
                           struct gdsfw_gpu_map_report *report);
/* What was registered. */
void gdsfw_gpu_map_look(void *map, struct gdsfw_gpu_map_report *report);
/* The device's address of the byte at file `offset` of a map with one window; 0 outside. */
uint64_t gdsfw_gpu_map_address(void *map, uint64_t offset);
/* 0 while the file is as it was: as long, and not removed or replaced. */
int64_t gdsfw_gpu_map_intact(void *map);
/* Nothing of the map may be in flight. */
void gdsfw_gpu_map_close(void *map);
int64_t gdsfw_gpu_map_flush(void *ctx, void *file, int32_t data_only);

/* For the table of any GPU path: between device and host memory on the path's stream, waited for. */
int64_t gdsfw_gpu_copy(void *ctx, void *buffer_base, int64_t buffer_offset, void *host, uint64_t size,
                       int32_t direction);
int64_t gdsfw_gpu_fill(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size, int64_t file_offset,
                       const struct gdsfw_pattern *pattern);
/* With kernels only. */
int64_t gdsfw_gpu_make_data(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size,
                            const struct gdsfw_block_data *data);
int64_t gdsfw_gpu_verify(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size, int64_t file_offset,
                         const struct gdsfw_pattern *pattern, struct gdsfw_mismatch *mismatch);
int64_t gdsfw_gpu_flush(void *ctx, void *file, int32_t data_only);
int64_t gdsfw_gpu_register(void *ctx, void *buffer_base, uint64_t size);
int64_t gdsfw_gpu_deregister(void *ctx, void *buffer_base);
int64_t gdsfw_staged_flush(void *ctx, void *file, int32_t data_only);

extern const struct gdsfw_queue gdsfw_staged_queue;
extern const struct gdsfw_queue gdsfw_gpu_batch_queue;
extern const struct gdsfw_queue gdsfw_gpu_stream_queue;
extern const struct gdsfw_queue gdsfw_gpu_mapped_queue;

#ifdef __cplusplus
}
#endif
#endif
