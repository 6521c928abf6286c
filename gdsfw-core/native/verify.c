/* verify.c - the bytes of a read against the pattern, after its latency was taken. */
#include "worker.h"

static struct gdsfw_pattern pattern_of(const struct worker *w, uint32_t file, uint32_t generation) {
  const struct gdsfw_loop_file *f = &w->config->shape.files[file];
  return (struct gdsfw_pattern){.abi = GDSFW_ABI,
                                .struct_size = sizeof(struct gdsfw_pattern),
                                .seed = f->pattern_seed,
                                .file_id = f->file_id,
                                .generation = generation};
}

static void keep_bad_block(struct gdsfw_result *result, uint32_t file, const struct gdsfw_mismatch *mismatch) {
  if (result->bad_blocks < RESULT_BAD_BLOCKS)
    result->bad[result->bad_blocks] = (struct gdsfw_bad_block){file, *mismatch};
}

/* From `at` on: how many bytes, at most `size`, are all known to hold the pattern, or all are not. */
static uint64_t known_run(const struct gdsfw_loop_file *file, uint64_t at, uint64_t size, bool *known) {
  *known = true;
  if (!file->known)
    return size;
  uint64_t low = 0, high = file->known_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (file->known[middle].start + file->known[middle].length <= at)
      low = middle + 1;
    else
      high = middle;
  }
  uint64_t until = UINT64_MAX;
  if (low < file->known_count) {
    const struct gdsfw_span *span = &file->known[low];
    *known = span->start <= at;
    until = *known ? span->start + span->length : span->start;
  } else {
    *known = false;
  }
  return until - at < size ? until - at : size;
}

/* From there on: how many bytes share what they should be; false when nobody can say what that is. */
static bool expected_run(const struct worker *w, uint32_t file, uint64_t at, uint64_t size, uint64_t *run,
                         uint32_t *generation) {
  bool known;
  uint64_t step = known_run(&w->config->shape.files[file], at, size, &known);
  *run = track_run(&w->track, file, at, step, generation);
  /* After a failed write the bytes may be old or new. */
  return known && !(*generation & GENERATION_UNKNOWN);
}

bool verify_block(struct worker *w, const struct gdsfw_planned_io *io, uint64_t buffer_offset) {
  struct gdsfw_mismatch first = {0};
  uint64_t bad = 0, step, checked_before = w->result->checked_bytes;
  for (uint64_t done = 0; done < io->size; done += step) {
    uint32_t generation;
    if (!expected_run(w, io->file, io->offset + done, io->size - done, &step, &generation)) {
      w->result->unknown_bytes += step;
      continue;
    }
    w->result->expected_bytes += step;
    struct gdsfw_pattern pattern = pattern_of(w, io->file, generation);
    struct gdsfw_mismatch mismatch;
    struct gdsfw_verdict verdict;
    gdsfw_call_verify(&w->io, w->config->buffer, (int64_t)(buffer_offset + done), step, (int64_t)(io->offset + done),
                      &pattern, &mismatch, &verdict);
    if (verdict.domain != GDSFW_NONE) {
      if (!worker_fail(w, OPERATION_VERIFY, io, verdict))
        return false;
      continue;
    }
    w->result->checked_bytes += step;
    if (mismatch.bad_bytes && bad == 0)
      first = mismatch;
    bad += mismatch.bad_bytes;
  }
  w->result->checked_blocks += w->result->checked_bytes > checked_before;
  if (bad) {
    first.bad_bytes = bad;
    keep_bad_block(w->result, io->file, &first);
    w->result->bad_blocks++;
  }
  return true;
}

bool verify_fill(struct worker *w, const struct gdsfw_planned_io *io, uint64_t buffer_offset,
                 struct gdsfw_verdict *verdict) {
  uint64_t step;
  for (uint64_t done = 0; done < io->size; done += step) {
    uint32_t generation;
    step = track_run(&w->track, io->file, io->offset + done, io->size - done, &generation);
    uint32_t next = w->track.generations ? (generation & ~GENERATION_UNKNOWN) + 1 : 0;
    struct gdsfw_pattern pattern = pattern_of(w, io->file, next);
    gdsfw_call_fill(&w->io, w->config->buffer, (int64_t)(buffer_offset + done), step, (int64_t)(io->offset + done),
                    &pattern, verdict);
    if (verdict->domain != GDSFW_NONE)
      return false;
  }
  return true;
}
