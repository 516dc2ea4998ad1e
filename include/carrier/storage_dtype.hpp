// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <span>
#include <string_view>

#include "carrier/dtype.hpp"
#include "carrier/value.hpp"

/// The storage rules that carriers share, by identity of descriptors (docs/contract.md, Storage helpers).
namespace carrier {

/// Float32, Int32 and Bool, in this order: what a slot can be.
CARRIER_API std::span<const DType* const> storage_dtypes() noexcept;

/// True when `dtype` is one of `accepted`, the same object.
CARRIER_API bool accepts_storage_dtype(const DType& dtype, std::span<const DType* const> accepted) noexcept;

/// Returns `dtype` when it is one of `accepted`; otherwise a ValueError that names `carrier` and what it
/// takes. For a compound dtype the message says that one carrier cannot hold its several planes.
CARRIER_API const DType& validate_storage_dtype(const DType& dtype, std::string_view carrier,
                                                std::span<const DType* const> accepted);

/// How the slots of `dtype` are encoded; TypeError when they have no bytes, as those of a carrier of one's
/// own may.
CARRIER_API Encoding encoding_with_bytes(const DType& dtype);

/// What a fresh slot holds: 0.0 for Float32, 0 for Int32, false for Bool; nothing for every other dtype.
CARRIER_API Value storage_zero(const DType& dtype) noexcept;

}  // namespace carrier
