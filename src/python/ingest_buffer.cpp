// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/ingest_buffer.hpp"

#include <algorithm>
#include <optional>

#include "carrier/errors.hpp"
#include "carrier/host.hpp"
#include "storage/copy.hpp"
#include "storage/crew.hpp"

namespace carrier::python {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;     // elements between two looks for signals
constexpr std::size_t kUnlocked = std::size_t{1} << 14;  // elements from which giving the lock up pays
constexpr std::size_t kAppended = std::size_t{1} << 22;  // elements written from where they lie, at a time
constexpr std::size_t kShared = std::size_t{1} << 20;    // and a second thread

/// Calls `convert(from, count)` for all of `count` elements, in pieces.
template <class Convert>
void in_pieces(std::size_t count, Pulse& pulse, const Convert& convert) {
    const auto piece = [&](std::size_t i) { convert(i * kChunk, std::min(kChunk, count - i * kChunk)); };
    const std::size_t pieces = (count + kChunk - 1) / kChunk;
    if (count >= kShared) {
        try {
            return storage::run_jobs(pieces, storage::copying_threads(), pulse, piece);
        } catch (const OverflowError&) {  // the first value that does not fit is found below
        } catch (const TypeError&) {
        }
    }
    for (std::size_t i = 0; i < pieces; ++i) {
        piece(i);
        pulse();
    }
}

}  // namespace

HeldBuffer::HeldBuffer(nb::handle exporter) {
    if (PyObject_GetBuffer(exporter.ptr(), &view_, PyBUF_FULL_RO) == 0) {
        held_ = true;
        return;
    }
    nb::python_error raised;
    for (PyObject* expected : {PyExc_BufferError, PyExc_TypeError, PyExc_ValueError})
        if (raised.matches(expected)) return;
    throw raised;
}

HeldBuffer::~HeldBuffer() {
    if (held_) PyBuffer_Release(&view_);
}

Elements HeldBuffer::elements() const noexcept {
    if (!held_ || view_.ndim != 1 || view_.suboffsets != nullptr) return Elements::other;
    return elements_of(view_.format, view_.itemsize);
}

// Not truth bytes, which may have to be normalized.
bool HeldBuffer::holds_slots(Encoding encoding) const noexcept {
    const Elements held = elements();
    const bool same = (encoding == Encoding::float32 && held == Elements::float32) ||
                      (encoding == Encoding::int32 && held == Elements::int32);
    return same && stride() == static_cast<std::ptrdiff_t>(slot_bytes(encoding));
}

bool ingest_buffer(nb::handle values, Intake& intake) {
    const HeldBuffer buffer(values);
    if (buffer.elements() == Elements::other) return false;
    ingest_buffer(buffer, intake);
    return true;
}

void ingest_buffer(const HeldBuffer& buffer, Intake& intake) {
    const Elements elements = buffer.elements();
    const std::size_t size = buffer.size(), width = slot_bytes(intake.encoding());
    const std::ptrdiff_t stride = buffer.stride();
    const bool ready = buffer.holds_slots(intake.encoding());
    Pulse pulse;
    for (std::size_t at = 0; at < size;) {
        if (ready) {
            const std::size_t n = std::min(size - at, kAppended);
            if (intake.append({buffer.data() + at * width, n * width})) {
                at += n;
                pulse();
                continue;
            }
        }
        const std::span<std::byte> room = intake.room(size - at);
        const std::size_t count = std::min(size - at, room.size() / width);
        {
            std::optional<Unlocked> unlocked;
            if (count >= kUnlocked) unlocked.emplace();
            in_pieces(count, pulse, [&](std::size_t from, std::size_t n) {
                convert_elements(elements, buffer.data() + static_cast<std::ptrdiff_t>(at + from) * stride,
                                 stride, n, intake.encoding(), room.data() + from * width, at + from);
            });
        }
        intake.filled(count);
        at += count;
    }
}

}  // namespace carrier::python
