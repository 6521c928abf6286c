/* runtime.c - what the runtime tells about itself: its table for the file library, error texts, addresses of its
 * functions.
 */
#include "memory.h"
#include "stream.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const struct standin_core core = {
    .size = sizeof core,
    .enter = control_enter,
    .setting = control_setting,
    .text = control_text,
    .trace = control_trace,
    .misuse = control_misuse,
    .start = device_start,
    .devices = device_count,
    .current = device_current,
    .activate = device_activate,
    .uuid = device_uuid,
    .find = memory_find,
    .pin = memory_pin,
    .stream_device = stream_core_device,
    .enqueue = stream_core_enqueue,
    .stream_wait = stream_core_wait,
    .start_thread = start_thread,
};

STANDIN_EXPORT const struct standin_core *fn_core(void) { return &core; }

#if IS_HIP
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif

static const struct {
  int code;
  const char *name, *text;
} errors[] = {
    {OK, NAME("CUDA_SUCCESS", "hipSuccess"), "no error"},
    {INVALID_VALUE, NAME("CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue"), "invalid argument"},
    {OUT_OF_MEMORY, NAME("CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory"), "out of memory"},
    {NOT_INITIALIZED, NAME("CUDA_ERROR_NOT_INITIALIZED", "hipErrorNotInitialized"), "initialization error"},
    {NO_DEVICE, NAME("CUDA_ERROR_NO_DEVICE", "hipErrorNoDevice"), "no GPU is detected"},
    {INVALID_DEVICE, NAME("CUDA_ERROR_INVALID_DEVICE", "hipErrorInvalidDevice"), "invalid device ordinal"},
    {INVALID_CONTEXT, NAME("CUDA_ERROR_INVALID_CONTEXT", "hipErrorInvalidContext"), "invalid device context"},
    {INVALID_HANDLE, NAME("CUDA_ERROR_INVALID_HANDLE", "hipErrorInvalidHandle"), "invalid resource handle"},
    {NOT_FOUND, NAME("CUDA_ERROR_NOT_FOUND", "hipErrorNotFound"), "named symbol not found"},
    {NOT_READY, NAME("CUDA_ERROR_NOT_READY", "hipErrorNotReady"), "device not ready"},
    {ILLEGAL_ADDRESS, NAME("CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress"), "illegal memory access"},
    {CONTEXT_DESTROYED, NAME("CUDA_ERROR_CONTEXT_IS_DESTROYED", "hipErrorContextIsDestroyed"), "context is destroyed"},
    {HOST_ALREADY_REGISTERED, NAME("CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "hipErrorHostMemoryAlreadyRegistered"),
     "part or all of the requested memory range is already mapped"},
    {HOST_NOT_REGISTERED, NAME("CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "hipErrorHostMemoryNotRegistered"),
     "pointer does not correspond to a registered memory region"},
    {719, NAME("CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure"), "unspecified launch failure"},
    {NOT_SUPPORTED, NAME("CUDA_ERROR_NOT_SUPPORTED", "hipErrorNotSupported"), "operation not supported"},
    {999, NAME("CUDA_ERROR_UNKNOWN", "hipErrorUnknown"), "unknown error"},
};

static int error_text(int code, int name, const char **text) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) {
      *text = name ? errors[i].name : errors[i].text;
      return OK;
    }
  *text = NULL;
  return INVALID_VALUE;
}

/* Whether a test asks for a library that lacks a function. */
static int lacks(const char *name) {
  char list[512], *rest = list, *item;
  control_text("lack", list, sizeof list);
  while ((item = strsep(&rest, ",")))
    if (!strcmp(item, name))
      return 1;
  return 0;
}

static void *symbol(const char *name) {
  static void *self;
  Dl_info info;
  if (!self && dladdr((void *)(uintptr_t)&fn_core, &info))
    self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return self && !lacks(name) ? dlsym(self, name) : NULL;
}

#if IS_HIP

STANDIN_EXPORT const char *hipGetErrorName(int code) {
  const char *text;
  return error_text(code, 1, &text) ? "hipErrorUnknown" : text;
}

STANDIN_EXPORT const char *hipGetErrorString(int code) {
  const char *text;
  return error_text(code, 0, &text) ? "unknown error" : text;
}

STANDIN_EXPORT int hipDrvGetErrorName(int code, const char **text) { return error_text(code, 1, text); }

STANDIN_EXPORT int hipDrvGetErrorString(int code, const char **text) { return error_text(code, 0, text); }

STANDIN_EXPORT int hipRuntimeGetVersion(int *version) {
  ENTER(hipRuntimeGetVersion);
  *version = (int)control_setting("driver_version", 71500000);
  return OK;
}

STANDIN_EXPORT int hipGetProcAddress(const char *name, void **function, int version, uint64_t flags, int *found) {
  ENTER(hipGetProcAddress);
  (void)version, (void)flags;
  *function = symbol(name);
  if (found)
    *found = *function ? 0 : 1;
  return answer(*function ? OK : INVALID_VALUE);
}

#else

STANDIN_EXPORT int cuGetErrorName(int code, const char **text) { return error_text(code, 1, text); }

STANDIN_EXPORT int cuGetErrorString(int code, const char **text) { return error_text(code, 0, text); }

/* Callers ask by unsuffixed name; the newest function of that name is what they get. */
STANDIN_EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found) {
  char newest[128];
  (void)version, (void)flags;
  snprintf(newest, sizeof newest, "%s_v2", name);
  *function = lacks(name) ? NULL : symbol(newest);
  if (!*function)
    *function = symbol(name);
  if (found)
    *found = *function ? 0 : 1;
  return *function ? OK : NOT_FOUND;
}

STANDIN_EXPORT int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

#endif
