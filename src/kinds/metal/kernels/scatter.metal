// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <metal_stdlib>
using namespace metal;

// onto[slots[i]] = values[i] for i < count. No two slots are equal, so the order of threads does not show. The
// grid is rounded up to whole threadgroups, which every GPU has: hence the comparison.

kernel void scatter_words(device uint* onto [[buffer(0)]],
                          device const uint* values [[buffer(1)]],
                          device const uint* slots [[buffer(2)]],
                          constant uint& count [[buffer(3)]],
                          uint i [[thread_position_in_grid]]) {
    if (i < count) onto[slots[i]] = values[i];
}

kernel void scatter_bytes(device uchar* onto [[buffer(0)]],
                          device const uchar* values [[buffer(1)]],
                          device const uint* slots [[buffer(2)]],
                          constant uint& count [[buffer(3)]],
                          uint i [[thread_position_in_grid]]) {
    if (i < count) onto[slots[i]] = values[i];
}
