// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <cstring>

#include "carrier/errors.hpp"
#include "carrier/exclusive.hpp"
#include "carrier/host_block.hpp"
#include "carrier/inner.hpp"
#include "carrier/tensor.hpp"
#include "carrier/undo.hpp"
#include "layout/plan.hpp"

namespace carrier {

namespace {

Encoding encoding_with_bytes(const Carrier& c) {
    const Encoding encoding = encoding_of(c.dtype());
    if (encoding == Encoding::opaque)
        throw TypeError("slots of dtype " + c.dtype().name() + " have no bytes; use them one by one");
    return encoding;
}

std::size_t bytes_of(std::int64_t slots, std::size_t width) noexcept {
    return static_cast<std::size_t>(slots) * width;
}

/// The slots that a layout reaches, as memory: the carrier's own, or a copy that may be written back.
struct Span {
    Ref<Block> block;
    std::byte* base = nullptr;
    bool copied = false;
};

Span span_of(const Subtensor& s, std::size_t width) {
    const Ref<Block> block = Inner::block(*s.carrier);
    const std::size_t offset = bytes_of(s.offset, width);
    if (block->data() != nullptr) return {block, block->data() + offset, false};
    const Ref<HostBlock> copy = HostBlock::allocate(bytes_of(s.layout.cosize(), width), Fill::none);
    block->read(offset, {copy->data(), copy->size()});
    return {Ref<Block>(copy), copy->data(), true};
}

void check_reach(const Subtensor& s) {
    const std::int64_t size = s.carrier->size();
    if (s.layout.cosize() > size || s.offset > size - s.layout.cosize())
        throw IndexError("the Tensor reaches beyond the " + std::to_string(size) + " slots of its carrier");
}

/// Runs `work` over the whole Tensor's slots; the carrier is busy meanwhile and the host's lock given up.
template <class Check, class Work>
void on_span(const Subtensor& s, std::size_t width, const Check& check, const Work& work) {
    check();
    if (bytes_of(s.layout.cosize(), width) <= kInlineBytes) return work(span_of(s, width));
    const Exclusive exclusive({s.carrier.get()});
    check();
    const Unlocked unlocked;
    work(span_of(s, width));
}

}  // namespace

void Tensor::require_range(std::int64_t start, std::int64_t stop) const {
    if (start >= 0 && start <= stop && stop <= size()) return;
    throw IndexError("range [" + std::to_string(start) + ", " + std::to_string(stop) +
                     ") is not inside [0, " + std::to_string(size()) +
                     ") of the Tensor; ranges are never clamped");
}

void Tensor::read(std::int64_t start, std::int64_t stop, std::span<std::byte> into) const {
    const Subtensor& s = single();
    s.carrier->require_live();
    require_range(start, stop);
    const Encoding encoding = encoding_with_bytes(*s.carrier);
    const std::size_t width = slot_bytes(encoding);
    if (into.size() != bytes_of(stop - start, width))
        throw ValueError(std::to_string(stop - start) + " values need " +
                         std::to_string(bytes_of(stop - start, width)) + " bytes; got room for " +
                         std::to_string(into.size()));
    if (!Inner::block(*s.carrier)) {
        for (std::int64_t i = start; i < stop; ++i)
            store_slot(encoding, &into[bytes_of(i - start, width)],
                       normalize(encoding, s.carrier->get_value(s.offset + s.layout.index(i))));
        return;
    }
    const auto check = [&] {
        Inner::check_live(*s.carrier);
        check_reach(s);
    };
    const Conversion convert = encoding == Encoding::bool8 ? Conversion::bool_to_bool : Conversion::none;
    on_span(s, width, check, [&](const Span& span) {
        if (stop - start == size())
            return CopyPlan::gather(s.layout, width, convert).run(span.base, into.data());
        for (std::int64_t i = start; i < stop; ++i)
            store_slot(encoding, &into[bytes_of(i - start, width)],
                       load_slot(encoding, span.base + bytes_of(s.layout.index(i), width)));
    });
}

void Tensor::write(std::int64_t start, std::span<const std::byte> slots) {
    const Subtensor& s = single();
    s.carrier->require_mutable();
    const Encoding encoding = encoding_with_bytes(*s.carrier);
    const std::size_t width = slot_bytes(encoding);
    const auto count = static_cast<std::int64_t>(slots.size() / width);
    const std::int64_t stop = start < 0 || start > size() ? start : start + count;
    require_range(start, stop);
    if (count == 0) return;
    const auto check = [&] {
        Inner::check_mutable(*s.carrier);
        check_reach(s);
    };
    if (!Inner::block(*s.carrier)) {
        check();
        SlotUndo undo(*s.carrier, static_cast<std::size_t>(count));
        for (std::int64_t i = start; i < stop; ++i)
            undo.set(s.offset + s.layout.index(i),
                     to_value(encoding, load_slot(encoding, &slots[bytes_of(i - start, width)])));
        undo.forget();
        s.carrier->hot().version += 1;
        return;
    }
    on_span(s, width, check, [&](const Span& span) {
        // The caller's slots may lie in the carrier's own memory: they are read as they were.
        const Ref<HostBlock> snapshot = HostBlock::allocate(slots.size(), Fill::none);
        std::memcpy(snapshot->data(), slots.data(), slots.size());
        if (count == size())
            CopyPlan::spread(s.layout, width).run(snapshot->data(), span.base);
        else
            for (std::int64_t i = start; i < stop; ++i)
                std::memcpy(span.base + bytes_of(s.layout.index(i), width),
                            snapshot->data() + bytes_of(i - start, width), width);
        if (!span.copied) return;
        Inner::overwrite(*s.carrier, bytes_of(s.offset, width),
                         {span.base, bytes_of(s.layout.cosize(), width)});
    });
    s.carrier->hot().version += 1;
}

void Tensor::fill(const Value& value, std::int64_t start, std::int64_t stop) {
    const Subtensor& s = single();
    s.carrier->require_mutable();
    require_range(start, stop);
    const Encoding encoding = encoding_with_bytes(*s.carrier);
    const Scalar slot = normalize(encoding, value);
    const std::size_t width = slot_bytes(encoding);
    const Ref<HostBlock> values = HostBlock::allocate(bytes_of(stop - start, width), Fill::none);
    for (std::int64_t i = 0; i < stop - start; ++i)
        store_slot(encoding, values->data() + bytes_of(i, width), slot);
    write(start, {values->data(), values->size()});
}

}  // namespace carrier
