// kernels.cpp - what runs on the device: one source for the vendors' run-time compilers and, in tests, the host's own.
//
// Needs no header. Blocks are moved by teams of 32 threads; no kernel relies on the width of a warp or on shared
// memory. The pattern is that of native/pattern.c, whose bytes these kernels produce exactly.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

enum { TEAM = 32, VECTORS = 4, CHUNK_BITS = 12, LANE = 4 };

struct alignas(16) vector {
  u32 part[4];
};

// struct gdsfw_gpu_move and struct gdsfw_gpu_finding of native/include/gdsfw_gpu.h
struct move {
  u64 source, target, size;
};

struct finding {
  u64 bad_bytes, first;
};

__device__ inline u64 thread_index() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline u64 threads() { return (u64)gridDim.x * blockDim.x; }

// ---- gather and scatter ----------------------------------------------------------------------------------------

// Four vectors a thread are on their way at once: one alone leaves a bus of a microsecond's latency idle.
__device__ inline void copy_vectors(vector *target, const vector *source, u64 count, u32 member) {
  for (u64 at = member; at < count; at += TEAM * VECTORS) {
    vector held[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
      if (at + k * TEAM < count)
        held[k] = source[at + k * TEAM];
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
      if (at + k * TEAM < count)
        target[at + k * TEAM] = held[k];
  }
}

__device__ inline void copy_piece(u64 target, u64 source, u64 size, u32 member) {
  u64 done = 0;
  if ((target | source) % sizeof(vector) == 0) {
    copy_vectors((vector *)target, (const vector *)source, size / sizeof(vector), member);
    done = size / sizeof(vector) * sizeof(vector);
  }
  for (u64 at = done + member; at < size; at += TEAM)
    ((u8 *)target)[at] = ((const u8 *)source)[at];
}

// n moves of at most pieces * piece bytes each.
extern "C" __global__ void gdsfw_move(const struct move *moves, u32 n, u32 pieces, u64 piece) {
  u32 member = (u32)(thread_index() % TEAM);
  u64 work = (u64)n * pieces, teams = threads() / TEAM;
  for (u64 item = thread_index() / TEAM; item < work; item += teams) {
    struct move m = moves[item / pieces];
    u64 at = item % pieces * piece;
    if (at < m.size)
      copy_piece(m.target + at, m.source + at, m.size - at < piece ? m.size - at : piece, member);
  }
}

// ---- the pattern -----------------------------------------------------------------------------------------------

// splitmix64's finaliser (Steele, Lea, Flood 2014).
__device__ inline u64 mix64(u64 z) {
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9ull;
  z ^= z >> 27;
  z *= 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// The 32-bit lane that holds byte `lane` * 4 of the file; murmur3's finaliser (Appleby 2010) of the lane's counter.
__device__ inline u32 expected_lane(u64 lane, u64 file_key) {
  u64 key = mix64(file_key ^ ((lane * LANE >> CHUNK_BITS) + 1) * 0xD1342543DE82EF95ull);
  u32 z = (u32)key + (u32)(lane % ((1 << CHUNK_BITS) / LANE)) * 0x9E3779B9u;
  z ^= z >> 16;
  z *= 0x85EBCA6Bu;
  z ^= z >> 13;
  z *= 0xC2B2AE35u;
  z ^= z >> 16;
  return z ^ (u32)(key >> 32);
}

// The part of a lane that lies in [begin, end) of the file.
struct part {
  u64 begin, end;
  bool whole;
};

__device__ inline part part_of(u64 lane, u64 begin, u64 end, u64 memory) {
  part p = {lane * LANE, lane * LANE + LANE, false};
  p.begin = p.begin < begin ? begin : p.begin;
  p.end = p.end > end ? end : p.end;
  p.whole = p.end - p.begin == LANE && (memory + (p.begin - begin)) % LANE == 0;
  return p;
}

extern "C" __global__ void gdsfw_fill(u64 target, u64 size, u64 file_offset, u64 file_key) {
  u64 end = file_offset + size, lanes = (end + LANE - 1) / LANE;
  for (u64 lane = file_offset / LANE + thread_index(); lane < lanes; lane += threads()) {
    u32 value = expected_lane(lane, file_key);
    part p = part_of(lane, file_offset, end, target);
    if (p.whole)
      *(u32 *)(target + (p.begin - file_offset)) = value;
    else
      for (u64 at = p.begin; at < p.end; at++)
        *(u8 *)(target + (at - file_offset)) = (u8)(value >> at % LANE * 8);
  }
}

// struct gdsfw_block_data of native/include/gdsfw_backend.h, with the key of its pattern.
struct block_data {
  u64 file_key, nonce, piece, random;
  u32 stamped;
};

// Byte `place` of such a block; `value` is the lane of the pattern that holds it.
__device__ inline u8 made_byte(const block_data *d, u64 size, u64 place, u32 value) {
  u64 in_piece = place % d->piece, in_stamp = in_piece % 512, stamp = place - in_stamp;
  if (in_piece >= d->random)
    return 0;
  if (!d->stamped)
    return (u8)((value >> place % LANE * 8) ^ (d->nonce >> in_piece % 8 * 8));
  if (in_stamp < 8 && stamp + 8 <= size)
    return (u8)((d->nonce + stamp * 0x9E3779B97F4A7C15ull) >> in_stamp * 8);
  return (u8)(value >> place % LANE * 8);
}

extern "C" __global__ void gdsfw_make(u64 target, u64 size, struct block_data data) {
  for (u64 lane = thread_index(); lane * LANE < size; lane += threads()) {
    u64 begin = lane * LANE, end = begin + LANE < size ? begin + LANE : size;
    u32 value = expected_lane(lane, data.file_key), made = 0;
    for (u64 place = begin; place < end; place++)
      made |= (u32)made_byte(&data, size, place, value) << (place - begin) * 8;
    if (end - begin == LANE && (target + begin) % LANE == 0)
      *(u32 *)(target + begin) = made;
    else
      for (u64 place = begin; place < end; place++)
        *(u8 *)(target + place) = (u8)(made >> (place - begin) * 8);
  }
}

// What differs is counted in device memory, where atomics always work; `flag` is the host's, so that it need not ask for
// the count of a block that is right.
extern "C" __global__ void gdsfw_verify(u64 source, u64 size, u64 file_offset, u64 file_key, struct finding *found,
                                        u64 *flag) {
  u64 end = file_offset + size, lanes = (end + LANE - 1) / LANE, bad = 0, first = ~0ull;
  for (u64 lane = file_offset / LANE + thread_index(); lane < lanes; lane += threads()) {
    u32 value = expected_lane(lane, file_key);
    part p = part_of(lane, file_offset, end, source);
    if (p.whole && *(const u32 *)(source + (p.begin - file_offset)) == value)
      continue;
    for (u64 at = p.begin; at < p.end; at++)
      if (*(const u8 *)(source + (at - file_offset)) != (u8)(value >> at % LANE * 8)) {
        bad++;
        first = first < at ? first : at;
      }
  }
  if (bad) {
    atomicAdd(&found->bad_bytes, bad);
    atomicMin(&found->first, first);
    *flag = 1;
  }
}
