// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/layout.hpp"

#include <string_view>
#include <vector>

#include "layout/injective.hpp"

namespace carrier {

namespace {

std::string in(const Shape& shape) { return " in " + shape.repr(); }

/// Follows a coordinate through the nesting of a layout.
class Walk {
  public:
    explicit Walk(const Layout& layout)
        : shape_(layout.shape()),
          extent_(layout.shape().leaves().data()),
          step_(layout.stride().leaves().data()),
          form_(layout.shape().modes().form().data()) {}

    std::int64_t operator()(const IntTree& at) {
        if (at.is_leaf()) return whole(at.value());
        const std::int32_t items = *form_++;
        if (items == Modes::kLeaf)
            throw ValueError("coordinate " + at.repr() + " stands where the mode is one integer" +
                             in(shape_));
        if (at.items().size() != static_cast<std::size_t>(items))
            throw ValueError("coordinate " + at.repr() + " has " + std::to_string(at.items().size()) +
                             " items where the mode has " + std::to_string(items) + in(shape_));
        std::int64_t slot = 0;
        for (const IntTree& item : at.items()) slot += (*this)(item);
        return slot;
    }

  private:
    /// One integer for the whole mode here, its leaves counted first fastest.
    std::int64_t whole(std::int64_t logical) {
        std::int64_t left = logical;
        std::int64_t slot = 0;
        std::int64_t size = 1;
        for (std::int64_t nodes = 1; nodes > 0; --nodes) {
            const std::int32_t items = *form_++;
            if (items != Modes::kLeaf) {
                nodes += items;
                continue;
            }
            slot += left % *extent_ * *step_++;
            left /= *extent_;
            size *= *extent_++;
        }
        if (left != 0 || logical < 0)
            throw ValueError("coordinate " + std::to_string(logical) + " lies outside [0, " +
                             std::to_string(size) + ")" + in(shape_));
        return slot;
    }

    const Shape& shape_;
    const std::int64_t* extent_;
    const std::int64_t* step_;
    const std::int32_t* form_;
};

}  // namespace

Shape::Shape(const IntTree& modes) : modes_(modes) {
    for (const std::int64_t extent : leaves()) {
        if (extent < 1)
            throw ValueError("an extent of a Shape must be at least 1; got " + std::to_string(extent));
        if (__builtin_mul_overflow(size_, extent, &size_))
            throw OverflowError("the number of indices of " + repr() + " does not fit 63 bits");
    }
}

Stride::Stride(const IntTree& modes) : modes_(modes) {
    for (const std::int64_t step : leaves())
        if (step < 0) throw ValueError("a leaf of a Stride must be at least 0; got " + std::to_string(step));
}

Layout::Layout(Shape shape, Stride stride) : shape_(std::move(shape)), stride_(std::move(stride)) {
    if (!shape_.modes().same_form(stride_.modes()))
        throw ValueError(shape_.repr() + " and " + stride_.repr() +
                         " must have the same modes, nested alike");
    const auto extents = shape_.leaves();
    const auto steps = stride_.leaves();
    for (std::size_t i = 0; i < extents.size(); ++i) {
        std::int64_t span = 0;
        if (__builtin_mul_overflow(extents[i] - 1, steps[i], &span) ||
            __builtin_add_overflow(cosize_, span, &cosize_))
            throw OverflowError("the greatest slot of " + repr() + " does not fit 63 bits");
    }
}

bool Layout::is_injective() const {
    std::vector<Loop> loops;
    loops.reserve(shape_.leaves().size());
    for (std::size_t i = 0; i < shape_.leaves().size(); ++i)
        loops.push_back({shape_.leaves()[i], stride_.leaves()[i]});
    return carrier::is_injective(std::move(loops));
}

std::int64_t Layout::index(std::int64_t logical) const {
    if (logical < 0 || logical >= size())
        throw ValueError("index " + std::to_string(logical) + " lies outside [0, " + std::to_string(size()) +
                         ")" + in(shape_));
    const auto extents = shape_.leaves();
    const std::int64_t* step = stride_.leaves().data();
    std::int64_t slot = 0;
    for (const std::int64_t extent : extents) {
        if (logical < extent) return slot + logical * *step;
        slot += logical % extent * *step++;
        logical /= extent;
    }
    return slot;
}

std::int64_t Layout::index(const IntTree& coordinate) const {
    return coordinate.is_leaf() ? index(coordinate.value()) : Walk(*this)(coordinate);
}

std::size_t Layout::hash() const noexcept { return shape_.hash() * 31 + stride_.hash(); }

std::string Layout::repr() const { return "Layout(" + shape_.repr() + ", " + stride_.repr() + ")"; }

}  // namespace carrier
