// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/carrier.hpp"

#include "carrier/errors.hpp"
#include "carrier/exclusive.hpp"
#include "carrier/inner.hpp"
#include "carrier/ownership.hpp"
#include "storage/live_count.hpp"

namespace carrier {

namespace {
storage::LiveCount alive;
}  // namespace

Carrier::Carrier() noexcept : counted_(alive.made()) {}

std::int64_t Carrier::live() noexcept { return alive.ask(); }

Carrier::~Carrier() {
    alive.gone(counted_);
    // A binding may reuse the memory for an instance that is not yet constructed: what its fast path reads
    // there must look released.
    hot_.size = 0;
    hot_.state.store(Hot::kReleased, std::memory_order_relaxed);
}

void Carrier::describe_storage(const DType& dtype, bool writable) noexcept {
    dtype_ = &dtype;
    hot_.encoding = encoding_of(dtype);
    if (!writable) hot_.set(Hot::kImmutable);
}

void Carrier::describe_storage(const DType& dtype, bool writable, std::byte* data,
                               std::int64_t size) noexcept {
    dtype_ = &dtype;
    hot_.encoding = encoding_of(dtype);
    hot_.data = data;
    hot_.size = size;
    // Nobody else knows the carrier yet: a plain store, at a fraction of the time of an atomic change.
    hot_.state.store(writable ? 0 : Hot::kImmutable, std::memory_order_relaxed);
}

void Carrier::expose(std::byte* data, std::int64_t size) noexcept {
    hot_.data = data;
    hot_.size = size;
    if (data != nullptr)
        hot_.unset(Hot::kIndirect);
    else
        hot_.set(Hot::kIndirect);
}

std::int64_t Carrier::size_elsewhere() const { return is_released() ? 0 : do_size(); }

const DType& Carrier::learned_dtype() const {
    const DType& answer = do_dtype();
    dtype_ = &answer;
    const_cast<Hot&>(hot_).encoding = encoding_of(answer);
    return answer;
}

std::uint64_t Carrier::serial() const noexcept {
    static std::atomic<std::uint64_t> last{0};
    std::uint64_t mine = serial_.load(std::memory_order_relaxed);
    if (mine != 0) return mine;
    const std::uint64_t next = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return serial_.compare_exchange_strong(mine, next, std::memory_order_relaxed) ? next : mine;
}

const DType& Carrier::do_dtype() const { throw NotImplementedError("the carrier does not say its dtype"); }

bool Carrier::is_mutable() const {
    if (hot_.has(Hot::kOwned) && !owner_->admits_this_thread()) return false;
    return do_is_mutable();
}

void Carrier::require_live() const {
    Exclusive::wait_for(*this);
    check_live();
}

void Carrier::require_mutable() const {
    Exclusive::wait_for(*this);
    check_mutable();
}

void Carrier::require_access() const {
    Exclusive::wait_for(*this);
    check_access();
}

void Carrier::refuse_state() const {
    if (is_released())
        throw StateError(
            "the " + kind() +
            " carrier has been released and its values are gone; new_like and allocate_like still work");
    throw StateError("the " + kind() + " carrier is evicted; call promote() first");
}

void Carrier::check_marked_mutable() const {
    check_live();
    if (is_mutable()) return;
    if (hot_.has(Hot::kOwned) && do_is_mutable())
        throw StateError("the " + kind() +
                         " carrier is owned exclusively and cannot be written here; write through its owner");
    throw StateError("the " + kind() + " carrier is not mutable and cannot be written");
}

void Carrier::require_slot(std::int64_t index) const {
    const std::int64_t slots = size();
    if (index >= 0 && index < slots) return;
    throw IndexError("index " + std::to_string(index) + " is outside [0, " + std::to_string(slots) +
                     ") of the " + kind() + " carrier" +
                     (index < 0 ? "; negative indices do not count from the end" : ""));
}

void Carrier::check_access() const {
    if (is_released()) throw StateError("the " + kind() + " carrier has been released");
    if (hot_.has(Hot::kOwned) && !owner_->admits_this_thread())
        throw StateError("the " + kind() + " carrier is owned exclusively; only its owner may do this");
    if (hot_.has(Hot::kEdited))
        throw StateError("the " + kind() + " carrier is being edited; do this after the edit ends");
}

Value Carrier::get_value(std::int64_t index) const {
    require_live();
    require_slot(index);
    return do_get(index);
}

void Carrier::set_value(std::int64_t index, const Value& value) {
    require_mutable();
    require_slot(index);
    dtype();
    const Encoding encoding = hot_.encoding;
    do_set(index, encoding == Encoding::opaque ? value : to_value(encoding, normalize(encoding, value)));
    ++hot_.version;
}

Value Carrier::do_get(std::int64_t index) const {
    const auto at = static_cast<std::size_t>(index) * slot_bytes(hot_.encoding);
    return to_value(hot_.encoding, load_slot(hot_.encoding, hot_.data + at));
}

void Carrier::do_set(std::int64_t index, const Value& value) {
    const auto at = static_cast<std::size_t>(index) * slot_bytes(hot_.encoding);
    store_slot(hot_.encoding, hot_.data + at, normalize(hot_.encoding, value));
}

const DType& Carrier::do_validate(const DType& dtype) const {
    if (do_supports(dtype)) return dtype;
    std::vector<const DType*> accepted;
    for (const DType* candidate : DType::built_in())
        if (do_supports(*candidate)) accepted.push_back(candidate);
    return validate_storage_dtype(dtype, kind(), accepted);
}

Ref<Carrier> Carrier::allocate_like(std::int64_t size, const AllocateOptions& options) const {
    if (size < 0) throw ValueError("size must be at least 0; got " + std::to_string(size));
    const DType& wanted = do_validate(options.dtype != nullptr ? *options.dtype : dtype());
    return do_allocate_like(size, options.writable, wanted, options.empty);
}

std::unique_ptr<Intake> Carrier::open_intake(const NewOptions& options, std::int64_t expected) const {
    const DType& wanted = do_validate(options.dtype != nullptr ? *options.dtype : dtype());
    return do_intake(expected, options.writable, wanted);
}

void Carrier::release() {
    if (is_released()) return;
    const Exclusive exclusive({this});
    if (is_released()) return;
    if (releasing_)
        throw StateError("the " + kind() +
                         " carrier is being released; its _release hook cannot release it again");
    if (hot_.has(Hot::kOwned) && !owner_->admits_this_thread())
        throw StateError("the " + kind() + " carrier is owned exclusively; only its owner may release it");
    if (hot_.has(Hot::kEdited))
        throw StateError("the " + kind() + " carrier is being edited; release it after the edit ends");
    Inner::release(*this);
}

void Inner::release(Carrier& c) {
    if (c.is_released()) return;
    c.releasing_ = true;
    try {
        c.do_release();
    } catch (...) {
        c.releasing_ = false;
        throw;
    }
    c.releasing_ = false;
    c.hot_.set(Hot::kReleased);
    c.hot_.unset(Hot::kEvicted);
    c.hot_.size = 0;
    c.hot_.data = nullptr;
}

namespace {

/// What a factory of user code returned, or that of a shipped kind, is what was asked for. What is not goes
/// again.
Ref<Carrier> checked(const Carrier& like, Ref<Carrier> fresh, std::int64_t size, const DType& dtype) {
    if (fresh->is_released() || fresh->is_owned())
        throw StateError("the " + like.kind() +
                         " factory returned a carrier that is released or owned; it must return a fresh one");
    Provisional provisional(fresh.get());
    if (&fresh->dtype() != &dtype)
        throw TypeError("the " + like.kind() + " factory was asked for dtype " + dtype.name() +
                        " and returned " + fresh->dtype().name());
    if (fresh->size() < size)
        throw ValueError("the " + like.kind() + " factory was asked for " + std::to_string(size) +
                         " slots and returned " + std::to_string(fresh->size()));
    provisional.keep();
    return fresh;
}

}  // namespace

Provisional::~Provisional() {
    if (fresh_ == nullptr) return;
    try {
        Inner::release(*fresh_);
    } catch (...) {
        // The error that is in flight is the one to report.
    }
}

Ref<Carrier> Inner::allocate(const Carrier& like, std::int64_t size, bool writable, const DType& dtype,
                             bool empty) {
    return checked(like, like.do_allocate_like(size, writable, dtype, empty), size, dtype);
}

Ref<Carrier> Inner::provision(const Carrier& like, std::int64_t size, bool writable, const DType& dtype) {
    return checked(like, like.do_provision(size, writable, dtype), size, dtype);
}

void Carrier::increment_version() {
    require_mutable();
    ++hot_.version;
}

Ref<Ownership> Carrier::claim() {
    require_access();
    if (is_owned())
        throw StateError("the " + kind() + " carrier is owned already; its owner must relinquish it first");
    return make<Ownership>(Ref<Carrier>(this));
}

namespace {
[[noreturn, gnu::cold, gnu::noinline]] void refuse_scatter(const std::string& kind) {
    throw NotImplementedError(kind + " does not scatter" +
                              (kind == "FileBacked" ? "" : ": its primary tier cannot") +
                              "; scatter into a CPU carrier, or write slot by slot");
}
}  // namespace

void Carrier::require_scatter() const {
    if (!do_scatters()) refuse_scatter(kind());
}

void Carrier::dispatch_op(std::string_view name) const {
    require_live();
    do_dispatch(name);
}

void Carrier::do_dispatch(std::string_view name) const {
    throw NotImplementedError("the " + kind() + " carrier has no operation '" + std::string(name) + "'");
}

std::string Carrier::describe() const {
    const std::string state = is_released() ? "released" : do_state();
    return kind() + "(size=" + std::to_string(size()) + ", dtype=" + dtype().name() +
           ", mutable=" + (is_mutable() ? "True" : "False") + ", version=" + std::to_string(version()) +
           ", " + (state.empty() ? "live" : state) + (is_owned() ? ", owned" : "") + ")";
}

}  // namespace carrier
