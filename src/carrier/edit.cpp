// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/edit.hpp"

#include "carrier/errors.hpp"
#include "carrier/inner.hpp"

namespace carrier {

Edit::Edit(Ref<Carrier> carrier) {
    carrier->require_mutable();
    if (carrier->hot().has(Hot::kEdited))
        throw StateError("the " + carrier->kind() + " carrier is being edited already; one edit at a time");
    if (carrier->hot().encoding == Encoding::opaque) encoding_with_bytes(carrier->dtype());
    const Ref<Block> own = Inner::block(*carrier);
    if (own && own->data() != nullptr) {
        block_ = own;
    } else {
        const std::int64_t slots = carrier->size();
        const Ref<HostBlock> copy = HostBlock::allocate(bytes_of(slots, carrier->hot().encoding), Fill::none);
        carrier->read(0, slots, {copy->data(), copy->size()});
        block_ = Ref<Block>(copy);
        staged_ = true;
        // Reading may have run hooks.
        carrier->require_mutable();
        if (carrier->hot().has(Hot::kEdited))
            throw StateError("the carrier was edited while this edit began");
    }
    carrier_ = std::move(carrier);
    carrier_->hot().set(Hot::kEdited);
    ++carrier_->hot().version;
}

Edit::~Edit() { end(true); }

void Edit::end(bool counts) noexcept {
    if (!carrier_) return;
    carrier_->hot().unset(Hot::kEdited);
    if (counts) ++carrier_->hot().version;
    carrier_ = nullptr;
}

void Edit::finish(bool keep) {
    if (!carrier_) throw StateError("the edit has ended already");
    const Ref<Carrier> carrier = carrier_;
    const bool write_back = keep && staged_ && block_->size() != 0;
    try {
        if (write_back) carrier->write(0, {block_->data(), block_->size()});
    } catch (...) {
        end(true);
        throw;
    }
    end(!write_back);  // the write-back was a step of the version already
}

}  // namespace carrier
