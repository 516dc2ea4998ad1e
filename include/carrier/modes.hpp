// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carrier/api.hpp"
#include "carrier/errors.hpp"

namespace carrier {

/// An integer leaf, or a list of trees: how shapes, strides and coordinates are written, `{2, {3, 4}}`.
///
/// A plain value with no rule of its own but one: lists nest at most `kMaxDepth` deep (ValueError), so that
/// no input can exhaust the stack. To wrap a tree in a list, build the vector: `IntTree{tree}` may be a copy.
class CARRIER_API IntTree {
  public:
    static constexpr int kMaxDepth = 128;

    /// A leaf. OverflowError when an unsigned value does not fit 63 bits; truth values are not integers here.
    template <std::integral Integer>
    requires(!std::same_as<Integer, bool>) IntTree(Integer leaf) : value_(static_cast<std::int64_t>(leaf)) {
        if (!std::in_range<std::int64_t>(leaf)) throw OverflowError("the integer does not fit 63 bits");
    }
    IntTree(std::initializer_list<IntTree> items) : IntTree(std::vector<IntTree>(items)) {}
    explicit IntTree(std::vector<IntTree> items);

    bool is_leaf() const noexcept { return depth_ == 0; }
    /// The leaf's integer; 0 for a list.
    std::int64_t value() const noexcept { return value_; }
    /// The list's trees in order; none for a leaf.
    const std::vector<IntTree>& items() const noexcept { return items_; }

    bool operator==(const IntTree& other) const = default;
    /// As Python writes it: `7`, `[2, [3, 4]]`.
    std::string repr() const;

  private:
    std::int64_t value_ = 0;
    int depth_ = 0;
    std::vector<IntTree> items_;
};

/// An immutable list of modes, each an integer or a nested list: what Shape and Stride are made of.
///
/// Kept flat, since everything but printing works on the leaves: the leaves in order, and the form, which is
/// the tree in pre-order with the number of items for a list and `kLeaf` for a leaf. Copies share it and are
/// cheap; one that was moved from may only be assigned or destroyed.
class CARRIER_API Modes {
  public:
    static constexpr std::int32_t kLeaf = -1;

    /// The items of `tree`; a leaf counts as a list of itself.
    explicit Modes(const IntTree& tree);

    /// Number of modes at the top.
    std::size_t rank() const noexcept { return static_cast<std::size_t>(flat_->form.front()); }
    std::span<const std::int64_t> leaves() const noexcept { return flat_->leaves; }
    std::span<const std::int32_t> form() const noexcept { return flat_->form; }
    /// The list of the modes, nesting and all.
    IntTree tree() const;

    /// Structural: the same integers, nested alike. `[4]`, `[2, 2]` and `[[2, 2]]` are all different.
    bool operator==(const Modes& other) const noexcept;
    bool same_form(const Modes& other) const noexcept;
    /// Equal modes have equal hashes.
    std::size_t hash() const noexcept;
    /// `name(2, [3, 4])`: an expression that evaluates to an equal value in Python. One nested mode keeps its
    /// outer list, `name([[2, 3]])`, because a single list argument is the list of modes.
    std::string repr(std::string_view name) const;

  private:
    struct Flat {
        std::vector<std::int64_t> leaves;
        std::vector<std::int32_t> form;
    };
    std::shared_ptr<const Flat> flat_;
};

}  // namespace carrier
