// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/dtype.hpp"

#include "carrier/errors.hpp"
#include "dtype/registry.hpp"

namespace carrier {

namespace {
const DType& built_in_at(DTypeRegistry::BuiltIn which) {
    return *DTypeRegistry::instance().built_in()[which];
}
}  // namespace

const DType& DType::Any() { return built_in_at(DTypeRegistry::any); }
const DType& DType::Floating() { return built_in_at(DTypeRegistry::floating); }
const DType& DType::Integer() { return built_in_at(DTypeRegistry::integer); }
const DType& DType::Bool() { return built_in_at(DTypeRegistry::bool8); }
const DType& DType::Int32() { return built_in_at(DTypeRegistry::int32); }
const DType& DType::Int8() { return built_in_at(DTypeRegistry::int8); }
const DType& DType::Float32() { return built_in_at(DTypeRegistry::float32); }
const DType& DType::Float64() { return built_in_at(DTypeRegistry::float64); }
const DType& DType::E8M0() { return built_in_at(DTypeRegistry::e8m0); }
const DType& DType::E5M2() { return built_in_at(DTypeRegistry::e5m2); }
const DType& DType::E4M3() { return built_in_at(DTypeRegistry::e4m3); }
const DType& DType::E3M2() { return built_in_at(DTypeRegistry::e3m2); }
const DType& DType::E2M3() { return built_in_at(DTypeRegistry::e2m3); }
const DType& DType::E2M1() { return built_in_at(DTypeRegistry::e2m1); }

const DType& DType::category(const std::string& name, const DType* supertype) {
    return DTypeRegistry::instance().add(Form::category, name, supertype, 0, {});
}

const DType& DType::simple(const std::string& name, int bits, const DType& supertype) {
    if (bits < 1)
        throw ValueError("dtype '" + name + "' needs at least one bit; got " + std::to_string(bits));
    return DTypeRegistry::instance().add(Form::simple, name, &supertype, bits, {});
}

const DType& DType::compound(const std::string& name, std::span<const DType* const> planes,
                             const DType& supertype) {
    if (planes.size() < 2)
        throw ValueError("compound dtype '" + name + "' needs at least two planes; got " +
                         std::to_string(planes.size()));
    for (const DType* plane : planes)
        if (plane == nullptr || !plane->is_simple())
            throw ValueError(
                "the planes of compound dtype '" + name + "' must be simple dtypes; " +
                (plane == nullptr ? std::string("one is missing") : "'" + plane->name() + "' is not"));
    return DTypeRegistry::instance().add(Form::compound, name, &supertype, 0, {planes.begin(), planes.end()});
}

const DType* DType::find(std::string_view name) noexcept { return DTypeRegistry::instance().find(name); }

const DType& DType::from_name(std::string_view name) {
    if (const DType* found = find(name)) return *found;
    throw LookupError("no dtype is registered as '" + std::string(name) +
                      "'; construct it first, or see DType.registered()");
}

std::vector<const DType*> DType::registered() { return DTypeRegistry::instance().all(); }

std::span<const DType* const> DType::built_in() { return DTypeRegistry::instance().built_in(); }

std::vector<const DType*> DType::supertypes() const {
    std::vector<const DType*> above;
    for (const DType* t = supertype_; t != nullptr; t = t->supertype_) above.push_back(t);
    return above;
}

bool DType::is_subtype_of(const DType& other) const noexcept {
    for (const DType* t = this; t != nullptr; t = t->supertype_)
        if (t == &other) return true;
    return false;
}

}  // namespace carrier
