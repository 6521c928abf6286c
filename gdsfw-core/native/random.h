/* random.h - 64-bit pseudorandom numbers: splitmix64 (Steele, Lea, Flood 2014), one stream for each purpose. */
#ifndef GDSFW_RANDOM_H
#define GDSFW_RANDOM_H

#include <stdint.h>

#define GOLD 0x9E3779B97F4A7C15ull

/* A draw for one purpose never shifts the draws for another. */
enum stream_purpose {
  STREAM_DIRECTION = 1,
  STREAM_SIZE = 2,
  STREAM_FILE = 3,
  STREAM_OFFSET = 4,
  STREAM_BUFFER = 5,
  STREAM_ARRIVAL = 6,
};

struct stream {
  uint64_t state;
};

static inline uint64_t mix64(uint64_t z) {
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9ull;
  z ^= z >> 27;
  z *= 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

static inline struct stream stream_make(uint64_t seed, enum stream_purpose purpose) {
  return (struct stream){mix64(seed + (uint64_t)purpose * GOLD)};
}

static inline uint64_t stream_next(struct stream *stream) {
  stream->state += GOLD;
  return mix64(stream->state);
}

/* Uniform in [0, n); the bias is below n / 2^64. */
static inline uint64_t stream_below(struct stream *stream, uint64_t n) {
  return (uint64_t)(((unsigned __int128)stream_next(stream) * n) >> 64);
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double stream_unit(struct stream *stream) { return (double)(stream_next(stream) >> 11) * 0x1p-53; }

#endif
