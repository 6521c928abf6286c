/* driver.c - opening and closing the file library's driver, and its properties. */
#include "file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct standin_core *runtime;

/* The runtime's library is looked for when first needed, as the real file library does. */
static void find_runtime(void) {
  void *library = dlopen(RUNTIME_LIBRARY, RTLD_NOW);
  const struct standin_core *(*table)(void) = NULL;
  if (library)
    *(void **)&table = dlsym(library, STANDIN_TEXT(fn_core));
  if (table)
    runtime = table();
}

const struct standin_core *core(void) {
  pthread_once(&once, find_runtime);
  return runtime;
}

struct status file_status(int code) { return (struct status){code, 0}; }

struct status gpu_status(int gpu) { return (struct status){gpu ? FILE_GPU_DRIVER_ERROR : FILE_OK, gpu}; }

int enter(struct standin_site *site, struct standin_fault *fault) { return core() ? core()->enter(site, fault) : 0; }

struct status fault_status(const struct standin_fault *fault) {
  int code = (int)(fault->code < 0 ? -fault->code : fault->code);
  return code > 5000 ? file_status(code) : gpu_status(code);
}

int driver_users(void) { return users; }

bool driver_compat_allowed(void) { return parameter_flag(FLAG_ALLOW_COMPAT); }

const char *driver_direct(void) {
  static char way[32];
  if (!core() || parameter_flag(FLAG_FORCE_COMPAT))
    return "";
  core()->text("p2p", way, sizeof way);
  if (!*way || !strcmp(way, "0"))
    return "";
  if (IS_HIP)
    return "fastpath";
  return !strcmp(way, "p2pdma") && parameter_flag(FLAG_P2PDMA) ? "p2pdma" : !strcmp(way, "p2pdma") ? "" : "nvfs";
}

#if !IS_HIP
/* cufile.log, in the working directory unless the environment names a place. */
static void write_log(const char *level, const char *text) {
  const char *path = getenv("CUFILE_LOGFILE_PATH");
  FILE *log = fopen(path ? path : "cufile.log", "ae");
  if (!log)
    return;
  time_t now = time(NULL);
  struct tm tm;
  char stamp[32];
  strftime(stamp, sizeof stamp, "%d-%m-%Y %H:%M:%S", localtime_r(&now, &tm));
  fprintf(log, " %s:000 [pid=%d tid=%d] %6s  stand-in: %s\n", stamp, getpid(), getpid(), level, text);
  fclose(log);
}
#endif

static struct status first_open(void) {
  if (!core())
    return file_status(FILE_DRIVER_NOT_INITIALIZED);
  struct status status = gpu_status(core()->start());
  if (status.code)
    return status;
  parameter_defaults();
#if !IS_HIP
  if (!*driver_direct()) {
    if (!driver_compat_allowed() && !parameter_flag(FLAG_FORCE_COMPAT))
      return file_status(FILE_DRIVER_NOT_INITIALIZED);
    write_log("NOTICE", "running in compatible mode");
  } else {
    write_log("NOTICE", "direct transfers are possible");
  }
#endif
  if (core()->setting("contexts", 0))
    for (int i = 0; i < core()->devices(); i++)
      core()->activate(i);
  return file_status(FILE_OK);
}

static struct status open_driver(int again) {
  pthread_mutex_lock(&lock);
  struct status status = users ? file_status(FILE_OK) : first_open();
  if (!status.code && (again || !users))
    users++;
  pthread_mutex_unlock(&lock);
  return status;
}

struct status driver_need(void) { return open_driver(0); }

STANDIN_EXPORT struct status fn_file(DriverOpen)(void) {
  ENTER_STATUS(fn_file(DriverOpen));
  return open_driver(1);
}

STANDIN_EXPORT struct status fn_driver_close(void) {
  ENTER_STATUS(fn_driver_close);
  pthread_mutex_lock(&lock);
  int open = users > 0, last = users == 1;
  users -= open;
  pthread_mutex_unlock(&lock);
  if (last) {
    batch_clear();
    registry_clear();
  }
  return file_status(open ? FILE_OK : FILE_DRIVER_NOT_INITIALIZED);
}

#if !IS_HIP
STANDIN_EXPORT struct status cuFileDriverClose(void) { return cuFileDriverClose_v2(); }
#endif

STANDIN_EXPORT long fn_file(UseCount)(void) { return users; }

#if IS_HIP

STANDIN_EXPORT struct status hipFileGetVersion(unsigned *major, unsigned *minor, unsigned *patch) {
  char text[32] = "";
  unsigned numbers[3] = {0, 5, 0};
  ENTER_STATUS(hipFileGetVersion);
  if (core())
    core()->text("version", text, sizeof text);
  sscanf(text, "%u.%u.%u", &numbers[0], &numbers[1], &numbers[2]);
  if (major)
    *major = numbers[0];
  if (minor)
    *minor = numbers[1];
  if (patch)
    *patch = numbers[2];
  return file_status(FILE_OK);
}

/* Unimplemented in hipFile. */
STANDIN_EXPORT struct status hipFileDriverGetProperties(void *properties) {
  ENTER_STATUS(hipFileDriverGetProperties);
  (void)properties;
  return file_status(FILE_INTERNAL);
}

#else

STANDIN_EXPORT struct status cuFileGetVersion(int *version) {
  ENTER_STATUS(cuFileGetVersion);
  if (!version)
    return file_status(FILE_INVALID_VALUE);
  *version = core() ? (int)core()->setting("version", 1150) : 1150;
  return file_status(FILE_OK);
}

struct properties { /* CUfileDrvProps_t */
  struct {
    unsigned major, minor;
    size_t poll_threshold, max_direct_io;
    unsigned status_flags, control_flags;
  } nvfs;
  unsigned features, max_cache, per_buffer_cache, max_pinned, max_batch, max_batch_timeout;
};

enum { NVME = 1 << 4, NVME_P2P = 1 << 11, CONTROL_POLL = 1 << 0, CONTROL_COMPAT = 1 << 1 };
enum { FEATURE_BATCH = 1 << 1, FEATURE_STREAMS = 1 << 2, FEATURE_PARALLEL = 1 << 3, FEATURE_P2P = 1 << 4 };

STANDIN_EXPORT struct status cuFileDriverGetProperties(struct properties *p) {
  ENTER_STATUS(cuFileDriverGetProperties);
  if (!p)
    return file_status(FILE_INVALID_VALUE);
  const char *way = driver_direct();
  int nvfs = !strcmp(way, "nvfs"), p2pdma = !strcmp(way, "p2pdma");
  *p = (struct properties){
      .nvfs = {nvfs ? 2 : 0, nvfs ? 26 : 0, parameter_size(PARAMETER_POLL_KB), parameter_size(PARAMETER_MAX_DIRECT_KB),
               nvfs     ? NVME
               : p2pdma ? NVME_P2P
                        : 0,
               (parameter_flag(FLAG_POLL) ? CONTROL_POLL : 0) | (driver_compat_allowed() ? CONTROL_COMPAT : 0)},
      .features = FEATURE_BATCH | FEATURE_STREAMS | FEATURE_PARALLEL | (p2pdma ? FEATURE_P2P : 0),
      .max_cache = (unsigned)parameter_size(PARAMETER_MAX_CACHE_KB),
      .per_buffer_cache = (unsigned)parameter_size(PARAMETER_PER_BUFFER_KB),
      .max_pinned = (unsigned)parameter_size(PARAMETER_MAX_PINNED_KB),
      .max_batch = (unsigned)parameter_size(PARAMETER_BATCH),
      .max_batch_timeout = (unsigned)parameter_size(PARAMETER_BATCH_MS),
  };
  return file_status(FILE_OK);
}

#endif
