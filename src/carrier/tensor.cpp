// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/tensor.hpp"

#include <typeinfo>

#include "carrier/errors.hpp"

namespace carrier {

namespace {

void check_placement(const Subtensor& s, bool may_be_released = false) {
    if (!s.carrier) throw TypeError("a Tensor needs a carrier");
    if (s.carrier->is_released() && !may_be_released)
        throw StateError("the " + s.carrier->kind() +
                         " carrier has been released; a Tensor needs a live one");
    if (s.offset < 0) throw ValueError("offset must be at least 0; got " + std::to_string(s.offset));
    if (s.carrier->is_released()) return;
    const std::int64_t size = s.carrier->size();
    const std::int64_t cosize = s.layout.cosize();
    if (cosize > size || s.offset > size - cosize)
        throw ValueError("the layout reaches " + std::to_string(cosize) + " slots from offset " +
                         std::to_string(s.offset) + ", beyond the " + std::to_string(size) +
                         " slots of the " + s.carrier->kind() + " carrier");
}

bool same_kind(const Carrier& a, const Carrier& b) { return typeid(a) == typeid(b) && a.kind() == b.kind(); }

void check_adjacent(const std::vector<Subtensor>& levels, const std::vector<Layout>& adjacent) {
    if (adjacent.size() + 1 != levels.size())
        throw ValueError(std::to_string(levels.size()) + " subtensors need " +
                         std::to_string(levels.size() - 1) + " adjacent layouts; got " +
                         std::to_string(adjacent.size()));
    for (std::size_t i = 0; i < adjacent.size(); ++i) {
        if (!(adjacent[i].shape() == levels[i].layout.shape()))
            throw ValueError("adjacent layout " + std::to_string(i) + " must have the shape of subtensor " +
                             std::to_string(i) + ", " + levels[i].layout.shape().repr() + ", not " +
                             adjacent[i].shape().repr());
        if (adjacent[i].cosize() > levels[i + 1].layout.size())
            throw ValueError("adjacent layout " + std::to_string(i) + " reaches index " +
                             std::to_string(adjacent[i].cosize() - 1) + ", outside subtensor " +
                             std::to_string(i + 1) + " of size " +
                             std::to_string(levels[i + 1].layout.size()));
    }
}

}  // namespace

Tensor::Tensor(Ref<Carrier> carrier, std::int64_t offset, Layout layout) {
    subtensors_.push_back({std::move(carrier), offset, std::move(layout)});
    check_placement(subtensors_.front());
}

Tensor::Tensor(const DType* compound, std::vector<Subtensor> subtensors, std::vector<Layout> adjacent)
    : subtensors_(std::move(subtensors)), adjacent_(std::move(adjacent)), compound_(compound) {}

namespace {

/// The checks of a Tensor of several planes.
void check_planes(const DType& dtype, const std::vector<Subtensor>& subtensors,
                  const std::vector<Layout>& adjacent, bool may_be_released) {
    if (!dtype.is_compound())
        throw ValueError("dtype '" + dtype.name() +
                         "' is not compound; only a compound dtype has several subtensors");
    const auto planes = dtype.planes();
    if (subtensors.size() != planes.size())
        throw ValueError("dtype '" + dtype.name() + "' has " + std::to_string(planes.size()) +
                         " planes; got " + std::to_string(subtensors.size()) + " subtensors");
    for (std::size_t i = 0; i < subtensors.size(); ++i) {
        check_placement(subtensors[i], may_be_released);
        const Carrier& c = *subtensors[i].carrier;
        if (!same_kind(c, *subtensors.front().carrier))
            throw TypeError("subtensors live on carriers of one kind; subtensor " + std::to_string(i) +
                            " is on a " + c.kind() + ", the first on a " +
                            subtensors.front().carrier->kind());
        if (&c.dtype() != planes[i])
            throw TypeError("plane " + std::to_string(i) + " of dtype '" + dtype.name() + "' is " +
                            planes[i]->name() + "; its carrier holds " + c.dtype().name());
    }
    check_adjacent(subtensors, adjacent);
}

}  // namespace

Tensor Tensor::from_subtensors(const DType& dtype, std::vector<Subtensor> subtensors,
                               std::vector<Layout> adjacent) {
    check_planes(dtype, subtensors, adjacent, false);
    return Tensor(&dtype, std::move(subtensors), std::move(adjacent));
}

Tensor Tensor::restored(const DType* compound, std::vector<Subtensor> subtensors,
                        std::vector<Layout> adjacent) {
    if (compound != nullptr) {
        check_planes(*compound, subtensors, adjacent, true);
    } else {
        if (subtensors.size() != 1 || !adjacent.empty())
            throw ValueError("without a compound dtype a Tensor has one subtensor and no adjacent layouts");
        check_placement(subtensors.front(), true);
    }
    return Tensor(compound, std::move(subtensors), std::move(adjacent));
}

void Tensor::refuse_single() const {
    if (subtensors_.empty() || compound_ == nullptr) throw StateError("the Tensor's carriers are gone");
    throw NotImplementedError("this Tensor of dtype '" + compound_->name() + "' has " +
                              std::to_string(subtensors_.size()) +
                              " subtensors; use them one by one (Tensor.subtensors)");
}

std::int64_t Tensor::size() const {
    if (subtensors_.empty()) throw StateError("the Tensor's carriers are gone");
    return subtensors_.front().layout.size();
}

const DType& Tensor::dtype() const { return compound_ != nullptr ? *compound_ : single().carrier->dtype(); }

Value Tensor::get_value(std::int64_t logical) const {
    const Subtensor& s = single();
    return s.carrier->get_value(s.offset + s.layout.index(logical));
}

void Tensor::set_value(std::int64_t logical, const Value& value) {
    const Subtensor& s = single();
    s.carrier->set_value(s.offset + s.layout.index(logical), value);
}

}  // namespace carrier
