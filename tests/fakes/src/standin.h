/* standin.h - what the two halves of a stand-in share: the GPU runtime (libcuda, libamdhip64) and the file library
 * (libcufile, libhipfile). The file library reaches the runtime through one exported function that gives this table.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include "vendor.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STANDIN_EXPORT __attribute__((visibility("default")))

/* Status numbers that the CUDA driver API and HIP share. */
enum {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  CONTEXT_DESTROYED = 709,
  HOST_ALREADY_REGISTERED = 712,
  HOST_NOT_REGISTERED = 713,
  NOT_SUPPORTED = 801,
};

/* One place that can be told to fail: an entry point, or work that runs later (see README.md). */
struct standin_site {
  const char *name;
  atomic_ulong calls;
  atomic_int known;
  struct standin_site *next;
};

/* What a rule asks of one call. */
struct standin_fault {
  int64_t code;  /* the answer instead of the call */
  int error;     /* errno that goes with it */
  int64_t limit; /* most bytes to move, 0: no limit */
};

enum standin_kind { MEMORY_DEVICE, MEMORY_PINNED, MEMORY_REGISTERED };

/* Memory that the runtime knows. `alias` is where the stand-in itself can touch it. */
struct standin_range {
  uint64_t address;
  size_t size;
  uint8_t *alias;
  enum standin_kind kind;
  int device;
  int read_only;
  int fd; /* of device memory, else -1 */
};

typedef void standin_work(void *argument);

struct standin_core {
  size_t size;
  /* Counts, traces and delays a call; 1 when `fault->code` is to be its answer. */
  int (*enter)(struct standin_site *site, struct standin_fault *fault);
  int64_t (*setting)(const char *name, int64_t otherwise);
  void (*text)(const char *name, char *value, size_t size);
  void (*trace)(const char *format, ...) __attribute__((format(printf, 1, 2)));
  void (*misuse)(const char *format, ...) __attribute__((format(printf, 1, 2)));
  /* Initialises the runtime if need be; OK or why there is no device. */
  int (*start)(void);
  int (*devices)(void);
  int (*current)(void); /* device of the calling thread, -1 without a context */
  void (*activate)(int device);
  void (*uuid)(int device, unsigned char uuid[16]);
  /* The memory that holds an address; 0 when there is none. */
  int (*find)(uint64_t address, struct standin_range *range);
  /* Count somebody who relies on device memory staying. */
  void (*pin)(uint64_t address, int by);
  /* Device of a stream, or a negative status. */
  int (*stream_device)(void *stream);
  int (*enqueue)(void *stream, standin_work *work, void *argument);
  int (*stream_wait)(void *stream);
  void (*start_thread)(void *(*body)(void *), void *argument);
};

#define STANDIN_TEXT_(x) #x
#define STANDIN_TEXT(x) STANDIN_TEXT_(x)

#endif
