// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/generic.hpp"

#include "kinds/host_intake.hpp"

namespace carrier {

std::span<const DType* const> Generic::accepted() noexcept { return storage_dtypes(); }

Generic::Generic(std::int64_t size, const DType& dtype, bool writable) {
    validate_storage_dtype(dtype, "Generic", accepted());
    block_ = HostBlock::allocate(storage_bytes(size, encoding_of(dtype)), Fill::zero);
    describe_storage(dtype, writable, block_->data(), size);
}

Generic::Generic(Ref<HostBlock> block, std::int64_t size, const DType& dtype, bool writable)
    : block_(std::move(block)) {
    describe_storage(dtype, writable, block_->data(), size);
}

std::unique_ptr<Intake> Generic::open(const DType& dtype, bool writable, std::int64_t expected) {
    validate_storage_dtype(dtype, "Generic", accepted());
    return std::make_unique<HostIntake<Generic>>(expected, writable, dtype, false);
}

bool Generic::do_supports(const DType& dtype) const {
    return &dtype == &DType::Any() || &dtype == &DType::Floating() ||
           accepts_storage_dtype(dtype, accepted());
}

const DType& Generic::do_validate(const DType& dtype) const {
    return validate_storage_dtype(dtype, "Generic", accepted());
}

Ref<Carrier> Generic::do_allocate_like(std::int64_t size, bool writable, const DType& dtype, bool) const {
    return Ref<Carrier>(make<Generic>(size, dtype, writable));
}

std::unique_ptr<Intake> Generic::do_intake(std::int64_t expected, bool writable, const DType& dtype) const {
    return open(dtype, writable, expected);
}

void Generic::do_release() { block_ = nullptr; }

}  // namespace carrier
