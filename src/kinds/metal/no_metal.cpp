// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/errors.hpp"
#include "kinds/metal/runtime.hpp"

/// The runtime that is not there: everywhere but on Apple machines.
namespace carrier::metal {

namespace {
constexpr const char* kReason =
    "Metal needs macOS on a machine whose GPU shares its memory, and this build is for another system";
}

bool available(std::string* why) {
    if (why != nullptr) *why = kReason;
    return false;
}

Ref<Block> allocate(std::size_t, bool) {
    throw StateError(std::string("no Metal runtime here: ") + kReason +
                     "; use CPU for host memory, or Evictable(CPU, FileBacked) for sets larger than memory");
}

}  // namespace carrier::metal
