// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>

#include "carrier/block.hpp"
#include "carrier/host.hpp"

namespace carrier {

/// Copies `bytes` between two blocks, the way that suits the pair: host memory by one or two threads, files
/// by buffered or direct I/O as size, page cache and free memory suggest. The ranges lie inside the blocks;
/// on one host block they may overlap.
///
/// The caller has given the host's lock up when the copy is large. `pulse` is called on the calling thread
/// only, between chunks. Errors of any thread arrive here (OsError, what `pulse` throws); all threads have
/// ended then, and the target holds a mixture, which is why transitions write into storage that nobody sees
/// yet.
void copy_blocks(const Block& from, std::size_t from_offset, Block& to, std::size_t to_offset,
                 std::size_t bytes, Pulse& pulse);

}  // namespace carrier
