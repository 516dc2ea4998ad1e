// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/foreign.hpp"

#include <string>
#include <unordered_map>

#include "carrier/errors.hpp"
#include "carrier/inner.hpp"
#include "python/convert.hpp"
#include "python/interpreter.hpp"

namespace carrier::python {

namespace {

/// Never destroyed: memory may be given back while Python ends.
std::unordered_map<const Block*, PyObject*>& owners() {
    static auto* const known = new std::unordered_map<const Block*, PyObject*>;
    return *known;
}

/// The block of a carrier that keeps it.
const Block* block_of(const Carrier& carrier) { return Inner::block(carrier).get(); }

[[noreturn]] void refuse_shape(const std::string& why) {
    throw ValueError("the values cannot be wrapped: " + why);
}

}  // namespace

std::int64_t Foreign::count() const {
    std::int64_t values = 1;
    bool overflow = false;
    for (const std::int64_t extent : shape) {
        if (extent < 0) refuse_shape("an extent is negative, " + std::to_string(extent));
        if (extent == 0) values = 0;
    }
    for (const std::int64_t extent : shape)
        overflow |= values != 0 && __builtin_mul_overflow(values, extent, &values);
    const auto width = static_cast<std::int64_t>(slot_bytes(encoding_of(dtype)));
    std::int64_t bytes = 0;
    overflow |= __builtin_mul_overflow(values, width, &bytes);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (overflow || static_cast<std::uintptr_t>(bytes) > UINTPTR_MAX - at)
        refuse_shape("their shape has more bytes than memory can have");
    if (values == 0) return 0;
    if (address == nullptr) refuse_shape("they have no address");
    std::int64_t dense = step;
    for (std::size_t k = strides.size(); k-- > 0;) {
        if (shape[k] != 1 && strides[k] != dense)
            refuse_shape("axis " + std::to_string(k) + " has a stride of " + std::to_string(strides[k]) +
                         " where C order has " + std::to_string(dense) + "; make a contiguous copy first");
        dense *= shape[k];
    }
    return values;
}

Mutable mutable_of(nb::handle argument) {
    if (argument.is_none()) return Mutable::as_source;
    return exact_bool(argument, "mutable") ? Mutable::yes : Mutable::no;
}

bool settle(Mutable wanted, bool writable) {
    if (wanted == Mutable::yes && !writable)
        throw BufferError(
            "mutable=True asks for writable memory, and the source is read-only; leave it out, "
            "or copy the values with new_like");
    return writable && wanted != Mutable::no;
}

Ref<CPU> wrap(const Foreign& foreign, bool writable, std::function<void()> end) {
    static std::byte nothing[1];
    const auto give_back = [end = std::move(end)] {
        if (!nb::is_alive()) return;
        const Held lock;
        const nb::error_scope keep;
        end();
    };
    Ref<HostBlock> block;
    try {
        const auto bytes = bytes_of(foreign.count(), encoding_of(foreign.dtype));
        block = HostBlock::wrap(foreign.address != nullptr ? foreign.address : nothing, bytes, give_back);
    } catch (...) {
        give_back();
        throw;
    }
    return make<CPU>(std::move(block), foreign.count(), foreign.dtype, writable);
}

void know_owner(const Block* block, nb::handle owner) { owners().emplace(block, owner.ptr()); }

void forget_owner(const Block* block) noexcept { owners().erase(block); }

bool has_owner(const Carrier& carrier) noexcept {
    return !owners().empty() && owners().contains(block_of(carrier));
}

nb::handle owner_of(const Carrier& carrier) noexcept {
    if (owners().empty()) return {};
    const Block* const block = block_of(carrier);
    if (block == nullptr || !block->unique()) return {};
    const auto found = owners().find(block);
    return found != owners().end() ? found->second : nullptr;
}

}  // namespace carrier::python
