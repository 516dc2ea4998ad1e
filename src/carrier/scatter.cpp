// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <vector>

#include "carrier/carrier.hpp"
#include "carrier/errors.hpp"
#include "carrier/exclusive.hpp"
#include "carrier/host_block.hpp"
#include "carrier/inner.hpp"
#include "carrier/plan_run.hpp"
#include "carrier/subtensor_span.hpp"
#include "carrier/tensor.hpp"
#include "carrier/undo.hpp"

namespace carrier {

namespace {

/// From this many values on the host's lock is given up, and the carriers are marked busy meanwhile.
constexpr std::int64_t kBulk = 16'384;

bool scatters_into(const DType& from, const DType& to) noexcept {
    return &from == &to ||
           (&to == &DType::Float32() && (&from == &DType::Int32() || &from == &DType::Bool()));
}

Conversion conversion(Encoding from, Encoding to) noexcept {
    if (from == Encoding::bool8)
        return to == Encoding::bool8 ? Conversion::bool_to_bool : Conversion::bool_to_float32;
    return from == Encoding::int32 && to == Encoding::float32 ? Conversion::int32_to_float32
                                                              : Conversion::none;
}

/// Values of a Tensor in host memory: where its slots are, or a dense copy in logical order.
struct Staged {
    Ref<Block> block;
    const std::byte* base = nullptr;
    bool dense = false;
};

Staged stage_values(const Subtensor& from, Encoding encoding) {
    const std::int64_t n = from.layout.size();
    const std::size_t width = slot_bytes(encoding);
    const Ref<HostBlock> copy = HostBlock::allocate(bytes_of(n, encoding), Fill::none);
    for (std::int64_t i = 0; i < n; ++i)
        store_slot(encoding, copy->data() + static_cast<std::size_t>(i) * width,
                   normalize(encoding, Inner::get(*from.carrier, from.offset + from.layout.index(i))));
    return {Ref<Block>(copy), copy->data(), true};
}

/// The source's bytes in host memory. A file's are read over the span that the layout reaches.
Staged stage(const Subtensor& from, Encoding encoding) {
    if (!Inner::block(*from.carrier)) return stage_values(from, encoding);
    const SubtensorSpan span = span_of(from, encoding);
    return {span.block, span.begin, false};
}

void scatter_by_slots(Carrier& onto, const Subtensor& from, std::int64_t base, const Layout& mapping) {
    onto.dtype();
    const Encoding encoding = onto.hot().encoding;
    const std::int64_t n = mapping.size();
    std::vector<Value> values;
    values.reserve(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        Value v = Inner::get(*from.carrier, from.offset + from.layout.index(i));
        values.push_back(encoding == Encoding::opaque ? std::move(v)
                                                      : to_value(encoding, normalize(encoding, v)));
    }
    SlotUndo undo(onto, values.size());
    for (std::int64_t i = 0; i < n; ++i)
        undo.set(base + mapping.index(i), values[static_cast<std::size_t>(i)]);
    undo.forget();
}

}  // namespace

void Carrier::check_scatter(const Tensor& source, const Tensor& onto, const Layout& mapping,
                            std::int64_t offset) const {
    const Subtensor& from = source.single();
    const Subtensor& to = onto.single();
    from.carrier->check_live();
    to.carrier->check_live();
    check_mutable();
    if (!(to.carrier == this))
        throw ValueError(
            "scatter_onto stands on another carrier; it must be a Tensor over the receiver itself");
    if (!(mapping.shape() == from.layout.shape()))
        throw ValueError("mapping has shape " + mapping.shape().repr() + "; it must have the source's, " +
                         from.layout.shape().repr());
    if (offset < 0) throw ValueError("mapping_offset must be at least 0; got " + std::to_string(offset));
    const std::int64_t slots = size();
    const std::int64_t reach = mapping.cosize();
    if (reach > slots || to.offset > slots - reach || offset > slots - reach - to.offset)
        throw IndexError("scatter would write up to slot " + std::to_string(to.offset) + " + " +
                         std::to_string(offset) + " + " + std::to_string(reach - 1) + "; the " + kind() +
                         " carrier has " + std::to_string(slots) + " slots");
    require_reach(from, "the source");
    if (!scatters_into(from.carrier->dtype(), dtype()))
        throw TypeError("values of dtype " + from.carrier->dtype().name() + " do not scatter into dtype " +
                        dtype().name() + "; equal dtypes do, and Int32 or Bool into Float32");
}

void Carrier::scatter(const Tensor& source, const Tensor& onto, const Layout& mapping, std::int64_t offset) {
    require_scatter();
    Exclusive::wait_for(*source.single().carrier);
    Exclusive::wait_for(*this);
    check_scatter(source, onto, mapping, offset);
    const std::int64_t base = onto.offset() + offset;
    if (mapping.size() < kBulk) {
        do_scatter(source, base, mapping);
    } else {
        const Exclusive exclusive({this, source.carrier().get()});
        check_scatter(source, onto, mapping, offset);
        do_scatter(source, base, mapping);
    }
    ++hot_.version;
}

void Carrier::do_scatter(const Tensor& source, std::int64_t base, const Layout& mapping) {
    const Subtensor& from = source.single();
    if (hot_.has(Hot::kIndirect)) return scatter_by_slots(*this, from, base, mapping);
    const Hot& there = from.carrier->hot();
    const Encoding source_encoding = there.encoding;
    std::byte* const target = hot_.data + bytes_of(base, hot_.encoding);
    const auto overlaps = [&](const std::byte* begin) {
        return overlap(begin, bytes_of(from.layout.cosize(), source_encoding), target,
                       bytes_of(mapping.cosize(), hot_.encoding));
    };
    const std::size_t width = slot_bytes(hot_.encoding);
    const Conversion convert = conversion(source_encoding, hot_.encoding);
    // Between memory and memory nothing can happen on the way of a few values: nothing is held or staged.
    if (mapping.size() < kBulk && !there.has(Hot::kIndirect)) {
        const std::byte* const begin = there.data + bytes_of(from.offset, source_encoding);
        if (!overlaps(begin)) return CopyPlan(from.layout, mapping, width, convert).run(begin, target);
    }
    const Ref<Block> pinned = do_block();
    Staged staged = stage(from, source_encoding);
    const Layout* reading = staged.dense ? nullptr : &from.layout;
    const auto run = [&] {
        if (reading != nullptr && overlaps(staged.base)) {
            const Ref<HostBlock> snapshot =
                HostBlock::allocate(bytes_of(mapping.size(), source_encoding), Fill::none);
            run_plan(CopyPlan::gather(*reading, slot_bytes(source_encoding)), staged.base, snapshot->data());
            staged = {Ref<Block>(snapshot), snapshot->data(), true};
            reading = nullptr;
        }
        if (reading != nullptr)
            run_plan(CopyPlan(*reading, mapping, width, convert), staged.base, target);
        else
            run_plan(CopyPlan::spread(mapping, width, convert), staged.base, target);
    };
    if (mapping.size() < kBulk) return run();
    const Unlocked unlocked;
    run();
}

}  // namespace carrier
