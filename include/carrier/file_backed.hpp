// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "carrier/carrier.hpp"
#include "carrier/file_block.hpp"

namespace carrier {

/// A temporary raw file: native-endian binary32 or int32, no header, exactly 4 bytes a slot, in the hidden
/// session directory of the process. Stores Float32 and Int32; its structural answer also names Floating.
///
/// The file goes with the carrier. In a forked child an inherited carrier may be read; writing and growing
/// are StateErrors, and releasing or dropping it leaves the parent's file alone.
class CARRIER_API FileBacked final : public Carrier {
  public:
    /// An empty carrier over a new file. `filename` is a bare name (ValueError otherwise; OsError EEXIST when
    /// taken); without one a unique name is made.
    explicit FileBacked(const DType& dtype, const std::optional<std::string>& filename = std::nullopt,
                        bool writable = true);
    FileBacked(Ref<FileBlock> block, const DType& dtype, bool writable);

    /// Opens one to be filled with values; `expected` is a hint (-1: unknown). ValueError (dtype), OsError.
    static std::unique_ptr<Intake> open(const DType& dtype, bool writable = true, std::int64_t expected = -1);

    std::string kind() const override { return "FileBacked"; }
    /// Absolute path of the file; answers after release.
    const std::string& path() const noexcept { return path_; }
    /// Extends to `size` slots; new slots are zero. Not a value mutation. ValueError when smaller than now,
    /// StateError (released, not mutable), OsError (full disk) with everything as it was.
    void grow(std::int64_t size);

    /// The dtypes that constructors and factories accept.
    static std::span<const DType* const> accepted() noexcept;

  protected:
    std::int64_t do_size() const override;
    bool do_supports(const DType& dtype) const override;
    const DType& do_validate(const DType& dtype) const override;
    Value do_get(std::int64_t index) const override;
    void do_set(std::int64_t index, const Value& value) override;
    Ref<Carrier> do_allocate_like(std::int64_t size, bool writable, const DType& dtype,
                                  bool empty) const override;
    Ref<Carrier> do_provision(std::int64_t size, bool writable, const DType& dtype) const override;
    std::unique_ptr<Intake> do_intake(std::int64_t expected, bool writable,
                                      const DType& dtype) const override;
    bool do_scatters() const override { return false; }
    void do_release() override;
    Ref<Block> do_block() const override { return Ref<Block>(block_); }

  private:
    Ref<FileBlock> block_;
    std::string path_;
};

}  // namespace carrier
