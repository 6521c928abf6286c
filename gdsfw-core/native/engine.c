/* engine.c - entry points of the library. */
#include "engine.h"

GDSFW_EXPORT uint32_t gdsfw_engine_abi(void) { return GDSFW_ENGINE_ABI; }
