// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "carrier/api.hpp"
#include "carrier/host.hpp"

/// Intrusive ownership. `Ref<T>` works for both bases below.
namespace carrier {

/// Counted by C++ alone: what views and background threads may hold without the host (blocks of bytes).
class CARRIER_API Counted {
  public:
    Counted() noexcept = default;
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    virtual ~Counted() = default;

    // Nobody else can reach an object before its first reference or beside its only one: then a plain
    // load and store do, which take a fraction of the time of an atomic change.
    void retain() const noexcept {
        if (count_.load(std::memory_order_relaxed) == 0)
            count_.store(1, std::memory_order_relaxed);
        else
            count_.fetch_add(1, std::memory_order_relaxed);
    }
    void drop() const noexcept {
        if (unique() || count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }
    /// True when the caller holds the only reference.
    bool unique() const noexcept { return count_.load(std::memory_order_acquire) == 1; }

  private:
    mutable std::atomic<std::uint32_t> count_{0};
};

/// Counted by C++ until the host knows the object, from then on by the host's own object.
///
/// One word holds either a C++ count (odd) or the host's object (even). Once adopted, each `Ref` is one
/// reference of the host's object: its garbage collector sees exact counts, and identity is exact for ever.
class CARRIER_API RefCounted {
  public:
    RefCounted() noexcept = default;
    RefCounted(const RefCounted&) = delete;
    RefCounted& operator=(const RefCounted&) = delete;
    virtual ~RefCounted() = default;

    void retain() const noexcept {
        std::uintptr_t v = word_.load(std::memory_order_relaxed);
        for (;;) {
            if ((v & 1) == 0) return carrier::host().retain(reinterpret_cast<void*>(v));
            if (word_.compare_exchange_weak(v, v + 2, std::memory_order_relaxed)) return;
        }
    }
    void drop() const noexcept {
        std::uintptr_t v = word_.load(std::memory_order_relaxed);
        for (;;) {
            if ((v & 1) == 0) return carrier::host().release(reinterpret_cast<void*>(v));
            if (word_.compare_exchange_weak(v, v - 2, std::memory_order_acq_rel)) break;
        }
        if (v == 3) delete this;
    }
    /// The host's object, or null while C++ alone holds this.
    void* host_object() const noexcept {
        const std::uintptr_t v = word_.load(std::memory_order_acquire);
        return (v & 1) != 0 ? nullptr : reinterpret_cast<void*>(v);
    }
    /// Number of C++ references; 0 once the host's object counts.
    std::size_t cpp_references() const noexcept {
        const std::uintptr_t v = word_.load(std::memory_order_acquire);
        return (v & 1) != 0 ? v >> 1 : 0;
    }
    /// Called once, under the host's lock: every C++ reference becomes a reference of `object`.
    void adopt(void* object) noexcept {
        std::uintptr_t v = word_.load(std::memory_order_relaxed);
        if (v == 1) {  // just made: no reference that others could copy or drop
            word_.store(reinterpret_cast<std::uintptr_t>(object), std::memory_order_release);
            return;
        }
        std::uintptr_t moved = 0;
        do {
            for (; moved < v >> 1; ++moved) carrier::host().retain(object);
        } while (!word_.compare_exchange_weak(v, reinterpret_cast<std::uintptr_t>(object),
                                              std::memory_order_acq_rel));
        for (; moved > v >> 1; --moved) carrier::host().release(object);
    }

  private:
    mutable std::atomic<std::uintptr_t> word_{1};
};

/// A counted pointer. Do not copy a `Ref` to a host-adopted object while the host's lock is given up in a
/// tight loop: each copy takes that lock; pass `T&` instead.
template <class T>
class Ref {
  public:
    Ref() noexcept = default;
    Ref(std::nullptr_t) noexcept {}
    Ref(T* object) noexcept : object_(object) {
        if (object_ != nullptr) object_->retain();
    }
    Ref(const Ref& other) noexcept : Ref(other.object_) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    template <class U>
    Ref(Ref<U> other) noexcept : object_(other.detach()) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() {
        if (object_ != nullptr) object_->drop();
    }
    T* get() const noexcept { return object_; }
    T* operator->() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    /// Gives the reference away without dropping it.
    T* detach() noexcept { return std::exchange(object_, nullptr); }
    friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }
    friend bool operator==(const Ref& a, const T* b) noexcept { return a.object_ == b; }

  private:
    T* object_ = nullptr;
};

/// Makes an object and its first reference.
template <class T, class... Args>
Ref<T> make(Args&&... args) {
    return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace carrier
