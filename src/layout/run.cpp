// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/plan.hpp"
#include "layout/rows.hpp"

namespace carrier {

namespace {

using namespace kernels;

/// Calls `copy(from, to)` for every position of the axes, innermost first. At most 62 have an extent above 1.
template <class Op, class Copy>
void for_each(const Axis* axes, std::size_t count, const std::byte* from, std::byte* to, Copy copy) noexcept {
    constexpr auto from_width = static_cast<std::int64_t>(sizeof(typename Op::From));
    constexpr auto to_width = static_cast<std::int64_t>(sizeof(typename Op::To));
    if (count == 0) return copy(from, to);
    std::int64_t at[64];
    std::fill_n(at, count, 0);
    for (;;) {
        const std::byte* f = from;
        std::byte* t = to;
        for (std::int64_t i = 0; i < axes[0].extent; ++i) {
            copy(f, t);
            f += axes[0].from * from_width;
            t += axes[0].to * to_width;
        }
        std::size_t k = 1;
        for (; k < count; ++k) {
            from += axes[k].from * from_width;
            to += axes[k].to * to_width;
            if (++at[k] < axes[k].extent) break;
            from -= axes[k].from * from_width * axes[k].extent;
            to -= axes[k].to * to_width * axes[k].extent;
            at[k] = 0;
        }
        if (k == count) return;
    }
}

template <class Op>
void run_axes(const Axis* axes, std::size_t count, bool tiled, const std::byte* from, std::byte* to,
              const Tuning&) noexcept {
    if (count == 0) return copy_one<Op>(from, to);
    if (tiled)
        return for_each<Op>(axes + 2, count - 2, from, to, [axes](const std::byte* f, std::byte* t) {
            copy_tiles<Op>(axes[0], axes[1], f, t);
        });
    for_each<Op>(axes + 1, count - 1, from, to,
                 [axes](const std::byte* f, std::byte* t) { copy_row<Op>(axes[0], f, t); });
}

}  // namespace

void CopyPlan::run(const std::byte* source, std::byte* destination, const Tuning& tuning) const noexcept {
    const std::byte* const from =
        source + from_ * static_cast<std::int64_t>(source_width(width_, conversion_));
    const auto with = [&]<class Op>(Op) { run_axes<Op>(data(), count_, tiled_, from, destination, tuning); };
    switch (conversion_) {
        case Conversion::none:
            return width_ == 1 ? with(Same1{}) : with(Same4{});
        case Conversion::int32_to_float32:
            return with(IntToFloat{});
        case Conversion::bool_to_float32:
            return with(BoolToFloat{});
        case Conversion::bool_to_bool:
            return with(BoolToBool{});
    }
}

const Tuning& Tuning::best() noexcept {
    static const Tuning tuning = [] {
        Tuning t;
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2")) t.vectors = Vectors::avx2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl"))
            t.vectors = Vectors::avx512;
#endif
        return t;
    }();
    return tuning;
}

}  // namespace carrier
