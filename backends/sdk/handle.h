// SPDX-License-Identifier: MIT
//
// Between the ABI's opaque handles and a backend's own classes. A backend must not complete struct kvb_device and its
// kin itself: with KVB_STATIC several backends share one binary, and two definitions of one global type would let the
// linker mix their inline functions. So the classes live in the backend's namespace, and handles are casts of them.
#pragma once

namespace kvasir::sdk {

// auto* device = object_of<Device>(handle);
template <typename Object, typename Handle>
Object* object_of(Handle* handle) {
  return reinterpret_cast<Object*>(handle);
}

// *out = handle_of<kvb_device>(device);
template <typename Handle, typename Object>
Handle* handle_of(Object* object) {
  return reinterpret_cast<Handle*>(object);
}

}  // namespace kvasir::sdk
