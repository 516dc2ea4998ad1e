// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "carrier/cpu.hpp"

/// Memory of other libraries on its way in: what DLPack and the buffer protocol have in common.
namespace carrier::python {

namespace nb = nanobind;

/// Somebody else's values, as they describe them.
struct Foreign {
    const DType& dtype;
    std::byte* address;                 ///< of the first value; null is fine when there are none
    std::vector<std::int64_t> shape;    ///< none for a single value
    std::vector<std::int64_t> strides;  ///< one for each extent; none means C order
    std::int64_t step;                  ///< the stride that goes one value on: 1, or the bytes of one

    /// Number of values. ValueError unless they lie densely in C order; strides of extents of one, and of
    /// arrays without values, do not matter. ValueError also for negative extents, values without an address,
    /// and more bytes than follow the address.
    std::int64_t count() const;
};

/// What `mutable=` asks for: as the source is, or one of the two. TypeError.
enum class Mutable : std::uint8_t { as_source, no, yes };
Mutable mutable_of(nb::handle argument);
/// Whether the carrier is to be mutable. BufferError when that is asked for and the source is read-only.
bool settle(Mutable wanted, bool writable);

/// A carrier over foreign values. `end` gives them back: once, after the last use, on whichever thread that
/// is, with the interpreter lock, and not at all when the interpreter is gone. When this throws it has been
/// called.
Ref<CPU> wrap(const Foreign& foreign, bool writable, std::function<void()> end);

/// Whose memory a carrier wraps, for the garbage collector: without it, an exporter that holds its carrier
/// would never go. All are called with the interpreter lock.
void know_owner(const Block* block, nb::handle owner);
void forget_owner(const Block* block) noexcept;
bool has_owner(const Carrier& carrier) noexcept;
/// Invalid where none is known, and while anything but the carrier holds the memory: then a view is what
/// keeps the owner alive.
nb::handle owner_of(const Carrier& carrier) noexcept;

}  // namespace carrier::python
