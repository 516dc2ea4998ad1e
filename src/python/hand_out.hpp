// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "carrier/tensor.hpp"

/// What buffers, NumPy and DLPack have in common: which memory is handed out, and how the values lie in it.
namespace carrier::python {

/// Values in host memory, under a shape: the slots of a carrier, or what a Tensor sees.
struct HandOut {
    Ref<Block> block;
    Encoding encoding = Encoding::opaque;
    std::size_t offset = 0;             ///< bytes of the block before the first slot
    std::int64_t slots = 0;             ///< from the first to the last one reached
    std::vector<std::int64_t> shape;    ///< one extent for a carrier, the leaves of the layout for a Tensor
    std::vector<std::int64_t> strides;  ///< in slots, one for each extent

    std::byte* data() const noexcept { return block->data() + offset; }
};

/// The carrier's own memory: no copy, and nothing changes. Nothing when the slots are not in host memory
/// (FileBacked, custom carriers, hierarchies over them). Waits for running bulk work. StateError (released,
/// evicted).
std::optional<HandOut> shared(const Carrier& carrier);
/// The same for a Tensor; NotImplementedError for one of several subtensors.
std::optional<HandOut> shared(const Tensor& tensor);

/// Fresh memory with a copy of the values; a Tensor's in logical order, its first mode fastest. StateError,
/// TypeError (a dtype without bytes), MemoryError, OsError, and what hooks raise.
HandOut copied(const Carrier& carrier);
HandOut copied(const Tensor& tensor);

/// `shared` for protocols whose one refusal is a BufferError: when there is no memory, and for a StateError.
template <class Source>
HandOut lent(const Source& source);
/// `copied` for the same.
template <class Source>
HandOut lent_copy(const Source& source);

inline const Carrier& carrier_behind(const Carrier& carrier) { return carrier; }
inline const Carrier& carrier_behind(const Tensor& tensor) { return *tensor.carrier(); }

}  // namespace carrier::python
