// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/edit.hpp"

#include "carrier/errors.hpp"
#include "python/arrays.hpp"
#include "python/collect.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"
#include "python/type_slot.hpp"

namespace carrier::python {

namespace {

/// What `carrier.edit()` returns: one edit, from `__enter__` to `__exit__`.
struct EditScope {
    enum class Stage : std::uint8_t { fresh, beginning, running, ended };

    Ref<Carrier> carrier;  // until the edit runs, which then has it
    Ref<Edit> edit;
    Stage stage = Stage::fresh;
};

[[noreturn]] void refuse(EditScope::Stage stage, const char* fresh) {
    switch (stage) {
        case EditScope::Stage::fresh:
            throw StateError(fresh);
        case EditScope::Stage::beginning:
        case EditScope::Stage::running:
            throw StateError("this edit is running already; one `with` at a time");
        default:
            throw StateError("this edit has ended; begin another one with carrier.edit()");
    }
}

nb::object enter(EditScope& scope) {
    using Stage = EditScope::Stage;
    if (scope.stage != Stage::fresh) refuse(scope.stage, "");
    const nb::object type = array_type();
    const Ref<Carrier> carrier = scope.carrier;
    if (!carrier) refuse(Stage::ended, "");
    scope.stage = Stage::beginning;  // staging may run hooks, and lets other threads run
    try {
        const Ref<Edit> edit = make<Edit>(carrier);
        const Encoding encoding = carrier->hot().encoding;
        const auto slots = static_cast<std::int64_t>(edit->block()->size() / slot_bytes(encoding));
        nb::object array = array_over(type, {edit->block(), encoding, 0, slots, {slots}, {1}}, true);
        scope.edit = edit;
        scope.carrier = nullptr;
        scope.stage = Stage::running;
        return array;
    } catch (...) {
        scope.stage = Stage::fresh;
        throw;
    }
}

void leave(EditScope& scope, bool keep) {
    if (scope.stage != EditScope::Stage::running)
        refuse(scope.stage, "this edit has not begun; use `with carrier.edit() as array:`");
    scope.stage = EditScope::Stage::ended;
    const Ref<Edit> edit = std::move(scope.edit);  // writing back may run hooks
    scope.edit = nullptr;
    if (edit) edit->finish(keep);
}

int traverse(PyObject* self, visitproc visitor, void* arg) noexcept {
    if (const int stop = traverse_type(self, visitor, arg)) return stop;
    if (!nb::inst_ready(self)) return 0;
    const EditScope& scope = *nb::inst_ptr<EditScope>(self);
    if (const int stop = visit(scope.carrier, visitor, arg)) return stop;
    return scope.edit ? visit(scope.edit->carrier(), visitor, arg) : 0;
}

int clear(PyObject* self) noexcept {
    if (!nb::inst_ready(self)) return 0;
    EditScope& scope = *nb::inst_ptr<EditScope>(self);
    scope.stage = EditScope::Stage::ended;
    const Ref<Edit> edit = std::move(scope.edit);
    scope.carrier = nullptr;
    return 0;
}

PyType_Slot slots[] = {
    {Py_tp_traverse, slot(traverse)},
    {Py_tp_clear, slot(clear)},
    {0, nullptr},
};

}  // namespace

void bind_edit(nb::module_& m) {
    nb::class_<EditScope>(m, "_Edit", nb::type_slots(slots), nb::is_final(),
                          nb::sig("@typing.final\nclass _Edit()"),
                          "The scope of one edit: ``with carrier.edit() as array:``.")
        .def("__enter__", &enter, nb::sig("def __enter__(self) -> numpy.ndarray"))
        .def(
            "__exit__",
            [](EditScope& scope, const nb::args& exception) {
                leave(scope, exception.empty() || exception[0].is_none());
            },
            nb::sig("def __exit__(self, *exception: object) -> None"));
    nb::borrow<nb::class_<Carrier, PyCarrier>>(nb::type<Carrier>())
        .def(
            "edit",
            [](nb::handle self) {
                return EditScope{Ref<Carrier>(&require_instance<Carrier>(self, "self", "Carrier")), {}, {}};
            },
            nb::sig("def edit(self) -> contextlib.AbstractContextManager[numpy.ndarray]"),
            R"(Write the slots as a NumPy array: ``with carrier.edit() as array:``.

On CPU, Generic and Metal, and on an Evictable over one of them, the array is the carrier's own memory and a write is
there at once. On FileBacked and custom carriers it is a copy that is written back, all or nothing, when the block ends
normally and dropped when it raises. ``version`` advances when the edit begins and when it ends. Until then the carrier
can not be released, evicted, promoted, claimed or edited a second time (RuntimeError). Once the edit has ended, the array
is no longer yours to write; an edit that is dropped unfinished ends as one that raised.

Raises, at ``__enter__``, RuntimeError (released, evicted, not mutable, edited), TypeError (a dtype without bytes),
ImportError (no NumPy), MemoryError.

>>> from carrier_storage import CPU, DType
>>> c = CPU(4, dtype=DType.Int32)
>>> with c.edit() as a:
...     a[1:] = [5, 6, 7]
>>> list(c), c.version
([0, 5, 6, 7], 2)
)");
}

}  // namespace carrier::python
