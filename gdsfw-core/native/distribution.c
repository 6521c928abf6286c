/* distribution.c - random offsets that are not uniform. Each draw comes from the offset stream.
 *
 * zipf    rank r in 1..n with probability proportional to r^-theta, by rejection-inversion (Hoermann and Derflinger,
 *         "Rejection-inversion to generate variates from monotone discrete distributions", 1996): no table, no sum
 *         over n, any theta > 0.
 * pareto  rank floor(n * u^(log h / log(1 - h))), 0 < h < 1: for h < 0.5 a share h of the blocks gets a share 1 - h of
 *         the I/O, and so on within that share (fio's lib/zipf.c).
 * normal  around the middle, standard deviation theta percent of the range, drawn again when outside (Box and Muller
 *         1958).
 * runs    a uniform start, then consecutive blocks; after each the run goes on with probability 1 - 1/theta.
 *
 * Ranks of zipf and pareto are spread over the range by a keyed permutation, so that hot blocks do not lie together.
 * engine/offsets.py computes the same with the same libm, so the order of operations here matters.
 */
#include "offsets.h"

#include <math.h>

enum { NORMAL_TRIES = 64 };

/* (exp(x) - 1) / x and log(1 + x) / x, with their limits at 0. */
static double expm1_over(double x) { return fabs(x) > 1e-8 ? expm1(x) / x : 1.0 + x * 0.5; }

static double log1p_over(double x) { return fabs(x) > 1e-8 ? log1p(x) / x : 1.0 - x * 0.5; }

/* Integral of x^-theta from 1 to x, its inverse, and the density. */
static double zipf_integral(double x, double theta) {
  double log_x = log(x);
  return expm1_over((1.0 - theta) * log_x) * log_x;
}

static double zipf_inverse(double value, double theta) {
  double t = value * (1.0 - theta);
  return exp(log1p_over(t < -1.0 ? -1.0 : t) * value);
}

static double zipf_density(double x, double theta) { return exp(-theta * log(x)); }

static const struct rank_cache *ranks_for(struct offsets *o, struct offset_file *file, uint32_t direction, uint64_t n) {
  struct rank_cache *cache = &file->ranks[direction];
  if (cache->n == n)
    return cache;
  cache->n = n;
  cache->spread = permutation_make(o->seed, (uint64_t)(file - o->files), PERMUTATION_HOT, n);
  if (o->distribution == DISTRIBUTION_PARETO) {
    cache->a = log(o->theta) / log(1.0 - o->theta);
  } else {
    cache->a = zipf_integral(1.5, o->theta) - 1.0;
    cache->b = zipf_integral((double)n + 0.5, o->theta);
    cache->c = 2.0 - zipf_inverse(zipf_integral(2.5, o->theta) - zipf_density(2.0, o->theta), o->theta);
  }
  return cache;
}

/* Zero-based rank. */
static uint64_t zipf_rank(struct stream *stream, const struct rank_cache *cache, double theta) {
  double top = (double)cache->n;
  for (;;) {
    double u = cache->b + stream_unit(stream) * (cache->a - cache->b);
    double x = zipf_inverse(u, theta);
    double k = floor(x + 0.5);
    k = k < 1.0 ? 1.0 : k > top ? top : k;
    if (k - x <= cache->c || u >= zipf_integral(k + 0.5, theta) - zipf_density(k, theta))
      return (uint64_t)k - 1;
  }
}

static uint64_t below_n(double value, uint64_t n) { return value >= (double)n ? n - 1 : (uint64_t)value; }

static uint64_t normal_position(struct stream *stream, double percent, uint64_t n) {
  for (int attempt = 0; attempt < NORMAL_TRIES; attempt++) {
    double radius = sqrt(-2.0 * log(1.0 - stream_unit(stream)));
    double z = radius * cos(6.283185307179586 * stream_unit(stream));
    double at = (0.5 + z * percent / 100.0) * (double)n;
    if (at >= 0.0 && at < (double)n)
      return below_n(at, n);
  }
  return stream_below(stream, n);
}

uint64_t distribution_draw(struct offsets *o, struct offset_file *file, uint32_t direction, uint64_t n) {
  struct stream *stream = &o->offset_stream;
  switch (o->distribution) {
  case DISTRIBUTION_ZIPF: {
    const struct rank_cache *cache = ranks_for(o, file, direction, n);
    uint64_t rank = zipf_rank(stream, cache, o->theta);
    return permutation_at(&cache->spread, rank >= n ? n - 1 : rank);
  }
  case DISTRIBUTION_PARETO: {
    const struct rank_cache *cache = ranks_for(o, file, direction, n);
    return permutation_at(&cache->spread, below_n((double)n * pow(stream_unit(stream), cache->a), n));
  }
  case DISTRIBUTION_NORMAL:
    return normal_position(stream, o->theta, n);
  case DISTRIBUTION_RUNS: {
    bool running = file->run_position != UINT64_MAX;
    if (running && stream_unit(stream) * o->theta >= 1.0 && file->run_position < n)
      return file->run_position;
    return stream_below(stream, n);
  }
  default:
    return stream_below(stream, n);
  }
}
