/* device.c - devices, contexts, and which of them a thread uses. */
#include "device.h"
#include "memory.h"
#include "stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT_STACK 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[MAX_DEVICES];
static int ndevices;
static atomic_int started; /* 0: not yet, 1: yes */

#if IS_HIP
static _Thread_local int thread_device;
static _Thread_local int last_error;

int answer(int status) {
  if (status != OK && status != NOT_READY)
    last_error = status;
  return status;
}
#else
static _Thread_local struct context *stack[CONTEXT_STACK];
static _Thread_local int depth;

int answer(int status) { return status; }
#endif

/* The devices that the environment leaves visible, as their numbers in `order`. */
static int visible(int there, int *order) {
  const char *list = getenv(VISIBLE_DEVICES);
  int n = 0;
  if (!list) {
    for (; n < there; n++)
      order[n] = n;
    return n;
  }
  while (n < MAX_DEVICES) {
    char *end;
    long number = strtol(list, &end, 10);
    if (end == list || number < 0 || number >= there)
      break; /* what cannot be used ends the list */
    order[n++] = (int)number;
    list = *end == ',' ? end + 1 : end;
  }
  return n;
}

static void make_devices(void) {
  int there = (int)control_setting("devices", 2), order[MAX_DEVICES];
  ndevices = visible(there < MAX_DEVICES ? there : MAX_DEVICES, order);
  for (int i = 0; i < ndevices; i++)
    devices[i] =
        (struct device){.ordinal = i, .physical = order[i], .memory = (size_t)control_setting("memory", 1ll << 30)};
}

int device_start(void) {
  pthread_mutex_lock(&lock);
  if (!started) {
    make_devices();
    started = 1;
  }
  pthread_mutex_unlock(&lock);
  return ndevices ? OK : NO_DEVICE;
}

int device_count(void) { return ndevices; }

struct device *device_at(int ordinal) { return ordinal >= 0 && ordinal < ndevices ? &devices[ordinal] : NULL; }

void device_uuid(int ordinal, unsigned char uuid[16]) {
  for (int i = 0; i < 16; i++)
    uuid[i] = (unsigned char)(i ? UUID_SEED + i : devices[ordinal].physical);
}

void device_activate(int ordinal) {
  pthread_mutex_lock(&lock);
  if (!devices[ordinal].context) {
    struct context *context = malloc(sizeof *context);
    *context = (struct context){.device = ordinal};
    devices[ordinal].context = context;
    control_trace("context device=%d", ordinal);
  }
  pthread_mutex_unlock(&lock);
}

int device_current(void) {
#if IS_HIP
  return device_start() ? -1 : thread_device;
#else
  struct context *context = depth ? stack[depth - 1] : NULL;
  return context && !context->destroyed ? context->device : -1;
#endif
}

int device_use(struct device **device) {
#if IS_HIP
  int status = device_start();
  if (status)
    return status;
  device_activate(thread_device);
#else
  if (!started)
    return NOT_INITIALIZED;
  if (depth && stack[depth - 1] && stack[depth - 1]->destroyed)
    return CONTEXT_DESTROYED;
#endif
  int current = device_current();
  if (current < 0)
    return INVALID_CONTEXT;
  *device = &devices[current];
  return (*device)->error;
}

/* A device that an entry point names. */
static int named(int ordinal, struct device **device) {
  if (IS_HIP)
    device_start();
  if (!started)
    return NOT_INITIALIZED;
  *device = device_at(ordinal);
  return *device ? OK : INVALID_DEVICE;
}

#define NAMED(ordinal)                                                                                                 \
  struct device *device;                                                                                               \
  int status_ = named(ordinal, &device);                                                                               \
  if (status_)                                                                                                         \
  return answer(status_)

STANDIN_EXPORT int fn_init(unsigned flags) {
  ENTER(fn_init);
  return answer(flags ? INVALID_VALUE : device_start());
}

STANDIN_EXPORT int fn_driver_version(int *version) {
  ENTER(fn_driver_version);
  *version = (int)control_setting("driver_version", IS_HIP ? 71500000 : 13000);
  return OK;
}

STANDIN_EXPORT int fn_device_count(int *count) {
  ENTER(fn_device_count);
  if (!IS_HIP && !started)
    return NOT_INITIALIZED;
  int status = device_start();
  *count = ndevices;
  return answer(IS_HIP ? status : OK);
}

STANDIN_EXPORT int fn_device_get(int *handle, int ordinal) {
  ENTER(fn_device_get);
  NAMED(ordinal);
  *handle = device->ordinal;
  return OK;
}

STANDIN_EXPORT int fn_device_name(char *name, int size, int ordinal) {
  ENTER(fn_device_name);
  NAMED(ordinal);
  snprintf(name, (size_t)size, DEVICE_NAME " %d", device->physical);
  return OK;
}

STANDIN_EXPORT int fn_device_uuid(unsigned char *uuid, int ordinal) {
  ENTER(fn_device_uuid);
  NAMED(ordinal);
  device_uuid(device->ordinal, uuid);
  return OK;
}

STANDIN_EXPORT int fn_device_pci(char *id, int size, int ordinal) {
  ENTER(fn_device_pci);
  NAMED(ordinal);
  snprintf(id, (size_t)size, "0000:%02x:00.0", FIRST_BUS + device->physical);
  return OK;
}

STANDIN_EXPORT int fn_device_total(size_t *bytes, int ordinal) {
  ENTER(fn_device_total);
  NAMED(ordinal);
  *bytes = device->memory;
  return OK;
}

STANDIN_EXPORT int fn_device_attribute(int *value, int attribute, int ordinal) {
  ENTER(fn_device_attribute);
  NAMED(ordinal);
  switch (attribute) {
  case ATTRIBUTE_PCI_BUS:
    *value = FIRST_BUS + device->physical;
    return OK;
  case ATTRIBUTE_HOST_POINTER:
    *value = control_setting("host_pointer", 1) != 0;
    return OK;
  case ATTRIBUTE_READ_ONLY_REGISTER:
    *value = control_setting("read_only_register", 1) != 0;
    return OK;
  case ATTRIBUTE_MAP_HOST:
  case ATTRIBUTE_UNIFIED:
  case ATTRIBUTE_HOST_REGISTER:
    *value = 1;
    return OK;
  case ATTRIBUTE_MAJOR:
    *value = 9;
    return OK;
  case ATTRIBUTE_PROCESSORS:
    *value = 4;
    return OK;
  case ATTRIBUTE_THREADS:
    *value = 1024;
    return OK;
  case ATTRIBUTE_WARP:
    *value = IS_HIP ? 64 : 32;
    return OK;
  default:
    *value = 0;
    return attribute < 0 ? answer(INVALID_VALUE) : OK;
  }
}

STANDIN_EXPORT int fn_device_peer(int *can, int ordinal, int peer) {
  ENTER(fn_device_peer);
  NAMED(ordinal);
  *can = 0; /* memories are separate */
  return device_at(peer) ? OK : answer(INVALID_DEVICE);
}

STANDIN_EXPORT int fn_primary_retain(struct context **context, int ordinal) {
  ENTER(fn_primary_retain);
  NAMED(ordinal);
  device_activate(ordinal);
  device->retained++;
  *context = device->context;
  return OK;
}

STANDIN_EXPORT int fn_primary_release(int ordinal) {
  ENTER(fn_primary_release);
  NAMED(ordinal);
  if (!device->retained)
    return answer(INVALID_CONTEXT);
  if (--device->retained || IS_HIP)
    return OK;
  stream_finish(ordinal);
  memory_drop(ordinal);
  pthread_mutex_lock(&lock);
  device->context->destroyed = 1; /* never freed, so that later uses are seen */
  device->context = NULL;
  pthread_mutex_unlock(&lock);
  return OK;
}

STANDIN_EXPORT int fn_primary_state(int ordinal, unsigned *flags, int *active) {
  ENTER(fn_primary_state);
  NAMED(ordinal);
  *flags = 0;
  *active = device->context != NULL;
  return OK;
}

STANDIN_EXPORT int fn_context_get(struct context **context) {
  ENTER(fn_context_get);
#if IS_HIP
  *context = device_start() ? NULL : devices[thread_device].context;
#else
  if (!started)
    return NOT_INITIALIZED;
  *context = depth ? stack[depth - 1] : NULL;
#endif
  return OK;
}

STANDIN_EXPORT int fn_current_device(int *ordinal) {
  ENTER(fn_current_device);
  struct device *device;
  int status = device_use(&device);
  if (!status)
    *ordinal = device->ordinal;
  return answer(status);
}

STANDIN_EXPORT int fn_synchronize(void) {
  ENTER(fn_synchronize);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  stream_finish(device->ordinal);
  return answer(device->error);
}

static int is_context(const struct context *context) {
  for (int i = 0; i < ndevices; i++)
    if (devices[i].context == context)
      return 1;
  return 0;
}

#if IS_HIP

STANDIN_EXPORT int fn_context_set(struct context *context) {
  ENTER(fn_context_set);
  if (!context || !is_context(context))
    return answer(INVALID_CONTEXT);
  thread_device = context->device;
  return OK;
}

STANDIN_EXPORT int hipSetDevice(int ordinal) {
  ENTER(hipSetDevice);
  NAMED(ordinal);
  thread_device = device->ordinal;
  return OK;
}

STANDIN_EXPORT int hipGetLastError(void) {
  int status = last_error;
  last_error = OK;
  return status;
}

STANDIN_EXPORT int hipPeekAtLastError(void) { return last_error; }

#else

STANDIN_EXPORT int fn_context_set(struct context *context) {
  ENTER(fn_context_set);
  if (!started)
    return NOT_INITIALIZED;
  if (context && !is_context(context))
    return INVALID_CONTEXT;
  depth = depth ? depth : 1;
  stack[depth - 1] = context;
  return OK;
}

STANDIN_EXPORT int cuCtxPushCurrent_v2(struct context *context) {
  ENTER(cuCtxPushCurrent_v2);
  if (!started)
    return NOT_INITIALIZED;
  if (!is_context(context) || depth == CONTEXT_STACK)
    return INVALID_CONTEXT;
  stack[depth++] = context;
  return OK;
}

STANDIN_EXPORT int cuCtxPopCurrent_v2(struct context **context) {
  ENTER(cuCtxPopCurrent_v2);
  if (!depth)
    return INVALID_CONTEXT;
  struct context *popped = stack[--depth];
  if (context)
    *context = popped;
  return OK;
}

#endif
