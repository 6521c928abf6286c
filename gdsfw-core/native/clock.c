/* clock.c - keeping the time stamp counter's time equal to CLOCK_MONOTONIC. */
#include "clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* 2^24 ticks are 4 to 17 ms, and their product with ns_per_tick stays far inside 64 bits. */
#define SPAN_TICKS (1ull << 24)
/* A rate measured over this long is good to about 10 ppm, 100 ns in one span. */
#define SHORTEST_BASELINE_NS 5000000ull
/* Larger differences (a call that took seconds, a suspended machine) are stepped over at once. */
#define LARGEST_SLEW_NS 20000

struct moment {
  uint64_t ticks, ns;
};

static struct moment loaded;
static bool counter_is_sound;

/* The kernel's time and the counter at one moment: the try of three that took the shortest. */
static struct moment moment_now(void) {
  struct moment best = {0};
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < 3; i++) {
    uint64_t before = clock_ticks(), ns = monotonic_ns(), took = clock_ticks() - before;
    if (took < shortest) {
      shortest = took;
      best = (struct moment){before + took / 2, ns};
    }
  }
  return best;
}

static bool kernel_keeps_time_by_tsc(void) {
  char name[16] = {0};
  int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  ssize_t n = read(fd, name, sizeof name - 1);
  close(fd);
  return n > 0 && strncmp(name, "tsc\n", 4) == 0;
}

__attribute__((constructor)) static void clock_load(void) {
#if defined(__x86_64__)
  counter_is_sound = kernel_keeps_time_by_tsc();
#endif
  loaded = moment_now();
}

static uint64_t rate_until(struct moment now) {
  return (uint64_t)(((unsigned __int128)(now.ns - loaded.ns) << 32) / (now.ticks - loaded.ticks));
}

void clock_start(struct clock *clock) {
  *clock = (struct clock){0};
  if (!counter_is_sound)
    return;
  struct moment now = moment_now();
  while (now.ns - loaded.ns < SHORTEST_BASELINE_NS)
    now = moment_now();
  *clock = (struct clock){now.ticks, now.ns, rate_until(now), SPAN_TICKS};
}

uint64_t clock_adjust(struct clock *clock) {
  if (clock->span == 0)
    return monotonic_ns();
  struct moment now = moment_now();
  uint64_t gone = now.ticks - clock->base_ticks, rate = rate_until(now);
  uint64_t shown = clock->base_ns + (uint64_t)(((unsigned __int128)gone * clock->ns_per_tick) >> 32);
  int64_t behind = (int64_t)(now.ns - shown);
  clock->base_ticks = now.ticks;
  if (behind > LARGEST_SLEW_NS || behind < -LARGEST_SLEW_NS) {
    /* Nothing later than one span after the base has been shown. */
    uint64_t floor = clock->base_ns + ((SPAN_TICKS * clock->ns_per_tick) >> 32);
    clock->base_ns = now.ns > floor ? now.ns : floor;
    clock->ns_per_tick = rate;
    return clock->base_ns;
  }
  clock->base_ns = shown;
  uint64_t span_ns = (SPAN_TICKS * rate) >> 32;
  clock->ns_per_tick = (uint64_t)((int64_t)rate + (int64_t)(rate >> 16) * (behind * 65536 / (int64_t)span_ns));
  return shown;
}
