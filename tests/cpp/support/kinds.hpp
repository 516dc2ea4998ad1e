// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "carrier/cpu.hpp"
#include "carrier/evictable.hpp"
#include "carrier/file_backed.hpp"
#include "carrier/generic.hpp"
#include "support/vector_carrier.hpp"

namespace carrier::testing {

/// One way to make a carrier, with what a test must know about it.
struct KindCase {
    std::string name;
    std::function<Ref<Carrier>(std::int64_t size, const DType& dtype, bool writable)> make;
    std::vector<const DType*> dtypes;
    bool scatters = true;
};

inline void PrintTo(const KindCase& kind, std::ostream* out) { *out << kind.name; }

inline std::vector<Value> zeros(std::int64_t size, const DType& dtype) {
    return std::vector<Value>(static_cast<std::size_t>(size), storage_zero(dtype));
}

/// Every kind that this machine can make, hierarchies nested both ways and a user's own carrier included.
inline std::vector<KindCase> all_kinds() {
    const std::vector<const DType*> three{&DType::Float32(), &DType::Int32(), &DType::Bool()};
    const std::vector<const DType*> two{&DType::Float32(), &DType::Int32()};
    const auto cpu = [](std::int64_t n, const DType& d, bool w) {
        return Ref<Carrier>(carrier::make<CPU>(n, d, w));
    };
    const auto generic = [](std::int64_t n, const DType& d, bool w) {
        return Ref<Carrier>(carrier::make<Generic>(n, d, w));
    };
    const auto file = [](std::int64_t n, const DType& d, bool w) {
        return carrier::make<FileBacked>(d)->allocate_like(n, {w, nullptr, false});
    };
    const auto custom = [](std::int64_t n, const DType& d, bool w) {
        return Ref<Carrier>(carrier::make<VectorCarrier>(zeros(n, d), d, w));
    };
    const auto over = [](auto primary, auto secondary) {
        return [=](std::int64_t n, const DType& d, bool w) {
            return Ref<Carrier>(
                carrier::make<Evictable>(primary(n, d, w), secondary(n > 4 ? n : 0, d, true)));
        };
    };
    const auto some = [](std::int64_t n, const DType& d, bool w) {
        return Ref<Carrier>(carrier::make<CPU>(n == 0 ? 1 : n, d, w));
    };
    return {
        {"CPU", cpu, three},
        {"Generic", generic, three},
        {"FileBacked", file, two, false},
        {"Custom", custom, three},
        {"EvictableCpuFile", over(cpu, file), two},
        {"EvictableCpuCpu", over(cpu, cpu), three},
        {"EvictableFileCpu", over(file, cpu), two, false},
        {"EvictableNestedPrimary", over(over(cpu, cpu), file), two},
        {"EvictableNestedSecondary", over(cpu, over(some, file)), two},
        {"EvictableCustom", over(custom, cpu), three},
    };
}

}  // namespace carrier::testing
