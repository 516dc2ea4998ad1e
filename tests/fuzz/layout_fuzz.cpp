// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Shapes, strides, keys and copy plans against their definition, one index after the other.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "carrier/errors.hpp"
#include "carrier/layout.hpp"
#include "layout/plan.hpp"
#include "support/input.hpp"

namespace carrier::fuzz {
namespace {

using Wide = __int128;
constexpr Wide kMost = INT64_MAX;

/// Extents and steps: mostly small, with the numbers on which arithmetic breaks in between.
std::int64_t number(Input& in, std::int64_t low, std::int64_t high) {
    static constexpr std::int64_t kOdd[] = {
        0,        1,        -1,       INT64_MIN,  INT64_MAX, INT64_MAX - 1, 1L << 31, 1L << 32,
        1L << 40, 1L << 61, 1L << 62, 3037000500, 999999937, 1L << 20,      65537,    12289};
    if (!in.one_in(24)) return in.between(low, high);
    return kOdd[in.between(0, std::size(kOdd) - 1)];
}

IntTree shape_tree(Input& in, int depth) {
    std::vector<IntTree> modes;
    for (std::int64_t n = in.between(0, depth == 0 ? 5 : 3); n > 0; --n) {
        if (depth < 4 && in.one_in(4))
            modes.push_back(shape_tree(in, depth + 1));
        else
            modes.emplace_back(number(in, 1, 6));
    }
    return IntTree(std::move(modes));
}

/// Steps for each leaf of `shape`; now and then of another form.
IntTree stride_tree(Input& in, const IntTree& shape, std::int64_t& nested) {
    if (in.one_in(64)) return shape_tree(in, 1);
    if (shape.is_leaf()) {
        const std::int64_t step = in.one_in(2) ? nested : number(in, 0, 12);
        const Wide next = static_cast<Wide>(nested) * shape.value();
        nested = next > 0 && next < kMost ? static_cast<std::int64_t>(next) : 1;
        return step;
    }
    std::vector<IntTree> items;
    for (const IntTree& item : shape.items()) items.push_back(stride_tree(in, item, nested));
    return IntTree(std::move(items));
}

/// A coordinate of `shape`, with wrong ones in between.
IntTree key_tree(Input& in, const IntTree& shape) {
    if (in.one_in(32)) return shape_tree(in, 2);
    if (shape.is_leaf() || in.one_in(3)) return number(in, -1, 40);
    std::vector<IntTree> items;
    for (const IntTree& item : shape.items()) items.push_back(key_tree(in, item));
    return IntTree(std::move(items));
}

std::vector<std::int64_t> leaves(const IntTree& tree) {
    if (tree.is_leaf()) return {tree.value()};
    std::vector<std::int64_t> all;
    for (const IntTree& item : tree.items())
        for (const std::int64_t leaf : leaves(item)) all.push_back(leaf);
    return all;
}

bool same_form(const IntTree& a, const IntTree& b) {
    if (a.is_leaf() != b.is_leaf() || a.items().size() != b.items().size()) return false;
    for (std::size_t i = 0; i < a.items().size(); ++i)
        if (!same_form(a.items()[i], b.items()[i])) return false;
    return true;
}

Wide size_of(const IntTree& shape) {
    Wide size = 1;
    for (const std::int64_t extent : leaves(shape)) size *= extent;
    return size;
}

/// The slot of a logical index inside the domain: the first leaf runs fastest.
Wide slot_of(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& steps,
             std::int64_t left) {
    Wide slot = 0;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        slot += static_cast<Wide>(left % extents[i]) * steps[i];
        left /= extents[i];
    }
    return slot;
}

/// The slot of a key by the definition; nothing outside the domain.
std::optional<Wide> slot_of(const IntTree& shape, const IntTree& stride, const IntTree& key) {
    Wide slot = 0;
    if (!key.is_leaf()) {
        if (shape.is_leaf() || key.items().size() != shape.items().size()) return std::nullopt;
        for (std::size_t i = 0; i < key.items().size(); ++i) {
            const auto part = slot_of(shape.items()[i], stride.items()[i], key.items()[i]);
            if (!part) return std::nullopt;
            slot += *part;
        }
        return slot;
    }
    if (key.value() < 0 || key.value() >= size_of(shape)) return std::nullopt;
    return slot_of(leaves(shape), leaves(stride), key.value());
}

enum class Verdict { good, value, overflow };

Verdict judge_shape(const IntTree& tree) {
    Wide size = 1;
    for (const std::int64_t extent : leaves(tree)) {
        if (extent < 1) return Verdict::value;
        size *= extent;
        if (size > kMost) return Verdict::overflow;
    }
    return Verdict::good;
}

Verdict judge_layout(const IntTree& shape, const IntTree& stride) {
    if (!same_form(shape, stride)) return Verdict::value;
    const std::vector<std::int64_t> extents = leaves(shape), steps = leaves(stride);
    Wide cosize = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        cosize += static_cast<Wide>(extents[i] - 1) * steps[i];
        if (cosize > kMost) return Verdict::overflow;
    }
    return Verdict::good;
}

template <class Make>
auto made(Verdict verdict, const Make& make) -> std::optional<decltype(make())> {
    if (verdict == Verdict::good) return make();
    FUZZ_CHECK(verdict == Verdict::value ? FUZZ_THROWS(ValueError, make())
                                         : FUZZ_THROWS(OverflowError, make()));
    return std::nullopt;
}

void check_keys(Input& in, const Layout& layout, const IntTree& shape, const IntTree& stride) {
    for (std::int64_t n = in.between(1, 6); n > 0; --n) {
        const IntTree key = key_tree(in, shape);
        const auto slot = slot_of(shape, stride, key);
        if (slot)
            FUZZ_CHECK(layout.index(key) == *slot && *slot < layout.cosize());
        else
            FUZZ_CHECK(FUZZ_THROWS(ValueError, layout.index(key)));
        if (key.is_leaf() && slot) FUZZ_CHECK(layout.index(key.value()) == *slot);
    }
}

void check_slots(const Layout& layout, const IntTree& shape, const IntTree& stride) {
    const std::vector<std::int64_t> extents = leaves(shape), steps = leaves(stride);
    std::set<std::int64_t> seen;
    std::int64_t greatest = 0;
    for (std::int64_t i = 0; i < layout.size(); ++i) {
        const std::int64_t slot = layout.index(i);
        FUZZ_CHECK(slot == slot_of(extents, steps, i));
        greatest = std::max(greatest, slot);
        seen.insert(slot);
    }
    FUZZ_CHECK(layout.cosize() == greatest + 1);
    FUZZ_CHECK(layout.is_injective() == (seen.size() == static_cast<std::size_t>(layout.size())));
}

struct Element {
    std::size_t width;
    Conversion conversion;
};
constexpr Element kElements[] = {{4, Conversion::none},
                                 {1, Conversion::none},
                                 {4, Conversion::int32_to_float32},
                                 {4, Conversion::bool_to_float32},
                                 {1, Conversion::bool_to_bool}};

void move_element(const Element& e, const std::byte* from, std::byte* to) {
    if (e.conversion == Conversion::none) {
        std::memcpy(to, from, e.width);
    } else if (e.conversion == Conversion::bool_to_bool) {
        *to = std::byte{*from != std::byte{0}};
    } else {
        std::int32_t integer = *from != std::byte{0};
        if (e.conversion == Conversion::int32_to_float32) std::memcpy(&integer, from, 4);
        const auto number = static_cast<float>(integer);
        std::memcpy(to, &number, 4);
    }
}

/// A plan writes the slots that the definition names, and nothing else.
void check_plan(Input& in, const Layout* source, const Layout* destination) {
    const Element e = kElements[in.between(0, std::size(kElements) - 1)];
    const std::size_t from_width = source_width(e.width, e.conversion);
    const Layout& known = source != nullptr ? *source : *destination;
    const auto slots = [&](const Layout* layout) {
        return static_cast<std::size_t>(layout != nullptr ? layout->cosize() : known.size());
    };
    const auto slot = [](const Layout* layout, std::int64_t i) {
        return static_cast<std::size_t>(layout != nullptr ? layout->index(i) : i);
    };
    // No spare byte on either side: the sanitizer sees the first one too many.
    std::vector<std::byte> from(slots(source) * from_width),
        to(slots(destination) * e.width, std::byte{0x5A});
    std::uint32_t next = in.bits<std::uint32_t>() | 1;
    for (std::byte& b : from) b = static_cast<std::byte>((next = next * 1664525 + 1013904223) >> 24);
    std::vector<std::byte> expected = to;
    for (std::int64_t i = 0; i < known.size(); ++i)
        move_element(e, from.data() + slot(source, i) * from_width,
                     expected.data() + slot(destination, i) * e.width);
    const CopyPlan plan = source == nullptr        ? CopyPlan::spread(*destination, e.width, e.conversion)
                          : destination == nullptr ? CopyPlan::gather(*source, e.width, e.conversion)
                                                   : CopyPlan(*source, *destination, e.width, e.conversion);
    Tuning tuning = Tuning::best();
    if (in.one_in(2)) tuning.vectors = Tuning::Vectors::baseline;
    if (in.one_in(2)) tuning.stream_from = tuning.stream_run_from = 0;
    plan.run(from.data(), to.data(), tuning);
    FUZZ_CHECK(to == expected);
}

void run(Input& in) {
    const IntTree tree = shape_tree(in, 0);
    const auto shape = made(judge_shape(tree), [&] { return Shape(tree); });
    if (!shape) return;
    FUZZ_CHECK(shape->size() == size_of(tree) && shape->modes().tree() == tree);
    std::optional<Layout> layouts[2];
    for (std::optional<Layout>& layout : layouts) {
        std::int64_t nested = 1;
        const IntTree steps = stride_tree(in, tree, nested);
        Verdict good = Verdict::good;
        for (const std::int64_t step : leaves(steps))
            if (step < 0) good = Verdict::value;
        const auto stride = made(good, [&] { return Stride(steps); });
        if (!stride) continue;
        layout = made(judge_layout(tree, steps), [&] { return Layout(*shape, *stride); });
        if (!layout) continue;
        FUZZ_CHECK(*layout == Layout(Shape(tree), Stride(steps)));
        FUZZ_CHECK(layout->hash() == Layout(Shape(tree), Stride(steps)).hash());
        check_keys(in, *layout, tree, steps);
        if (layout->size() <= 1024) check_slots(*layout, tree, steps);
        if (layout->size() > 4096 || layout->cosize() > 1 << 16) layout.reset();
    }
    const auto& [first, second] = layouts;
    if (first) check_plan(in, &*first, nullptr);
    if (second) check_plan(in, nullptr, &*second);
    if (first && second) check_plan(in, &*first, &*second);
}

}  // namespace
}  // namespace carrier::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    carrier::fuzz::Input in(data, size);
    carrier::fuzz::run(in);
    return 0;
}
