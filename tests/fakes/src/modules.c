/* modules.c - kernels. None run here yet: every image is one for which there is no binary. Room for host-compiled ones.
 */
#include "device.h"

#include <stddef.h>

STANDIN_EXPORT int fn_module_load(void **module, const void *image) {
  ENTER(fn_module_load);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  *module = NULL;
  return answer(image ? NOT_FOUND : INVALID_VALUE);
}

STANDIN_EXPORT int fn_module_unload(void *module) {
  ENTER(fn_module_unload);
  return answer(module ? INVALID_HANDLE : INVALID_VALUE);
}

STANDIN_EXPORT int fn_module_function(void **function, void *module, const char *name) {
  ENTER(fn_module_function);
  *function = NULL;
  return answer(module && name ? NOT_FOUND : INVALID_VALUE);
}

STANDIN_EXPORT int fn_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters,
                             void **extra) {
  ENTER(fn_launch);
  (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
  (void)shared, (void)stream, (void)parameters, (void)extra;
  return answer(INVALID_HANDLE);
}
