// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "dtype/registry.hpp"

#include <algorithm>

#include "carrier/errors.hpp"
#include "os/process.hpp"

namespace carrier {

DTypeRegistry& DTypeRegistry::instance() {
    // Never destroyed: descriptors outlive every carrier, also those that die during process exit.
    static DTypeRegistry* registry = new DTypeRegistry;
    return *registry;
}

DTypeRegistry::DTypeRegistry() {
    const DType& any = add(DType::Form::category, "Any", nullptr, 0, {});
    const DType& floating = add(DType::Form::category, "Floating", &any, 0, {});
    const DType& integer = add(DType::Form::category, "Integer", &any, 0, {});
    add(DType::Form::simple, "Bool", &any, 8, {});
    add(DType::Form::simple, "Int32", &integer, 32, {});
    add(DType::Form::simple, "Int8", &integer, 8, {});
    add(DType::Form::simple, "Float32", &floating, 32, {});
    add(DType::Form::simple, "Float64", &floating, 64, {});
    add(DType::Form::simple, "E8M0", &floating, 8, {});
    add(DType::Form::simple, "E5M2", &floating, 8, {});
    add(DType::Form::simple, "E4M3", &floating, 8, {});
    add(DType::Form::simple, "E3M2", &floating, 6, {});
    add(DType::Form::simple, "E2M3", &floating, 6, {});
    add(DType::Form::simple, "E2M1", &floating, 4, {});
    for (std::size_t i = 0; i < kBuiltIn; ++i) built_in_[i] = order_[i];
    storable_ = {built_in_[float32], built_in_[int32], built_in_[bool8]};
    os::at_fork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                [] { instance().mutex_.unlock(); });
}
namespace {
[[maybe_unused]] const DTypeRegistry& ready = DTypeRegistry::instance();
}

const DType& DTypeRegistry::add(DType::Form form, const std::string& name, const DType* supertype, int bits,
                                std::vector<const DType*> planes) {
    if (name.empty()) throw ValueError("a dtype needs a name; '' names nothing");
    if (supertype != nullptr && !supertype->is_category())
        throw ValueError("the supertype of dtype '" + name + "' must be a category; '" + supertype->name() +
                         "' is none");
    const std::lock_guard lock(mutex_);
    if (by_name_.contains(name))
        throw ValueError("a dtype named '" + name +
                         "' is registered already; names are unique for the process");
    order_.reserve(order_.size() + 1);
    const DType* made = new DType(form, name, supertype, bits, std::move(planes));
    by_name_.emplace(made->name(), made);
    order_.push_back(made);
    return *made;
}

const DType* DTypeRegistry::find(std::string_view name) noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : at->second;
}

std::vector<const DType*> DTypeRegistry::all() {
    const std::lock_guard lock(mutex_);
    return order_;
}

}  // namespace carrier
