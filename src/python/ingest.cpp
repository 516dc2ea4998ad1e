// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/ingest.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "carrier/errors.hpp"
#include "carrier/host.hpp"
#include "python/convert.hpp"
#include "python/ingest_buffer.hpp"

namespace carrier::python {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 14;     // slots between two looks for signals
constexpr std::size_t kFirstRoom = 64;                   // slots, for sources of unknown length
constexpr std::size_t kUnlocked = std::size_t{1} << 14;  // slots from which giving the lock up pays

nb::object checked(PyObject* result) {
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
}

/// The value at `position`, which no fast path took.
Scalar slow_value(const Intake& intake, nb::handle object, std::size_t position) {
    if (object.is_none() && intake.takes_holes()) return Scalar{};
    const auto at = [position] { return "value " + std::to_string(position) + ": "; };
    try {
        return unbox(intake.encoding(), object);
    } catch (const TypeError& e) {
        throw TypeError(at() + e.what());
    } catch (const OverflowError& e) {
        throw OverflowError(at() + e.what());
    }
}

void put(Intake& intake, Scalar scalar) {
    store_slot(intake.encoding(), intake.room(1).data(), scalar);
    intake.filled(1);
}

/// Stores the leading items that are exact Python values of the dtype; how many. Runs no user code.
template <Encoding E>
std::size_t store_exact(PyObject* const* items, std::size_t count, std::byte* slots) noexcept {
    constexpr std::size_t kAhead = 12;
    for (std::size_t i = 0; i < count; ++i) {
        if (i + kAhead < count) __builtin_prefetch(items[i + kAhead]);
        Scalar scalar;
        if (!fast_unbox(E, items[i], scalar)) return i;
        store_slot(E, slots + i * slot_bytes(E), scalar);
    }
    return count;
}

template <>
std::size_t store_exact<Encoding::bool8>(PyObject* const* items, std::size_t count,
                                         std::byte* slots) noexcept {
    constexpr std::size_t kBlock = 512;
    PyObject* const yes = Py_True;
    PyObject* const no = Py_False;
    for (std::size_t start = 0; start < count; start += kBlock) {
        const std::size_t stop = std::min(count, start + kBlock);
        bool other = false;
        for (std::size_t i = start; i < stop; ++i) {
            const bool is_true = items[i] == yes;
            other |= !(is_true | (items[i] == no));
            slots[i] = std::byte{is_true};
        }
        if (!other) continue;
        for (std::size_t i = start; i < stop; ++i)
            if (items[i] != yes && items[i] != no) return i;
    }
    return count;
}

#if !defined(Py_LIMITED_API)

struct ListItems {
    static PyObject* const* items(PyObject* o) noexcept {
        return reinterpret_cast<PyListObject*>(o)->ob_item;
    }
    static std::size_t size(PyObject* o) noexcept { return static_cast<std::size_t>(PyList_GET_SIZE(o)); }
};
struct TupleItems {
    static PyObject* const* items(PyObject* o) noexcept {
        return reinterpret_cast<PyTupleObject*>(o)->ob_item;
    }
    static std::size_t size(PyObject* o) noexcept { return static_cast<std::size_t>(PyTuple_GET_SIZE(o)); }
};

/// Reads the items in place. Whatever may run other code (user code of a value, the intake, the look for
/// signals) may also change a list, so size and items are read again after it.
template <Encoding E, class Items>
void ingest_items(PyObject* sequence, Intake& intake) {
    Pulse pulse;
    for (std::size_t at = 0; at < Items::size(sequence);) {
        const std::span<std::byte> room = intake.room(std::min(Items::size(sequence) - at, kChunk));
        const std::size_t size = Items::size(sequence);
        if (at >= size) break;
        const std::size_t count = std::min({size - at, room.size() / slot_bytes(E), kChunk});
        const std::size_t stored = store_exact<E>(Items::items(sequence) + at, count, room.data());
        const nb::object next =
            stored < count ? nb::borrow(Items::items(sequence)[at + stored]) : nb::object();
        intake.filled(stored);
        at += stored;
        if (next.is_valid()) put(intake, slow_value(intake, next, at++));
        pulse();
    }
}

#endif

template <Encoding E>
void ingest_iterator(PyObject* iterator, Intake& intake) {
#if defined(Py_LIMITED_API)
    const auto next = PyIter_Next;
#else
    const iternextfunc next = Py_TYPE(iterator)->tp_iternext;
#endif
    Pulse pulse;
    for (std::size_t at = 0;;) {
        const std::span<std::byte> room = intake.room(kFirstRoom);
        const std::size_t count = std::min(room.size() / slot_bytes(E), kChunk);
        for (std::size_t i = 0; i < count; ++i, ++at) {
            PyObject* item = next(iterator);
            if (item == nullptr) {
                if (PyErr_Occurred() != nullptr) {
                    if (PyErr_ExceptionMatches(PyExc_StopIteration) == 0) throw nb::python_error();
                    PyErr_Clear();
                }
                intake.filled(i);
                return;
            }
            Scalar scalar;
            if (fast_unbox(E, item, scalar))
                Py_DECREF(item);
            else
                scalar = slow_value(intake, nb::steal(item), at);
            store_slot(E, room.data() + i * slot_bytes(E), scalar);
        }
        intake.filled(count);
        pulse();
    }
}

// ---- ranges -----------------------------------------------------------------------------------------------

struct Range {
    std::int64_t start;
    std::int64_t step;
    std::size_t count;
    std::int64_t last() const noexcept { return start + step * static_cast<std::int64_t>(count - 1); }
};

/// The range, when its numbers and its length fit 63 bits.
std::optional<Range> range_of(PyObject* object) {
    const nb::handle range = object;
    const Py_ssize_t count = PyObject_Size(object);
    if (count < 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    Range found{0, 0, static_cast<std::size_t>(count)};
    if (count == 0) return found;
    std::int64_t last = 0;
    const nb::object end = range[nb::int_(-1)];
    const nb::object start = range.attr("start"), step = range.attr("step");
    if (!exact_int(start.ptr(), found.start) || !exact_int(end.ptr(), last)) return std::nullopt;
    if (count > 1 && !exact_int(step.ptr(), found.step)) return std::nullopt;
    return found;
}

/// How many leading numbers fit Int32.
std::size_t fitting(const Range& range) noexcept {
    constexpr std::int64_t least = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t greatest = std::numeric_limits<std::int32_t>::max();
    if (range.start < least || range.start > greatest) return 0;
    if (range.step == 0) return range.count;
    const std::int64_t steps =
        range.step > 0 ? (greatest - range.start) / range.step : (least - range.start) / range.step;
    return std::min(range.count, static_cast<std::size_t>(steps) + 1);
}

template <class Slot>
void fill_range(const Range& range, std::size_t from, std::span<std::byte> slots) noexcept {
    const std::size_t count = slots.size() / sizeof(Slot);
    const std::int64_t first = range.start + range.step * static_cast<std::int64_t>(from);
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = static_cast<Slot>(first + range.step * static_cast<std::int64_t>(i));
        std::memcpy(slots.data() + i * sizeof(Slot), &value, sizeof(Slot));
    }
}

void ingest_range(const Range& range, Intake& intake) {
    const bool integers = intake.encoding() == Encoding::int32;
    if (integers && fitting(range) < range.count) {
        const std::size_t at = fitting(range);
        slow_value(intake, nb::int_(range.start + range.step * static_cast<std::int64_t>(at)), at);
    }
    Pulse pulse;
    for (std::size_t at = 0; at < range.count;) {
        const std::size_t wanted = std::min(range.count - at, std::size_t{1} << 18);
        std::span<std::byte> room = intake.room(wanted);
        const std::size_t count = std::min(wanted, room.size() / 4);
        room = room.first(count * 4);
        std::optional<Unlocked> unlocked;
        if (count >= kUnlocked) unlocked.emplace();
        if (integers)
            fill_range<std::int32_t>(range, at, room);
        else
            fill_range<float>(range, at, room);
        unlocked.reset();
        intake.filled(count);
        at += count;
        pulse();
    }
}

template <Encoding E>
void ingest_as(nb::handle values, Intake& intake) {
    PyObject* v = values.ptr();
#if !defined(Py_LIMITED_API)
    if (PyList_CheckExact(v)) return ingest_items<E, ListItems>(v, intake);
    if (PyTuple_CheckExact(v)) return ingest_items<E, TupleItems>(v, intake);
#endif
    if (E != Encoding::bool8 && Py_TYPE(v) == &PyRange_Type)
        if (const std::optional<Range> range = range_of(v)) return ingest_range(*range, intake);
    if (PyObject_CheckBuffer(v) != 0 && ingest_buffer(values, intake)) return;
    ingest_iterator<E>(checked(PyObject_GetIter(v)).ptr(), intake);
}

}  // namespace

void ingest(nb::handle values, Intake& intake) {
    switch (intake.encoding()) {
        case Encoding::float32:
            return ingest_as<Encoding::float32>(values, intake);
        case Encoding::int32:
            return ingest_as<Encoding::int32>(values, intake);
        case Encoding::bool8:
            return ingest_as<Encoding::bool8>(values, intake);
        default:
            throw TypeError("only Float32, Int32 and Bool values are read in bulk");
    }
}

}  // namespace carrier::python
