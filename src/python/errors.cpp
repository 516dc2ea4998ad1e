// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/errors.hpp"

#include <exception>
#include <new>
#include <stdexcept>

#include "carrier/errors.hpp"
#include "python/interpreter.hpp"

namespace carrier::python {

namespace nb = nanobind;

namespace {

/// OSError(errno, text, path): Python itself picks FileExistsError, PermissionError and so on.
void set_os_error(const OsError& error) noexcept {
    PyObject* path = error.path().empty()
                         ? Py_NewRef(Py_None)
                         : PyUnicode_DecodeFSDefaultAndSize(error.path().data(),
                                                            static_cast<Py_ssize_t>(error.path().size()));
    if (path == nullptr) return;
    const std::string text = error.operation() + ": " + std::generic_category().message(error.code());
    PyObject* made = PyObject_CallFunction(PyExc_OSError, "isO", error.code(), text.c_str(), path);
    Py_DECREF(path);
    if (made == nullptr) return;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made)), made);
    Py_DECREF(made);
}

/// Sets the Python error for what the library throws; everything else is thrown on. What is no exception is
/// the end of a thread, by Python.
void translate(const std::exception_ptr& thrown) {
    if (!thrown) stop_for_ever();
    try {
        std::rethrow_exception(thrown);
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const OsError& error) {
        set_os_error(error);
    } catch (const StateError& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (const IndexError& error) {
        PyErr_SetString(PyExc_IndexError, error.what());
    } catch (const TypeError& error) {
        PyErr_SetString(PyExc_TypeError, error.what());
    } catch (const ValueError& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const OverflowError& error) {
        PyErr_SetString(PyExc_OverflowError, error.what());
    } catch (const LookupError& error) {
        PyErr_SetString(PyExc_LookupError, error.what());
    } catch (const NotImplementedError& error) {
        PyErr_SetString(PyExc_NotImplementedError, error.what());
    } catch (const BufferError& error) {
        PyErr_SetString(PyExc_BufferError, error.what());
    } catch (const MemoryError& error) {
        PyErr_SetString(PyExc_MemoryError, error.what());
    } catch (const Error& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (const std::length_error&) {  // of a container
        PyErr_SetString(PyExc_MemoryError, "so many values exceed what memory can address");
    }
}

}  // namespace

void raise_current() noexcept {
    try {
        translate(std::current_exception());
    } catch (const nb::builtin_exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) {
        PyErr_SetString(PyExc_SystemError, "an unknown C++ exception reached Python");
    }
}

void register_errors() {
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) { translate(thrown); });
}

}  // namespace carrier::python
