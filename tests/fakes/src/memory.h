/* memory.h - what memory there is: the devices' own, pinned, and registered host memory. */
#ifndef STANDIN_MEMORY_H
#define STANDIN_MEMORY_H

#include "device.h"

struct block {
  uint64_t address;
  size_t size, mapped;
  uint8_t *alias;
  enum standin_kind kind;
  int device;
  unsigned flags;
  int fd;
  uint64_t device_address; /* of registered memory */
  atomic_int pins;         /* registrations with the file library */
  struct block *next;
};

/* The block that holds an address, as copied out; 0 when there is none. */
int memory_find(uint64_t address, struct standin_range *range);
void memory_pin(uint64_t address, int by);
/* While kernels run on a device the host's addresses of its memory, and its views of registered memory, work. */
void memory_open(int device, int open);
/* All memory of a device goes, as with its context. */
void memory_drop(int device);

/* Whether host memory could be pinned: an errno-like status. `fd_backed` tells whether it is pages of a file. */
int hostmap_check(uint64_t address, size_t size, int read_only, int *file_backed);

#endif
