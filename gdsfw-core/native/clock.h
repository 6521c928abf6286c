/* clock.h - CLOCK_MONOTONIC in nanoseconds, at the price of one counter instruction where that is sound.
 *
 * clock_gettime costs about 20 ns, the time stamp counter 8 ns; at 40 million I/Os a second that decides. The counter
 * is used when the kernel itself keeps time by it ("tsc" is its clock source, hence constant and the same on all
 * CPUs). Its rate is measured against CLOCK_MONOTONIC since the library was loaded, and every few milliseconds the
 * difference (below a microsecond) is taken out by running slightly faster or slower, so that time never steps back.
 */
#ifndef GDSFW_CLOCK_H
#define GDSFW_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct clock {
  uint64_t base_ticks, base_ns;
  uint64_t ns_per_tick; /* 32.32 fixed point */
  uint64_t span;        /* ticks after which the clock is adjusted; 0: the counter is not used */
};

static inline uint64_t monotonic_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_ticks(void) {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

void clock_start(struct clock *clock);

/* For clock_now: bring the clock back to CLOCK_MONOTONIC. */
uint64_t clock_adjust(struct clock *clock);

static inline uint64_t clock_now(struct clock *clock) {
  uint64_t ticks = clock_ticks() - clock->base_ticks;
  /* Also taken with span 0, where there is no counter. */
  if (__builtin_expect(ticks >= clock->span, 0))
    return clock_adjust(clock);
  return clock->base_ns + ((ticks * clock->ns_per_tick) >> 32);
}

#endif
