// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/metal.hpp"

#include "carrier/errors.hpp"
#include "carrier/inner.hpp"
#include "carrier/tensor.hpp"
#include "kinds/host_intake.hpp"
#include "kinds/metal/runtime.hpp"
#include "kinds/metal/scatter.hpp"
#include "os/process.hpp"

namespace carrier {

namespace {
constinit std::mutex list;  // a leaf; held over a fork
}  // namespace

constinit Metal* Metal::first_ = nullptr;

std::span<const DType* const> Metal::accepted() noexcept { return storage_dtypes(); }

Metal::Metal(std::int64_t size, const DType& dtype, bool writable, bool empty) {
    if (size < 0) throw ValueError("size must be at least 0; got " + std::to_string(size));
    validate_storage_dtype(dtype, "Metal", accepted());
    metal::Device& device = metal::device();
    block_ = metal::MetalBlock::allocate(device, storage_bytes(size, encoding_of(dtype)), empty);
    describe_storage(dtype, writable);
    expose(block_->data(), size);
    enlist();
}

bool Metal::watched() noexcept {
    static const bool watched = os::watch_forks() && os::at_fork([] { list.lock(); }, [] { list.unlock(); },
                                                                 [] {
                                                                     close_inherited();
                                                                     list.unlock();
                                                                 });
    return watched;
}
const bool Metal::ready_ = watched();

void Metal::enlist() {
    if (!watched()) throw MemoryError("cannot register what a fork needs");
    const std::lock_guard lock(list);
    next_ = first_;
    if (first_ != nullptr) first_->previous_ = this;
    first_ = this;
}

Metal::~Metal() {
    const std::lock_guard lock(list);
    if (previous_ != nullptr)
        previous_->next_ = next_;
    else if (first_ == this)
        first_ = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
}

void Metal::close_inherited() noexcept {
    for (Metal* c = first_; c != nullptr; c = c->next_) {
        const std::byte* const gone = c->hot().data;
        // A hierarchy shows its primary's address as its own.
        for (const Owner* owner = Inner::owner(*c); owner != nullptr && owner->hierarchy() != nullptr;
             owner = Inner::owner(*owner->hierarchy())) {
            Hot& above = const_cast<Carrier*>(owner->hierarchy())->hot();
            if (above.data != gone) break;
            above.set(Hot::kIndirect);
            above.data = nullptr;
        }
        c->expose(nullptr, c->hot().size);
    }
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

Value Metal::do_get(std::int64_t index) const {
    block_->require_own_process();
    return Carrier::do_get(index);
}

void Metal::do_set(std::int64_t index, const Value& value) {
    block_->require_own_process();
    Carrier::do_set(index, value);
}

void Metal::do_release() { block_ = nullptr; }

}  // namespace carrier
