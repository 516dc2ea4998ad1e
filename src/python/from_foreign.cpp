// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <memory>

#include "carrier/errors.hpp"
#include "carrier/inner.hpp"
#include "python/convert.hpp"
#include "python/dlpack.hpp"
#include "python/foreign.hpp"
#include "python/ingest_buffer.hpp"
#include "python/module.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

using dlpack::Unversioned;
using dlpack::Versioned;

// ---- DLPack

/// JAX arrays are immutable whatever their capsules say. Nothing imports JAX for it.
bool is_jax_array(nb::handle x) {
    const nb::str name("jax");
    const nb::object jax = nb::steal(PyImport_GetModule(name.ptr()));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    if (!jax.is_valid() || !nb::hasattr(jax, "Array")) return false;
    const int answer = PyObject_IsInstance(x.ptr(), nb::object(jax.attr("Array")).ptr());
    if (answer < 0) throw nb::python_error();
    return answer == 1;
}

nb::object method_of(nb::handle x, const char* name) {
    nb::object method = nb::steal(PyObject_GetAttrString(x.ptr(), name));
    if (method.is_valid()) return method;
    nb::python_error raised;
    if (!raised.matches(PyExc_AttributeError)) throw raised;
    throw TypeError(class_name(x) + " has no " + name +
                    "(), so it exports nothing by DLPack; copy its values with new_like");
}

void require_host(std::int64_t device) {
    if (device != dlpack::kHost)
        throw BufferError("the values are on DLPack device " + std::to_string(device) +
                          "; a CPU carrier wraps host memory, device 1: copy them there first");
}

void check_device(nb::handle x) {
    const nb::object answer = method_of(x, "__dlpack_device__")();
    PyObject* type = nullptr;
    if (PyTuple_Check(answer.ptr()) && PyTuple_Size(answer.ptr()) == 2)
        type = PyTuple_GetItem(answer.ptr(), 0);
    if (type == nullptr || PyIndex_Check(type) == 0)
        throw TypeError(class_name(x) + ".__dlpack_device__() must return two integers");
    require_host(index_of(type));
}

/// Asks for version 1, and again without a version where the exporter knows no such argument.
nb::object ask(nb::handle x) {
    const nb::object method = method_of(x, "__dlpack__");
    try {
        return method(nb::arg("max_version") = nb::make_tuple(dlpack::kMajor, 0));
    } catch (nb::python_error& raised) {
        if (!raised.matches(PyExc_TypeError)) throw;
    }
    return method();
}

/// What is the same in both structures; TypeError (dtype), BufferError (device), ValueError (shape).
Foreign describe(const dlpack::Array& array) {
    require_host(array.device);
    const DType* dtype = dlpack::dtype_of(array.dtype);
    if (dtype == nullptr)
        throw TypeError("DLPack type code " + std::to_string(array.dtype.code) + " with " +
                        std::to_string(array.dtype.bits) + " bits and " + std::to_string(array.dtype.lanes) +
                        " lanes is none of Float32, Int32 and Bool; convert first");
    if (array.rank < 0 || (array.rank > 0 && array.shape == nullptr))
        throw ValueError("the DLPack structure has no shape");
    const auto rank = static_cast<std::size_t>(array.rank);
    Foreign foreign{*dtype, static_cast<std::byte*>(array.data), {}, {}, 1};
    if (rank > 0) foreign.shape.assign(array.shape, array.shape + rank);
    if (rank > 0 && array.strides != nullptr) foreign.strides.assign(array.strides, array.strides + rank);
    if (foreign.address == nullptr) return foreign;
    if (array.byte_offset > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(array.data))
        throw ValueError("the DLPack structure's byte_offset of " + std::to_string(array.byte_offset) +
                         " leaves the address space");
    foreign.address += array.byte_offset;
    return foreign;
}

/// Takes the structure out of its capsule once everything about it is fine; until then the capsule keeps it.
template <class Managed>
Ref<CPU> take(nb::handle capsule, Mutable wanted, bool writable) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), Managed::kName));
    if (managed == nullptr) throw nb::python_error();
    if constexpr (Managed::kHasFlags) {
        if (managed->major != dlpack::kMajor)
            throw BufferError("the exporter speaks DLPack " + std::to_string(managed->major) + "." +
                              std::to_string(managed->minor) + "; version 1 was asked for");
        writable = writable && (managed->flags & dlpack::kReadOnly) == 0;
    } else if (wanted == Mutable::as_source) {
        wanted = Mutable::no;  // there is no flag to go by
    }
    const Foreign foreign = describe(managed->array);
    foreign.count();
    const bool is_writable = settle(wanted, writable);
    if (PyCapsule_SetName(capsule.ptr(), Managed::kTaken) != 0) throw nb::python_error();
    return wrap(foreign, is_writable, [managed] {
        if (managed->deleter != nullptr) managed->deleter(managed);
    });
}

Ref<CPU> from_dlpack(nb::handle x, nb::handle writable) {
    const Mutable wanted = mutable_of(writable);
    check_device(x);
    const bool immutable = wanted != Mutable::no && is_jax_array(x);
    if (immutable && wanted == Mutable::yes)
        throw BufferError("a JAX array is immutable, so mutable=True is refused; copy it with new_like");
    const nb::object capsule = ask(x);
    if (PyCapsule_IsValid(capsule.ptr(), Versioned::kName) != 0)
        return take<Versioned>(capsule, wanted, !immutable);
    if (PyCapsule_IsValid(capsule.ptr(), Unversioned::kName) != 0)
        return take<Unversioned>(capsule, wanted, !immutable);
    if (!PyCapsule_CheckExact(capsule.ptr()))
        throw TypeError(class_name(x) + ".__dlpack__() must return a capsule, not " + class_name(capsule));
    throw BufferError("the DLPack capsule was taken already; each can be taken once");
}

// ---- buffer protocol

/// A buffer that is held until it is given back, which needs the interpreter lock.
struct HeldView {
    Py_buffer view{};
    bool held = false;
    const Block* block = nullptr;  // over the buffer

    explicit HeldView(nb::handle x) {
        if (PyObject_CheckBuffer(x.ptr()) == 0)
            throw TypeError(
                class_name(x) +
                " does not export its memory by the buffer protocol; copy its values with new_like");
        if (PyObject_GetBuffer(x.ptr(), &view, PyBUF_FULL_RO) != 0) throw nb::python_error();
        held = true;
    }
    ~HeldView() {
        if (block != nullptr) forget_owner(block);
        if (held) PyBuffer_Release(&view);
    }
    HeldView(const HeldView&) = delete;
    HeldView& operator=(const HeldView&) = delete;
};

const DType& dtype_of(const Py_buffer& view) {
    switch (elements_of(view.format, view.itemsize)) {
        case Elements::float32:
            return DType::Float32();
        case Elements::int32:
            return DType::Int32();
        case Elements::boolean:
            return DType::Bool();
        default:
            throw TypeError("a buffer of format '" + std::string(view.format != nullptr ? view.format : "B") +
                            "' holds none of Float32 ('f'), Int32 ('i') and Bool ('?') in native order; "
                            "convert it, or copy its values with new_like");
    }
}

Foreign describe(const Py_buffer& view) {
    const DType& dtype = dtype_of(view);
    if (view.suboffsets != nullptr)
        for (int k = 0; k < view.ndim; ++k)
            if (view.suboffsets[k] >= 0)
                throw ValueError("the buffer's rows lie in different places; make a contiguous copy first");
    Foreign foreign{dtype, static_cast<std::byte*>(view.buf), {}, {}, view.itemsize};
    if (view.shape != nullptr)
        foreign.shape.assign(view.shape, view.shape + view.ndim);
    else if (view.ndim != 0)
        foreign.shape.push_back(view.len / view.itemsize);
    if (view.shape != nullptr && view.strides != nullptr)
        foreign.strides.assign(view.strides, view.strides + view.ndim);
    if (foreign.count() * view.itemsize != view.len)
        throw ValueError("the buffer says that it has " + std::to_string(view.len) +
                         " bytes, and its shape another number");
    return foreign;
}

Ref<CPU> from_buffer(nb::handle x, nb::handle writable) {
    const Mutable wanted = mutable_of(writable);
    auto held = std::make_unique<HeldView>(x);
    const Foreign foreign = describe(held->view);
    const bool is_writable = settle(wanted, held->view.readonly == 0);
    HeldView* const kept = held.release();
    Ref<CPU> made = wrap(foreign, is_writable, [kept] { delete kept; });
    kept->block = Inner::block(*made).get();
    if (kept->view.obj != nullptr) know_owner(kept->block, kept->view.obj);
    return made;
}

}  // namespace

void bind_foreign(nb::module_&) {
    nb::borrow<nb::class_<CPU, Carrier>>(nb::type<CPU>())
        .def_static("from_dlpack", &from_dlpack, nb::arg("x").none(), nb::kw_only(),
                    nb::arg("mutable").none() = nb::none(),
                    nb::sig("def from_dlpack(x: typing.Any, *, mutable: bool | None = None) -> CPU"),
                    R"(A carrier over the memory of a tensor of another library, by DLPack. No copy.

The exporter's memory stays alive until the carrier and everything it handed out are gone. More than one dimension in C
order is wrapped flat. ``mutable`` None takes the source's word; one that cannot tell (DLPack before 1.0) comes in
immutable unless ``mutable=True``. Writes that others make to the memory do not advance ``version``.

Raises TypeError (no exporter, a dtype other than Float32, Int32 and Bool), BufferError (another device, another
version, ``mutable=True`` on a read-only source or a JAX array), ValueError (layout, shape), and the exporter's own
errors.

>>> from carrier_storage import CPU
>>> source = CPU(0).new_like([1, 2.5])
>>> c = CPU.from_dlpack(source)
>>> c[0] = 4
>>> source[0]
4.0
)")
        .def_static(
            "from_buffer", &from_buffer, nb::arg("x").none(), nb::kw_only(),
            nb::arg("mutable").none() = nb::none(),
            nb::sig("def from_buffer(x: typing.Any, *, mutable: bool | None = None) -> CPU"),
            R"(A carrier over the memory of an ``array.array``, a NumPy array or another buffer. No copy.

The buffer is held until the carrier and everything it handed out are gone: until then an ``array.array`` cannot grow.
Formats ``f``, ``i`` (or another of 4 bytes) and ``?`` in native order; more than one dimension in C order is wrapped
flat. ``mutable`` None means: as the source is. Writes that others make to the memory do not advance ``version``.

Raises TypeError (no buffer, another format), BufferError (``mutable=True`` on a read-only source), ValueError (layout,
shape), and the exporter's own errors.

>>> import array
>>> from carrier_storage import CPU
>>> memory = array.array("i", [1, 2, 3])
>>> c = CPU.from_buffer(memory)
>>> c[1] = 20
>>> memory.tolist(), c.is_mutable()
([1, 20, 3], True)
>>> CPU.from_buffer(memory, mutable=False).is_mutable()
False
)");
}

}  // namespace carrier::python
