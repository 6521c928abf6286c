// kernel_host.hpp - makes kernels.cpp host code: put before it. The threads of a launch run one after the other.
#include <cstdint>
#include <tuple>
#include <utility>

struct kernel_index {
  unsigned x;
};
static thread_local kernel_index blockIdx, threadIdx, blockDim, gridDim;

#define __global__
#define __device__ static

static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

static inline unsigned long long atomicMin(unsigned long long *at, unsigned long long value) {
  unsigned long long seen = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (value < seen && !__atomic_compare_exchange_n(at, &seen, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
  return seen;
}

template <typename... A, std::size_t... I>
static void kernel_run(void (*kernel)(A...), void **parameters, unsigned grid, unsigned block,
                       std::index_sequence<I...>) {
  gridDim.x = grid;
  blockDim.x = block;
  for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < block; threadIdx.x++)
      kernel(*static_cast<A *>(parameters[I])...);
}

// Bytes of a kernel's parameters, which a launch copies when it is called and not when it runs.
template <typename... A> static void kernel_sizes(void (*)(A...), std::size_t *sizes, unsigned *count) {
  const std::size_t all[] = {sizeof(A)...};
  for (std::size_t size : all)
    sizes[(*count)++] = size;
}

template <typename... A> static std::index_sequence_for<A...> kernel_places(void (*)(A...)) { return {}; }

// Behind kernels.cpp, once for each kernel: what the stand-in's launch calls.
#define KERNEL_ENTRY(name)                                                                                             \
  extern "C" void name##_run(void **parameters, unsigned grid, unsigned block) {                                      \
    kernel_run(name, parameters, grid, block, decltype(kernel_places(name))());                                       \
  }                                                                                                                    \
  extern "C" void name##_sizes(std::size_t *sizes, unsigned *count) { kernel_sizes(name, sizes, count); }
