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

uint32_t slots_take(struct slots *s) {
  if (s->free_count == 0)
    return NO_SLOT;
  uint32_t index = s->free_ring[s->free_first];
  s->free_first = s->free_first + 1 == s->depth ? 0 : s->free_first + 1;
  s->free_count--;
  s->slots[index] = (struct slot){.older = s->newest, .newer = NO_SLOT, .in_bucket = NO_SLOT};
  if (s->newest == NO_SLOT)
    s->oldest = index;
  else
    s->slots[s->newest].newer = index;
  s->newest = index;
  return index;
}

void slots_give_back(struct slots *s, uint32_t index) {
  const struct slot *slot = &s->slots[index];
  if (slot->older == NO_SLOT)
    s->oldest = slot->newer;
  else
    s->slots[slot->older].newer = slot->newer;
  if (slot->newer == NO_SLOT)
    s->newest = slot->older;
  else
    s->slots[slot->newer].older = slot->older;
  uint32_t last = s->free_first + s->free_count;
  s->free_ring[last >= s->depth ? last - s->depth : last] = index;
  s->free_count++;
}

void slots_set_cookie(struct slots *s, uint32_t index, uint64_t cookie) {
  uint32_t *bucket = &s->buckets[cookie & s->bucket_mask];
  s->slots[index].cookie = cookie;
  s->slots[index].in_bucket = *bucket;
  *bucket = index;
}

uint32_t slots_find(struct slots *s, uint64_t cookie) {
  uint32_t *at = &s->buckets[cookie & s->bucket_mask];
  while (*at != NO_SLOT && s->slots[*at].cookie != cookie)
    at = &s->slots[*at].in_bucket;
  uint32_t index = *at;
  if (index != NO_SLOT)
    *at = s->slots[index].in_bucket;
  return index;
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
