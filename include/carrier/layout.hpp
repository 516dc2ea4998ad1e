// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "carrier/api.hpp"
#include "carrier/modes.hpp"

/// How a logical index becomes a slot. All three classes are immutable values, cheap to copy and safe to
/// share between threads. The rules are those of docs/contract.md, "Layout and Tensor".
namespace carrier {

/// The extents of a nested index space.
///
/// `Shape{2, {3, 4}}` has two modes, the second of them nested, and 24 indices. `Shape{}` has no mode and one
/// index. Nesting is part of the value: `Shape{4} != Shape{2, 2}`.
class CARRIER_API Shape {
  public:
    Shape() : Shape(std::initializer_list<IntTree>{}) {}
    Shape(std::initializer_list<IntTree> modes) : Shape(IntTree(modes)) {}
    /// The list of modes; a leaf is its only mode. ValueError when an extent is below 1, OverflowError when
    /// the number of indices does not fit 63 bits.
    explicit Shape(const IntTree& modes);

    /// Number of indices: the product of all extents.
    std::int64_t size() const noexcept { return size_; }
    /// Number of modes at the top.
    std::size_t rank() const noexcept { return modes_.rank(); }
    /// All extents, in order, without the nesting.
    std::span<const std::int64_t> leaves() const noexcept { return modes_.leaves(); }
    const Modes& modes() const noexcept { return modes_; }

    bool operator==(const Shape& other) const noexcept { return modes_ == other.modes_; }
    std::size_t hash() const noexcept { return modes_.hash(); }
    /// `Shape(2, [3, 4])`, which Python evaluates to an equal Shape.
    std::string repr() const { return modes_.repr("Shape"); }

  private:
    Modes modes_;
    std::int64_t size_ = 1;
};

/// The step, in slots, of every leaf of a Shape with the same nesting. Steps are at least 0; a step of 0
/// repeats one slot, as a broadcast does.
class CARRIER_API Stride {
  public:
    Stride() : Stride(std::initializer_list<IntTree>{}) {}
    Stride(std::initializer_list<IntTree> modes) : Stride(IntTree(modes)) {}
    /// The list of modes; a leaf is its only mode. ValueError when a step is negative.
    explicit Stride(const IntTree& modes);

    /// Number of modes at the top.
    std::size_t rank() const noexcept { return modes_.rank(); }
    /// All steps, in order, without the nesting.
    std::span<const std::int64_t> leaves() const noexcept { return modes_.leaves(); }
    const Modes& modes() const noexcept { return modes_; }

    bool operator==(const Stride& other) const noexcept { return modes_ == other.modes_; }
    std::size_t hash() const noexcept { return modes_.hash(); }
    /// `Stride(1, [2, 6])`, which Python evaluates to an equal Stride.
    std::string repr() const { return modes_.repr("Stride"); }

  private:
    Modes modes_;
};

/// A map from the indices of a Shape to slots: the sum, over the leaves, of coordinate times step.
class CARRIER_API Layout {
  public:
    /// No mode: the one index 0 at slot 0.
    Layout() = default;
    /// ValueError unless both are nested alike; OverflowError when the greatest slot does not fit 63 bits.
    Layout(Shape shape, Stride stride);

    const Shape& shape() const noexcept { return shape_; }
    const Stride& stride() const noexcept { return stride_; }
    /// Number of logical indices.
    std::int64_t size() const noexcept { return shape_.size(); }
    /// One more than the greatest slot. A range of that many slots holds every one that the layout reaches,
    /// so one comparison proves them all in bounds.
    std::int64_t cosize() const noexcept { return cosize_; }
    /// Whether no two indices share a slot. Exact. Quick for every layout whose steps nest or collide
    /// pairwise; a search otherwise, whose time grows with the number of leaves that interleave, not with
    /// their extents.
    bool is_injective() const;

    /// The slot of a logical index in [0, size()), which counts the first mode fastest, nested modes
    /// likewise: `Layout(Shape{2, 3}, Stride{3, 1})` sends 0..5 to 0, 3, 1, 4, 2, 5. ValueError outside.
    std::int64_t index(std::int64_t logical) const;
    /// The slot of a coordinate: a list with one item for each mode, where an item is a coordinate of that
    /// mode, or one integer for the whole of it. A leaf is a logical index. ValueError outside the shape, or
    /// nested otherwise.
    std::int64_t index(const IntTree& coordinate) const;

    bool operator==(const Layout& other) const noexcept {
        return shape_ == other.shape_ && stride_ == other.stride_;
    }
    std::size_t hash() const noexcept;
    /// `Layout(Shape(2, 3), Stride(3, 1))`, which Python evaluates to an equal Layout.
    std::string repr() const;

  private:
    Shape shape_;
    Stride stride_;
    std::int64_t cosize_ = 1;
};

}  // namespace carrier
