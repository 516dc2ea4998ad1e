// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/evictable.hpp"

#include "carrier/errors.hpp"
#include "carrier/exclusive.hpp"
#include "carrier/inner.hpp"
#include "carrier/intake.hpp"
#include "carrier/tensor.hpp"
#include "carrier/transfer.hpp"
#include "carrier/undo.hpp"

namespace carrier {

namespace {

void check_tier(const Carrier& tier, const char* name) {
    Exclusive::wait_for(tier);
    const auto refuse = [&](const char* why) {
        throw StateError(std::string("the ") + name + " tier (" + tier.kind() + ") " + why);
    };
    if (tier.is_released()) refuse("has been released; a hierarchy needs live tiers");
    if (tier.is_owned()) refuse("is owned already; a hierarchy owns its tiers exclusively");
    if (tier.hot().has(Hot::kEdited)) refuse("is being edited; compose after the edit ends");
    if (tier.hot().has(Hot::kEvicted)) refuse("is evicted; call promote() on it first");
}

void check_dtypes(const Carrier& primary, const Carrier& secondary) {
    if (&primary.dtype() != &secondary.dtype())
        throw TypeError("both tiers must hold one dtype; the primary holds " + primary.dtype().name() +
                        ", the secondary " + secondary.dtype().name());
}

/// Whether giving the tier up runs user code, which may refuse.
bool release_may_fail(const Carrier& tier) noexcept {
    if (const auto* hierarchy = dynamic_cast<const Evictable*>(&tier))
        return release_may_fail(*hierarchy->primary()) || release_may_fail(*hierarchy->secondary());
    return Inner::runs_hooks(tier);
}

/// The first slots of a tier that is reused for a transition, as they were: written back unless forgotten.
/// Taken only where something can refuse half way, which between blocks of memory and reserved files nothing
/// does.
class TierUndo {
  public:
    TierUndo(const Carrier& from, Carrier& onto, std::int64_t slots) {
        const Ref<Block> source = Inner::block(from);
        const Ref<Block> target = Inner::block(onto);
        if (!target) {
            slots_ = std::make_unique<SlotUndo>(onto, static_cast<std::size_t>(slots));
            for (std::int64_t i = 0; i < slots; ++i) slots_->save(i);
        } else if (!source || source->data() == nullptr || release_may_fail(from)) {
            const std::size_t bytes = static_cast<std::size_t>(slots) * slot_bytes(onto.hot().encoding);
            bytes_ = std::make_unique<BlockUndo>(*target, 0, bytes);
            bytes_->save(bytes);
            target_ = target;
        }
    }
    void forget() noexcept {
        if (slots_) slots_->forget();
        if (bytes_) bytes_->forget();
    }

  private:
    Ref<Block> target_;
    std::unique_ptr<SlotUndo> slots_;
    std::unique_ptr<BlockUndo> bytes_;
};

}  // namespace

Evictable::Evictable(Ref<Carrier> primary, Ref<Carrier> secondary) {
    if (!primary || !secondary) throw TypeError("Evictable needs two carriers");
    if (primary == secondary)
        throw ValueError("the two tiers of an Evictable must be two carriers; got one twice");
    check_tier(*primary, "primary");
    check_tier(*secondary, "secondary");
    check_dtypes(*primary, *secondary);
    if (!secondary->is_mutable())
        throw StateError("the secondary tier (" + secondary->kind() +
                         ") is not mutable; values could not be evicted to it");
    if (primary->size() == 0)
        throw ValueError("the primary tier (" + primary->kind() + ") is empty; it needs at least one slot");
    if (!secondary->supports_storage_dtype(primary->dtype()))
        throw ValueError("the secondary tier (" + secondary->kind() + ") cannot hold " +
                         primary->dtype().name());
    describe_storage(primary->dtype(), primary->is_mutable());
    // The answers above may have come from hooks: look once more before claiming.
    check_tier(*primary, "primary");
    check_tier(*secondary, "secondary");
    own(primary_, std::move(primary));
    own(secondary_, std::move(secondary));
    primary_.written_through = true;
    expose_primary();
}

Evictable::Evictable(Unchecked, Ref<Carrier> primary, Ref<Carrier> secondary, bool writable) {
    describe_storage(primary->dtype(), writable);
    own(primary_, std::move(primary));
    own(secondary_, std::move(secondary));
    primary_.written_through = true;
    expose_primary();
}

Evictable::~Evictable() { abandon(); }

void Evictable::abandon() noexcept {
    disown(primary_);
    disown(secondary_);
    primary_.carrier = nullptr;
    secondary_.carrier = nullptr;
    hot().set(Hot::kReleased);
    hot().data = nullptr;
    hot().size = 0;
}

std::uint64_t Evictable::Tier::writes() const noexcept {
    return written_through ? above->version() - version_at_claim : 0;
}

void Evictable::own(Tier& tier, Ref<Carrier> carrier) noexcept {
    tier.carrier = std::move(carrier);
    tier.above = this;
    tier.version_at_claim = version();
    Inner::set_owner(*tier.carrier, &tier);
}

void Evictable::disown(Tier& tier) noexcept {
    if (!tier.carrier || Inner::owner(*tier.carrier) != &tier) return;
    const std::uint64_t writes = tier.writes();
    Inner::set_owner(*tier.carrier, nullptr);
    Inner::add_writes(*tier.carrier, writes);
}

void Evictable::expose_primary() noexcept {
    const Hot& above = primary_.carrier->hot();
    expose(above.has(Hot::kIndirect) ? nullptr : above.data, above.size);
}

const Carrier& Evictable::prototype(const Tier& tier) const {
    if (!tier.carrier) throw StateError("the Evictable carrier was taken apart by the garbage collector");
    return *tier.carrier;
}

std::int64_t Evictable::do_size() const {
    const bool ask = hot().has(Hot::kIndirect) && !is_evicted() && primary_.carrier;
    return ask ? Inner::size(*primary_.carrier) : hot().size;
}

bool Evictable::do_supports(const DType& dtype) const {
    return Inner::supports(prototype(primary_), dtype) && Inner::supports(prototype(secondary_), dtype);
}

const DType& Evictable::do_validate(const DType& dtype) const {
    return Inner::validate(prototype(secondary_), Inner::validate(prototype(primary_), dtype));
}

Value Evictable::do_get(std::int64_t index) const { return Inner::get(prototype(primary_), index); }

void Evictable::do_set(std::int64_t index, const Value& value) {
    Inner::set(*primary_.carrier, index, value);
}

Ref<Carrier> Evictable::over(Ref<Carrier> primary, bool writable) const {
    Provisional provisional(primary.get());
    Ref<Carrier> secondary = Inner::allocate(prototype(secondary_), 0, true, primary->dtype(), false);
    provisional.keep();
    return Ref<Carrier>(new Evictable(Unchecked{}, std::move(primary), std::move(secondary), writable));
}

Ref<Carrier> Evictable::do_allocate_like(std::int64_t size, bool writable, const DType& dtype,
                                         bool empty) const {
    return over(Inner::allocate(prototype(primary_), size, writable, dtype, empty), writable);
}

Ref<Carrier> Evictable::do_provision(std::int64_t size, bool writable, const DType& dtype) const {
    return over(Inner::provision(prototype(primary_), size, writable, dtype), writable);
}

/// Fills a fresh primary, then puts a fresh empty secondary under it.
class HierarchyIntake final : public Intake {
  public:
    HierarchyIntake(std::unique_ptr<Intake> primary, Ref<Carrier> secondary, bool writable)
        : Intake(primary->encoding(), primary->takes_holes()),
          primary_(std::move(primary)),
          secondary_(std::move(secondary)),
          writable_(writable) {}
    std::span<std::byte> room(std::size_t slots) override { return primary_->room(slots); }
    void filled(std::size_t slots) override { primary_->filled(slots); }
    bool append(std::span<const std::byte> slots) override { return primary_->append(slots); }
    Ref<Carrier> finish() override {
        // Both may come from the factories of user code.
        Ref<Carrier> primary = primary_->finish();
        check_tier(*primary, "primary");
        check_tier(*secondary_, "secondary");
        check_dtypes(*primary, *secondary_);
        if (primary == secondary_) throw ValueError("both tiers are one carrier");
        return Ref<Carrier>(
            new Evictable(Evictable::Unchecked{}, std::move(primary), std::move(secondary_), writable_));
    }

  private:
    std::unique_ptr<Intake> primary_;
    Ref<Carrier> secondary_;
    bool writable_;
};

std::unique_ptr<Intake> Evictable::do_intake(std::int64_t expected, bool writable, const DType& dtype) const {
    std::unique_ptr<Intake> primary = Inner::intake(prototype(primary_), expected, writable, dtype);
    return open(std::move(primary), Inner::allocate(prototype(secondary_), 0, true, dtype, false), writable);
}

std::unique_ptr<Intake> Evictable::open(std::unique_ptr<Intake> primary, Ref<Carrier> secondary,
                                        bool writable) {
    return std::make_unique<HierarchyIntake>(std::move(primary), std::move(secondary), writable);
}

bool Evictable::do_scatters() const { return Inner::scatters(prototype(primary_)); }

void Evictable::do_scatter(const Tensor& source, std::int64_t base, const Layout& mapping) {
    Inner::scatter(*primary_.carrier, source, base, mapping);
}

void Evictable::do_release() {
    // The tier that holds the values goes last: a refusal of the other one loses nothing.
    const bool low = is_evicted();
    release_both(low ? *primary_.carrier : *secondary_.carrier, low ? *secondary_.carrier : *primary_.carrier,
                 late_);
    disown(primary_);
    disown(secondary_);
}

void Evictable::give_up(Carrier& c, bool late) {
    if (auto* hierarchy = dynamic_cast<Evictable*>(&c)) hierarchy->late_ = late;
    Inner::release(c);
}

void Evictable::release_both(Carrier& first, Carrier& second, bool late) {
    const bool swap = release_may_fail(second) && !release_may_fail(first);
    give_up(swap ? second : first, late);
    try {
        give_up(swap ? first : second, late);
    } catch (...) {
        if (!late) throw;
        host().unraisable();
    }
}

Ref<Block> Evictable::do_block() const {
    return Inner::block(prototype(is_evicted() ? secondary_ : primary_));
}

std::string Evictable::do_state() const { return is_evicted() ? "evicted" : "promoted"; }

void Evictable::evict() {
    require_access();
    if (is_evicted()) return;
    const Exclusive exclusive({this});
    Inner::check_access(*this);
    if (is_evicted()) return;
    const std::int64_t slots = do_size();
    move(primary_, secondary_, slots);
    hot().set(Hot::kEvicted);
    expose(nullptr, slots);
}

void Evictable::promote() {
    require_access();
    if (!is_evicted()) return;
    const Exclusive exclusive({this});
    Inner::check_access(*this);
    if (!is_evicted()) return;
    move(secondary_, primary_, hot().size);
    hot().unset(Hot::kEvicted);
    expose_primary();
}

void Evictable::move(Tier& from, Tier& to, std::int64_t slots) {
    const Carrier& old = *to.carrier;
    const bool down = &to == &secondary_;
    const bool reuse = !old.is_released() && Inner::size(old) >= slots && Inner::intrinsically_mutable(old);
    if (reuse) {
        TierUndo undo(*from.carrier, *to.carrier, slots);
        transfer(*from.carrier, *to.carrier, slots, false);
        give_up(*from.carrier, true);
        undo.forget();
    } else {
        // A custom tier is written through its own hooks, so it must come mutable.
        const bool writable = down || Inner::runs_hooks(old) || do_is_mutable();
        Ref<Carrier> target = Inner::provision(old, slots, writable, dtype());
        Provisional provisional(target.get());
        transfer(*from.carrier, *target, slots, true);
        release_both(*from.carrier, *to.carrier, true);
        // From here on nothing fails.
        provisional.keep();
        disown(to);
        own(to, std::move(target));
    }
    disown(from);
}

}  // namespace carrier
