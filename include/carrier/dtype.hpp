// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carrier/api.hpp"

namespace carrier {

/// A descriptor of what one value is. Identity is its meaning: two descriptors are the same when they are the
/// same object, and a descriptor, once made, lives as long as the process (docs/contract.md, DType).
///
/// Three forms: a category groups others (`Any`, `Floating`), a simple dtype is one machine representation
/// (`Float32`), a compound dtype is two or more planes of simple dtypes.
class CARRIER_API DType {
  public:
    enum class Form : std::uint8_t { category, simple, compound };

    static const DType& Any();
    static const DType& Floating();
    static const DType& Integer();
    static const DType& Bool();
    static const DType& Int32();
    static const DType& Int8();
    static const DType& Float32();
    static const DType& Float64();
    static const DType& E8M0();
    static const DType& E5M2();
    static const DType& E4M3();
    static const DType& E3M2();
    static const DType& E2M3();
    static const DType& E2M1();

    /// Registers a category. A taken or empty name is a ValueError and registers nothing.
    static const DType& category(const std::string& name, const DType* supertype = nullptr);
    /// Registers a simple dtype of `bits` (at least 1) under a category.
    static const DType& simple(const std::string& name, int bits, const DType& supertype);
    /// Registers a compound dtype of at least two simple planes.
    static const DType& compound(const std::string& name, std::span<const DType* const> planes,
                                 const DType& supertype = Any());

    /// The registered descriptor, or null.
    static const DType* find(std::string_view name) noexcept;
    /// The registered descriptor; LookupError when there is none.
    static const DType& from_name(std::string_view name);
    /// Every descriptor, in the order of registration.
    static std::vector<const DType*> registered();
    /// The first fourteen, which every process has.
    static std::span<const DType* const> built_in();

    const std::string& name() const noexcept { return name_; }
    Form form() const noexcept { return form_; }
    bool is_category() const noexcept { return form_ == Form::category; }
    bool is_simple() const noexcept { return form_ == Form::simple; }
    bool is_compound() const noexcept { return form_ == Form::compound; }
    /// The category right above, or null at the root.
    const DType* supertype() const noexcept { return supertype_; }
    /// All categories above, nearest first.
    std::vector<const DType*> supertypes() const;
    /// True for the descriptor itself and everything above it.
    bool is_subtype_of(const DType& other) const noexcept;
    /// Bits of one value of a simple dtype; nothing for the other forms.
    std::optional<int> bits() const noexcept {
        return form_ == Form::simple ? std::optional(bits_) : std::nullopt;
    }
    /// The planes of a compound dtype, in order; empty for the other forms.
    std::span<const DType* const> planes() const noexcept { return planes_; }

    /// The host language's object for this descriptor (set once by a binding).
    mutable void* host_object = nullptr;

    DType(const DType&) = delete;
    DType& operator=(const DType&) = delete;

  private:
    friend class DTypeRegistry;
    DType(Form form, std::string name, const DType* supertype, int bits, std::vector<const DType*> planes)
        : name_(std::move(name)),
          supertype_(supertype),
          planes_(std::move(planes)),
          bits_(bits),
          form_(form) {}

    std::string name_;
    const DType* supertype_;
    std::vector<const DType*> planes_;
    int bits_;
    Form form_;
};

}  // namespace carrier
