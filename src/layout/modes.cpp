// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/modes.hpp"

#include <algorithm>

namespace carrier {

namespace {

void flatten(const IntTree& tree, std::vector<std::int64_t>& leaves, std::vector<std::int32_t>& form) {
    if (tree.is_leaf()) {
        leaves.push_back(tree.value());
        form.push_back(Modes::kLeaf);
        return;
    }
    form.push_back(static_cast<std::int32_t>(tree.items().size()));
    for (const IntTree& item : tree.items()) flatten(item, leaves, form);
}

IntTree unflatten(const std::int64_t*& leaf, const std::int32_t*& form) {
    const std::int32_t items = *form++;
    if (items == Modes::kLeaf) return *leaf++;
    std::vector<IntTree> list;
    list.reserve(static_cast<std::size_t>(items));
    for (std::int32_t i = 0; i < items; ++i) list.push_back(unflatten(leaf, form));
    return IntTree(std::move(list));
}

void write(const IntTree& tree, std::string& text) {
    if (tree.is_leaf()) {
        text += std::to_string(tree.value());
        return;
    }
    text += '[';
    const char* separator = "";
    for (const IntTree& item : tree.items()) {
        text += separator;
        write(item, text);
        separator = ", ";
    }
    text += ']';
}

void mix(std::size_t& hash, std::uint64_t value) noexcept {
    std::uint64_t h = (hash ^ value) * 0x9e3779b97f4a7c15U;
    h ^= h >> 32;
    hash = static_cast<std::size_t>(h * 0xd6e8feb86659fd93U);
}

}  // namespace

IntTree::IntTree(std::vector<IntTree> items) : depth_(1), items_(std::move(items)) {
    for (const IntTree& item : items_) depth_ = std::max(depth_, item.depth_ + 1);
    if (depth_ > kMaxDepth)
        throw ValueError("lists of modes nest at most " + std::to_string(kMaxDepth) + " deep");
}

std::string IntTree::repr() const {
    std::string text;
    write(*this, text);
    return text;
}

Modes::Modes(const IntTree& tree) {
    auto flat = std::make_shared<Flat>();
    if (tree.is_leaf()) flat->form.push_back(1);
    flatten(tree, flat->leaves, flat->form);
    flat_ = std::move(flat);
}

IntTree Modes::tree() const {
    const std::int64_t* leaf = flat_->leaves.data();
    const std::int32_t* form = flat_->form.data();
    return unflatten(leaf, form);
}

bool Modes::operator==(const Modes& other) const noexcept {
    return flat_ == other.flat_ || (flat_->leaves == other.flat_->leaves && flat_->form == other.flat_->form);
}

bool Modes::same_form(const Modes& other) const noexcept { return flat_->form == other.flat_->form; }

std::size_t Modes::hash() const noexcept {
    std::size_t hash = flat_->form.size();
    for (const std::int32_t items : flat_->form) mix(hash, static_cast<std::uint64_t>(items));
    for (const std::int64_t leaf : flat_->leaves) mix(hash, static_cast<std::uint64_t>(leaf));
    return hash;
}

std::string Modes::repr(std::string_view name) const {
    const IntTree modes = tree();
    const bool keep_list = modes.items().size() == 1 && !modes.items().front().is_leaf();
    const std::string text = modes.repr();
    return std::string(name) + '(' + (keep_list ? text : text.substr(1, text.size() - 2)) + ')';
}

}  // namespace carrier
