/* gpu_internal.h - what the GPU queues share. */
#ifndef GDSFW_GPU_INTERNAL_H
#define GDSFW_GPU_INTERNAL_H

#include "clock.h"
#include "decode.h"
#include "gdsfw_gpu.h"

#include <errno.h>

/* A status as a call's result: 0, or the negated code of whoever failed. */
static inline int64_t gpu_result(struct gdsfw_gpu_status status) {
  if (!status.file_code && !status.gpu_code)
    return 0;
  errno = 0;
  return -(int64_t)(status.file_code ? status.file_code : status.gpu_code);
}

/* A runtime's code as a call's result. */
static inline int64_t gpu_error(int32_t code) {
  errno = 0;
  return -(int64_t)code;
}

#endif
