// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

/// CARRIER_API marks what a user of the library may name: classes whose type identity must hold across
/// shared objects (exceptions above all) keep default visibility while everything else is hidden.
#if defined(__GNUC__)
#define CARRIER_API __attribute__((visibility("default")))
#else
#define CARRIER_API
#endif
