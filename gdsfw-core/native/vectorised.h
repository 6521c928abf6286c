/* vectorised.h - loops that the compiler turns into vector code of the widest kind the processor has. */
#ifndef GDSFW_VECTORISED_H
#define GDSFW_VECTORISED_H

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTORISED
#endif

#endif
