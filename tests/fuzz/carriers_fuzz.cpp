// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Histories of one carrier, of any kind and nesting, against a plain list of slots. Every call may meet a
// fault: a system call or a custom tier's hook that fails, or short reads and writes. Then it either went
// well or changed nothing.

#include <cstdlib>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "carrier/edit.hpp"
#include "carrier/errors.hpp"
#include "carrier/inner.hpp"
#include "carrier/ownership.hpp"
#include "carrier/session.hpp"
#include "carrier/tensor.hpp"
#include "layout/random_layout.hpp"
#include "storage/closer.hpp"
#include "support/tiers.hpp"

namespace carrier::fuzz {
namespace {

using Slots = std::vector<std::uint32_t>;

/// What a history has to come to.
struct Model {
    Slots slots;
    std::uint64_t version = 0;
    bool writable = true;
    bool released = false;
    bool evicted = false;
};

enum class Refusal { none, state, index, value, type, not_implemented, fault };

class History {
  public:
    explicit History(Input& in) : in_(in), faults_(Faults::standing()) {
        static const DType* const dtypes[] = {&DType::Float32(), &DType::Int32(), &DType::Bool()};
        dtype_ = dtypes[in.between(0, 2)];
        const std::int64_t size = in.one_in(24) ? in.between(17000, 40000) : in.between(0, 40);
        model_.writable = !in.one_in(8);
        kind_ = make_kind(in, size, *dtype_, model_.writable);
        if (kind_.custom && size > 100) kind_ = {Ref<Carrier>(make<CPU>(size, *dtype_, model_.writable))};
        model_.slots.assign(static_cast<std::size_t>(size), 0);
        hierarchy_ = dynamic_cast<Evictable*>(kind_.carrier.get());
        model_.version = kind_.carrier->version();
        if (tells_) std::fprintf(stderr, "%s\n", anatomy(carrier()).c_str());
    }

    void run() {
        for (int steps = 0; !in_.empty() && steps < 60; ++steps) {
            step();
            check();
        }
        token_ = nullptr;
        kind_.carrier = nullptr;
        for (const View& view : views_) FUZZ_CHECK(bytes_of(*view.block) == view.bytes);
    }

  private:
    struct View {
        Ref<Block> block;
        std::vector<std::byte> bytes;
    };

    static std::string anatomy(const Carrier& c) {
        const auto* hierarchy = dynamic_cast<const Evictable*>(&c);
        if (hierarchy == nullptr) return c.describe();
        return "Evictable(" + anatomy(*hierarchy->primary()) + ", " + anatomy(*hierarchy->secondary()) + ")";
    }
    Carrier& carrier() { return *kind_.carrier; }
    std::int64_t size() const { return static_cast<std::int64_t>(model_.slots.size()); }
    static std::vector<std::byte> bytes_of(const Block& block) {
        std::vector<std::byte> bytes(block.size());
        block.read(0, bytes);
        return bytes;
    }

    /// Why a read, a write or a transition is refused before anything else is looked at.
    Refusal no_read() const { return model_.released || model_.evicted ? Refusal::state : Refusal::none; }
    Refusal no_write() const {
        if (no_read() != Refusal::none || !model_.writable || (token_ && !inside_)) return Refusal::state;
        return Refusal::none;
    }
    Refusal no_access() const {
        return model_.released || (token_ && !inside_) ? Refusal::state : Refusal::none;
    }

    /// Makes the call under a fault. True when it went well; then `want` must have been none. When it did
    /// not, either the fault is why, or the refusal is the wanted one.
    template <class Call>
    bool attempt(Refusal want, const Call& call) {
        Refusal got = Refusal::none;
        faults_.arm(in_);
        try {
            call();
        } catch (const StateError& error) {
            got = refused(Refusal::state, error);
        } catch (const IndexError& error) {
            got = refused(Refusal::index, error);
        } catch (const ValueError& error) {
            got = refused(Refusal::value, error);
        } catch (const TypeError& error) {
            got = refused(Refusal::type, error);
        } catch (const NotImplementedError& error) {
            got = refused(Refusal::not_implemented, error);
        } catch (const OsError& error) {
            got = refused(Refusal::fault, error);
        } catch (const MemoryError& error) {
            got = refused(Refusal::fault, error);
        } catch (const testing::HookFailure& error) {
            got = refused(Refusal::fault, error);
        }
        faults_.disarm();
        FUZZ_CHECK(got == want || (got == Refusal::fault && faults_.happened()));
        return got == Refusal::none;
    }
    Refusal refused(Refusal why, const std::exception& error) {
        told_ = error.what();
        return why;
    }

    std::int64_t slot() {
        return in_.one_in(8) ? in_.between(-2, size() + 2)
                             : in_.between(0, std::max<std::int64_t>(size() - 1, 0));
    }
    Slots some_slots(std::int64_t count) {
        Slots slots(static_cast<std::size_t>(count));
        const std::uint32_t first = slot_bits(in_, *dtype_);
        for (std::size_t i = 0; i < slots.size(); ++i)
            slots[i] = i < 8                      ? slot_bits(in_, *dtype_)
                       : dtype_ == &DType::Bool() ? (first + i) & 1
                                                  : first & 0x3FFFFFFF;
        return slots;
    }
    Refusal outside(std::int64_t start, std::int64_t stop) const {
        return start < 0 || start > stop || stop > size() ? Refusal::index : Refusal::none;
    }
    static Refusal first(Refusal a, Refusal b) { return a != Refusal::none ? a : b; }
    void wrote() { ++model_.version; }

    void step() {
        std::optional<Ownership::Access> access;
        if (token_ && in_.one_in(2)) {
            access.emplace(*token_);
            inside_ = true;
        }
        static constexpr std::pair<const char*, void (History::*)()> kSteps[] = {
            {"get", &History::get},
            {"set", &History::set},
            {"set", &History::set},
            {"read", &History::read},
            {"write", &History::write},
            {"write", &History::write},
            {"fill", &History::fill},
            {"evict", &History::evict},
            {"evict", &History::evict},
            {"promote", &History::promote},
            {"promote", &History::promote},
            {"scatter", &History::scatter},
            {"tensor", &History::tensor},
            {"edit", &History::edit},
            {"own", &History::own},
            {"grow", &History::grow},
            {"factories", &History::factories},
            {"release", &History::release}};
        const auto& [name, act] = kSteps[in_.between(0, std::size(kSteps) - 1)];
        told_.clear();
        (this->*act)();
        if (tells_)
            std::fprintf(stderr, "%s%s: %s; %s\n", name, inside_ ? " inside" : "",
                         told_.empty() ? "fine" : told_.c_str(), carrier().describe().c_str());
        access.reset();
        inside_ = false;
    }

    void get() {
        const std::int64_t at = slot();
        Value got;
        if (attempt(first(no_read(), outside(at, at + 1)), [&] { got = carrier().get_value(at); }))
            FUZZ_CHECK(got == value_of(model_.slots[static_cast<std::size_t>(at)], *dtype_));
    }
    void set() {
        const std::int64_t at = slot();
        const std::uint32_t bits = slot_bits(in_, *dtype_);
        const bool hole = in_.one_in(16);
        Refusal want = first(no_write(), outside(at, at + 1));
        if (hole) want = first(want, Refusal::type);
        if (!attempt(want, [&] { carrier().set_value(at, hole ? Value() : value_of(bits, *dtype_)); }))
            return;
        model_.slots[static_cast<std::size_t>(at)] = bits;
        wrote();
    }
    void read() {
        const std::int64_t start = slot(), stop = slot();
        const auto count = static_cast<std::size_t>(std::max<std::int64_t>(stop - start, 0));
        std::vector<std::byte> into(count * slot_bytes(encoding_of(*dtype_)));
        if (attempt(first(no_read(), outside(start, stop)), [&] { carrier().read(start, stop, into); }))
            FUZZ_CHECK(from_bytes(into, *dtype_) ==
                       Slots(model_.slots.begin() + start, model_.slots.begin() + stop));
    }
    void write() {
        const std::int64_t start = slot();
        const Slots slots = some_slots(in_.one_in(4) ? size() : in_.between(0, 8));
        const std::int64_t stop = start + static_cast<std::int64_t>(slots.size());
        const std::vector<std::byte> bytes = to_bytes(slots, *dtype_);
        if (!attempt(first(no_write(), outside(start, stop)), [&] { carrier().write(start, bytes); })) return;
        std::copy(slots.begin(), slots.end(), model_.slots.begin() + start);
        if (!slots.empty()) wrote();
    }
    void fill() {
        const std::int64_t start = slot(), stop = slot();
        const std::uint32_t bits = slot_bits(in_, *dtype_);
        const auto call = [&] { carrier().fill(value_of(bits, *dtype_), start, stop); };
        if (!attempt(first(no_write(), outside(start, stop)), call)) return;
        std::fill(model_.slots.begin() + start, model_.slots.begin() + stop, bits);
        if (start != stop) wrote();
    }

    /// Memory handed out keeps showing what it held when its carrier let go of it.
    void keep_view() {
        if (no_read() != Refusal::none || views_.size() > 8) return;
        const Ref<Block> block = Inner::block(carrier());
        if (block && block->data() != nullptr) views_.push_back({block, bytes_of(*block)});
    }
    void evict() {
        if (hierarchy_ == nullptr) return;
        const bool move = no_access() == Refusal::none && !model_.evicted;
        const std::size_t views = views_.size();
        if (move) keep_view();
        if (attempt(no_access(), [&] { hierarchy_->evict(); }))
            model_.evicted = true;
        else
            views_.resize(views);
    }
    void promote() {
        if (hierarchy_ != nullptr && attempt(no_access(), [&] { hierarchy_->promote(); }))
            model_.evicted = false;
    }
    void release() {
        if (!in_.one_in(4)) return;
        const std::size_t views = views_.size();
        keep_view();
        const Refusal want = model_.released ? Refusal::none : no_access();
        // A hierarchy whose tiers refuse one after the other may be left half given up: only a retry is
        // promised.
        if (attempt(want, [&] { carrier().release(); })) {
            model_ = {{}, model_.version, model_.writable, true, false};
        } else {
            views_.resize(views);
            if (hierarchy_ != nullptr && faults_.happened() && kind_.custom) finish_release();
        }
    }
    void finish_release() {
        carrier().release();
        model_ = {{}, model_.version, model_.writable, true, false};
    }

    void scatter() {
        Random random(in_.bits<std::uint32_t>());
        const Shape shape = random_shape(random, 30);
        const Layout reading = random_layout(random, shape), mapping = random_layout(random, shape);
        if (no_read() != Refusal::none || reading.cosize() > size() || size() == 0) return;
        const std::int64_t base = in_.between(0, 2), offset = in_.between(-1, 2);
        const Tensor source(kind_.carrier, in_.between(0, size() - reading.cosize()), reading);
        const Layout whole(Shape{1}, Stride{1});
        if (base + 1 > size()) return;
        const Tensor onto(kind_.carrier, base, whole);
        Refusal want = kind_.scatters ? no_write() : Refusal::not_implemented;
        if (offset < 0) want = first(want, Refusal::value);
        if (base + offset + mapping.cosize() > size()) want = first(want, Refusal::index);
        if (!attempt(want, [&] { carrier().scatter(source, onto, mapping, offset); })) return;
        const Slots before = model_.slots;
        for (std::int64_t i = 0; i < shape.size(); ++i)
            model_.slots[static_cast<std::size_t>(base + offset + mapping.index(i))] =
                before[static_cast<std::size_t>(source.offset() + reading.index(i))];
        wrote();
    }
    void tensor() {
        Random random(in_.bits<std::uint32_t>());
        const Layout layout = random_layout(random, random_shape(random, 40));
        if (no_read() != Refusal::none || layout.cosize() > size()) return;
        Tensor t(kind_.carrier, in_.between(0, size() - layout.cosize()), layout);
        const auto at = [&](std::int64_t i) {
            return static_cast<std::size_t>(t.offset() + layout.index(i));
        };
        const std::int64_t start = in_.one_in(2) ? 0 : in_.between(-1, layout.size());
        const std::int64_t stop = in_.one_in(2) ? layout.size() : in_.between(0, layout.size() + 1);
        const bool good = start >= 0 && start <= stop && stop <= layout.size();
        const Refusal range = good ? Refusal::none : Refusal::index;
        const std::size_t count = start <= stop ? static_cast<std::size_t>(stop - start) : 0;
        if (in_.one_in(2)) {
            std::vector<std::byte> into(count * slot_bytes(encoding_of(*dtype_)));
            if (!attempt(range, [&] { t.read(start, stop, into); })) return;
            const Slots got = from_bytes(into, *dtype_);
            for (std::int64_t i = start; i < stop; ++i)
                FUZZ_CHECK(got[static_cast<std::size_t>(i - start)] == model_.slots[at(i)]);
            return;
        }
        if (start > stop) return;
        const Slots slots = in_.one_in(3) ? Slots(count, slot_bits(in_, *dtype_)) : some_slots(stop - start);
        const bool same = count == 0 || slots == Slots(count, slots[0]);
        const std::vector<std::byte> bytes = to_bytes(slots, *dtype_);
        const auto call = [&] {
            if (same && count != 0)
                t.fill(value_of(slots[0], *dtype_), start, stop);
            else
                t.write(start, bytes);
        };
        if (!attempt(first(no_write(), range), call)) return;
        for (std::int64_t i = start; i < stop; ++i)
            model_.slots[at(i)] = slots[static_cast<std::size_t>(i - start)];
        if (count != 0) wrote();
    }

    void edit() {
        const Slots slots = some_slots(size());
        const std::vector<std::byte> bytes = to_bytes(slots, *dtype_);
        const bool keep = in_.one_in(2);
        bool began = false, staged = false;
        const auto call = [&] {
            Edit edit(kind_.carrier);
            began = true;
            staged = edit.is_staged();
            FUZZ_CHECK(FUZZ_THROWS(StateError, carrier().release()) &&
                       FUZZ_THROWS(StateError, carrier().claim()));
            if (hierarchy_ != nullptr) FUZZ_CHECK(FUZZ_THROWS(StateError, hierarchy_->evict()));
            if (!bytes.empty()) edit.block()->write(0, bytes);
            edit.finish(keep);
        };
        const bool good = attempt(no_write(), call);
        if (began) model_.version += 2;
        if (began && (staged ? keep && good : true)) model_.slots = slots;
    }
    void own() {
        if (token_) {
            if (!inside_ && attempt(Refusal::none, [&] { token_->relinquish(); })) token_ = nullptr;
            return;
        }
        Ref<Ownership> token;
        if (attempt(no_access(), [&] { token = carrier().claim(); })) token_ = std::move(token);
    }
    void factories() {
        Ref<Carrier> fresh;
        Slots want;
        if (in_.one_in(2)) {
            want.assign(static_cast<std::size_t>(in_.between(0, 50)), 0);
            const auto n = static_cast<std::int64_t>(want.size());
            if (!attempt(Refusal::none, [&] { fresh = carrier().allocate_like(n); })) return;
        } else {
            want = some_slots(in_.between(0, 20));
            std::vector<Value> values;
            for (const std::uint32_t bits : want) values.push_back(value_of(bits, *dtype_));
            if (!attempt(Refusal::none, [&] { fresh = carrier().new_like(values); })) return;
        }
        FUZZ_CHECK(fresh->kind() == carrier().kind() && &fresh->dtype() == dtype_ && fresh->is_mutable());
        FUZZ_CHECK(fresh->version() == 0 && !fresh->is_owned() && !fresh->is_released() &&
                   slots_of(*fresh) == want);
        if (!in_.one_in(3) || token_) return;
        // The history goes on with the product.
        views_.clear();
        kind_.carrier = std::move(fresh);
        hierarchy_ = dynamic_cast<Evictable*>(kind_.carrier.get());
        model_ = {want, 0, true, false, false};
    }
    void grow() {
        auto* file = dynamic_cast<FileBacked*>(kind_.carrier.get());
        if (file == nullptr || size() > 40'000) return;
        const std::int64_t more = size() + in_.between(-1, in_.one_in(4) ? 30000 : 20);
        const Refusal want = first(no_write(), more < size() ? Refusal::value : Refusal::none);
        if (attempt(want, [&] { file->grow(more); })) model_.slots.resize(static_cast<std::size_t>(more), 0);
    }

    /// Everything that can be seen from outside, without a fault.
    void check() {
        Carrier& c = carrier();
        FUZZ_CHECK(c.version() == model_.version && c.is_released() == model_.released);
        FUZZ_CHECK(c.is_owned() == static_cast<bool>(token_) &&
                   c.is_mutable() == (model_.writable && !token_));
        FUZZ_CHECK(c.size() == size() && &c.dtype() == dtype_ && !c.describe().empty());
        if (hierarchy_ != nullptr && !model_.released) {
            FUZZ_CHECK(hierarchy_->is_evicted() == model_.evicted);
            const Ref<Carrier>&up = hierarchy_->primary(), &down = hierarchy_->secondary();
            FUZZ_CHECK(up->is_released() == model_.evicted || size() == 0);
            for (const Ref<Carrier>& tier : {up, down})
                FUZZ_CHECK(tier->is_released() || (tier->is_owned() && !tier->is_mutable()));
            if (model_.evicted) {
                Slots below(slots_of(*down));
                FUZZ_CHECK(below.size() >= model_.slots.size());
                below.resize(model_.slots.size());
                FUZZ_CHECK(below == model_.slots);
            }
        }
        if (no_read() == Refusal::none) FUZZ_CHECK(slots_of(c) == model_.slots);
    }

    Input& in_;
    Faults& faults_;
    const DType* dtype_;
    Kind kind_;
    Evictable* hierarchy_ = nullptr;
    Model model_;
    Ref<Ownership> token_;
    bool inside_ = false;
    std::vector<View> views_;
    /// With CARRIER_FUZZ_TELL set, each step is told: for who looks at an input that was found.
    const bool tells_ = std::getenv("CARRIER_FUZZ_TELL") != nullptr;
    std::string told_;
};

/// Each history leaves no block and no file behind; some begin without a session directory.
void run(Input& in) {
    static const std::string folder = [] {
        std::string pattern = std::filesystem::temp_directory_path() / "carrier-fuzz-XXXXXX";
        FUZZ_CHECK(::mkdtemp(pattern.data()) != nullptr);
        ::setenv("TMPDIR", pattern.c_str(), 1);
        return pattern;
    }();
    Faults& faults = Faults::standing();
    const bool anew = in.one_in(8);
    const std::int64_t blocks = HostBlock::live(), files = FileBlock::live(), carriers = Carrier::live();
    History(in).run();
    storage::Closer::drain();
    FUZZ_CHECK(HostBlock::live() == blocks && FileBlock::live() == files && Carrier::live() == carriers);
    const std::string session = session_directory();
    const bool kept = faults.kept_a_file();
    FUZZ_CHECK(kept || session.empty() || std::filesystem::is_empty(session));
    if (!anew && !kept) return;
    remove_session();
    FUZZ_CHECK(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace carrier::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    carrier::fuzz::Input in(data, size);
    carrier::fuzz::run(in);
    return 0;
}
