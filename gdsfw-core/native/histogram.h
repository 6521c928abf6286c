/* histogram.h - latencies in log-linear buckets.
 *
 * Every power of two is cut into 64 buckets of equal width; values below 128 have a bucket each:
 *
 *     value        buckets     width
 *     0 .. 127     0 .. 127    1
 *     128 .. 255   128 .. 191  2
 *     256 .. 511   192 .. 255  4
 *     ...
 *     2^63 ..      3712 .. 3775  2^57
 *
 * The middle of a bucket is within 1/128 (0.8 %) of every value in it. All of uint64_t is covered in 30 KiB, and
 * merging is adding. Sum, sum of squares, minimum and maximum are exact. engine/histogram.py has the same buckets.
 */
#ifndef GDSFW_HISTOGRAM_H
#define GDSFW_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_SUB_BITS = 6, HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS };

struct gdsfw_histogram {
  uint64_t total_low, total_high;   /* sum in 128 bits */
  uint64_t square_low, square_high; /* sum of squares in 128 bits */
  uint64_t min, max;                /* min is UINT64_MAX while empty */
  uint64_t counts[HISTOGRAM_BUCKETS];
};

static inline uint32_t histogram_index(uint64_t value) {
  /* Or-ing in the bit of 64 gives values below 64 the exponent 6, hence shift 0, without a branch. */
  uint32_t shift = 63 - HISTOGRAM_SUB_BITS - (uint32_t)__builtin_clzll(value | (1u << HISTOGRAM_SUB_BITS));
  return (shift << HISTOGRAM_SUB_BITS) + (uint32_t)(value >> shift);
}

static inline void add_128(uint64_t *low, uint64_t *high, unsigned __int128 value) {
  unsigned __int128 sum = ((unsigned __int128)*high << 64 | *low) + value;
  *low = (uint64_t)sum;
  *high = (uint64_t)(sum >> 64);
}

/* `times` values that are equal. */
static inline void histogram_add_many(struct gdsfw_histogram *h, uint64_t value, uint64_t times) {
  h->counts[histogram_index(value)] += times;
  add_128(&h->total_low, &h->total_high, (unsigned __int128)value * times);
  add_128(&h->square_low, &h->square_high, (unsigned __int128)value * value * times);
  h->min = value < h->min ? value : h->min;
  h->max = value > h->max ? value : h->max;
}

static inline void histogram_add(struct gdsfw_histogram *h, uint64_t value) { histogram_add_many(h, value, 1); }

static inline void histogram_clear(struct gdsfw_histogram *h) { *h = (struct gdsfw_histogram){.min = UINT64_MAX}; }

#endif
