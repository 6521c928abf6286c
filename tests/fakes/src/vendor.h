/* vendor.h - which vendor's names this build gives the entry points. Everything else is one source. */
#ifndef STANDIN_VENDOR_H
#define STANDIN_VENDOR_H

#if defined(STANDIN_CUDA)
#define IS_HIP 0
#include "names_cuda.h"
#elif defined(STANDIN_HIP)
#define IS_HIP 1
#include "names_hip.h"
#else
#error "define STANDIN_CUDA or STANDIN_HIP"
#endif

#endif
