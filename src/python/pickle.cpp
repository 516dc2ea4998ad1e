// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/pickle.hpp"

#include <array>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "carrier/cpu.hpp"
#include "carrier/evictable.hpp"
#include "carrier/file_backed.hpp"
#include "carrier/generic.hpp"
#include "carrier/host_block.hpp"
#include "carrier/inner.hpp"
#include "carrier/metal.hpp"
#include "carrier/snapshot.hpp"
#include "python/convert.hpp"
#include "python/errors.hpp"
#include "python/memory.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"

/// How carriers travel. A pickle holds `_rebuild(tree, dtype, mutable, size, *pieces)`:
///
/// - `tree` says what to build: the name of a shipped kind, a pair of trees for a hierarchy, or the carrier
///   itself where it is a custom one, which its own `__reduce__` brings along as a prototype;
/// - `size` is the number of slots, None for a released carrier;
/// - the pieces are the slots' bytes, in native order, in any number of buffers of whole slots.
namespace carrier::python {

namespace {

/// Media that are read through a copy come in pieces of at most this many bytes.
constexpr std::size_t kPiece = std::size_t{32} << 20;
constexpr int kDeepest = 64;

struct ShippedKind {
    const char* name;
    const std::type_info& type;
    std::unique_ptr<Intake> (*open)(const DType& dtype, bool writable, std::int64_t expected);
};

const std::array<ShippedKind, 4> kShipped{{{"CPU", typeid(CPU), &CPU::open},
                                           {"Generic", typeid(Generic), &Generic::open},
                                           {"FileBacked", typeid(FileBacked), &FileBacked::open},
                                           {"Metal", typeid(Metal), &Metal::open}}};

Carrier& self_of(nb::handle self) { return require_instance<Carrier>(self, "self", "Carrier"); }

bool is_custom(const Carrier& carrier) { return dynamic_cast<const PyCarrier*>(&carrier) != nullptr; }

[[noreturn]] void refuse_custom(nb::handle carrier) {
    throw TypeError(class_name(carrier) +
                    " cannot be pickled or copied: it is a custom carrier class without a __reduce__ of its "
                    "own; write one, or copy the values with new_like");
}

/// Whether the class of a custom carrier says how it travels.
bool has_own_reduce(nb::handle carrier) {
    for (const char* name : {"__reduce__", "__reduce_ex__"})
        if (!nb::type_lookup(carrier.type(), nb::str(name))
                 .is(nb::type_lookup(nb::type<Carrier>(), nb::str(name))))
            return true;
    return false;
}

// ---- out --------------------------------------------------------------------------------------------------

nb::object tree_of(const Carrier& carrier, int depth = 0) {
    if (depth > kDeepest)
        throw ValueError("a hierarchy of more than " + std::to_string(kDeepest) +
                         " levels cannot be pickled");
    if (const auto* hierarchy = dynamic_cast<const Evictable*>(&carrier)) {
        if (!hierarchy->primary())
            throw StateError("the Evictable carrier was taken apart by the garbage collector");
        return nb::make_tuple(tree_of(*hierarchy->primary(), depth + 1),
                              tree_of(*hierarchy->secondary(), depth + 1));
    }
    for (const ShippedKind& kind : kShipped)
        if (typeid(carrier) == kind.type) return nb::str(kind.name);
    return nb::cast(Ref<Carrier>(const_cast<Carrier*>(&carrier)));
}

nb::object bytes_of(const Snapshot& values, std::int64_t start, std::int64_t stop) {
    const std::size_t size = carrier::bytes_of(stop - start, values.encoding());
    const nb::object bytes = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!bytes.is_valid()) throw nb::python_error();
    values.read(start, stop, {reinterpret_cast<std::byte*>(PyBytes_AsString(bytes.ptr())), size});
    return bytes;
}

nb::object buffer_of(Ref<Block> block, Encoding encoding, std::int64_t slots) {
    return nb::module_::import_("pickle").attr("PickleBuffer")(
        memory_of(std::move(block), encoding, 0, slots, false));
}

nb::object copied_buffer(const Snapshot& values, std::int64_t start, std::int64_t stop) {
    const std::size_t size = carrier::bytes_of(stop - start, values.encoding());
    const Ref<HostBlock> copy = HostBlock::allocate(size, Fill::none);
    values.read(start, stop, {copy->data(), size});
    return buffer_of(Ref<Block>(copy), values.encoding(), stop - start);
}

/// Protocol 5 takes memory as it is, and lets who pickles send it beside the pickle; older ones take bytes.
void append_pieces(const Carrier& carrier, int protocol, nb::list& arguments) {
    const Snapshot values(carrier);
    arguments.append(values.size());
    if (values.size() == 0) return;
    if (const Ref<Block> memory = values.memory(); memory && protocol >= 5) {
        arguments.append(buffer_of(memory, values.encoding(), values.size()));
        return;
    }
    const auto most = static_cast<std::int64_t>(kPiece / slot_bytes(values.encoding()));
    Pulse pulse;
    for (std::int64_t at = 0; at < values.size(); at += most) {
        const std::int64_t stop = std::min(values.size(), at + most);
        arguments.append(protocol >= 5 ? copied_buffer(values, at, stop) : bytes_of(values, at, stop));
        pulse();
    }
}

nb::object reduce(nb::handle self, int protocol) {
    const Carrier& carrier = self_of(self);
    if (is_custom(carrier)) refuse_custom(self);
    nb::list arguments;
    arguments.append(tree_of(carrier));
    arguments.append(object_of(carrier.dtype()));
    arguments.append(Inner::intrinsically_mutable(carrier));
    if (carrier.is_released())
        arguments.append(nb::none());
    else
        append_pieces(carrier, protocol, arguments);
    return nb::make_tuple(nb::module_::import_("carrier_storage._core").attr("_rebuild"),
                          nb::tuple(arguments));
}

nb::object reduce_ex(nb::handle self, nb::handle protocol) {
    const Carrier& carrier = self_of(self);
    const std::int64_t version = index_of(protocol, "protocol");
    if (!is_custom(carrier)) return reduce(self, version >= 5 ? 5 : 2);
    // Found here, a custom class may still have the simpler method.
    if (!has_own_reduce(self)) refuse_custom(self);
    return self.attr("__reduce__")();
}

// ---- in ---------------------------------------------------------------------------------------------------

/// Buffers that are held while they are copied.
class Pieces {
  public:
    Pieces(PyObject* arguments, Py_ssize_t first) {
        const Py_ssize_t count = PyTuple_Size(arguments);
        views_.reserve(static_cast<std::size_t>(count - first));
        try {
            for (Py_ssize_t i = first; i < count; ++i) hold(PyTuple_GetItem(arguments, i));
        } catch (...) {
            give_back();
            throw;
        }
    }
    ~Pieces() { give_back(); }
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;

    const std::vector<Py_buffer>& views() const noexcept { return views_; }
    /// ValueError unless they hold `size` whole slots.
    void require(std::int64_t size, Encoding encoding) const {
        const std::size_t width = slot_bytes(encoding);
        std::size_t bytes = 0;
        for (const Py_buffer& view : views_) {
            const auto n = static_cast<std::size_t>(view.len);
            if (n % width != 0)
                throw ValueError("a buffer of " + std::to_string(n) +
                                 " bytes holds no whole number of slots of " + std::to_string(width) +
                                 " bytes; it was cut, or belongs to another pickle");
            bytes += n;
        }
        if (size < 0 || bytes / width != static_cast<std::size_t>(size))
            throw ValueError(std::to_string(size) + " slots were pickled; the buffers hold " +
                             std::to_string(bytes / width) +
                             ", so they were cut, or belong to another pickle");
    }

  private:
    void hold(PyObject* exporter) {
        Py_buffer view;
        if (PyObject_GetBuffer(exporter, &view, PyBUF_SIMPLE) < 0) throw nb::python_error();
        views_.push_back(view);
    }
    void give_back() noexcept {
        for (Py_buffer& view : views_) PyBuffer_Release(&view);
        views_.clear();
    }

    std::vector<Py_buffer> views_;
};

void pour(std::span<const std::byte> bytes, Intake& intake, Pulse& pulse) {
    const std::size_t width = slot_bytes(intake.encoding());
    while (!bytes.empty()) {
        const std::span<std::byte> room = intake.room(bytes.size() / width);
        const std::size_t n = std::min({bytes.size(), room.size() / width * width, kPiece});
        {
            const Unlocked unlocked;
            std::copy_n(bytes.begin(), n, room.begin());
            if (intake.encoding() == Encoding::bool8) normalize_booleans(room.first(n));
        }
        intake.filled(n / width);
        bytes = bytes.subspan(n);
        pulse();
    }
}

std::unique_ptr<Intake> open(nb::handle tree, const DType& dtype, bool writable, std::int64_t expected,
                             int depth) {
    if (depth > kDeepest) throw ValueError("the pickled hierarchy is nested too deep");
    if (PyTuple_Check(tree.ptr())) {
        if (PyTuple_Size(tree.ptr()) != 2) throw ValueError("a pickled hierarchy has two tiers");
        std::unique_ptr<Intake> primary =
            open(PyTuple_GetItem(tree.ptr(), 0), dtype, writable, expected, depth + 1);
        return Evictable::open(std::move(primary),
                               open(PyTuple_GetItem(tree.ptr(), 1), dtype, true, 0, depth + 1)->finish(),
                               writable);
    }
    if (PyUnicode_Check(tree.ptr())) {
        for (const ShippedKind& kind : kShipped)
            if (PyUnicode_CompareWithASCIIString(tree.ptr(), kind.name) == 0)
                return kind.open(dtype, writable, expected);
        throw ValueError("the pickle names an unknown carrier kind, " +
                         nb::cast<std::string>(nb::repr(tree)));
    }
    const auto& prototype = require_instance<Carrier>(tree, "a pickled tier", "Carrier");
    return prototype.open_intake({writable, &dtype}, expected);
}

nb::object rebuild(PyObject* arguments) {
    constexpr Py_ssize_t kFixed = 4;
    if (PyTuple_Size(arguments) < kFixed)
        throw TypeError("_rebuild takes a tree, a dtype, mutable, a size and buffers");
    const nb::handle tree = PyTuple_GetItem(arguments, 0);
    const DType& dtype = *dtype_of(PyTuple_GetItem(arguments, 1));
    const bool writable = exact_bool(PyTuple_GetItem(arguments, 2), "mutable");
    const nb::handle size = PyTuple_GetItem(arguments, 3);
    const Pieces pieces(arguments, kFixed);
    const bool released = size.is_none();
    const std::int64_t slots = released ? 0 : index_of(size, "size");
    // Before anything is made: what a pickle says is not to be trusted with an allocation.
    pieces.require(slots, encoding_of(dtype));
    const std::unique_ptr<Intake> intake = open(tree, dtype, writable, slots, 0);
    Pulse pulse;
    for (const Py_buffer& view : pieces.views())
        pour({static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len)}, *intake, pulse);
    const Ref<Carrier> twin = intake->finish();
    if (released) twin->release();
    return nb::cast(twin);
}

/// A function of the C API, since pickle can name those and not nanobind's.
PyObject* rebuild_entry(PyObject*, PyObject* arguments) noexcept {
    try {
        return rebuild(arguments).release().ptr();
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

PyMethodDef functions[] = {{"_rebuild", rebuild_entry, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

// ---- copies -----------------------------------------------------------------------------------------------

/// A hierarchy over custom tiers travels as they do.
void require_travels(const Carrier& carrier) {
    if (const auto* hierarchy = dynamic_cast<const Evictable*>(&carrier)) {
        for (const Ref<Carrier>& tier : {hierarchy->primary(), hierarchy->secondary()})
            if (tier) require_travels(*tier);
    } else if (is_custom(carrier)) {
        const nb::handle object = static_cast<PyObject*>(carrier.host_object());
        if (!has_own_reduce(object)) refuse_custom(object);
    }
}

Ref<Carrier> twin(nb::handle self) {
    const Carrier& carrier = self_of(self);
    require_travels(carrier);
    return twin_of(carrier);
}

template <class Kind>
void define_copies() {
    auto c = nb::borrow<nb::class_<Kind>>(nb::type<Kind>());
    c.def("__copy__", &twin, nb::sig("def __copy__(self) -> typing.Self"));
    c.def(
        "__deepcopy__", [](nb::handle self, nb::handle) { return twin(self); }, nb::arg("memo").none(),
        nb::sig("def __deepcopy__(self, memo: typing.Any) -> typing.Self"));
}

}  // namespace

void bind_pickle(nb::module_& m) {
    if (PyModule_AddFunctions(m.ptr(), functions) < 0) throw nb::python_error();
    auto c = nb::borrow<nb::class_<Carrier>>(nb::type<Carrier>());
    // Copies of custom carriers go through their __reduce__, so only the shipped kinds have a shorter way.
    c.def(
        "__reduce__", [](nb::handle self) { return reduce(self, 2); },
        nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
    c.def("__reduce_ex__", &reduce_ex, nb::arg("protocol").none(),
          nb::sig("def __reduce_ex__(self, protocol: typing.SupportsIndex) -> tuple[typing.Any, ...]"));
    define_copies<CPU>();
    define_copies<Generic>();
    define_copies<FileBacked>();
    define_copies<Metal>();
    define_copies<Evictable>();
    bind_tensor_pickle(m);
}

}  // namespace carrier::python
