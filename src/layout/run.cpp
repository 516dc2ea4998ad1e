// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/plan.hpp"
#include "layout/rows.hpp"
#include "os/stream.hpp"

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

/// The tiled kind: axis 0 is the shorter step of the destination, axis 1 that of the source.
template <class Op>
void run_tiles(const Axis* axes, std::size_t count, const std::byte* from, std::byte* to,
               const Tuning& tuning) noexcept {
    const Axis& i = axes[0];
    const Axis& j = axes[1];
    if (i.to != 1 || j.from != 1)
        return for_each<Op>(axes + 2, count - 2, from, to,
                            [&](const std::byte* f, std::byte* t) { copy_tiles<Op>(i, j, f, t); });
    constexpr auto from_width = static_cast<std::int64_t>(sizeof(typename Op::From));
    constexpr auto to_width = static_cast<std::int64_t>(sizeof(typename Op::To));
    const auto vectors = tuning.vectors;
    const auto planes = [&](auto transpose) {
        for_each<Op>(axes + 2, count - 2, from, to, [&](const std::byte* f, std::byte* t) {
            transpose(Plane{f, t, i.from * from_width, j.to * to_width, i.extent, j.extent});
        });
    };
    if constexpr (!is_plain<Op>) {
        planes([vectors](const Plane& p) { convert_transposed<Op>(p, vectors); });
    } else if constexpr (to_width == 1) {
        planes([](const Plane& p) { transpose1(p); });
    } else {
        std::size_t bytes = 4;
        for (std::size_t k = 0; k < count; ++k) bytes *= static_cast<std::size_t>(axes[k].extent);
        const bool stream = bytes >= tuning.stream_from && i.extent >= 64;
        planes([vectors, stream](const Plane& p) { transpose4(p, vectors, stream); });
        if (stream) os::finish_streaming();
    }
}

template <class Op>
void run_axes(const Axis* axes, std::size_t count, bool tiled, const std::byte* from, std::byte* to,
              const Tuning& tuning) noexcept {
    if (count == 0) return copy_one<Op>(from, to);
    if (tiled) return run_tiles<Op>(axes, count, from, to, tuning);
    if constexpr (is_plain<Op>)
        if (axes[0].from == 1 && axes[0].to == 1) {
            constexpr auto width = static_cast<std::int64_t>(sizeof(typename Op::To));
            if (count > 1)
                return for_each<Op>(axes + 2, count - 2, from, to, [axes](const std::byte* f, std::byte* t) {
                    copy_runs(axes[1], axes[0].extent * width, width, f, t);
                });
        }
    for_each<Op>(axes + 1, count - 1, from, to,
                 [axes](const std::byte* f, std::byte* t) { copy_row<Op>(axes[0], f, t); });
}

}  // namespace

void CopyPlan::run(const std::byte* source, std::byte* destination, const Tuning& tuning) const noexcept {
    const std::byte* const from =
        source + from_ * static_cast<std::int64_t>(source_width(width_, conversion_));
    const auto with = [&]<class Op>(Op) {
        run_axes<Op>(axes_.data(), count_, tiled_, from, destination, tuning);
    };
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
        if (__builtin_cpu_supports("avx512f")) t.vectors = Vectors::avx512;
#endif
        return t;
    }();
    return tuning;
}
namespace {
[[maybe_unused]] const Tuning& ready = Tuning::best();
}

}  // namespace carrier
