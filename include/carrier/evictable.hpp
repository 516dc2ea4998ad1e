// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>

#include "carrier/carrier.hpp"

namespace carrier {

/// Two carriers as one: values live on the primary, go down to the secondary (`evict`) and come back
/// (`promote`).
///
/// The hierarchy owns both tiers. Its version is the one that counts; transitions never advance it. A
/// transition copies everything, then commits with steps that cannot fail: any error leaves residency, tiers,
/// values, ownership and version as they were. Transitions of one hierarchy are serialized; an access that
/// meets one waits.
class CARRIER_API Evictable final : public Carrier {
  public:
    /// StateError (a tier released, owned or evicted; secondary not publicly mutable), ValueError (one object
    /// twice, empty primary, secondary that cannot hold the dtype), TypeError (different dtypes).
    Evictable(Ref<Carrier> primary, Ref<Carrier> secondary);
    ~Evictable() override;
    /// Opens a promoted hierarchy to be filled with values, which go to its primary; `secondary` is fresh and
    /// empty. `finish` checks both, as the constructor does.
    static std::unique_ptr<Intake> open(std::unique_ptr<Intake> primary, Ref<Carrier> secondary,
                                        bool writable = true);

    std::string kind() const override { return "Evictable"; }
    const Ref<Carrier>& primary() const noexcept { return primary_.carrier; }
    const Ref<Carrier>& secondary() const noexcept { return secondary_.carrier; }
    bool is_evicted() const noexcept { return hot().has(Hot::kEvicted); }

    /// Moves the values down and releases the primary. Nothing to do when evicted.
    void evict();
    /// Moves them up and releases the secondary. Nothing to do when promoted.
    void promote();

    /// For garbage collectors: gives both tiers back and forgets them; the hierarchy is released thereafter.
    void abandon() noexcept;

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
    bool do_scatters() const override;
    void do_scatter(const Tensor& source, std::int64_t base, const Layout& mapping) override;
    void do_release() override;
    Ref<Block> do_block() const override;
    bool do_runs_hooks() const noexcept override { return false; }
    std::string do_state() const override;

  private:
    friend class Exclusive;
    friend class HierarchyIntake;

    /// One tier and the claim on it.
    struct Tier final : Owner {
        Ref<Carrier> carrier;
        const Evictable* above = nullptr;
        std::uint64_t version_at_claim = 0;
        bool written_through = false;  ///< writes to the hierarchy are writes to this tier
        bool admits_this_thread() const noexcept override { return false; }
        std::uint64_t writes() const noexcept override;
        const Carrier* hierarchy() const noexcept override { return above; }
    };
    struct Unchecked {};
    /// A fresh hierarchy of fresh tiers: the primary may be empty.
    Evictable(Unchecked, Ref<Carrier> primary, Ref<Carrier> secondary, bool writable);
    /// A fresh promoted hierarchy over a fresh primary, with an empty secondary of this one's kind.
    Ref<Carrier> over(Ref<Carrier> primary, bool writable) const;
    void own(Tier& tier, Ref<Carrier> carrier) noexcept;
    void disown(Tier& tier) noexcept;
    void expose_primary() noexcept;
    /// Copies `slots` slots from one tier to the other (reused or replaced) and releases the first.
    void move(Tier& from, Tier& to, std::int64_t slots);
    const Carrier& prototype(const Tier& tier) const;
    /// Releases two carriers, one that may refuse before one that may not. A refusal of the first leaves both
    /// as they were. One of the second throws too, and can be tried again; in a transition (`late`) it comes
    /// too late to undo anything, so it is only reported to the host.
    static void release_both(Carrier& first, Carrier& second, bool late);
    static void give_up(Carrier& c, bool late);

    Tier primary_;
    Tier secondary_;
    bool late_ = false;  ///< the release that runs is part of a transition
};

}  // namespace carrier
