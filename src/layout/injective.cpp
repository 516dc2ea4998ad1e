// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/injective.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace carrier {

namespace {

/// Smallest x >= 0 with a * x = b (mod m), for a coprime to m.
std::int64_t solve(std::int64_t a, std::int64_t b, std::int64_t m) noexcept {
    std::int64_t r0 = m, r1 = a % m, x0 = 0, x1 = 1;
    while (r1 != 0) {
        const std::int64_t q = r0 / r1;
        r0 = std::exchange(r1, r0 - q * r1);
        x0 = std::exchange(x1, x0 - q * x1);
    }
    const auto residue = static_cast<__int128>(x0) * (b % m) % m;
    return static_cast<std::int64_t>(residue < 0 ? residue + m : residue);
}

/// Two indices share a slot exactly if some nonzero tuple of differences d, with |d_k| < extent_k, sums up to
/// zero: sum d_k * step_k = 0. The search fixes the differences from the greatest step down, and follows a
/// partial sum only while the loops below can still cancel it: within their reach, and a multiple of their
/// common divisor.
class Collision {
  public:
    /// Loops sorted by step, each with an extent of at least 2 and a step of at least 1.
    explicit Collision(std::span<const Loop> loops) : loops_(loops) {
        std::int64_t reach = 0;
        std::int64_t divisor = 0;
        for (const Loop& loop : loops) {
            reach += (loop.extent - 1) * loop.step;
            divisor = std::gcd(divisor, loop.step);
            below_.push_back({reach, divisor});
        }
    }

    bool exists() {
        for (std::size_t top = loops_.size() - 1; top > 0; --top)
            if (cancels(top, 0, 1)) return true;
        return false;
    }

  private:
    struct Below {
        std::int64_t reach;
        std::int64_t divisor;
    };
    struct Dead {
        std::size_t level = 0;
        std::int64_t sum = 0;
    };
    static constexpr std::size_t kDead = std::size_t{1} << 15;
    static constexpr int kFirstSteps = 4096;

    /// Whether loops 0..level can bring `sum` to zero with the difference of `level` at least `least`.
    bool cancels(std::size_t level, std::int64_t sum, std::int64_t least) {
        const auto [extent, step] = loops_[level];
        const Below below = below_[level - 1];
        const std::int64_t common = std::gcd(step, below.divisor);
        const std::int64_t stride = below.divisor / common;
        // |sum + d * step| <= reach, and sum + d * step = 0 (mod divisor); sum is a multiple of `common`
        // already.
        const auto floor_div = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); };
        const std::int64_t first = std::max(least, -floor_div(below.reach + sum, step));
        const std::int64_t last = std::min(extent - 1, floor_div(below.reach - sum, step));
        const std::int64_t residue = solve(step / common, -(sum / common) % stride, stride);
        const std::int64_t skip =
            static_cast<std::int64_t>((static_cast<__int128>(residue) - first) % stride);
        const __int128 start = static_cast<__int128>(first) + (skip < 0 ? skip + stride : skip);
        if (start > last) return false;
        for (auto d = static_cast<std::int64_t>(start);; d += stride) {
            const std::int64_t left = std::abs(sum + d * step);
            if (level == 1 || left == 0) return true;
            if (!known_dead(level - 1, left)) {
                if (cancels(level - 1, left, 1 - loops_[level - 1].extent)) return true;
                remember(level - 1, left);
            }
            if (stride > last - d) return false;
        }
    }

    std::size_t slot(std::size_t level, std::int64_t sum) const noexcept {
        return (static_cast<std::uint64_t>(sum) * 0x9e3779b97f4a7c15U + level) >> 49;
    }
    bool known_dead(std::size_t level, std::int64_t sum) const noexcept {
        if (dead_.empty()) return false;
        const Dead& d = dead_[slot(level, sum)];
        return d.level == level && d.sum == sum;
    }
    void remember(std::size_t level, std::int64_t sum) {
        if (dead_.empty()) {
            if (++steps_ < kFirstSteps) return;
            dead_.resize(kDead);
        }
        dead_[slot(level, sum)] = {level, sum};
    }

    std::span<const Loop> loops_;
    std::vector<Below> below_;
    std::vector<Dead> dead_;
    int steps_ = 0;
};

/// A collision of two loops alone, which most overlapping layouts have.
bool two_collide(std::span<const Loop> loops) noexcept {
    for (std::size_t i = 0; i < loops.size(); ++i)
        for (std::size_t j = i + 1; j < loops.size(); ++j) {
            const std::int64_t common = std::gcd(loops[i].step, loops[j].step);
            if (loops[j].step / common < loops[i].extent && loops[i].step / common < loops[j].extent)
                return true;
        }
    return false;
}

}  // namespace

bool steps_nest(std::span<const Loop> loops) noexcept {
    std::int64_t reach = 0;
    for (const Loop& loop : loops) {
        if (loop.step <= reach) return false;
        reach += (loop.extent - 1) * loop.step;
    }
    return true;
}

bool is_injective(std::vector<Loop> loops) {
    std::erase_if(loops, [](const Loop& loop) { return loop.extent == 1; });
    std::sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.step < b.step; });
    if (steps_nest(loops)) return true;
    if (loops.front().step == 0) return false;
    std::int64_t indices = 1;
    std::int64_t reach = 0;
    for (const Loop& loop : loops) {
        indices *= loop.extent;
        reach += (loop.extent - 1) * loop.step;
    }
    if (indices - 1 > reach || two_collide(loops)) return false;
    return !Collision(loops).exists();
}

}  // namespace carrier
