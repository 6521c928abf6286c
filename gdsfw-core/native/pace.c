/* pace.c - schedules of rate limits. */
#include "pace.h"

#include <math.h>

#define SECOND 1000000000ull

/* ns that `amount` takes at `rate` a second; from the total, so that nothing is lost by rounding. */
static uint64_t elapsed(uint64_t amount, uint64_t rate) {
  return rate ? (uint64_t)((unsigned __int128)amount * SECOND / rate) : 0;
}

static double mean_interval(const struct pace *pace, uint64_t size) {
  double by_bytes = pace->rate_bytes ? (double)size * 1e9 / (double)pace->rate_bytes : 0.0;
  double by_ios = pace->rate_iops ? 1e9 / (double)pace->rate_iops : 0.0;
  return by_bytes > by_ios ? by_bytes : by_ios;
}

uint64_t pace_schedule(struct pace *pace, uint64_t size, struct stream *arrivals) {
  uint64_t due;
  if (pace->poisson) {
    due = (uint64_t)pace->next;
    pace->next -= log(1.0 - stream_unit(arrivals)) * mean_interval(pace, size);
  } else {
    uint64_t by_bytes = elapsed(pace->bytes, pace->rate_bytes), by_ios = elapsed(pace->ios, pace->rate_iops);
    due = by_bytes > by_ios ? by_bytes : by_ios;
  }
  pace->bytes += size;
  pace->ios++;
  return pace->start_ns + due;
}
