/* gdsfw_backend.h - what a backend gives the gdsfw engine: a table of functions.
 *
 * A backend fills one `struct gdsfw_io` for each worker and hands its address to gdsfw (IOPath(native=...)).
 * The engine then calls it from the worker's thread without the Python interpreter.
 *
 * Rules for every function here: it is called on the worker's own thread; it neither prints, exits nor installs
 * signal handlers; it does not allocate per I/O. Sizes and offsets are bytes, times are nanoseconds of
 * CLOCK_MONOTONIC. `abi` and `struct_size` come first in every struct; the engine reads the smaller size, and a
 * member behind a backend's struct_size counts as NULL.
 *
 * Result of a call, named r below. The engine sets errno to 0 before the call and saves it after:
 *     r >= 0                  bytes moved (a short count is allowed; 0 before the end of the file is an error)
 *     r == -1                 errno e: e == 0 is (GPU, 1); e >= file_code_base is (FILE, e); else (ERRNO, e)
 *     r <= -file_code_base    (FILE, -r), where file_code_base is not 0
 *     otherwise               (GPU, -r)
 * This is the convention of the vendors' own read and write calls, whose symbols go into the table unwrapped.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef GDSFW_BACKEND_H
#define GDSFW_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts incompatible changes; a table with another number is refused by name. */
#define GDSFW_ABI 1u

enum gdsfw_domain { GDSFW_NONE = 0, GDSFW_ERRNO = 1, GDSFW_GPU = 2, GDSFW_FILE = 3 };

enum gdsfw_flag {
  GDSFW_HOST_VISIBLE = 1u << 0, /* the CPU may read and write the buffer at its address */
  GDSFW_CAN_READ = 1u << 1,
  GDSFW_CAN_WRITE = 1u << 2,
};

enum gdsfw_copy_direction { GDSFW_TO_HOST = 0, GDSFW_FROM_HOST = 1 };

/* What the bytes of a file are: a pure function of (seed, file_id, byte offset), see gdsfw_pattern_fill. */
struct gdsfw_pattern {
  uint32_t abi, struct_size;
  uint64_t seed;
  uint64_t file_id;
  uint64_t generation; /* 0 unless the job asks for generations */
};

/* What a block to be written holds when it is no pattern, a pure function of these and the byte's place in the block.
 * Of every `piece` bytes the first `random` (a multiple of 8) are those of the pattern (seed, file_id) at the same
 * place of a file, each 8 of a piece xored with `nonce`; the rest is zero. With `stamped` nothing is xored: every 512
 * bytes of a piece's random part begin with the 8 of nonce + place * 0x9E3779B97F4A7C15, little end first, where the
 * block has room for them. */
struct gdsfw_block_data {
  uint32_t abi, struct_size;
  uint64_t seed, file_id;
  uint64_t nonce;
  uint64_t piece, random;
  uint32_t stamped;
  uint32_t reserved;
};

/* First difference found by a verification. */
struct gdsfw_mismatch {
  uint32_t abi, struct_size;
  uint64_t bad_bytes;   /* bytes that differ in the range, 0 when all match */
  int64_t file_offset;  /* of the first of them */
  uint8_t expected[16]; /* from that byte on, as far as the range goes */
  uint8_t found[16];
  uint32_t length; /* how many of the 16 are filled in */
  uint32_t reserved;
};

/* Move `size` bytes between `file` at file_offset and buffer_base + buffer_offset. `file` and `buffer_base` are opaque
 * 64-bit values of the backend. */
typedef int64_t (*gdsfw_io_fn)(void *file, void *buffer_base, uint64_t size, int64_t file_offset,
                               int64_t buffer_offset);

struct gdsfw_request {
  uint32_t opcode; /* 0 read, 1 write */
  uint32_t reserved;
  void *file;
  void *buffer_base;
  uint64_t size;
  int64_t file_offset;
  int64_t buffer_offset;
  uint64_t cookie; /* comes back in the completion; consecutive requests have consecutive cookies */
};

/* `count` > 1 completes the requests cookie .. cookie + count - 1 at once, each in full. */
struct gdsfw_completion {
  uint64_t cookie;
  uint32_t count;
  uint32_t domain; /* enum gdsfw_domain; GDSFW_NONE for success */
  int64_t result;  /* bytes moved when domain is GDSFW_NONE */
  int64_t code;    /* positive error code otherwise */
  uint64_t storage_ns;
  uint64_t copy_ns;
};

struct gdsfw_queue_options {
  uint32_t abi, struct_size;
  uint32_t iodepth;
  uint32_t iodepth_batch;
  void *buffer_base; /* the worker's one buffer */
  uint64_t buffer_size;
  uint64_t max_block;
  void *const *files; /* every file of the worker */
  uint32_t nfiles;
  uint32_t reserved;
};

/* Requests in flight. All calls come from the worker's thread. Negative returns decode like `r` above. */
struct gdsfw_queue {
  uint32_t abi, struct_size;
  int64_t (*open)(void *ctx, const struct gdsfw_queue_options *options, void **queue);
  /* Take the first k of n requests and return k; 0 when the queue is full. */
  int64_t (*submit)(void *queue, const struct gdsfw_request *requests, uint32_t n);
  /* Wait until at_least completions are there or the timeout has passed; return how many were written. */
  int64_t (*reap)(void *queue, struct gdsfw_completion *completions, uint32_t at_least, uint32_t at_most,
                  int64_t timeout_ns);
  /* Ask for what is in flight to end early; completions still come through reap. May be NULL. */
  int64_t (*cancel)(void *queue);
  /* Called when nothing is in flight. */
  void (*close)(void *queue);
};

struct gdsfw_io {
  uint32_t abi, struct_size;
  uint32_t flags;          /* enum gdsfw_flag */
  uint32_t file_code_base; /* first error code of the file library (5000 for the known ones), 0 for none */
  uint64_t max_transfer;   /* most bytes of one call, 0 for no limit; the engine splits and loops on short counts */
  void *ctx;               /* first argument of the functions below */
  gdsfw_io_fn read;
  gdsfw_io_fn write;
  int64_t (*flush)(void *ctx, void *file, int32_t data_only);
  int64_t (*copy)(void *ctx, void *buffer_base, int64_t buffer_offset, void *host, uint64_t size, int32_t direction);
  int64_t (*fill)(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size, int64_t file_offset,
                  const struct gdsfw_pattern *pattern);
  int64_t (*verify)(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size, int64_t file_offset,
                    const struct gdsfw_pattern *pattern, struct gdsfw_mismatch *mismatch);
  int64_t (*register_buffer)(void *ctx, void *buffer_base, uint64_t size);
  int64_t (*deregister_buffer)(void *ctx, void *buffer_base);
  const struct gdsfw_queue *queue; /* NULL for a synchronous path */
  /* Put such a block into memory that the host cannot touch. Without it, data is copied there once for each slot. */
  int64_t (*make_data)(void *ctx, void *buffer_base, int64_t buffer_offset, uint64_t size,
                       const struct gdsfw_block_data *data);
};

/* ---- what the engine offers to backends ------------------------------------------------------------------- */

/* A file of the psync and io_uring paths. `fd` first: the value handed over is the address of this struct. */
struct gdsfw_fd_file {
  int32_t fd;
  int32_t tail_fd;    /* buffered descriptor for blocks that `alignment` does not allow, -1 for none */
  uint32_t alignment; /* of offset and size for `fd`; 1 when buffered */
  uint32_t reserved;
};

/* Ready tables for host memory: copy, set what differs (flags, ctx), hand over. */
extern const struct gdsfw_io gdsfw_psync;
/* Moves nothing and says it did: measures the engine. `file` may be any value. */
extern const struct gdsfw_io gdsfw_noop;

/* io_uring: a queue on host memory, and psync's read and write beside it. ctx: struct gdsfw_uring_options, or NULL. */
extern const struct gdsfw_io gdsfw_uring;

struct gdsfw_uring_options {
  uint32_t abi, struct_size;
  uint32_t fixed_buffers; /* register the worker's buffer with the kernel */
  uint32_t fixed_files;   /* register the files */
  uint32_t sqpoll;        /* a kernel thread looks for submissions */
  uint32_t sqpoll_idle_ms;
  uint32_t iopoll; /* poll the device for completions: direct I/O on devices with poll queues only */
  uint32_t reserved;
};

enum gdsfw_uring_step {
  GDSFW_URING_WORKS = 0,
  GDSFW_URING_SETUP = 1,   /* io_uring_setup: absent, forbidden, or an option the kernel lacks */
  GDSFW_URING_MAP = 2,     /* the rings' memory */
  GDSFW_URING_BUFFERS = 3, /* registering the buffer: ENOMEM is the limit on locked memory */
  GDSFW_URING_FILES = 4,   /* registering the files */
};

struct gdsfw_uring_report {
  uint32_t abi, struct_size;
  uint32_t step;        /* enum gdsfw_uring_step: what failed */
  int32_t error;        /* errno of it */
  uint32_t setup_flags; /* IORING_SETUP_... in force */
  uint32_t features;    /* IORING_FEAT_... of the kernel */
};

/* Open a queue as gdsfw_uring would, and close it again. Returns 0, or -1 with the reason in the report. */
int64_t gdsfw_uring_try(const struct gdsfw_uring_options *options, const struct gdsfw_queue_options *queue,
                        struct gdsfw_uring_report *report);

/* Write the pattern's bytes for file range [file_offset, file_offset + size) into host memory. */
void gdsfw_pattern_fill(void *host, uint64_t size, int64_t file_offset, const struct gdsfw_pattern *pattern);
/* Compare; returns the number of bytes that differ and describes the first of them. */
uint64_t gdsfw_pattern_verify(const void *host, uint64_t size, int64_t file_offset, const struct gdsfw_pattern *pattern,
                              struct gdsfw_mismatch *mismatch);

#ifdef __cplusplus
}
#endif
#endif
