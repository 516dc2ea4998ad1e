// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include "carrier/carrier.hpp"

namespace carrier {

/// Up to this many bytes a copy is made at once; beyond, the host's lock is given up around it.
constexpr std::size_t kInlineBytes = std::size_t{64} << 10;

/// Unguarded access to any carrier for the library's own floors: a hierarchy acts on the tiers it owns, and
/// scatter on the source it reads. Whoever calls this has done the checks.
class Inner {
  public:
    static Value get(const Carrier& c, std::int64_t index) { return c.do_get(index); }
    static void set(Carrier& c, std::int64_t index, const Value& value) { c.do_set(index, value); }
    static std::int64_t size(const Carrier& c) { return c.do_size(); }
    static bool supports(const Carrier& c, const DType& dtype) { return c.do_supports(dtype); }
    static const DType& validate(const Carrier& c, const DType& dtype) { return c.do_validate(dtype); }
    static bool intrinsically_mutable(const Carrier& c) { return c.do_is_mutable(); }
    static bool scatters(const Carrier& c) { return c.do_scatters(); }
    static void scatter(Carrier& c, const Tensor& source, std::int64_t base, const Layout& mapping) {
        c.do_scatter(source, base, mapping);
    }
    static Ref<Block> block(const Carrier& c) { return c.do_block(); }
    static bool runs_hooks(const Carrier& c) noexcept { return c.do_runs_hooks(); }
    static std::unique_ptr<Intake> intake(const Carrier& c, std::int64_t expected, bool writable,
                                          const DType& dtype) {
        return c.do_intake(expected, writable, dtype);
    }

    static void check_access(const Carrier& c) { c.check_access(); }
    static void check_live(const Carrier& c) { c.check_live(); }
    static void check_mutable(const Carrier& c) { c.check_mutable(); }
    /// Overwrites bytes of the carrier's block, all or nothing; counts nothing.
    static void overwrite(const Carrier& c, std::size_t offset, std::span<const std::byte> bytes);
    /// The carrier that holds the values now: a hierarchy's primary, or its secondary when evicted.
    static const Carrier& acting(const Carrier& c);

    /// Fresh storage of `like`'s kind, checked: a live, unowned carrier of `dtype` with at least `size`
    /// slots.
    static Ref<Carrier> allocate(const Carrier& like, std::int64_t size, bool writable, const DType& dtype,
                                 bool empty);
    /// The same for the target of a transition, which is overwritten at once.
    static Ref<Carrier> provision(const Carrier& like, std::int64_t size, bool writable, const DType& dtype);
    /// Gives the storage up and marks the carrier released; a hook that throws leaves it live. Idempotent.
    static void release(Carrier& c);

    static Owner* owner(const Carrier& c) noexcept { return c.owner_; }
    static void set_owner(Carrier& c, Owner* owner) noexcept {
        c.owner_ = owner;
        if (owner != nullptr)
            c.hot_.set(Hot::kOwned);
        else
            c.hot_.unset(Hot::kOwned);
    }
    static void add_writes(Carrier& c, std::uint64_t n) noexcept { c.hot_.version += n; }
};

/// A fresh carrier that is released again unless it is kept.
class Provisional {
  public:
    explicit Provisional(Carrier* fresh) noexcept : fresh_(fresh) {}
    ~Provisional();
    Provisional(const Provisional&) = delete;
    Provisional& operator=(const Provisional&) = delete;
    void keep() noexcept { fresh_ = nullptr; }

  private:
    Carrier* fresh_;
};

}  // namespace carrier
