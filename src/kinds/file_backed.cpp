// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/file_backed.hpp"

#include <algorithm>

#include "carrier/errors.hpp"
#include "carrier/exclusive.hpp"
#include "carrier/host_block.hpp"
#include "carrier/intake.hpp"
#include "kinds/storage_bytes.hpp"

namespace carrier {

namespace {

constexpr std::size_t kSlot = 4;

/// Values pass through one chunk on their way to a fresh file.
class FileIntake final : public Intake {
  public:
    FileIntake(std::int64_t expected, bool writable, const DType& dtype)
        : Intake(encoding_of(dtype), true),
          dtype_(dtype),
          file_(FileBlock::create()),
          chunk_bytes_(expected < 0 ? kMaxChunk
                                    : std::clamp(storage_bytes(expected, encoding()), kSlot, kMaxChunk)),
          writable_(writable) {}

    std::span<std::byte> room(std::size_t) override {
        if (!chunk_) chunk_ = HostBlock::allocate(chunk_bytes_, Fill::none);
        if (used_ == chunk_->size()) flush();
        return {chunk_->data() + used_, chunk_->size() - used_};
    }
    void filled(std::size_t slots) override { used_ += slots * kSlot; }
    bool append(std::span<const std::byte> slots) override {
        flush();
        const Unlocked unlocked;
        file_->append(slots);
        return true;
    }
    Ref<Carrier> finish() override {
        flush();
        return Ref<Carrier>(make<FileBacked>(std::move(file_), dtype_, writable_));
    }

  private:
    void flush() {
        if (used_ == 0) return;
        const Unlocked unlocked;
        file_->append({chunk_->data(), used_});
        used_ = 0;
    }

    static constexpr std::size_t kMaxChunk = std::size_t{4} << 20;
    const DType& dtype_;
    Ref<FileBlock> file_;
    Ref<HostBlock> chunk_;
    std::size_t chunk_bytes_;
    std::size_t used_ = 0;
    bool writable_;
};

}  // namespace

std::span<const DType* const> FileBacked::accepted() noexcept { return storage_dtypes().first(2); }

FileBacked::FileBacked(const DType& dtype, const std::optional<std::string>& filename, bool writable) {
    validate_storage_dtype(dtype, "FileBacked", accepted());
    describe_storage(dtype, writable);
    block_ = FileBlock::create(filename);
    path_ = block_->path();
}

FileBacked::FileBacked(Ref<FileBlock> block, const DType& dtype, bool writable)
    : block_(std::move(block)), path_(block_->path()) {
    describe_storage(dtype, writable);
}

std::int64_t FileBacked::do_size() const { return static_cast<std::int64_t>(block_->size() / kSlot); }

bool FileBacked::do_supports(const DType& dtype) const {
    return &dtype == &DType::Floating() || accepts_storage_dtype(dtype, accepted());
}

const DType& FileBacked::do_validate(const DType& dtype) const {
    return validate_storage_dtype(dtype, "FileBacked", accepted());
}

Value FileBacked::do_get(std::int64_t index) const {
    std::byte slot[kSlot];
    block_->read(static_cast<std::size_t>(index) * kSlot, slot);
    return to_value(hot().encoding, load_slot(hot().encoding, slot));
}

void FileBacked::do_set(std::int64_t index, const Value& value) {
    std::byte slot[kSlot];
    store_slot(hot().encoding, slot, normalize(hot().encoding, value));
    block_->write(static_cast<std::size_t>(index) * kSlot, slot);
}

Ref<Carrier> FileBacked::do_allocate_like(std::int64_t size, bool writable, const DType& dtype, bool) const {
    const std::size_t bytes = storage_bytes(size, encoding_of(dtype));
    Ref<FileBlock> file = FileBlock::create();
    if (bytes != 0) {
        const Unlocked unlocked;
        file->grow(bytes);
    }
    return Ref<Carrier>(make<FileBacked>(std::move(file), dtype, writable));
}

Ref<Carrier> FileBacked::do_provision(std::int64_t size, bool writable, const DType& dtype) const {
    Ref<FileBlock> file = FileBlock::create();
    file->extend_for_overwrite(storage_bytes(size, encoding_of(dtype)));
    return Ref<Carrier>(make<FileBacked>(std::move(file), dtype, writable));
}

std::unique_ptr<Intake> FileBacked::open(const DType& dtype, bool writable, std::int64_t expected) {
    validate_storage_dtype(dtype, "FileBacked", accepted());
    return std::make_unique<FileIntake>(expected, writable, dtype);
}

std::unique_ptr<Intake> FileBacked::do_intake(std::int64_t expected, bool writable,
                                              const DType& dtype) const {
    return open(dtype, writable, expected);
}

void FileBacked::grow(std::int64_t size) {
    require_mutable();
    const std::int64_t now = do_size();
    if (size < now)
        throw ValueError("grow never shrinks: asked for " + std::to_string(size) +
                         " slots, the carrier has " + std::to_string(now));
    const std::size_t bytes = storage_bytes(size, hot().encoding);
    const Exclusive exclusive({this});
    if (is_released()) throw StateError("the FileBacked carrier was released while it grew");
    const Unlocked unlocked;
    block_->grow(bytes);
}

void FileBacked::do_release() {
    block_->discard();
    block_ = nullptr;
}

}  // namespace carrier
