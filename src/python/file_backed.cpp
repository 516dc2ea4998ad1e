// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/file_backed.hpp"

#include <nanobind/nanobind.h>

#include "python/arguments.hpp"
#include "python/collect.hpp"
#include "python/convert.hpp"
#include "python/factories.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

/// A str, or what os.fspath makes one of; in the file system's encoding.
std::string name_of(nb::handle filename) {
    const nb::object path = nb::steal(PyOS_FSPath(filename.ptr()));
    if (!path.is_valid()) {
        nb::python_error raised;
        if (!raised.matches(PyExc_TypeError) || nb::hasattr(filename, "__fspath__")) throw raised;
    }
    if (!path.is_valid() || !PyUnicode_Check(path.ptr()))
        throw TypeError("filename must be a str, a path-like of one, or None, not " + class_name(filename));
    const nb::object encoded = nb::steal(PyUnicode_EncodeFSDefault(path.ptr()));
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    if (!encoded.is_valid() || PyBytes_AsStringAndSize(encoded.ptr(), &bytes, &size) < 0)
        throw nb::python_error();
    return {bytes, static_cast<std::size_t>(size)};
}

void initialize(nb::handle self, const nb::args& args, const nb::kwargs& kwargs) {
    static constexpr Parameter parameters[] = {{"filename"}, {"mutable"}, {"dtype", true}};
    require_fresh<FileBacked>(self, "FileBacked");
    const auto [filename, writable, dtype] = bind_arguments("FileBacked", parameters, 1, args, kwargs);
    const bool is_writable = flag(writable, "mutable", true);
    const DType& wanted = *dtype_of(dtype);
    std::optional<std::string> name;
    if (filename.is_valid() && !filename.is_none()) name = name_of(filename);
    void* memory =
        require_fresh<FileBacked>(self, "FileBacked");  // __fspath__ may have called __init__ itself
    adopt(new (memory) FileBacked(wanted, name, is_writable), self);
}

nb::object path(nb::handle self) {
    const std::string& bytes = require_instance<FileBacked>(self, "self", "FileBacked").path();
    const nb::object text =
        nb::steal(PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
    if (!text.is_valid()) throw nb::python_error();
    return nb::module_::import_("pathlib").attr("Path")(text);
}

void grow(nb::handle self, nb::handle size) {
    auto& carrier = require_instance<FileBacked>(self, "self", "FileBacked");
    // Type first, then the carrier's state, then the number: so the number is looked at last.
    const nb::object exact = nb::steal(PyNumber_Index(size.ptr()));
    if (!exact.is_valid()) throw nb::python_error();
    carrier.require_mutable();
    carrier.grow(size_of(exact, "size"));
}

PyType_Slot slots[] = {
    {Py_tp_methods, closed_methods},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_type)},
    {0, nullptr},
};

constexpr std::uint32_t kPooled = 1024;

}  // namespace

void bind_file_backed(nb::module_& m) {
    nb::class_<FileBacked, Carrier>(
        m, "FileBacked", nb::type_slots(slots), nb::is_final(), nb::pooled(kPooled),
        nb::sig("@typing.final\nclass FileBacked(Carrier)"),
        R"(A temporary raw file of numbers. Stores Float32 and Int32; begins empty.

The file lies in a hidden directory of this process, under a unique name, or under the bare name ``filename``. It holds
native-endian numbers and nothing else, 4 bytes a slot, and goes with the carrier. It does not scatter.

In a forked child an inherited carrier may be read; writing and growing it are RuntimeErrors.

Raises TypeError (arguments), ValueError (dtype, a name with a path in it), FileExistsError (name taken), OSError.

>>> from carrier_storage import DType, FileBacked
>>> f = FileBacked(dtype=DType.Int32)
>>> f.grow(2)
>>> f[0] = 7
>>> list(f), f.path.stat().st_size
([7, 0], 8)
)")
        .def(
            "__init__", &initialize,
            nb::sig(
                "def __init__(self, filename: str | os.PathLike[str] | None = None, *, mutable: bool = True, "
                "dtype: DType) -> None"))
        .def_prop_ro("path", &path, nb::sig("def path(self, /) -> pathlib.Path"),
                     R"(Absolute path of the file; answers after release, when the file is gone.

>>> from carrier_storage import DType, FileBacked
>>> FileBacked("weights", dtype=DType.Float32).path.name
'weights'
)")
        .def(
            "grow", &grow, nb::arg("size").none(),
            nb::sig("def grow(self, size: typing.SupportsIndex) -> None"),
            R"(Extend the file to ``size`` slots; the new ones are zero. Not a mutation of values: ``version`` stays.

Raises TypeError (size), RuntimeError (released, not mutable), ValueError (smaller than now: a carrier never shrinks),
OSError (full disk), which leaves everything as it was.

>>> from carrier_storage import DType, FileBacked
>>> f = FileBacked(dtype=DType.Float32)
>>> f.grow(3)
>>> f.size(), f.version
(3, 0)
)");
}

}  // namespace carrier::python
