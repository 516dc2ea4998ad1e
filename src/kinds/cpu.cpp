// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/cpu.hpp"

#include "carrier/errors.hpp"
#include "kinds/host_intake.hpp"

namespace carrier {

std::span<const DType* const> CPU::accepted() noexcept { return storage_dtypes(); }

CPU::CPU(std::int64_t size, const DType& dtype, bool writable, bool empty) {
    validate_storage_dtype(dtype, "CPU", accepted());
    block_ = HostBlock::allocate(storage_bytes(size, encoding_of(dtype)), empty ? Fill::none : Fill::zero);
    describe_storage(dtype, writable, block_->data(), size);
}

CPU::CPU(std::int64_t size, std::uintptr_t pointer, const DType& dtype, bool writable,
         std::function<void()> on_last_use) {
    const std::size_t bytes =
        storage_bytes(size, encoding_of(validate_storage_dtype(dtype, "CPU", accepted())));
    if (pointer == 0) throw ValueError("pointer must be a positive address; got 0");
    if (bytes > UINTPTR_MAX - pointer)
        throw ValueError(std::to_string(bytes) + " bytes from address " + std::to_string(pointer) +
                         " run past the end of the address space");
    block_ = HostBlock::wrap(reinterpret_cast<std::byte*>(pointer), bytes, std::move(on_last_use));
    describe_storage(dtype, writable, block_->data(), size);
}

CPU::CPU(Ref<HostBlock> block, std::int64_t size, const DType& dtype, bool writable)
    : block_(std::move(block)) {
    describe_storage(dtype, writable, block_->data(), size);
}

std::uintptr_t CPU::pointer() const {
    require_live();
    return reinterpret_cast<std::uintptr_t>(block_->data());
}

bool CPU::do_supports(const DType& dtype) const { return accepts_storage_dtype(dtype, accepted()); }

Ref<Carrier> CPU::do_allocate_like(std::int64_t size, bool writable, const DType& dtype, bool empty) const {
    return Ref<Carrier>(make<CPU>(size, dtype, writable, empty));
}

std::unique_ptr<Intake> CPU::open(const DType& dtype, bool writable, std::int64_t expected) {
    validate_storage_dtype(dtype, "CPU", accepted());
    return std::make_unique<HostIntake<CPU>>(expected, writable, dtype, true);
}

std::unique_ptr<Intake> CPU::do_intake(std::int64_t expected, bool writable, const DType& dtype) const {
    return open(dtype, writable, expected);
}

void CPU::do_release() { block_ = nullptr; }

}  // namespace carrier
