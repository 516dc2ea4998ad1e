// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/interpreter.hpp"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <thread>

#include "carrier/host.hpp"
#include "carrier/session.hpp"
#include "python/errors.hpp"
#include "python/module.hpp"

#if defined(Py_LIMITED_API)
// Exported by every CPython, left out of the limited headers.
extern "C" int PyGILState_Check(void);
#endif

namespace carrier::python {

namespace {

/// The one thread that may run signal handlers.
std::atomic<std::thread::id> main_thread;

void* suspend() noexcept { return PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr; }

void resume(void* state) noexcept {
    try {
        PyEval_RestoreThread(static_cast<PyThreadState*>(state));
    } catch (...) {
        stop_for_ever();
    }
}

void poll() {
    // Work that holds the lock hands it over now and then: a signal may be waiting for the thread that sends
    // it.
    if (void* state = suspend()) resume(state);
    if (std::this_thread::get_id() != main_thread.load(std::memory_order_relaxed)) return;
    const Held lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void retain(void* object) noexcept {
    const Held lock;
    Py_INCREF(static_cast<PyObject*>(object));
}

void release(void* object) noexcept {
    // Past the interpreter's end its objects are gone.
    if (!nb::is_alive()) return;
    const Held lock;
    Py_DECREF(static_cast<PyObject*>(object));
}

void unraisable() noexcept {
    if (!nb::is_alive()) return;
    const Held lock;
    raise_current();
    PyErr_WriteUnraisable(Py_None);
}

/// A module, if somebody has imported it.
nb::object loaded(const char* name) { return nb::module_::import_("sys").attr("modules").attr("get")(name); }

/// A child of multiprocessing ends in os._exit, without Python's shutdown: its own finalizers are what runs
/// there. They are cleared when the child starts, so each session registers anew, and nothing imports
/// multiprocessing for it. Last of all: a queue's thread may still have to read the files of what was put.
void register_finalizer() {
    const nb::object util = loaded("multiprocessing.util");
    if (util.is_none()) return;
    util.attr("Finalize")(nb::none(), nb::cpp_function([] { remove_session(); }),
                          nb::arg("exitpriority") = -100);
}

/// Calls what runs Python code. A daemon thread that is unwound there, since Python shuts down, goes no
/// further: on its way our destructors would use Python without its lock.
template <class Work>
auto unless_unwound(Work work) {
    try {
        return work();
    } catch (const std::exception&) {
        throw;
    } catch (...) {
        stop_for_ever();
    }
}

/// Held while a folder is looked for, and over every fork: a child whose parent was in the middle of an
/// import or of gettempdir() would wait for ever for the thread that was at it.
class ForkGuard {
  public:
    explicit ForkGuard(nb::handle guard) : guard_(guard) {
        unless_unwound([&] { guard_.attr("acquire")(); });
    }
    ~ForkGuard() {
        const nb::error_scope keep;
        guard_.attr("release")();
    }
    ForkGuard(const ForkGuard&) = delete;
    ForkGuard& operator=(const ForkGuard&) = delete;

  private:
    nb::handle guard_;
};

PyObject* fork_guard = nullptr;  // for the life of the process

void guard_forks() {
    const nb::object guard = nb::module_::import_("_thread").attr("allocate_lock")();
    nb::module_::import_("os").attr("register_at_fork")(nb::arg("before") = guard.attr("acquire"),
                                                        nb::arg("after_in_parent") = guard.attr("release"),
                                                        nb::arg("after_in_child") = guard.attr("release"));
    fork_guard = nb::object(guard).release().ptr();
}

std::string directory_for_files() {
    const nb::object path = nb::module_::import_("os").attr("path").attr("abspath")(
        nb::module_::import_("tempfile").attr("gettempdir")());
    const nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(path.ptr()));
    if (!bytes.is_valid()) throw nb::python_error();
    return PyBytes_AsString(bytes.ptr());
}

std::string temporary_directory() {
    const Held lock;
    const ForkGuard guard(fork_guard);
    return unless_unwound([] {
        register_finalizer();
        return directory_for_files();
    });
}

/// Where there is multiprocessing, its own end comes first, in whatever order the two were imported: queues
/// send what was put, children end. A pool ends its workers by a signal, unless it is closed and joined: what
/// they left goes with the process that may have had one.
void end_sessions() {
    const nb::object util = loaded("multiprocessing.util");
    if (util.is_none()) return remove_session();
    if (nb::hasattr(util, "_exit_function")) {
        const nb::object ended = nb::steal(PyObject_CallMethod(util.ptr(), "_exit_function", nullptr));
        if (!ended.is_valid()) PyErr_WriteUnraisable(util.ptr());
    }
    remove_session();
    reap_sessions(directory_for_files());
}

}  // namespace

void stop_for_ever() noexcept {
    for (;;) pause();
}

Held::Held() noexcept : taken_(PyGILState_Check() == 0) {
    if (!taken_) return;
    try {
        state_ = PyGILState_Ensure();
    } catch (...) {
        stop_for_ever();
    }
}

Held::~Held() {
    if (taken_) PyGILState_Release(state_);
}

void connect_host() {
    main_thread.store(std::this_thread::get_id());
    // The thread that forks is the main one of the child.
    pthread_atfork(nullptr, nullptr, [] { main_thread.store(std::this_thread::get_id()); });
    host() = Host{suspend, resume, poll, retain, release, unraisable, temporary_directory};
}

void register_exit(nb::module_& m) {
    guard_forks();
    m.def("_remove_session", [] { end_sessions(); });
    nb::module_::import_("atexit").attr("register")(m.attr("_remove_session"));
}

}  // namespace carrier::python
