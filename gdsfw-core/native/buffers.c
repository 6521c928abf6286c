/* buffers.c - what write buffers hold.
 *
 * Constant or repeated data flatters storage that compresses or deduplicates. A block below 64 KiB is made anew for
 * each write: the worker's pool of random bytes xored with a random 64-bit number, so that neither a block nor a part
 * of one occurs twice in a record that storage compresses. A larger block keeps the random bytes of its slot, which lie
 * further apart than most compressors look back, and gets a stamp of that number in every 512 bytes, so that no sector
 * repeats (fio does the same). `compress_percent` leaves that share of every 4 KiB zero; with `dedupe_percent` all
 * slots hold the same bytes and that share of the writes has one fixed number.
 *
 * Memory that the host cannot touch has the same data by the table's make_data, anew for each write only where a share
 * to compress or to repeat was asked for: it costs a launch on the device each time.
 */
#include "vectorised.h"
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STAMP_EVERY = 512, LARGEST_PIECE = 4096, STAGING_BYTES = 1 << 20, STAMPED_FROM = 64 << 10 };

#define REPEATED_NONCE 0x6764736677ull

static uint64_t block_size(const struct gdsfw_blocks *blocks, bool largest) {
  uint64_t found = blocks->count ? blocks->choices[0].size : 0;
  for (uint64_t i = 1; i < blocks->count; i++)
    if (largest == (blocks->choices[i].size > found))
      found = blocks->choices[i].size;
  return found;
}

static void zero_compressible(const struct worker *w, uint8_t *data, uint64_t size) {
  for (uint64_t at = 0; at < size; at += w->stamp_piece) {
    uint64_t piece = size - at < w->stamp_piece ? size - at : w->stamp_piece;
    if (piece > w->stamp_random)
      memset(data + at + w->stamp_random, 0, piece - w->stamp_random);
  }
}

/* Base data of a slot from byte `at` on, which is a multiple of the piece. */
static void make_data(const struct worker *w, uint32_t slot, uint8_t *data, uint64_t size, uint64_t at) {
  if (w->config->write_fill == FILL_ZERO) {
    memset(data, 0, size);
    return;
  }
  struct gdsfw_pattern random = {.seed = mix64(w->config->shape.seed ^ STREAM_BUFFER)};
  random.file_id = w->config->dedupe_percent ? 0 : slot;
  gdsfw_pattern_fill(data, size, (int64_t)at, &random);
  zero_compressible(w, data, size);
}

static struct gdsfw_block_data block_data(const struct worker *w, uint32_t slot, uint64_t nonce, bool stamped) {
  return (struct gdsfw_block_data){
      .abi = GDSFW_ABI,
      .struct_size = sizeof(struct gdsfw_block_data),
      .seed = mix64(w->config->shape.seed ^ STREAM_BUFFER),
      .file_id = w->config->dedupe_percent ? 0 : slot,
      .nonce = nonce,
      .piece = w->stamp_piece,
      .random = w->config->write_fill == FILL_ZERO ? 0 : w->stamp_random,
      .stamped = stamped,
  };
}

static bool make_by_table(struct worker *w, uint64_t buffer_offset, uint64_t size, struct gdsfw_block_data data,
                          struct gdsfw_verdict *verdict) {
  gdsfw_call_make_data(&w->io, w->config->buffer, (int64_t)buffer_offset, size, &data, verdict);
  return verdict->domain == GDSFW_NONE;
}

/* What the slots hold before the loop, by the table's make_data. */
static void fill_by_table(struct worker *w, uint64_t size) {
  const struct gdsfw_config *c = w->config;
  struct gdsfw_verdict verdict;
  struct gdsfw_planned_io none = {0};
  for (uint32_t slot = 0; slot < c->iodepth; slot++)
    if (!make_by_table(w, c->buffer_offset + slot * c->slot_stride, size, block_data(w, slot, 0, false), &verdict)) {
      worker_fail(w, OPERATION_FILL, &none, verdict);
      return;
    }
}

static int fill_through_copy(struct worker *w, uint32_t slot, uint64_t buffer_offset, uint64_t size) {
  if (!w->io.copy)
    return 0; /* no way to reach the memory: it is written as it is */
  uint8_t *staging = malloc(STAGING_BYTES);
  if (!staging)
    return ENOMEM;
  struct gdsfw_verdict verdict = {0};
  uint64_t most = STAGING_BYTES - STAGING_BYTES % w->stamp_piece;
  for (uint64_t at = 0; at < size && verdict.domain == GDSFW_NONE; at += most) {
    uint64_t n = size - at < most ? size - at : most;
    make_data(w, slot, staging, n, at);
    gdsfw_call_copy(&w->io, w->config->buffer, (int64_t)(buffer_offset + at), staging, n, GDSFW_FROM_HOST, &verdict);
  }
  free(staging);
  struct gdsfw_planned_io none = {0};
  if (verdict.domain != GDSFW_NONE)
    worker_fail(w, OPERATION_COPY, &none, verdict);
  return 0;
}

/* As long as the largest block that is made anew. */
static int make_pool(struct worker *w, uint64_t smallest, uint64_t largest) {
  uint64_t size = largest < STAMPED_FROM ? largest : STAMPED_FROM;
  if (!w->stamps || smallest >= STAMPED_FROM)
    return 0;
  w->pool = malloc(size);
  if (!w->pool)
    return ENOMEM;
  make_data(w, 0, w->pool, size, 0);
  return 0;
}

int buffers_init(struct worker *w) {
  const struct gdsfw_config *c = w->config;
  const struct gdsfw_blocks *blocks = &c->shape.blocks[DIRECTION_WRITE];
  uint64_t largest = block_size(blocks, true), smallest = block_size(blocks, false);
  bool host = w->io.flags & GDSFW_HOST_VISIBLE;
  w->stamp_piece = smallest < LARGEST_PIECE ? smallest : LARGEST_PIECE;
  /* In whole stamps, so that a stamp never reaches into the compressible part. */
  w->stamp_random = w->stamp_piece * (100 - c->compress_percent) / 100 / 8 * 8;
  w->stamps = host && c->write_fill == FILL_RANDOM && w->stamp_random;
  if (!c->shape.writes || c->write_fill == FILL_PATTERN)
    return 0;
  if (make_pool(w, smallest, largest))
    return ENOMEM;
  w->remakes = w->io.make_data && !host && c->write_fill == FILL_RANDOM && w->stamp_random &&
               (c->compress_percent || c->dedupe_percent);
  if (!host && w->io.make_data) {
    fill_by_table(w, largest);
    return 0;
  }
  for (uint32_t slot = 0; slot < c->iodepth; slot++) {
    uint64_t at = c->buffer_offset + slot * c->slot_stride;
    if (host)
      make_data(w, slot, (uint8_t *)(uintptr_t)c->buffer + at, largest, 0);
    else if (fill_through_copy(w, slot, at, largest))
      return ENOMEM;
  }
  return 0;
}

static uint64_t next_nonce(struct worker *w) {
  uint64_t nonce = stream_next(&w->nonces);
  bool repeats = w->config->dedupe_percent && ((unsigned __int128)nonce * 100) >> 64 < w->config->dedupe_percent;
  return repeats ? REPEATED_NONCE : nonce;
}

static void stamp(struct worker *w, uint8_t *data, uint64_t size, uint64_t nonce) {
  for (uint64_t piece = 0; piece < size; piece += w->stamp_piece)
    for (uint64_t at = piece; at < piece + w->stamp_random && at + 8 <= size; at += STAMP_EVERY) {
      uint64_t value = nonce + at * GOLD;
      memcpy(data + at, &value, sizeof value);
    }
}

VECTORISED static void xor_into(uint8_t *restrict to, const uint8_t *restrict from, uint64_t size, uint64_t nonce) {
  uint64_t whole = size / 8 * 8;
  for (uint64_t at = 0; at < whole; at += 8) {
    uint64_t value;
    memcpy(&value, from + at, sizeof value);
    value ^= nonce;
    memcpy(to + at, &value, sizeof value);
  }
  for (uint64_t at = whole; at < size; at++)
    to[at] = from[at] ^ ((const uint8_t *)&nonce)[at % 8];
}

static void make_anew(struct worker *w, uint8_t *data, uint64_t size, uint64_t nonce) {
  if (w->stamp_random == w->stamp_piece) {
    xor_into(data, w->pool, size, nonce);
    return;
  }
  for (uint64_t at = 0; at < size; at += w->stamp_piece) {
    uint64_t piece = size - at < w->stamp_piece ? size - at : w->stamp_piece;
    uint64_t random = piece < w->stamp_random ? piece : w->stamp_random;
    xor_into(data + at, w->pool + at, random, nonce);
    memset(data + at + random, 0, piece - random);
  }
}

static void prepare_random(struct worker *w, uint8_t *data, uint64_t size, uint32_t slot) {
  if (w->pool && size < STAMPED_FROM) {
    make_anew(w, data, size, next_nonce(w));
    /* A larger block that is to repeat begins with the slot's own bytes. */
    w->stale[slot] |= w->config->dedupe_percent != 0;
    return;
  }
  if (w->stale[slot]) {
    make_data(w, slot, data, size, 0);
    w->stale[slot] = false;
  }
  if (w->stamps)
    stamp(w, data, size, next_nonce(w));
}

bool buffers_prepare(struct worker *w, const struct gdsfw_planned_io *io, uint64_t buffer_offset, uint32_t slot,
                     bool *skip) {
  struct gdsfw_verdict verdict;
  bool large = io->size >= STAMPED_FROM;
  *skip = false;
  if (w->config->write_fill == FILL_PATTERN)
    *skip = !verify_fill(w, io, buffer_offset, &verdict);
  else if (w->remakes)
    *skip = !make_by_table(w, buffer_offset, io->size, block_data(w, large ? slot : 0, next_nonce(w), large), &verdict);
  else if (w->io.flags & GDSFW_HOST_VISIBLE)
    prepare_random(w, (uint8_t *)(uintptr_t)w->config->buffer + buffer_offset, io->size, slot);
  return !*skip || worker_fail(w, OPERATION_FILL, io, verdict);
}
