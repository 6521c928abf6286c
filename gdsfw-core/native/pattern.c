/* pattern.c - the bytes of a verified file: a pure function of (seed, file id, generation, offset).
 *
 * A file is cut into chunks of 4 KiB. Each has a 64-bit key (splitmix64 finaliser over seed, file, generation and chunk
 * number). The chunk's 1024 little-endian 32-bit lanes are the murmur3 finaliser (Appleby 2010) of a counter that
 * starts at the key's low half, xored with its high half. Lanes do not depend on one another, so the compiler
 * vectorises them here and a GPU computes them in any order. engine/pattern.py is the twin.
 */
#include "pattern.h"
#include "engine.h"
#include "random.h"
#include "vectorised.h"

#include <string.h>

enum { CHUNK_BITS = 12, CHUNK = 1 << CHUNK_BITS, LANES = CHUNK / 4 };

uint64_t pattern_file_key(const struct gdsfw_pattern *p) {
  return mix64(mix64(p->seed) ^ p->file_id * GOLD) ^ mix64(p->generation + 1);
}

static uint64_t chunk_key(uint64_t of_file, uint64_t chunk) {
  return mix64(of_file ^ (chunk + 1) * 0xD1342543DE82EF95ull);
}

static inline uint32_t to_little(uint32_t value) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  return __builtin_bswap32(value);
#else
  return value;
#endif
}

static inline uint32_t lane(uint32_t low, uint32_t high, uint32_t i) {
  uint32_t z = low + i * 0x9E3779B9u;
  z ^= z >> 16;
  z *= 0x85EBCA6Bu;
  z ^= z >> 13;
  z *= 0xC2B2AE35u;
  z ^= z >> 16;
  return to_little(z ^ high);
}

VECTORISED static void write_lanes(uint8_t *restrict out, uint64_t key, uint32_t first, uint32_t end) {
  uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
  for (uint32_t i = first; i < end; i++) {
    uint32_t value = lane(low, high, i);
    memcpy(out + (size_t)(i - first) * 4, &value, 4);
  }
}

/* 0 when the lanes of a whole chunk are as expected; no branch for each lane, so that it runs at memory speed. */
VECTORISED static uint32_t compare_chunk(const uint8_t *restrict in, uint64_t key) {
  uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32), difference = 0;
  for (uint32_t i = 0; i < LANES; i++) {
    uint32_t value;
    memcpy(&value, in + (size_t)i * 4, 4);
    difference |= value ^ lane(low, high, i);
  }
  return difference;
}

/* Expected bytes [begin, end) of a chunk into scratch; returns where they begin. */
static const uint8_t *expect(uint8_t scratch[CHUNK], uint64_t key, uint32_t begin, uint32_t end) {
  write_lanes(scratch, key, begin / 4, (end + 3) / 4);
  return scratch + begin % 4;
}

GDSFW_EXPORT void gdsfw_pattern_fill(void *host, uint64_t size, int64_t file_offset,
                                     const struct gdsfw_pattern *pattern) {
  uint8_t scratch[CHUNK], *out = host;
  uint64_t of_file = pattern_file_key(pattern), at = (uint64_t)file_offset, end = at + size;
  while (at < end) {
    uint32_t begin = at % CHUNK, stop = end - at < CHUNK - begin ? begin + (uint32_t)(end - at) : CHUNK;
    uint64_t key = chunk_key(of_file, at >> CHUNK_BITS);
    if (begin % 4 == 0 && stop % 4 == 0)
      write_lanes(out, key, begin / 4, stop / 4);
    else
      memcpy(out, expect(scratch, key, begin, stop), stop - begin);
    out += stop - begin;
    at += stop - begin;
  }
}

static void describe(struct gdsfw_mismatch *m, uint64_t at, const uint8_t *found, uint64_t left, uint64_t of_file) {
  uint8_t scratch[CHUNK];
  m->file_offset = (int64_t)at;
  m->length = left < sizeof m->found ? (uint32_t)left : (uint32_t)sizeof m->found;
  memcpy(m->found, found, m->length);
  for (uint32_t i = 0; i < m->length; i++) {
    uint32_t begin = (at + i) % CHUNK;
    m->expected[i] = *expect(scratch, chunk_key(of_file, (at + i) >> CHUNK_BITS), begin, begin + 1);
  }
}

GDSFW_EXPORT uint64_t gdsfw_pattern_verify(const void *host, uint64_t size, int64_t file_offset,
                                           const struct gdsfw_pattern *pattern, struct gdsfw_mismatch *mismatch) {
  uint8_t scratch[CHUNK];
  const uint8_t *in = host;
  uint64_t of_file = pattern_file_key(pattern), at = (uint64_t)file_offset, end = at + size, bad = 0;
  for (uint64_t step; at < end; at += step, in += step) {
    uint32_t begin = at % CHUNK;
    step = end - at < CHUNK - begin ? end - at : CHUNK - begin;
    uint64_t key = chunk_key(of_file, at >> CHUNK_BITS);
    if (step == CHUNK && compare_chunk(in, key) == 0)
      continue;
    const uint8_t *expected = expect(scratch, key, begin, begin + (uint32_t)step);
    if (memcmp(in, expected, step) == 0)
      continue;
    for (uint64_t i = 0; i < step; i++) {
      if (in[i] == expected[i])
        continue;
      if (bad++ == 0)
        describe(mismatch, at + i, in + i, end - at - i, of_file);
    }
  }
  mismatch->bad_bytes = bad;
  return bad;
}
