// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "carrier/layout.hpp"

/// Random nested layouts, with the shapes that go wrong: extents of 1, steps of 0, overlaps, holes, shuffled
/// leaves.
namespace carrier {

class Random {
  public:
    explicit Random(unsigned seed) : engine_(seed) {}
    /// From `low` to `high`, both included.
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }
    bool one_in(std::int64_t n) { return between(1, n) == 1; }
    std::mt19937& engine() { return engine_; }

  private:
    std::mt19937 engine_;
};

inline IntTree random_extents(Random& random, std::int64_t& room, int depth) {
    std::vector<IntTree> modes;
    for (std::int64_t n = random.between(depth == 0 ? 0 : 1, 4); n > 0; --n) {
        if (depth < 2 && random.one_in(4)) {
            modes.push_back(random_extents(random, room, depth + 1));
            continue;
        }
        const std::int64_t extent = std::min(room, random.one_in(5) ? 1 : random.between(1, 6));
        room /= extent;
        modes.emplace_back(extent);
    }
    return IntTree(std::move(modes));
}

/// A shape of at most `room` indices.
inline Shape random_shape(Random& random, std::int64_t room) {
    return Shape(random_extents(random, room, 0));
}

inline IntTree like(const IntTree& form, const std::int64_t*& leaf) {
    if (form.is_leaf()) return *leaf++;
    std::vector<IntTree> items;
    for (const IntTree& item : form.items()) items.push_back(like(item, leaf));
    return IntTree(std::move(items));
}

/// The layout of `shape` with these steps, one for each leaf.
inline Layout layout_of(const Shape& shape, const std::vector<std::int64_t>& steps) {
    const std::int64_t* step = steps.data();
    return Layout(shape, Stride(like(shape.modes().tree(), step)));
}

/// Steps that nest, in some order of the leaves, with a hole here and there.
inline std::vector<std::int64_t> nesting_steps(Random& random, const Shape& shape, bool shuffled,
                                               bool holes) {
    std::vector<std::size_t> order(shape.leaves().size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (shuffled) std::shuffle(order.begin(), order.end(), random.engine());
    std::vector<std::int64_t> steps(order.size());
    std::int64_t step = holes && random.one_in(3) ? random.between(2, 4) : 1;
    for (const std::size_t leaf : order) {
        steps[leaf] = step;
        step = step * shape.leaves()[leaf] + (holes && random.one_in(2) ? random.between(1, 9) : 0);
    }
    return steps;
}

inline Layout random_layout(Random& random, const Shape& shape) {
    std::vector<std::int64_t> steps = nesting_steps(random, shape, !random.one_in(4), random.one_in(2));
    switch (random.between(0, 4)) {
        case 0:  // anything, mostly overlapping
            for (std::int64_t& step : steps) step = random.between(0, 12);
            break;
        case 1:  // broadcasts
            for (std::int64_t& step : steps)
                if (random.one_in(3)) step = 0;
            break;
        case 2:  // near misses
            for (std::int64_t& step : steps)
                if (random.one_in(3)) step = std::max<std::int64_t>(0, step + random.between(-2, 2));
            break;
        default:
            break;
    }
    return layout_of(shape, steps);
}

inline std::int64_t size_of(const IntTree& shape) {
    if (shape.is_leaf()) return shape.value();
    std::int64_t size = 1;
    for (const IntTree& mode : shape.items()) size *= size_of(mode);
    return size;
}

/// The full coordinate of a logical index, by the definition: first mode fastest, recursively.
inline IntTree coordinate_of(const IntTree& shape, std::int64_t logical) {
    if (shape.is_leaf()) return logical;
    std::vector<IntTree> items;
    for (const IntTree& mode : shape.items()) {
        const std::int64_t size = size_of(mode);
        items.push_back(coordinate_of(mode, logical % size));
        logical /= size;
    }
    return IntTree(std::move(items));
}

}  // namespace carrier
