// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/storage_dtype.hpp"

#include <algorithm>
#include <string>

#include "carrier/errors.hpp"
#include "dtype/registry.hpp"

namespace carrier {

namespace {
std::string names(std::span<const DType* const> accepted) {
    std::string text;
    for (std::size_t i = 0; i < accepted.size(); ++i) {
        if (i != 0) text += i + 1 == accepted.size() ? " or " : ", ";
        text += accepted[i]->name();
    }
    return accepted.empty() ? "no dtype" : text;
}
}  // namespace

std::span<const DType* const> storage_dtypes() noexcept { return DTypeRegistry::instance().storable(); }

bool accepts_storage_dtype(const DType& dtype, std::span<const DType* const> accepted) noexcept {
    return std::find(accepted.begin(), accepted.end(), &dtype) != accepted.end();
}

const DType& validate_storage_dtype(const DType& dtype, std::string_view carrier,
                                    std::span<const DType* const> accepted) {
    if (accepts_storage_dtype(dtype, accepted)) return dtype;
    const std::string who(carrier);
    if (dtype.is_compound())
        throw ValueError(who + " cannot store compound dtype '" + dtype.name() +
                         "': one carrier holds one simple dtype, and multi-plane storage for its " +
                         std::to_string(dtype.planes().size()) +
                         " planes is deferred; use one carrier a plane and Tensor.from_subtensors");
    throw ValueError(who + " cannot store dtype '" + dtype.name() + "'" +
                     (dtype.is_category() ? ", a category" : "") + "; it takes " + names(accepted));
}

Encoding encoding_with_bytes(const DType& dtype) {
    const Encoding encoding = encoding_of(dtype);
    if (encoding == Encoding::opaque)
        throw TypeError("slots of dtype " + dtype.name() + " have no bytes; use them one by one");
    return encoding;
}

Value storage_zero(const DType& dtype) noexcept {
    switch (encoding_of(dtype)) {
        case Encoding::float32:
            return Value(0.0);
        case Encoding::int32:
            return Value(0);
        case Encoding::bool8:
            return Value(false);
        default:
            return Value();
    }
}

}  // namespace carrier
