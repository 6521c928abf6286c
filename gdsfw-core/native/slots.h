/* slots.h - the requests of a queue loop: one slot of the worker's buffer each. */
#ifndef GDSFW_SLOTS_H
#define GDSFW_SLOTS_H

#include "engine.h"

enum { NO_SLOT = UINT32_MAX };

struct slot {
  struct gdsfw_planned_io io;
  uint64_t scheduled_ns, started_ns, issued_ns;
  uint64_t moved;        /* bytes done by earlier requests for this block */
  uint64_t asked;        /* bytes of the request in flight */
  uint64_t cookie;       /* of that request */
  uint32_t in_bucket;    /* next slot of the same bucket */
  uint32_t older, newer; /* neighbours by time of issue */
  bool was_short;
  bool registered;
};

/* Free slots go out oldest-freed first, so that a queue that completes in order sees adjacent buffer offsets. Requests
 * are found by cookie through buckets: cookies only ever grow, while one slow request may outlive any number of others.
 */
struct slots {
  struct slot *slots;
  uint32_t *free_ring;
  uint32_t *buckets;
  uint32_t depth;
  uint32_t bucket_mask;
  uint32_t free_first, free_count;
  uint32_t oldest, newest; /* of those taken */
};

/* Returns 0 or ENOMEM. */
int slots_init(struct slots *s, uint32_t depth);
void slots_free(struct slots *s);

/* A free slot, which then is the newest; NO_SLOT when there is none. Its io and times are the caller's to set. */
static inline uint32_t slots_take(struct slots *s) {
  if (s->free_count == 0)
    return NO_SLOT;
  uint32_t index = s->free_ring[s->free_first];
  s->free_first = s->free_first + 1 == s->depth ? 0 : s->free_first + 1;
  s->free_count--;
  struct slot *slot = &s->slots[index];
  slot->issued_ns = slot->moved = 0;
  slot->was_short = slot->registered = false;
  slot->in_bucket = slot->newer = NO_SLOT;
  slot->older = s->newest;
  if (s->newest == NO_SLOT)
    s->oldest = index;
  else
    s->slots[s->newest].newer = index;
  s->newest = index;
  return index;
}

static inline void slots_give_back(struct slots *s, uint32_t index) {
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

/* The slot's request is now known by this cookie. */
static inline void slots_set_cookie(struct slots *s, uint32_t index, uint64_t cookie) {
  uint32_t *bucket = &s->buckets[cookie & s->bucket_mask];
  s->slots[index].cookie = cookie;
  s->slots[index].in_bucket = *bucket;
  *bucket = index;
}

/* The slot of a cookie, which is forgotten; NO_SLOT for a cookie that is not in flight. */
static inline uint32_t slots_find(struct slots *s, uint64_t cookie) {
  uint32_t *at = &s->buckets[cookie & s->bucket_mask];
  while (*at != NO_SLOT && s->slots[*at].cookie != cookie)
    at = &s->slots[*at].in_bucket;
  uint32_t index = *at;
  if (index != NO_SLOT)
    *at = s->slots[index].in_bucket;
  return index;
}

/* Does a taken slot touch bytes of `io` while one of the two writes? */
bool slots_conflict(const struct slots *s, const struct gdsfw_planned_io *io);

#endif
