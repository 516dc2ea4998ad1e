// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/metal.hpp"

#include <array>

#include "carrier/errors.hpp"
#include "carrier/inner.hpp"
#include "carrier/tensor.hpp"
#include "kinds/host_intake.hpp"
#include "kinds/metal/runtime.hpp"
#include "kinds/metal/scatter.hpp"

namespace carrier {

std::span<const DType* const> Metal::accepted() noexcept {
    static const std::array table{&DType::Float32(), &DType::Int32(), &DType::Bool()};
    return table;
}

Metal::Metal(std::int64_t size, const DType& dtype, bool writable, bool empty) {
    if (size < 0) throw ValueError("size must be at least 0; got " + std::to_string(size));
    validate_storage_dtype(dtype, "Metal", accepted());
    metal::Device& device = metal::device();
    block_ = metal::MetalBlock::allocate(device, storage_bytes(size, encoding_of(dtype)), empty);
    describe_storage(dtype, writable);
    expose(block_->data(), size);
}

bool Metal::available(std::string* why) { return metal::available(why); }

bool Metal::do_supports(const DType& dtype) const { return accepts_storage_dtype(dtype, accepted()); }

Ref<Carrier> Metal::do_allocate_like(std::int64_t size, bool writable, const DType& dtype, bool empty) const {
    return Ref<Carrier>(make<Metal>(size, dtype, writable, empty));
}

Metal::Metal(const Ref<HostBlock>& staged, std::int64_t size, const DType& dtype, bool writable)
    : Metal(size, dtype, writable, true) {
    block_->write(0, {staged->data(), staged->size()});
}

std::unique_ptr<Intake> Metal::open(const DType& dtype, bool writable, std::int64_t expected) {
    validate_storage_dtype(dtype, "Metal", accepted());
    metal::device();  // the refusal comes before the values
    return std::make_unique<HostIntake<Metal>>(expected, writable, dtype, true);
}

std::unique_ptr<Intake> Metal::do_intake(std::int64_t expected, bool writable, const DType& dtype) const {
    return open(dtype, writable, expected);
}

Metal::~Metal() = default;

bool Metal::uses_kernel(const Tensor& source, std::int64_t base, const Layout& mapping) const {
    if (!metal::fits_kernel(base, mapping)) return false;
    if (mapping.size() >= metal::kLarge) return true;
    const Ref<Block> from = Inner::block(*source.carrier());
    return dynamic_cast<const metal::MetalBlock*>(from.get()) != nullptr;
}

void Metal::do_scatter(const Tensor& source, std::int64_t base, const Layout& mapping) {
    block_->require_own_process();
    if (!uses_kernel(source, base, mapping)) return Carrier::do_scatter(source, base, mapping);
    const Ref<metal::MetalBlock> onto = block_;
    // Conversion, foreign media and a source that overlaps are settled on the way into dense staging.
    const Ref<Metal> staged = make<Metal>(mapping.size(), dtype(), true, true);
    staged->Carrier::do_scatter(source, 0, metal::dense(mapping.shape()));
    const auto run = [&] {
        metal::scatter(*onto, base, *staged->block_, mapping, slot_bytes(hot().encoding));
    };
    if (!hot().has(Hot::kBusy)) return run();
    const Unlocked unlocked;
    run();
}

Ref<Block> Metal::do_block() const {
    if (block_) block_->require_own_process();
    return Ref<Block>(block_);
}

void Metal::do_release() { block_ = nullptr; }

}  // namespace carrier
