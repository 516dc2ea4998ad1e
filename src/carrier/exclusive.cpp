// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/exclusive.hpp"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "carrier/errors.hpp"
#include "carrier/evictable.hpp"
#include "carrier/inner.hpp"
#include "os/process.hpp"

namespace carrier {

namespace {

constexpr std::chrono::milliseconds kSlice{50};

/// Where all waiting threads park. Waits are rare, so one place serves every carrier.
struct Parking {
    std::mutex mutex;
    std::condition_variable moved;
    std::map<const Carrier*, int> waiting;  ///< threads that wait, or have yet to go on
};

// Never destroyed: a daemon thread may park while the process exits.
Parking* lot = nullptr;

Parking& parking() {
    static const bool once = [] {
        lot = new Parking;
        // The child has one thread; a mutex that another thread held there would stay locked for ever.
        return os::watch_forks() && os::at_fork(nullptr, nullptr, [] { new (lot) Parking; });
    }();
    (void)once;
    return *lot;
}
[[maybe_unused]] const Parking& ready = parking();

/// A place in the queue for a carrier, until its holder has gone on.
class Place {
  public:
    explicit Place(const Carrier& c) : carrier_(&c) {
        const std::lock_guard lock(parking().mutex);
        ++parking().waiting[carrier_];
    }
    ~Place() {
        Parking& p = parking();
        {
            const std::lock_guard lock(p.mutex);
            const auto found = p.waiting.find(carrier_);  // not there after a fork
            if (found != p.waiting.end() && --found->second == 0) p.waiting.erase(found);
        }
        p.moved.notify_all();
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

  private:
    const Carrier* carrier_;
};

/// Lets those go first who wait already: a thread that works in a loop would find the carrier free each time,
/// since the host's lock is its own between two rounds. Not for longer than a slice.
void let_others_go(const Carrier& c) {
    Parking& p = parking();
    const Unlocked unlocked;
    std::unique_lock lock(p.mutex);
    p.moved.wait_for(lock, kSlice, [&] { return p.waiting.find(&c) == p.waiting.end(); });
}

int level(const Carrier& c) noexcept {
    int depth = 0;
    for (const Owner* owner = Inner::owner(c); owner != nullptr && owner->hierarchy() != nullptr;
         owner = Inner::owner(*owner->hierarchy()))
        ++depth;
    return depth;
}

}  // namespace

Exclusive::Exclusive(std::initializer_list<const Carrier*> carriers) {
    try {
        enter(carriers);
    } catch (...) {
        leave_all();
        throw;
    }
}

Exclusive::~Exclusive() { leave_all(); }

void Exclusive::enter(std::initializer_list<const Carrier*> carriers) {
    // The next to take: by level below the top of its hierarchy, then by address.
    std::set<std::pair<int, Carrier*>> waiting;
    for (const Carrier* c : carriers) waiting.emplace(level(*c), const_cast<Carrier*>(c));
    while (!waiting.empty()) {
        const auto [depth, next] = *waiting.begin();
        waiting.erase(waiting.begin());
        held_.reserve(held_.size() + 1);
        Ref<Carrier> keep(next);
        take(*next);
        held_.push_back(std::move(keep));
        if (const auto* hierarchy = dynamic_cast<const Evictable*>(next))
            for (const Ref<Carrier>& tier : {hierarchy->primary(), hierarchy->secondary()})
                if (tier) waiting.emplace(depth + 1, tier.get());
    }
}

void Exclusive::leave_all() noexcept {
    for (const Ref<Carrier>& c : held_) leave(*c);
    held_.clear();
}

void Exclusive::take(Carrier& c) {
    Parking& p = parking();
    for (bool first = true;; first = false) {
        bool busy = false;
        {
            const std::lock_guard lock(p.mutex);
            const auto self = std::this_thread::get_id();
            busy = c.hot_.has(Hot::kBusy);
            const bool again = busy && c.worker_.load(std::memory_order_relaxed) == self && c.do_runs_hooks();
            const bool polite = first && p.waiting.find(&c) != p.waiting.end();
            if (again || (!busy && !polite)) {
                ++c.depth_;
                c.worker_.store(self, std::memory_order_relaxed);
                c.worker_forks_ = os::generation();
                c.hot_.set(Hot::kBusy);
                return;
            }
        }
        if (busy)
            wait_for(c);
        else
            let_others_go(c);
    }
}

void Exclusive::leave(Carrier& c) noexcept {
    Parking& p = parking();
    {
        const std::lock_guard lock(p.mutex);
        if (--c.depth_ > 0) return;
        c.worker_.store({}, std::memory_order_relaxed);
        c.hot_.unset(Hot::kBusy);
    }
    p.moved.notify_all();
}

void Exclusive::wait_while_busy(const Carrier& c) {
    std::optional<Place> place;
    while (c.hot_.has(Hot::kBusy)) {
        if (c.worker_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
            if (c.do_runs_hooks()) return;
            throw StateError("this thread is in the middle of a transition or of bulk work on this " +
                             c.kind() + " carrier; a hook that runs inside it cannot use the carrier");
        }
        Parking& p = parking();
        if (c.worker_forks_ != os::generation())
            throw StateError("the process forked while another thread was at work on this " + c.kind() +
                             " carrier; it cannot be used in the child");
        if (!place) place.emplace(c);
        {
            const Unlocked unlocked;  // taken before the mutex, given back after it
            std::unique_lock lock(p.mutex);
            p.moved.wait_for(lock, kSlice, [&] { return !c.hot_.has(Hot::kBusy); });
        }
        if (c.hot_.has(Hot::kBusy)) host().poll();
    }
}

}  // namespace carrier
