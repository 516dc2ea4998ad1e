// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/intake.hpp"

#include <string>

#include "carrier/errors.hpp"

namespace carrier {

void Intake::put(const Value& value) {
    if (value.is_none() && !takes_holes_)
        throw TypeError("Generic stores values only; a hole (None) has none. Put the dtype's zero instead");
    Scalar slot{};
    if (!value.is_none()) slot = normalize(encoding_, value);
    store_slot(encoding_, room(1).data(), slot);
    filled(1);
}

}  // namespace carrier
