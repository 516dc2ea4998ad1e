// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "carrier/block.hpp"
#include "carrier/dtype.hpp"
#include "carrier/hot.hpp"
#include "carrier/owner.hpp"
#include "carrier/ref.hpp"
#include "carrier/storage_dtype.hpp"
#include "carrier/value.hpp"

namespace carrier {

class Carrier;
class Intake;
class Layout;
class Ownership;
class Tensor;

/// Options of `new_like`: intrinsic mutability, and the dtype (null: the receiver's).
struct NewOptions {
    bool writable = true;
    const DType* dtype = nullptr;
};

/// Options of `allocate_like`; `empty` lets the medium skip initialization: write each slot before reading
/// it.
struct AllocateOptions {
    bool writable = true;
    const DType* dtype = nullptr;
    bool empty = false;
};

/// A one-dimensional sequence of slots of one dtype on one medium.
///
/// The public functions check, in this order: types, state (released, evicted, mutable), bounds, values; then
/// the protected functions act. A kind cannot forget a check. A call that fails leaves values, version, size,
/// ownership, residency and files as they were.
///
/// Threads: different carriers may be used from different threads. One carrier's calls are the caller's to
/// order, except transitions, release and dropping, which may meet. Under a host lock (Python) any
/// interleaving of calls is safe; an access that meets bulk work or a transition waits for it.
///
/// Deriving: a kind implements the `do_` functions and nothing else. They are called after all checks and
/// never advance the version.
class CARRIER_API Carrier : public RefCounted {
  public:
    ~Carrier() override;

    /// The kind's name as messages give it: "CPU", "Evictable".
    virtual std::string kind() const = 0;

    /// Number of slots; 0 after release.
    std::int64_t size() const {
        return hot_.has(Hot::kReleased | Hot::kIndirect) ? size_elsewhere() : hot_.size;
    }
    /// The dtype of every slot. Answers after release.
    const DType& dtype() const { return dtype_ != nullptr ? *dtype_ : learned_dtype(); }
    /// Whether the kind can allocate storage for `dtype`: structural, allocates nothing, answers after
    /// release.
    bool supports_storage_dtype(const DType& dtype) const { return do_supports(dtype); }
    /// Successful mutations so far. Writes of an owning hierarchy into this tier count.
    std::uint64_t version() const noexcept {
        return hot_.version + (owner_ != nullptr ? owner_->writes() : 0);
    }

    /// A number that no other carrier of this process has or has had, given at the first asking.
    std::uint64_t serial() const noexcept;

    bool is_released() const noexcept { return hot_.has(Hot::kReleased); }
    bool is_owned() const noexcept { return hot_.has(Hot::kOwned); }
    /// Whether public calls of this thread may write now: the kind's own answer and ownership combined.
    bool is_mutable() const;

    /// The value of one slot. StateError (released, evicted), IndexError.
    Value get_value(std::int64_t index) const;
    /// Writes one slot and advances the version by one. StateError, IndexError, then the value's errors.
    void set_value(std::int64_t index, const Value& value);

    /// Fresh storage of the same kind, zeroed unless `empty`. ValueError (size, dtype), MemoryError, OsError.
    Ref<Carrier> allocate_like(std::int64_t size, const AllocateOptions& options = {}) const;
    /// Opens fresh storage of the same kind to be filled; `expected` is a hint (-1: unknown).
    std::unique_ptr<Intake> open_intake(const NewOptions& options = {}, std::int64_t expected = -1) const;
    /// Fresh storage of the same kind that holds `values` (anything that iterates over what makes a Value).
    template <class Values>
    Ref<Carrier> new_like(const Values& values, const NewOptions& options = {}) const;

    /// Writes `source`, value by value, to slots `onto.offset() + offset + mapping.index(i)` of this carrier.
    /// All or nothing; one step of the version. Where two values meet in one slot, the later logical index
    /// wins. NotImplementedError (the kind does not scatter; several subtensors), StateError, ValueError
    /// (foreign destination, shape, negative offset), IndexError (a slot outside), TypeError (dtypes).
    void scatter(const Tensor& source, const Tensor& onto, const Layout& mapping, std::int64_t offset = 0);
    /// NotImplementedError when the kind does not scatter, whatever its state.
    void require_scatter() const;

    /// Copies slots [start, stop) out, as their encoding lays them out (Bool normalized to 0 and 1).
    /// StateError, IndexError for a range that is not inside [0, size()]; `into` has exactly the bytes.
    void read(std::int64_t start, std::int64_t stop, std::span<std::byte> into) const;
    /// Writes normalized slots from `start` on. All or nothing, one step of the version; none for no slots.
    /// `slots` may overlap the carrier's own memory. StateError, IndexError, OsError.
    void write(std::int64_t start, std::span<const std::byte> slots);
    /// Writes one value to slots [start, stop), under the same rules.
    void fill(const Value& value, std::int64_t start, std::int64_t stop);

    /// Gives the storage up for good. Idempotent. StateError while owned (outside the owner's scope).
    void release();
    /// Counts one mutation made by other means. StateError when not publicly mutable.
    void increment_version();
    /// Takes exclusive ownership. StateError when released or owned.
    Ref<Ownership> claim();
    /// Asks the carrier for an operation by name; the shipped kinds have none: NotImplementedError.
    void dispatch_op(std::string_view name) const;
    /// Kind, size, dtype, mutability, version, state: what Python's repr shows.
    std::string describe() const;

    // --- for bindings and the library's own floors
    // ------------------------------------------------------------
    Hot& hot() noexcept { return hot_; }
    const Hot& hot() const noexcept { return hot_; }
    /// Waits for running bulk work, then throws StateError when released or evicted.
    void require_live() const;
    /// require_live, and StateError when not publicly mutable.
    void require_mutable() const;
    /// IndexError unless 0 <= start <= stop <= size().
    void require_range(std::int64_t start, std::int64_t stop) const;
    /// IndexError unless 0 <= index < size().
    void require_slot(std::int64_t index) const;
    /// require_live and StateError when owned by somebody whose scope this thread is not in: for transitions.
    void require_access() const;
    /// For tests: how many carriers made since the first call are alive. The first call begins the count.
    static std::int64_t live() noexcept;

  protected:
    Carrier() noexcept;
    /// Called once by a constructor: what never changes. A kind that leaves the dtype out answers do_dtype.
    void describe_storage(const DType& dtype, bool writable) noexcept;
    /// The same, and `expose`, for a kind that begins with its slots in host memory; `data` is not null.
    void describe_storage(const DType& dtype, bool writable, std::byte* data, std::int64_t size) noexcept;
    /// The host address the fast path may use; null for none. With one, this size and the state bits are what
    /// counts: `do_size` and `do_is_mutable` are not asked.
    void expose(std::byte* data, std::int64_t size) noexcept;

    virtual std::int64_t do_size() const { return hot_.size; }
    virtual const DType& do_dtype() const;
    virtual bool do_supports(const DType& dtype) const = 0;
    virtual bool do_is_mutable() const { return !hot_.has(Hot::kImmutable); }
    virtual Value do_get(std::int64_t index) const;
    virtual void do_set(std::int64_t index, const Value& value);
    virtual Ref<Carrier> do_allocate_like(std::int64_t size, bool writable, const DType& dtype,
                                          bool empty) const = 0;
    /// Fresh storage whose every slot is about to be overwritten: the target of a transition.
    virtual Ref<Carrier> do_provision(std::int64_t size, bool writable, const DType& dtype) const {
        return do_allocate_like(size, writable, dtype, true);
    }
    virtual std::unique_ptr<Intake> do_intake(std::int64_t expected, bool writable,
                                              const DType& dtype) const = 0;
    /// The dtypes that factories accept, in order; the default asks do_supports alone.
    virtual const DType& do_validate(const DType& dtype) const;
    virtual bool do_scatters() const { return true; }
    /// All or nothing. The default serves host memory by plan, and every other medium by staged element
    /// writes.
    virtual void do_scatter(const Tensor& source, std::int64_t base, const Layout& mapping);
    virtual void do_release() = 0;
    virtual void do_dispatch(std::string_view name) const;
    /// The bytes, when they are on a block; slot i is at i * slot_bytes.
    virtual Ref<Block> do_block() const { return nullptr; }
    /// True when the do_ functions run user code (which may call back into this carrier).
    virtual bool do_runs_hooks() const noexcept { return false; }
    /// What stands between released and live, for messages: "evicted; call promote() first".
    virtual std::string do_state() const { return {}; }

  private:
    friend class Inner;
    friend class Exclusive;

    // The checks behind require_..., without waiting: for calls that hold the carrier busy themselves.
    void check_live() const {
        if (hot_.has(Hot::kReleased | Hot::kEvicted)) refuse_state();
    }
    [[noreturn]] void refuse_state() const;
    void check_mutable() const {
        // Without a mark the storage itself may be written and nobody owns it.
        if (hot_.state.load(std::memory_order_acquire) != 0) check_marked_mutable();
    }
    void check_marked_mutable() const;
    std::int64_t size_elsewhere() const;
    const DType& learned_dtype() const;
    void check_access() const;
    void check_scatter(const Tensor& source, const Tensor& onto, const Layout& mapping,
                       std::int64_t offset) const;

    Hot hot_;
    mutable const DType* dtype_ = nullptr;
    Owner* owner_ = nullptr;
    // Of the thread whose bulk work or transition runs; meaningful while busy (see
    // src/carrier/exclusive.hpp).
    std::atomic<std::thread::id> worker_{};
    std::uint32_t worker_forks_ = 0;
    std::uint32_t depth_ = 0;
    bool releasing_ = false;  ///< a hook of the release runs
    const bool counted_;      ///< by `live`
    mutable std::atomic<std::uint64_t> serial_{0};
};

}  // namespace carrier

#include "carrier/intake.hpp"

namespace carrier {

template <class Values>
Ref<Carrier> Carrier::new_like(const Values& values, const NewOptions& options) const {
    std::unique_ptr<Intake> intake = open_intake(options);
    for (const auto& v : values) intake->put(Value(v));
    return intake->finish();
}

}  // namespace carrier
