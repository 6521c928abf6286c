/* decode.h - calls into a backend's table and the meaning of what they return. */
#ifndef GDSFW_DECODE_H
#define GDSFW_DECODE_H

#include "engine.h"

/* Who says what: domain GDSFW_NONE when the call did not fail. */
struct gdsfw_verdict {
  uint32_t domain;
  uint32_t reserved;
  int64_t code;
};

/* The meaning of result `r` of a call that left `error` in errno; the rules are in gdsfw_backend.h. */
struct gdsfw_verdict gdsfw_decode(int64_t r, int32_t error, uint32_t file_code_base);

/* The calls, each with errno zeroed before and decoded after. They return r as it came. */
int64_t gdsfw_call_move(const struct gdsfw_io *io, const struct gdsfw_request *request, struct gdsfw_verdict *verdict);
int64_t gdsfw_call_flush(const struct gdsfw_io *io, uint64_t file, int32_t data_only, struct gdsfw_verdict *verdict);
int64_t gdsfw_call_copy(const struct gdsfw_io *io, uint64_t buffer, int64_t buffer_offset, void *host, uint64_t size,
                        int32_t direction, struct gdsfw_verdict *verdict);
int64_t gdsfw_call_fill(const struct gdsfw_io *io, uint64_t buffer, int64_t buffer_offset, uint64_t size,
                        int64_t file_offset, const struct gdsfw_pattern *pattern, struct gdsfw_verdict *verdict);
int64_t gdsfw_call_make_data(const struct gdsfw_io *io, uint64_t buffer, int64_t buffer_offset, uint64_t size,
                             const struct gdsfw_block_data *data, struct gdsfw_verdict *verdict);
int64_t gdsfw_call_verify(const struct gdsfw_io *io, uint64_t buffer, int64_t buffer_offset, uint64_t size,
                          int64_t file_offset, const struct gdsfw_pattern *pattern, struct gdsfw_mismatch *mismatch,
                          struct gdsfw_verdict *verdict);
/* `size` 0 deregisters. */
int64_t gdsfw_call_register(const struct gdsfw_io *io, uint64_t buffer, uint64_t size, struct gdsfw_verdict *verdict);

/* The table as this engine knows it: what the backend's struct_size leaves out is zero. */
struct gdsfw_io io_copy(const struct gdsfw_io *io);

#endif
