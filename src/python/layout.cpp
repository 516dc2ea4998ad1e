// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/layout.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "carrier/host.hpp"
#include "python/convert.hpp"
#include "python/module.hpp"
#include "python/ref_caster.hpp"
#include "python/shortcut.hpp"
#include "python/trees.hpp"

namespace carrier::python {

namespace {

/// The arguments of Shape and Stride: one iterable is the list of modes, anything else is the modes
/// themselves.
IntTree modes_of(const nb::args& args, const char* what) {
    if (args.size() == 1) {
        IntTree only = tree_of(args[0], what);
        if (!only.is_leaf()) return only;
    }
    std::vector<IntTree> items;
    for (nb::handle item : args) items.push_back(tree_of(item, what));
    return IntTree(std::move(items));
}

template <class T>
T& self_of(nb::handle self, const char* name) {
    return require_instance<T>(self, "self", name);
}

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

template <class T>
void define_value(nb::class_<T>& c, const char* name) {
    c.def(
        "__eq__",
        [name](nb::handle self, nb::handle other) -> nb::object {
            const T* right = instance_of<T>(other);
            return right == nullptr ? not_implemented()
                                    : nb::object(nb::bool_(self_of<T>(self, name) == *right));
        },
        nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"));
    c.def(
        "__hash__",
        [name](nb::handle self) { return static_cast<Py_ssize_t>(self_of<T>(self, name).hash() >> 2); },
        nb::sig("def __hash__(self) -> int"));
    c.def(
        "__repr__", [name](nb::handle self) { return self_of<T>(self, name).repr(); },
        nb::sig("def __repr__(self) -> str"));
    c.def(
        "__copy__", [](nb::handle self) { return nb::borrow(self); },
        nb::sig("def __copy__(self) -> typing.Self"));
    c.def(
        "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); }, nb::arg("memo").none(),
        nb::sig("def __deepcopy__(self, memo: typing.Any) -> typing.Self"));
}

template <class T>
vectorcallfunc modes_generally = nullptr;

/// `Shape(2, 3)`, and `Stride`: exact ints, one for each mode.
template <class T>
PyObject* modes_of_ints(PyObject* type, PyObject* const* arguments, std::size_t given, PyObject* names) {
    constexpr Py_ssize_t kMost = 8;
    const Py_ssize_t count = PyVectorcall_NARGS(given);
    Py_ssize_t integer[kMost];
    bool known = names == nullptr && count <= kMost;
    for (Py_ssize_t i = 0; known && i < count; ++i) known = small_int(arguments[i], integer[i]);
    if (!known) return modes_generally<T>(type, arguments, given, names);
    try {
        return constructed<T>(type, IntTree(std::vector<IntTree>(integer, integer + count)));
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

template <class T>
void define_modes(nb::class_<T>& c, const char* name, const char* what) {
    c.def(
        "__init__",
        [name, what](nb::handle self, const nb::args& args) {
            require_fresh<T>(self, name);
            const IntTree modes = modes_of(args, what);
            new (require_fresh<T>(self, name)) T(modes);
            nb::inst_mark_ready(self);
        },
        nb::sig("def __init__(self, *items: typing.SupportsIndex | collections.abc.Iterable[typing.Any]) -> "
                "None"));
    c.def_prop_ro(
        "rank", [name](nb::handle self) { return self_of<T>(self, name).rank(); },
        nb::sig("def rank(self, /) -> int"), "Number of modes at the top.");
    c.def(
        "__reduce__",
        [name](nb::handle self) {
            return nb::make_tuple(nb::borrow(Py_TYPE(self.ptr())),
                                  nb::make_tuple(object_of(self_of<T>(self, name).modes().tree())));
        },
        nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
    define_value(c, name);
    modes_generally<T> = shorten(c, modes_of_ints<T>);
}

const Layout& layout_of(nb::handle self) { return self_of<Layout>(self, "Layout"); }

std::int64_t index_in(nb::handle self, nb::handle key) { return slot_of(layout_of(self), key); }

vectorcallfunc layout_generally = nullptr;

/// `Layout(shape, stride)`.
PyObject* layout_of_modes(PyObject* type, PyObject* const* arguments, std::size_t given, PyObject* names) {
    const bool two = PyVectorcall_NARGS(given) == 2 && names == nullptr;
    const Shape* const shape = two ? exactly<Shape>(arguments[0]) : nullptr;
    const Stride* const stride = two ? exactly<Stride>(arguments[1]) : nullptr;
    if (shape == nullptr || stride == nullptr) return layout_generally(type, arguments, given, names);
    return constructed<Layout>(type, *shape, *stride);
}

bool is_injective(nb::handle self) {
    const Layout layout = layout_of(self);
    const Unlocked unlocked;  // a search, for some layouts
    return layout.is_injective();
}

constexpr std::uint32_t kPooled = 256;

}  // namespace

void bind_layout(nb::module_& m) {
    nb::class_<Shape> shape(m, "Shape", nb::is_final(), nb::pooled(kPooled), nb::is_weak_referenceable(),
                            nb::sig("@typing.final\nclass Shape()"), R"(The extents of a nested index space.

``Shape(*items)``: an item is an extent of at least 1, or a nested iterable (a nested mode); one iterable alone is the list
of modes. ``Shape()`` has no mode and one index. Equality is structural, nesting included.

Raises TypeError (not an integer, a bool), ValueError (an extent below 1), OverflowError (more indices than fit 63 bits).

>>> from carrier_storage import Shape
>>> Shape(2, [3, 4]).size
24
>>> Shape([2, [3, 4]])
Shape(2, [3, 4])
>>> Shape([[2, 3]]) == Shape(2, 3)
False
)");
    define_modes(shape, "Shape", "a shape");
    shape.def_prop_ro(
        "size", [](nb::handle self) { return self_of<Shape>(self, "Shape").size(); },
        nb::sig("def size(self, /) -> int"), "Number of indices: the product of all extents.");
    nb::class_<Stride> stride(m, "Stride", nb::is_final(), nb::pooled(kPooled), nb::is_weak_referenceable(),
                              nb::sig("@typing.final\nclass Stride()"),
                              R"(The step, in slots, of every leaf of a Shape with the same nesting.

``Stride(*items)``, written as a Shape is. A step of 0 repeats one slot. Raises TypeError, ValueError (a negative step),
OverflowError.

>>> from carrier_storage import Stride
>>> Stride(1, [2, 6])
Stride(1, [2, 6])
)");
    define_modes(stride, "Stride", "a stride");
    nb::class_<Layout> layout(
        m, "Layout", nb::is_final(), nb::pooled(kPooled), nb::is_weak_referenceable(),
        nb::sig("@typing.final\nclass Layout()"),
        R"(A map from the indices of a Shape to slots: the sum of coordinate times step over the leaves.

Logical indices count the first mode fastest, nested modes likewise. Raises TypeError, ValueError (shape and stride nested
differently), OverflowError (a slot beyond 63 bits).

>>> from carrier_storage import Layout, Shape, Stride
>>> rows = Layout(Shape(2, 3), Stride(3, 1))
>>> [rows.index(i) for i in range(rows.size)]
[0, 3, 1, 4, 2, 5]
>>> rows.index((1, 2)), rows.cosize, rows.is_injective
(5, 6, True)
)");
    layout.def(
        "__init__",
        [](nb::handle self, nb::handle shape, nb::handle stride) {
            void* memory = require_fresh<Layout>(self, "Layout");
            new (memory) Layout(require_instance<Shape>(shape, "shape", "Shape"),
                                require_instance<Stride>(stride, "stride", "Stride"));
            nb::inst_mark_ready(self);
        },
        nb::arg("shape").none(), nb::arg("stride").none(),
        nb::sig("def __init__(self, shape: Shape, stride: Stride) -> None"));
    layout.def_prop_ro(
        "shape", [](nb::handle self) { return Shape(layout_of(self).shape()); },
        nb::sig("def shape(self, /) -> Shape"), "The shape of the index space.");
    layout.def_prop_ro(
        "stride", [](nb::handle self) { return Stride(layout_of(self).stride()); },
        nb::sig("def stride(self, /) -> Stride"), "The steps, nested as the shape is.");
    layout.def_prop_ro(
        "size", [](nb::handle self) { return layout_of(self).size(); }, nb::sig("def size(self, /) -> int"),
        "Number of logical indices.");
    layout.def_prop_ro(
        "cosize", [](nb::handle self) { return layout_of(self).cosize(); },
        nb::sig("def cosize(self, /) -> int"), "One more than the greatest slot.");
    layout.def_prop_ro("is_injective", &is_injective, nb::sig("def is_injective(self, /) -> bool"),
                       "Whether no two indices share a slot; exact.");
    constexpr const char* index_doc = R"(The slot of a logical index, or of a coordinate.

A coordinate is a list or tuple with one item for each mode: a coordinate of that mode, or one integer for the whole of it.
Raises TypeError (not integers), ValueError (outside the domain, or nested otherwise).

>>> from carrier_storage import Layout, Shape, Stride
>>> Layout(Shape(2, [3, 4]), Stride(12, [1, 3])).index((1, [2, 3]))
23
)";
    layout.def(
        "index", &index_in, nb::arg("key").none(),
        nb::sig("def index(self, key: typing.SupportsIndex | collections.abc.Iterable[typing.Any]) -> int"),
        index_doc);
    layout.def(
        "__call__", &index_in, nb::arg("key").none(),
        nb::sig(
            "def __call__(self, key: typing.SupportsIndex | collections.abc.Iterable[typing.Any]) -> int"),
        "The same as ``index``.");
    layout.def(
        "__reduce__",
        [](nb::handle self) {
            return nb::make_tuple(nb::borrow(Py_TYPE(self.ptr())),
                                  nb::make_tuple(self.attr("shape"), self.attr("stride")));
        },
        nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
    define_value(layout, "Layout");
    layout_generally = shorten(layout, layout_of_modes);
}

}  // namespace carrier::python
