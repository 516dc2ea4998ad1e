// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Access plans beside bare loops over the same memory: `bytes_per_second` counts the elements' bytes once.

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "carrier/layout.hpp"
#include "carrier/plan_run.hpp"

namespace {

using carrier::CopyPlan;
using carrier::Layout;
using carrier::Shape;
using carrier::Stride;

constexpr std::int64_t kMany = 10'000'000;

/// Floats in huge pages, as carriers hold them.
class Floats {
  public:
    explicit Floats(std::int64_t n) {
        constexpr std::size_t huge = std::size_t{2} << 20;
        const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(float) + huge - 1) / huge * huge;
        floats = static_cast<float*>(std::aligned_alloc(huge, bytes));
        if (floats == nullptr) std::abort();
#if defined(MADV_HUGEPAGE)
        madvise(floats, bytes, MADV_HUGEPAGE);
#endif
        std::fill_n(floats, n, 1.0F);
    }
    Floats(const Floats&) = delete;
    Floats& operator=(const Floats&) = delete;
    ~Floats() { std::free(floats); }
    std::byte* data() { return reinterpret_cast<std::byte*>(floats); }
    float* floats;
};

void copy(benchmark::State& state, const Layout& source, const Layout& destination) {
    Floats from(source.cosize());
    Floats to(destination.cosize());
    for (auto _ : state) {
        carrier::run_plan(CopyPlan(source, destination, 4), from.data(), to.data());
        benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * source.size());
    state.SetBytesProcessed(state.iterations() * source.size() * 4);
}

void contiguous(benchmark::State& state) {
    const Layout dense(Shape(state.range(0)), Stride(1));
    copy(state, dense, dense);
}
BENCHMARK(contiguous)->UseRealTime()->Arg(kMany)->Arg(16)->Arg(1000);

void contiguous_memcpy(benchmark::State& state) {
    Floats from(state.range(0)), to(state.range(0));
    for (auto _ : state) {
        std::memcpy(to.data(), from.data(), static_cast<std::size_t>(state.range(0)) * 4);
        benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(contiguous_memcpy)->UseRealTime()->Arg(kMany)->Arg(16)->Arg(1000);

void to_stride(benchmark::State& state) {
    copy(state, Layout(Shape(kMany), Stride(1)), Layout(Shape(kMany), Stride(state.range(0))));
}
BENCHMARK(to_stride)->UseRealTime()->Arg(2)->Arg(3)->Arg(4)->Arg(8);

void to_stride_loop(benchmark::State& state) {
    const std::int64_t step = state.range(0);
    Floats from(kMany), to(kMany * step);
    for (auto _ : state) {
        const float* f = from.floats;
        float* t = to.floats;
        for (std::int64_t i = 0; i < kMany; ++i) t[i * step] = f[i];
        benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * kMany);
}
BENCHMARK(to_stride_loop)->UseRealTime()->Arg(2)->Arg(3)->Arg(4)->Arg(8);

void from_stride(benchmark::State& state) {
    copy(state, Layout(Shape(kMany), Stride(state.range(0))), Layout(Shape(kMany), Stride(1)));
}
BENCHMARK(from_stride)->UseRealTime()->Arg(2)->Arg(3)->Arg(4)->Arg(8);

void runs_of_10_into_pitch_16(benchmark::State& state) {
    const Shape shape{10, kMany / 10};
    copy(state, Layout(shape, Stride{1, 10}), Layout(shape, Stride{1, 16}));
}
BENCHMARK(runs_of_10_into_pitch_16)->UseRealTime();

void transpose(benchmark::State& state) {
    const Shape shape{state.range(0), state.range(1)};
    copy(state, Layout(shape, Stride{state.range(1), 1}), Layout(shape, Stride{1, state.range(0)}));
}
BENCHMARK(transpose)
    ->UseRealTime()
    ->Args({3000, 3000})
    ->Args({3163, 3162})
    ->Args({4096, 4096})
    ->Args({1024, 1024})
    ->Args({256, 256})
    ->Args({64, 64})
    ->Args({4, 1'000'000})
    ->Args({1'000'000, 4});

void shuffled_leaves(benchmark::State& state) {
    const Shape shape{{8, 20}, {16, 25}, {10, 16}};
    copy(state, Layout(shape, Stride{{1, 8}, {160, 2560}, {64'000, 640'000}}),
         Layout(shape, Stride{{18, 16 * 18 * 27}, {1, 18 * 8}, {16 * 18 * 27 * 20, 16 * 18 * 27 * 200}}));
}
BENCHMARK(shuffled_leaves)->UseRealTime();

void shuffled_short_leaves(benchmark::State& state) {
    const Shape shape{4, 5, 8, 10, 16, 25, 16};
    copy(state, Layout(shape, Stride{1, 4, 20, 160, 1600, 25'600, 640'000}),
         Layout(shape, Stride{96, 2'560'000, 12, 1, 400, 102'400, 6400}));
}
BENCHMARK(shuffled_short_leaves)->UseRealTime();

void sixteen(benchmark::State& state) {
    const Shape shape{4, 4};
    copy(state, Layout(shape, Stride{1, 4}), Layout(shape, Stride{4, 1}));
}
BENCHMARK(sixteen)->UseRealTime();

}  // namespace
