/* file.h - the parts of the file library: driver, settings, registrations, transfers. */
#ifndef STANDIN_FILE_H
#define STANDIN_FILE_H

#include "standin.h"

#include <stdbool.h>

/* Error codes that cuFile and hipFile share (5000 + n). */
enum {
  FILE_OK = 0,
  FILE_DRIVER_NOT_INITIALIZED = 5001,
  FILE_DRIVER_CLOSING = 5006,
  FILE_IO_NOT_SUPPORTED = 5008,
  FILE_GPU_DRIVER_ERROR = 5011,
  FILE_MEMORY_TYPE_INVALID = 5013,
  FILE_POINTER_RANGE = 5014,
  FILE_CONTEXT_MISMATCH = 5015,
  FILE_MAPPING_SIZE = 5016,
  FILE_INVALID_TYPE = 5018,
  FILE_OPEN_FLAG = 5019,
  FILE_DIRECT_NOT_SET = 5020,
  FILE_INVALID_VALUE = 5022,
  FILE_MEMORY_ALREADY = 5023,
  FILE_MEMORY_NOT_REGISTERED = 5024,
  FILE_ALREADY_OPEN = 5026,
  FILE_NOT_REGISTERED = 5027,
  FILE_ALREADY_REGISTERED = 5028,
  FILE_INTERNAL = 5030,
  FILE_NO_DESCRIPTOR = 5031,
  FILE_PINNING = 5036,
  FILE_BATCH_FULL = 5037,
  FILE_NO_CONTEXT = 5047,
};

/* CUfileError_t, hipFileError_t: returned by value. */
struct status {
  int code, gpu;
};

enum opcode { READ, WRITE };

/* A registered file. */
struct file {
  uint64_t handle;
  int fd;       /* the caller's */
  int buffered; /* without O_DIRECT */
  int direct;   /* with it; -1 when there is none */
  int users;    /* the table, and transfers in flight */
  struct file *next;
};

/* Where a transfer goes: validated memory, and what the library keeps alive meanwhile. */
struct target {
  uint8_t *memory;
  uint64_t address;
  int device; /* -1: host memory */
};

/* A transfer: what sync, batch and stream calls all come down to. */
struct transfer {
  uint64_t handle, base;
  size_t size;
  off_t file_offset, buffer_offset;
  enum opcode opcode;
  int check_context;
};

/* ---- the runtime ---- */
const struct standin_core *core(void); /* NULL when its library is missing */
struct status gpu_status(int gpu);
struct status file_status(int code);
/* Counts a call; 1 when `fault` is its answer. */
int enter(struct standin_site *site, struct standin_fault *fault);
struct status fault_status(const struct standin_fault *fault);

#define ENTER_STATUS(symbol)                                                                                           \
  do {                                                                                                                 \
    static struct standin_site site_ = {.name = STANDIN_TEXT(symbol)};                                                 \
    struct standin_fault fault_ = {0};                                                                                 \
    if (enter(&site_, &fault_))                                                                                        \
      return fault_status(&fault_);                                                                                    \
  } while (0)

#define ENTER_VOID(symbol)                                                                                             \
  do {                                                                                                                 \
    static struct standin_site site_ = {.name = STANDIN_TEXT(symbol)};                                                 \
    struct standin_fault fault_ = {0};                                                                                 \
    if (enter(&site_, &fault_))                                                                                        \
      return;                                                                                                          \
  } while (0)

/* ---- driver.c ---- */
int driver_users(void);
/* As registrations do: open the driver if nobody has. */
struct status driver_need(void);
/* The way that direct transfers go, "" when there is none. */
const char *driver_direct(void);
bool driver_compat_allowed(void);

/* ---- parameters.c ---- */
enum {
  PARAMETER_MAX_DIRECT_KB = 5,
  PARAMETER_MAX_CACHE_KB,
  PARAMETER_PER_BUFFER_KB,
  PARAMETER_MAX_PINNED_KB,
  PARAMETER_BATCH,
  PARAMETER_POLL_KB,
  PARAMETER_BATCH_MS
};
enum {
  FLAG_POLL,
  FLAG_ALLOW_COMPAT,
  FLAG_FORCE_COMPAT,
  FLAG_PARALLEL = 4,
  FLAG_SYSTEM_MEMORY = 6,
  FLAG_P2PDMA = 7,
  FLAG_FORCE_DIRECT = 9
};
size_t parameter_size(int which);
bool parameter_flag(int which);
void parameter_put(int which, size_t value);
void parameter_put_flag(int which, bool value);
void parameter_defaults(void); /* environment, where the caller has set nothing */
size_t parameter_slabs(void);  /* entries that batches can have in flight in compatibility mode */

/* ---- registry.c ---- */
void registry_clear(void);
struct file *registry_use(uint64_t handle);
void registry_done(struct file *file);
/* Memory of a transfer; 0 or a negated code. */
int registry_target(const struct transfer *t, struct target *target);

/* ---- transfer.c ---- */
/* Bytes moved, -1 with *error, or a negated code. */
ssize_t transfer_run(const struct transfer *t, const struct standin_fault *fault, int *error);

/* ---- batch.c, statistics.c ---- */
void batch_clear(void);
enum route { ROUTE_POSIX, ROUTE_NVFS, ROUTE_P2P };
void statistics_add(int device, enum opcode opcode, enum route route, ssize_t moved, int aligned);
void statistics_registered(int buffer);

#endif
