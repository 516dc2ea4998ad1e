// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <memory>

#include "carrier/errors.hpp"
#include "carrier/evictable.hpp"
#include "python/convert.hpp"
#include "python/dlpack.hpp"
#include "python/hand_out.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

using dlpack::Unversioned;
using dlpack::Versioned;

/// One exported structure and what it points to. Nothing here belongs to Python, so whoever deletes it may be
/// any thread, with or without the interpreter lock, and after the interpreter's end.
template <class Managed>
struct Export {
    Managed managed{};
    HandOut memory;

    static void destroy(Managed* managed) { delete static_cast<Export*>(managed->context); }
};

/// The end of a capsule that nobody took.
template <class Managed>
void end_capsule(PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, Managed::kName) == 0) return;
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kName));
    managed->deleter(managed);
}

template <class Managed>
nb::object capsule_of(HandOut&& memory, std::uint64_t flags) {
    auto made = std::make_unique<Export<Managed>>();
    made->memory = std::move(memory);
    HandOut& m = made->memory;
    bool empty = false;
    for (const std::int64_t extent : m.shape) empty |= extent == 0;
    made->managed.array = {empty ? nullptr : m.data(),
                           dlpack::kHost,
                           0,
                           static_cast<std::int32_t>(m.shape.size()),
                           dlpack::type_of(m.encoding),
                           m.shape.data(),
                           m.strides.data(),
                           0};
    made->managed.context = made.get();
    made->managed.deleter = Export<Managed>::destroy;
    if constexpr (Managed::kHasFlags) {
        made->managed.major = dlpack::kMajor;
        made->managed.flags = flags;
    }
    nb::object capsule = nb::steal(PyCapsule_New(&made->managed, Managed::kName, end_capsule<Managed>));
    if (!capsule.is_valid()) throw nb::python_error();
    static_cast<void>(made.release());
    return capsule;
}

/// Two integers, called `name` in errors.
std::pair<std::int64_t, std::int64_t> pair_of(nb::handle object, const char* name) {
    if (!PyTuple_Check(object.ptr()) || PyTuple_Size(object.ptr()) != 2)
        throw TypeError(std::string(name) + " must be a tuple of two integers, or None");
    const nb::object held = nb::borrow(object);
    return {index_of(nb::handle(PyTuple_GetItem(held.ptr(), 0)), name),
            index_of(nb::handle(PyTuple_GetItem(held.ptr(), 1)), name)};
}

struct Request {
    bool versioned = false;
    bool must_copy = false;

    Request(nb::handle stream, nb::handle max_version, nb::handle device, nb::handle copy) {
        must_copy = !copy.is_none() && exact_bool(copy, "copy");
        if (!max_version.is_none()) versioned = pair_of(max_version, "max_version").first >= dlpack::kMajor;
        if (!device.is_none()) {
            const auto [type, number] = pair_of(device, "dl_device");
            if (type != dlpack::kHost || number != 0)
                throw BufferError("a carrier hands out host memory, device (1, 0); device (" +
                                  std::to_string(type) + ", " + std::to_string(number) +
                                  ") was asked for: copy it there afterwards");
        }
        if (!stream.is_none()) throw BufferError("host memory has no streams; `stream` must be None for it");
    }
};

nb::object export_copy(HandOut copy, const Request& request) {
    return request.versioned ? capsule_of<Versioned>(std::move(copy), dlpack::kCopied)
                             : capsule_of<Unversioned>(std::move(copy), 0);
}

template <class Source>
nb::object to_dlpack(nb::handle self, const char* name, nb::handle stream, nb::handle max_version,
                     nb::handle device, nb::handle copy) {
    const Source& source = require_instance<Source>(self, "self", name);
    const Request request(stream, max_version, device, copy);
    if (request.must_copy) return export_copy(lent_copy(source), request);
    HandOut own = lent(source);
    Ref<Carrier> carrier(const_cast<Carrier*>(&carrier_behind(source)));
    if (reinterpret_cast<std::uintptr_t>(own.data()) % slot_bytes(own.encoding) != 0)
        throw BufferError("the values lie at an address that is no multiple of " +
                          std::to_string(slot_bytes(own.encoding)) +
                          " bytes, which other libraries do not read; ask for copy=True");
    const bool writable = dynamic_cast<const Evictable*>(carrier.get()) == nullptr && carrier->is_mutable();
    if (!writable && !request.versioned)
        throw BufferError("the memory of this " + carrier->kind() +
                          " carrier is handed out read-only, which DLPack can say from version 1.0 on: ask "
                          "for max_version=(1, 0), or for copy=True");
    nb::object capsule = request.versioned
                             ? capsule_of<Versioned>(std::move(own), writable ? 0 : dlpack::kReadOnly)
                             : capsule_of<Unversioned>(std::move(own), 0);
    // Nothing tells of the writes to come.
    if (writable) ++carrier->hot().version;
    return capsule;
}

constexpr const char* kSignature =
    "def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[int, int] | None = None, "
    "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any";

constexpr const char* kDocument =
    R"(The memory for another library, as a DLPack capsule: ``torch.from_dlpack(x)``, ``numpy.from_dlpack(x)``.

Of a publicly mutable CPU, Generic or Metal carrier it is writable and counts as one mutation, since nothing tells of
later writes. Of any other, and of an Evictable, it is read-only, which only a consumer that asks for ``max_version`` 1.0
or later can be told. ``copy=True`` is a fresh, writable copy of any kind.

Raises BufferError (released, evicted, read-only for an old consumer, FileBacked and custom carriers without
``copy=True``, another device), TypeError (arguments).

>>> from carrier_storage import CPU
>>> c = CPU(3)
>>> twin = CPU.from_dlpack(c)
>>> twin[0] = 2.5
>>> c[0], c.version
(2.5, 1)
)";

template <class Source, class Class>
void define_dlpack(Class c, const char* name) {
    c.def(
        "__dlpack__",
        [name](nb::handle self, nb::handle stream, nb::handle max_version, nb::handle device,
               nb::handle copy) { return to_dlpack<Source>(self, name, stream, max_version, device, copy); },
        nb::kw_only(), nb::arg("stream").none() = nb::none(), nb::arg("max_version").none() = nb::none(),
        nb::arg("dl_device").none() = nb::none(), nb::arg("copy").none() = nb::none(), nb::sig(kSignature),
        kDocument);
    c.def(
        "__dlpack_device__", [](nb::handle) { return nb::make_tuple(dlpack::kHost, 0); },
        nb::sig("def __dlpack_device__(self) -> tuple[int, int]"), "Host memory: ``(1, 0)``, always.");
}

}  // namespace

void bind_dlpack(nb::module_&) {
    define_dlpack<Carrier>(nb::borrow<nb::class_<Carrier, PyCarrier>>(nb::type<Carrier>()), "Carrier");
    define_dlpack<Tensor>(nb::borrow<nb::class_<Tensor>>(nb::type<Tensor>()), "Tensor");
}

}  // namespace carrier::python
