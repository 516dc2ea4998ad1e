// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/ingest_buffer.hpp"

#include <algorithm>
#include <optional>

#include "carrier/errors.hpp"
#include "carrier/host.hpp"

namespace carrier::python {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;     // elements between two looks for signals
constexpr std::size_t kUnlocked = std::size_t{1} << 14;  // elements from which giving the lock up pays

/// A buffer that is held: while it is, its memory neither moves nor goes.
class HeldBuffer {
  public:
    explicit HeldBuffer(nb::handle exporter) {
        if (PyObject_GetBuffer(exporter.ptr(), &view_, PyBUF_FULL_RO) == 0) {
            held_ = true;
            return;
        }
        nb::python_error raised;
        for (PyObject* expected : {PyExc_BufferError, PyExc_TypeError, PyExc_ValueError})
            if (raised.matches(expected)) return;
        throw raised;
    }
    ~HeldBuffer() {
        if (held_) PyBuffer_Release(&view_);
    }
    HeldBuffer(const HeldBuffer&) = delete;
    HeldBuffer& operator=(const HeldBuffer&) = delete;

    /// `other` unless the buffer is one-dimensional and typed.
    Elements elements() const noexcept {
        if (!held_ || view_.ndim != 1 || view_.suboffsets != nullptr) return Elements::other;
        return elements_of(view_.format, view_.itemsize);
    }
    std::size_t size() const noexcept {
        return static_cast<std::size_t>(view_.shape != nullptr ? view_.shape[0] : view_.len / view_.itemsize);
    }
    std::ptrdiff_t stride() const noexcept {
        return view_.strides != nullptr ? view_.strides[0] : view_.itemsize;
    }
    const std::byte* data() const noexcept { return static_cast<const std::byte*>(view_.buf); }

  private:
    Py_buffer view_{};
    bool held_ = false;
};

}  // namespace

bool ingest_buffer(nb::handle values, Intake& intake) {
    const HeldBuffer buffer(values);
    const Elements elements = buffer.elements();
    if (elements == Elements::other) return false;
    const std::size_t size = buffer.size(), width = slot_bytes(intake.encoding());
    const std::ptrdiff_t stride = buffer.stride();
    Pulse pulse;
    for (std::size_t at = 0; at < size;) {
        const std::span<std::byte> room = intake.room(size - at);
        const std::size_t count = std::min(size - at, room.size() / width);
        {
            std::optional<Unlocked> unlocked;
            if (count >= kUnlocked) unlocked.emplace();
            for (std::size_t done = 0; done < count; done += kChunk) {
                const std::size_t n = std::min(kChunk, count - done);
                convert_elements(elements, buffer.data() + static_cast<std::ptrdiff_t>(at + done) * stride,
                                 stride, n, intake.encoding(), room.data() + done * width, at + done);
                pulse();
            }
        }
        intake.filled(count);
        at += count;
    }
    return true;
}

}  // namespace carrier::python
