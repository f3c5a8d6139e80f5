// SPDX-License-Identifier: MIT
//
// Arithmetic of the element types: any type to f32, and the conversion at load of weights whose type a backend does not
// execute. There is no quantiser here: the only compressed targets are those that hold the same codes.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/types.h"

namespace kvasir {

// Writes `values` floats, bit for bit what the formulas of kvasir/types.h give in f32. `values` is a whole number of
// blocks of a known type; `source` needs no alignment.
void dequantize(uint32_t type, const void* source, uint64_t values, float* destination);

constexpr uint64_t type_bit(uint32_t type) { return uint64_t{1} << type; }

// What a conversion may lose.
enum class Loss : uint8_t {
  none,  // every value keeps its f32 bits: what compute mode `exact` needs, whose bound leaves no room
  small  // relative rms error below 3e-4 (f16 rounding), a twentieth of the activation rounding of mode `fast`
};

// The smallest type in `supported` (bits by type_bit) that holds weights of `type` within `loss`; `type` itself when it
// is in there; KV_TYPE_DEFAULT when there is none.
uint32_t nearest_supported(uint32_t type, uint64_t supported, Loss loss);

// Converts `values` values (whole blocks of both types) to a type that nearest_supported gave. Fails when a value does
// not fit the target (f16 beyond 65504), naming it; nothing else can fail.
Status convert(uint32_t from, const void* source, uint64_t values, uint32_t to, void* destination);

}  // namespace kvasir
