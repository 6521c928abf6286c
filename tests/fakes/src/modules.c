/* modules.c - kernels: an image is a shared library of host code as the stand-in's compiler makes it (rtc.c). Its
 * threads run one after the other, on the stream's own thread, and may touch this device's memory meanwhile.
 */
#include "memory.h"
#include "stream.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_PARAMETERS 16
#define MOST_BYTES 512
#define INVALID_IMAGE 200
#define LAUNCH_OUT_OF_RESOURCES 701
#define MOST_THREADS 1024

struct module {
  void *library;
  int device;
};

struct function {
  void (*run)(void **parameters, unsigned grid, unsigned block);
  size_t sizes[MOST_PARAMETERS];
  unsigned count;
  int device;
};

struct launch {
  const struct function *function;
  unsigned grid, block;
  int device;
  void *parameters[MOST_PARAMETERS];
  char bytes[MOST_BYTES];
};

/* An image carries no length: it is where the table of sections ends. */
static size_t image_size(const void *image) {
  const Elf64_Ehdr *header = image;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64)
    return 0;
  return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

static void *load(const void *image, size_t size) {
  char path[64];
  int fd = memfd_create("stand-in kernels", MFD_CLOEXEC);
  if (fd < 0)
    return NULL;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  void *library = write(fd, image, size) == (ssize_t)size ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  close(fd);
  return library;
}

STANDIN_EXPORT int fn_module_load(void **module, const void *image) {
  ENTER(fn_module_load);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  *module = NULL;
  if (!image)
    return answer(INVALID_VALUE);
  size_t size = image_size(image);
  void *library = size ? load(image, size) : NULL;
  if (!library)
    return answer(INVALID_IMAGE);
  struct module *m = calloc(1, sizeof *m);
  *m = (struct module){library, device->ordinal};
  *module = m;
  return OK;
}

STANDIN_EXPORT int fn_module_unload(void *module) {
  ENTER(fn_module_unload);
  struct module *m = module;
  if (!m)
    return answer(INVALID_VALUE);
  stream_finish(m->device);
  dlclose(m->library);
  free(m);
  return OK;
}

STANDIN_EXPORT int fn_module_function(void **function, void *module, const char *name) {
  ENTER(fn_module_function);
  struct module *m = module;
  char symbol[256];
  *function = NULL;
  if (!m || !name)
    return answer(INVALID_VALUE);
  struct function *f = calloc(1, sizeof *f);
  void (*sizes)(size_t *, unsigned *);
  f->device = m->device;
  snprintf(symbol, sizeof symbol, "%s_run", name);
  *(void **)&f->run = dlsym(m->library, symbol);
  snprintf(symbol, sizeof symbol, "%s_sizes", name);
  *(void **)&sizes = dlsym(m->library, symbol);
  if (!f->run || !sizes) {
    free(f);
    return answer(NOT_FOUND);
  }
  sizes(f->sizes, &f->count);
  *function = f;
  return OK;
}

static void run_launch(void *argument) {
  static struct standin_site site = {.name = "stream_kernel"};
  struct launch *l = argument;
  struct standin_fault fault = {0};
  if (control_enter(&site, &fault))
    device_at(l->device)->error = (int)fault.code; /* sticky */
  else {
    memory_open(l->device, 1);
    l->function->run(l->parameters, l->grid, l->block);
    memory_open(l->device, 0);
  }
  free(l);
}

STANDIN_EXPORT int fn_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters,
                             void **extra) {
  ENTER(fn_launch);
  struct function *f = function;
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  if (!f || f->device != device->ordinal)
    return answer(INVALID_HANDLE); /* a function of another context */
  if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || shared || extra || !grid_x || !block_x)
    return answer(INVALID_VALUE);
  if (block_x > MOST_THREADS)
    return answer(LAUNCH_OUT_OF_RESOURCES);
  struct stream *queue = stream_find(stream, device->ordinal);
  if (!queue || stream_device(queue) != device->ordinal)
    return answer(INVALID_HANDLE);
  struct launch *l = calloc(1, sizeof *l);
  *l = (struct launch){.function = f, .grid = grid_x, .block = block_x, .device = device->ordinal};
  char *at = l->bytes;
  for (unsigned i = 0; i < f->count; i++) {
    l->parameters[i] = memcpy(at, parameters[i], f->sizes[i]);
    at += 16;
  }
  control_trace("kernel grid=%u block=%u", grid_x, block_x);
  stream_push(queue, run_launch, l);
  return OK;
}
