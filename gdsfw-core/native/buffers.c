/* buffers.c - what write buffers hold.
 *
 * Constant or repeated data flatters storage that compresses or deduplicates. So every slot is filled with random bytes
 * once, and each write stamps a new random number into every 512 bytes of its block: a cheap way (fio does the same)
 * to make no sector repeat. `compress_percent` leaves that share of every 4 KiB zero; with `dedupe_percent` all slots
 * hold the same bytes and that share of the writes repeats one fixed stamp.
 */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STAMP_EVERY = 512, LARGEST_PIECE = 4096, STAGING_BYTES = 1 << 20 };

#define REPEATED_STAMP 0x6764736677ull

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
  for (uint32_t slot = 0; slot < c->iodepth; slot++) {
    uint64_t at = c->buffer_offset + slot * c->slot_stride;
    if (host)
      make_data(w, slot, (uint8_t *)(uintptr_t)c->buffer + at, largest, 0);
    else if (fill_through_copy(w, slot, at, largest))
      return ENOMEM;
  }
  return 0;
}

static void stamp(struct worker *w, uint8_t *data, uint64_t size) {
  uint64_t nonce = stream_next(&w->nonces);
  if (w->config->dedupe_percent && ((unsigned __int128)nonce * 100) >> 64 < w->config->dedupe_percent)
    nonce = REPEATED_STAMP;
  for (uint64_t piece = 0; piece < size; piece += w->stamp_piece)
    for (uint64_t at = piece; at < piece + w->stamp_random && at + 8 <= size; at += STAMP_EVERY) {
      uint64_t value = nonce + at * GOLD;
      memcpy(data + at, &value, sizeof value);
    }
}

bool buffers_prepare(struct worker *w, const struct gdsfw_planned_io *io, uint64_t buffer_offset, uint32_t slot,
                     bool *skip) {
  *skip = false;
  if (w->config->write_fill == FILL_PATTERN) {
    struct gdsfw_verdict verdict;
    *skip = !verify_fill(w, io, buffer_offset, &verdict);
    return !*skip || worker_fail(w, OPERATION_FILL, io, verdict);
  }
  if (!(w->io.flags & GDSFW_HOST_VISIBLE))
    return true;
  uint8_t *data = (uint8_t *)(uintptr_t)w->config->buffer + buffer_offset;
  if (w->stale[slot]) {
    make_data(w, slot, data, io->size, 0);
    w->stale[slot] = false;
  }
  if (w->stamps)
    stamp(w, data, io->size);
  return true;
}
