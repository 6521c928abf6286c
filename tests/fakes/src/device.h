/* device.h - devices, and which of them a thread uses. */
#ifndef STANDIN_DEVICE_H
#define STANDIN_DEVICE_H

#include "control.h"

#define MAX_DEVICES 16

struct stream;

struct context {
  int device;
  int destroyed;
};

struct device {
  int ordinal; /* as the caller numbers them */
  int physical;
  size_t memory, used;
  struct context *context;
  unsigned retained;
  atomic_int error; /* sticky, as after a failed kernel */
};

/* Initialise if need be; OK or why there is no device. */
int device_start(void);
int device_count(void);
struct device *device_at(int ordinal);
void device_uuid(int ordinal, unsigned char uuid[16]);
/* Device of the calling thread, -1 without a context. */
int device_current(void);
void device_activate(int ordinal);
/* At the top of what needs a device: sets *device, or says what is wrong. */
int device_use(struct device **device);

#endif
