// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "carrier/carrier.hpp"

namespace carrier::python {

namespace nb = nanobind;

/// A carrier written in Python: the `do_` functions call the hooks of the Python object that this one lives
/// in.
///
/// Hooks are looked up on the object at each call and called positionally. One that is missing where it is
/// needed is a NotImplementedError that names it. Values cross under the rule of the carrier's dtype, both
/// ways.
class PyCarrier final : public Carrier {
  public:
    PyCarrier() noexcept = default;

    std::string kind() const override;
    /// What `_dispatch_op` returns; invalid when the class has none.
    nb::object dispatch(nb::handle name) const;
    /// `new_like` for a dtype that has no encoding: its values pass through as they are. Null for other
    /// dtypes.
    Ref<Carrier> new_opaque(nb::handle values, const NewOptions& options) const;

  protected:
    std::int64_t do_size() const override;
    const DType& do_dtype() const override;
    bool do_supports(const DType& dtype) const override;
    bool do_is_mutable() const override;
    Value do_get(std::int64_t index) const override;
    void do_set(std::int64_t index, const Value& value) override;
    Ref<Carrier> do_allocate_like(std::int64_t size, bool writable, const DType& dtype,
                                  bool empty) const override;
    std::unique_ptr<Intake> do_intake(std::int64_t expected, bool writable,
                                      const DType& dtype) const override;
    void do_scatter(const Tensor& source, std::int64_t base, const Layout& mapping) override;
    void do_release() override;
    void do_dispatch(std::string_view name) const override;
    bool do_runs_hooks() const noexcept override { return true; }

  private:
    nb::handle self() const noexcept { return static_cast<PyObject*>(host_object()); }
};

/// TypeError when `type` (a class derived from Carrier) overrides a method that guards the storage; the
/// message names the hook to write instead.
void check_overrides(nb::handle type);

/// `__init_subclass__` of Carrier, which checks, and of the closed kinds, which refuses: for `Py_tp_methods`.

extern PyMethodDef open_methods[];
extern PyMethodDef closed_methods[];

}  // namespace carrier::python
