/* properties.c - hipGetDeviceProperties. CUDA's driver API has attributes only. */
#include "device.h"

#if IS_HIP

#include <stdio.h>
#include <string.h>

/* hipDeviceProp_tR0600 (hip_runtime_api.h); names of the fields that are filled, the others stay zero. */
struct properties {
  char name[256];
  unsigned char uuid[16];
  char luid[8];
  unsigned luid_device_mask;
  size_t total_memory, shared_memory_per_block;
  int registers_per_block, warp_size;
  size_t pitch;
  int max_threads_per_block, max_threads[3], max_grid[3], clock_rate;
  size_t constant_memory;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int overlap, processors, timeout, integrated, can_map_host, compute_mode;
  int textures[40];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, engines, unified, memory_clock, memory_bus;
  int l2, l2_persisting, threads_per_processor, priorities, global_l1, local_l1;
  size_t shared_memory_per_processor;
  int registers_per_processor, managed, multi_gpu, multi_gpu_group, native_atomics, ratio, pageable, concurrent_managed;
  int preemption, can_use_host_pointer, cooperative, cooperative_multi;
  size_t shared_memory_optin;
  int host_page_tables, managed_from_host, blocks_per_processor, window;
  size_t reserved_shared_memory;
  int host_register, sparse, host_register_read_only;
  char others[420];
  char architecture[256];
  char rest[1472 - 1416];
};

_Static_assert(sizeof(struct properties) == 1472, "size of hipDeviceProp_tR0600");
_Static_assert(offsetof(struct properties, pci_bus) == 584, "pciBusID");
_Static_assert(offsetof(struct properties, host_register_read_only) == 736, "hostRegisterReadOnlySupported");
_Static_assert(offsetof(struct properties, architecture) == 1160, "gcnArchName");

STANDIN_EXPORT int hipGetDevicePropertiesR0600(struct properties *p, int ordinal) {
  ENTER(hipGetDevicePropertiesR0600);
  device_start();
  struct device *device = device_at(ordinal);
  if (!device)
    return answer(INVALID_DEVICE);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, DEVICE_NAME " %d", device->physical);
  device_uuid(ordinal, p->uuid);
  strcpy(p->architecture, "gfx942:sramecc+:xnack-");
  p->total_memory = device->memory;
  p->warp_size = 64;
  p->max_threads_per_block = 1024;
  p->major = 9;
  p->processors = 4;
  p->can_map_host = p->unified = p->host_register = 1;
  p->pci_bus = FIRST_BUS + device->physical;
  p->can_use_host_pointer = control_setting("host_pointer", 1) != 0;
  p->host_register_read_only = control_setting("read_only_register", 1) != 0;
  return OK;
}

#else
typedef int nothing_here;
#endif
