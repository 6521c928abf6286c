/* pace.h - when the next I/O of a direction may start: rates in bytes and in I/Os, evenly spaced or poisson. */
#ifndef GDSFW_PACE_H
#define GDSFW_PACE_H

#include "random.h"

#include <stdbool.h>

struct pace {
  uint64_t rate_bytes, rate_iops; /* per second, 0 for no limit */
  uint64_t start_ns;
  uint64_t bytes, ios; /* scheduled so far */
  double next;         /* poisson: ns after the start */
  bool poisson;
};

static inline bool pace_limits(const struct pace *pace) { return pace->rate_bytes || pace->rate_iops; }

/* The scheduled start of the next I/O, of `size` bytes. Lateness is not forgiven: a loop that fell behind catches up,
 * and latencies from the scheduled start show what waiting users would have seen. */
uint64_t pace_schedule(struct pace *pace, uint64_t size, struct stream *arrivals);

#endif
