// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <metal_stdlib>
using namespace metal;

// A device pointer kept as one to thread memory: refused by Metal, and by the check that stands in for it.
kernel void wrong(device uint* onto [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    thread uint* mine = onto + i;
    *mine = 0;
}
