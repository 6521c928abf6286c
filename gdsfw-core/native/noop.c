/* noop.c - a table that moves nothing: what is left to measure is the engine itself.
 *
 * The buffer counts as invisible to the host, so that it is neither filled nor verified. */
#include "engine.h"

static int64_t noop_move(void *file, void *base, uint64_t size, int64_t offset, int64_t buffer_offset) {
  (void)file, (void)base, (void)offset, (void)buffer_offset;
  return (int64_t)size;
}

static int64_t noop_flush(void *ctx, void *file, int32_t data_only) {
  (void)ctx, (void)file, (void)data_only;
  return 0;
}

GDSFW_EXPORT const struct gdsfw_io gdsfw_noop = {
    .abi = GDSFW_ABI,
    .struct_size = sizeof(struct gdsfw_io),
    .flags = GDSFW_CAN_READ | GDSFW_CAN_WRITE,
    .read = noop_move,
    .write = noop_move,
    .flush = noop_flush,
};
