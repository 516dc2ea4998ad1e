// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <cstring>

#include "carrier/errors.hpp"
#include "carrier/exclusive.hpp"
#include "carrier/host_block.hpp"
#include "carrier/inner.hpp"
#include "carrier/plan_run.hpp"
#include "carrier/slotwise.hpp"
#include "carrier/subtensor_span.hpp"
#include "carrier/tensor.hpp"
#include "layout/slot_walk.hpp"

namespace carrier {

namespace {

/// The carrier's slots of logical indices from `start` on.
auto slots_from(const Subtensor& s, std::int64_t start) {
    return [walk = SlotWalk(s.layout, start), offset = s.offset]() mutable { return offset + walk(); };
}

/// Runs `work` on the span of logical indices [start, stop). Bulk has the carrier busy meanwhile and the
/// host's lock given up.
template <class Check, class Work>
void on_span(const Subtensor& s, Encoding encoding, std::int64_t start, std::int64_t stop, const Check& check,
             const Work& work) {
    check();
    if (bytes_of(s.layout.cosize(), encoding) <= kInlineBytes) return work(span_of(s, encoding, start, stop));
    const Exclusive exclusive({s.carrier.get()});
    check();
    const Unlocked unlocked;
    work(span_of(s, encoding, start, stop));
}

/// Writes a copied span back.
void write_back(const Subtensor& s, const SubtensorSpan& span) {
    if (span.copied) Inner::overwrite(*s.carrier, span.offset, {span.begin, span.bytes});
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
    const Encoding encoding = encoding_with_bytes(s.carrier->dtype());
    const std::size_t width = slot_bytes(encoding);
    if (into.size() != bytes_of(stop - start, encoding))
        throw ValueError(std::to_string(stop - start) + " values need " +
                         std::to_string(bytes_of(stop - start, encoding)) + " bytes; got room for " +
                         std::to_string(into.size()));
    const auto check = [&] {
        Inner::check_live(*s.carrier);
        require_reach(s, "the Tensor");
    };
    if (start == stop) return check();
    if (!Inner::block(*s.carrier)) return read_slots(*s.carrier, check, slots_from(s, start), into);
    const Conversion convert = encoding == Encoding::bool8 ? Conversion::bool_to_bool : Conversion::none;
    on_span(s, encoding, start, stop, check, [&](const SubtensorSpan& span) {
        if (stop - start == size())
            return run_plan(CopyPlan::gather(s.layout, width, convert), span.begin, into.data());
        SlotWalk walk(s.layout, start);
        for (std::size_t at = 0; at < into.size(); at += width)
            store_slot(encoding, &into[at], load_slot(encoding, span.at(walk(), encoding)));
    });
}

void Tensor::write(std::int64_t start, std::span<const std::byte> slots) {
    const Subtensor& s = single();
    s.carrier->require_mutable();
    const Encoding encoding = encoding_with_bytes(s.carrier->dtype());
    const std::size_t width = slot_bytes(encoding);
    const auto count = static_cast<std::int64_t>(slots.size() / width);
    const std::int64_t stop = start < 0 || start > size() ? start : start + count;
    require_range(start, stop);
    const auto check = [&] {
        Inner::check_mutable(*s.carrier);
        require_reach(s, "the Tensor");
    };
    if (count == 0) return check();
    if (!Inner::block(*s.carrier)) {
        write_slots(*s.carrier, check, slots_from(s, start), slots);
    } else {
        on_span(s, encoding, start, stop, check, [&](const SubtensorSpan& span) {
            // The caller's slots may lie in the carrier's own memory: they are read as they were.
            Ref<HostBlock> snapshot;
            const std::byte* values = slots.data();
            if (overlap(values, slots.size(), span.begin, span.bytes)) {
                snapshot = HostBlock::allocate(slots.size(), Fill::none);
                std::memcpy(snapshot->data(), values, slots.size());
                values = snapshot->data();
            }
            if (count == size()) {
                run_plan(CopyPlan::spread(s.layout, width), values, span.begin);
            } else {
                SlotWalk walk(s.layout, start);
                for (std::int64_t i = 0; i < count; ++i)
                    std::memcpy(span.at(walk(), encoding), values + bytes_of(i, encoding), width);
            }
            write_back(s, span);
        });
    }
    s.carrier->hot().version += 1;
}

void Tensor::fill(const Value& value, std::int64_t start, std::int64_t stop) {
    const Subtensor& s = single();
    s.carrier->require_mutable();
    require_range(start, stop);
    const Encoding encoding = encoding_with_bytes(s.carrier->dtype());
    const Scalar slot = normalize(encoding, value);
    const auto check = [&] {
        Inner::check_mutable(*s.carrier);
        require_reach(s, "the Tensor");
    };
    if (start == stop) return check();
    if (!Inner::block(*s.carrier)) {
        fill_slots(*s.carrier, check, slots_from(s, start), stop - start, slot);
    } else {
        on_span(s, encoding, start, stop, check, [&](const SubtensorSpan& span) {
            if (stop - start == size()) {
                std::byte one[4];
                store_slot(encoding, one, slot);
                run_plan(CopyPlan::repeat(s.layout, slot_bytes(encoding)), one, span.begin);
            } else {
                SlotWalk walk(s.layout, start);
                for (std::int64_t i = start; i < stop; ++i)
                    store_slot(encoding, span.at(walk(), encoding), slot);
            }
            write_back(s, span);
        });
    }
    s.carrier->hot().version += 1;
}

}  // namespace carrier
