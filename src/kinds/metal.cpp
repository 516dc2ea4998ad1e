// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/metal.hpp"

#include <array>

#include "carrier/errors.hpp"
#include "kinds/host_intake.hpp"
#include "kinds/metal/runtime.hpp"

namespace carrier {

std::span<const DType* const> Metal::accepted() noexcept {
    static const std::array table{&DType::Float32(), &DType::Int32(), &DType::Bool()};
    return table;
}

Metal::Metal(std::int64_t size, const DType& dtype, bool writable, bool empty) {
    if (size < 0) throw ValueError("size must be at least 0; got " + std::to_string(size));
    validate_storage_dtype(dtype, "Metal", accepted());
    block_ = metal::allocate(storage_bytes(size, encoding_of(dtype)), empty);
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

std::unique_ptr<Intake> Metal::do_intake(std::int64_t expected, bool writable, const DType& dtype) const {
    return std::make_unique<HostIntake<Metal>>(expected, writable, dtype, true);
}

void Metal::do_release() { block_ = nullptr; }

}  // namespace carrier
