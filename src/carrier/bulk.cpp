// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <algorithm>
#include <cstring>

#include "carrier/carrier.hpp"
#include "carrier/errors.hpp"
#include "carrier/evictable.hpp"
#include "carrier/exclusive.hpp"
#include "carrier/host_block.hpp"
#include "carrier/inner.hpp"
#include "carrier/slotwise.hpp"
#include "carrier/undo.hpp"

namespace carrier {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{4} << 20;

/// Runs `work` on the carrier's block: small work at once, bulk with the host's lock given up and the carrier
/// busy. The block is asked for after the wait, since a transition may have run meanwhile.
template <class Check, class Work>
void on_block(const Carrier& c, std::size_t bytes, const Check& check, const Work& work) {
    if (bytes <= kInlineBytes) return work(*Inner::block(c));
    const Exclusive exclusive({&c});
    check();
    const Ref<Block> block = Inner::block(c);
    const Unlocked unlocked;
    work(*block);
}

void write_block(Block& block, std::size_t offset, std::span<const std::byte> slots) {
    if (block.data() != nullptr) {
        std::memmove(block.data() + offset, slots.data(), slots.size());
        return;
    }
    BlockUndo undo(block, offset, slots.size());
    for (std::size_t done = 0; done < slots.size(); done += kChunkBytes) {
        const std::size_t n = std::min(kChunkBytes, slots.size() - done);
        undo.save(n);
        block.write(offset + done, slots.subspan(done, n));
    }
    undo.forget();
}

/// Repeats one pattern, which for memory stays in the nearest cache.
void fill_block(Block& block, std::size_t offset, std::size_t bytes, Encoding encoding, Scalar slot) {
    constexpr std::size_t kPattern = std::size_t{16} << 10;
    const std::size_t step = block.data() != nullptr ? kPattern : kChunkBytes;
    const std::size_t width = slot_bytes(encoding);
    const Ref<HostBlock> pattern = HostBlock::allocate(std::min(bytes, step), Fill::none);
    for (std::size_t at = 0; at < pattern->size(); at += width)
        store_slot(encoding, pattern->data() + at, slot);
    BlockUndo undo(block, offset, block.data() == nullptr ? bytes : 0);
    for (std::size_t done = 0; done < bytes; done += step) {
        const std::span<const std::byte> run(pattern->data(), std::min(step, bytes - done));
        if (block.data() == nullptr) undo.save(run.size());
        block.write(offset + done, run);
    }
    undo.forget();
}

/// One slot after the other, from `start` on.
auto counter(std::int64_t start) noexcept {
    return [start]() mutable { return start++; };
}

}  // namespace

void Inner::overwrite(const Carrier& c, std::size_t offset, std::span<const std::byte> bytes) {
    write_block(*block(c), offset, bytes);
}

const Carrier& Inner::acting(const Carrier& c) {
    const auto* hierarchy = dynamic_cast<const Evictable*>(&c);
    if (hierarchy == nullptr) return c;
    const Ref<Carrier>& tier = hierarchy->is_evicted() ? hierarchy->secondary() : hierarchy->primary();
    return tier ? acting(*tier) : c;
}

void Carrier::require_range(std::int64_t start, std::int64_t stop) const {
    const std::int64_t slots = size();
    if (start >= 0 && start <= stop && stop <= slots) return;
    throw IndexError("range [" + std::to_string(start) + ", " + std::to_string(stop) +
                     ") is not inside [0, " + std::to_string(slots) + ") of the " + kind() +
                     " carrier; ranges are never clamped");
}

void Carrier::read(std::int64_t start, std::int64_t stop, std::span<std::byte> into) const {
    require_live();
    require_range(start, stop);
    const Encoding encoding = encoding_with_bytes(dtype());
    const std::size_t width = slot_bytes(encoding);
    const std::size_t bytes = static_cast<std::size_t>(stop - start) * width;
    if (into.size() != bytes)
        throw ValueError(std::to_string(stop - start) + " slots are " + std::to_string(bytes) +
                         " bytes; got room for " + std::to_string(into.size()));
    const auto check = [&] {
        check_live();
        require_range(start, stop);
    };
    if (do_block()) {
        on_block(*this, bytes, check, [&](const Block& block) {
            block.read(static_cast<std::size_t>(start) * width, into);
            if (encoding == Encoding::bool8) normalize_booleans(into);
        });
        return;
    }
    read_slots(*this, check, counter(start), into);
}

void Carrier::write(std::int64_t start, std::span<const std::byte> slots) {
    require_mutable();
    const Encoding encoding = encoding_with_bytes(dtype());
    const std::size_t width = slot_bytes(encoding);
    if (slots.size() % width != 0)
        throw ValueError(std::to_string(slots.size()) + " bytes are no whole number of slots of " +
                         std::to_string(width) + " bytes");
    const auto count = static_cast<std::int64_t>(slots.size() / width);
    const std::int64_t stop = start < 0 || start > size() ? start : start + count;
    require_range(start, stop);
    if (slots.empty()) return;
    const auto check = [&] {
        check_mutable();
        require_range(start, stop);
    };
    if (do_block())
        on_block(*this, slots.size(), check,
                 [&](Block& block) { write_block(block, static_cast<std::size_t>(start) * width, slots); });
    else
        write_slots(*this, check, counter(start), slots);
    ++hot_.version;
}

void Carrier::fill(const Value& value, std::int64_t start, std::int64_t stop) {
    require_mutable();
    require_range(start, stop);
    dtype();
    const Encoding encoding = hot_.encoding;
    const Scalar slot = normalize(encoding, value);
    if (start == stop) return;
    const std::size_t width = slot_bytes(encoding);
    const std::size_t bytes = static_cast<std::size_t>(stop - start) * width;
    const auto check = [&] {
        check_mutable();
        require_range(start, stop);
    };
    if (do_block())
        on_block(*this, bytes, check, [&](Block& block) {
            fill_block(block, static_cast<std::size_t>(start) * width, bytes, encoding, slot);
        });
    else
        fill_slots(*this, check, counter(start), stop - start, slot);
    ++hot_.version;
}

}  // namespace carrier
