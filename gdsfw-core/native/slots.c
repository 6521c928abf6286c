/* slots.c - bookkeeping of requests in flight, all in constant time. */
#include "slots.h"

#include <errno.h>
#include <stdlib.h>

int slots_init(struct slots *s, uint32_t depth) {
  uint32_t buckets = 1;
  while (buckets < depth)
    buckets *= 2;
  *s = (struct slots){
      .slots = calloc(depth, sizeof *s->slots),
      .free_ring = calloc(depth, sizeof *s->free_ring),
      .buckets = calloc(buckets, sizeof *s->buckets),
      .depth = depth,
      .bucket_mask = buckets - 1,
      .free_count = depth,
      .oldest = NO_SLOT,
      .newest = NO_SLOT,
  };
  if (!s->slots || !s->free_ring || !s->buckets)
    return ENOMEM;
  for (uint32_t i = 0; i < depth; i++)
    s->free_ring[i] = i;
  for (uint32_t i = 0; i < buckets; i++)
    s->buckets[i] = NO_SLOT;
  return 0;
}

void slots_free(struct slots *s) {
  free(s->slots);
  free(s->free_ring);
  free(s->buckets);
}

bool slots_conflict(const struct slots *s, const struct gdsfw_planned_io *io) {
  for (uint32_t i = s->oldest; i != NO_SLOT; i = s->slots[i].newer) {
    const struct gdsfw_planned_io *other = &s->slots[i].io;
    bool writes = io->direction == DIRECTION_WRITE || other->direction == DIRECTION_WRITE;
    bool overlaps = io->offset < other->offset + other->size && other->offset < io->offset + io->size;
    if (writes && overlaps && io->file == other->file)
      return true;
  }
  return false;
}
