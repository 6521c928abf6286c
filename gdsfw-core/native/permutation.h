/* permutation.h - a keyed permutation of [0, n) in constant memory, for "every block once".
 *
 * k bits hold n - 1. A bijection of the k-bit numbers is made of rounds of add, multiply by an odd number and
 * xor-shift; results outside [0, n) are put in again until they fall inside (cycle walking; fewer than two steps on
 * average, since n > 2^(k-1)).
 */
#ifndef GDSFW_PERMUTATION_H
#define GDSFW_PERMUTATION_H

#include "random.h"

#define PERMUTATION_ROUNDS 4

struct permutation {
  uint64_t n, mask;
  uint32_t shift;
  uint64_t add[PERMUTATION_ROUNDS], multiply[PERMUTATION_ROUNDS];
};

/* The pass number of the permutation that spreads the hot ranks of zipf and pareto. */
#define PERMUTATION_HOT UINT64_MAX

static inline struct permutation permutation_make(uint64_t seed, uint64_t file_index, uint64_t pass, uint64_t n) {
  uint32_t bits = n > 2 ? 64u - (uint32_t)__builtin_clzll(n - 1) : 1;
  struct permutation p = {.n = n, .mask = UINT64_MAX >> (64 - bits), .shift = bits > 1 ? (bits + 1) / 2 : 1};
  struct stream keys = {mix64(seed ^ mix64(file_index * GOLD + pass))};
  for (int round = 0; round < PERMUTATION_ROUNDS; round++) {
    p.add[round] = stream_next(&keys);
    p.multiply[round] = stream_next(&keys) | 1;
  }
  return p;
}

static inline uint64_t permutation_at(const struct permutation *p, uint64_t i) {
  uint64_t x = i;
  do {
    for (int round = 0; round < PERMUTATION_ROUNDS; round++) {
      x = (x + p->add[round]) & p->mask;
      x = (x * p->multiply[round]) & p->mask;
      x ^= x >> p->shift;
    }
  } while (x >= p->n);
  return x;
}

#endif
