// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "carrier/dtype.hpp"

namespace carrier {

/// Every descriptor of the process by name. The mutex is a leaf: nothing is called while it is held,
/// and a fork holds it.
class DTypeRegistry {
  public:
    static constexpr std::size_t kBuiltIn = 14;
    enum BuiltIn : std::size_t {
        any,
        floating,
        integer,
        bool8,
        int32,
        int8,
        float32,
        float64,
        e8m0,
        e5m2,
        e4m3,
        e3m2,
        e2m3,
        e2m1
    };

    static DTypeRegistry& instance();
    const DType& add(DType::Form form, const std::string& name, const DType* supertype, int bits,
                     std::vector<const DType*> planes);
    const DType* find(std::string_view name) noexcept;
    std::vector<const DType*> all();
    /// Set once by the constructor: read without the lock.
    const std::array<const DType*, kBuiltIn>& built_in() const noexcept { return built_in_; }
    const std::array<const DType*, 3>& storable() const noexcept { return storable_; }

  private:
    DTypeRegistry();

    std::mutex mutex_;
    std::map<std::string_view, const DType*> by_name_;
    std::vector<const DType*> order_;
    std::array<const DType*, kBuiltIn> built_in_{};
    std::array<const DType*, 3> storable_{};
};

}  // namespace carrier
