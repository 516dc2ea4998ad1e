// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include "carrier/carrier.hpp"

/// What the `tp_traverse` slots of bound classes share.
///
/// Rules of a traverse: visit the instance's type, then, when `nb::inst_ready`, each `Ref` exactly once.
/// Every `Ref` to an object that Python knows is one Python reference, so this reports neither too much (the
/// collector would clear what is alive) nor too little (cycles would leak).
namespace carrier::python {

/// Visits what `ref` refers to. A carrier that only C++ holds has no Python object: where `ref` is its one
/// reference, the references it holds itself (a nested hierarchy's tiers) are reached through it.
int visit(const Ref<Carrier>& ref, visitproc visitor, void* arg);

/// Visits the references that the carrier itself holds.
int visit_tiers(const Carrier& carrier, visitproc visitor, void* arg);

/// Has the collector pass over `self`, the object of a carrier that refers to no Python object: it can be in
/// no cycle, and among a million of them a collection would look for one all the time.
void overlook(const Carrier& carrier, PyObject* self) noexcept;

/// A traverse for classes that hold nothing.
int traverse_type(PyObject* self, visitproc visit, void* arg) noexcept;

}  // namespace carrier::python
