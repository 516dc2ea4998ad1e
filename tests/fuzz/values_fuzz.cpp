// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// What a value becomes in a slot, against rounding worked out on integers, through every way into a carrier.

#include <cmath>
#include <optional>
#include <vector>

#include "carrier/cpu.hpp"
#include "carrier/errors.hpp"
#include "carrier/file_backed.hpp"
#include "carrier/generic.hpp"
#include "support/input.hpp"

namespace carrier::fuzz {
namespace {

template <class To, class From>
To cast(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

/// Bits of the binary32 nearest to (-1)^sign * mantissa * 2^exponent, ties to even.
std::uint32_t nearest(bool sign, std::uint64_t mantissa, int exponent) {
    const std::uint32_t top = sign ? 0x80000000U : 0U;
    if (mantissa == 0) return top;
    const int width = 64 - __builtin_clzll(mantissa);
    // The last place kept: 23 below the leading one, but not under the subnormals.
    const int last = std::max(exponent + width - 24, -149);
    const int drop = last - exponent;
    unsigned __int128 kept = mantissa;
    if (drop <= 0) {
        kept <<= -drop;
    } else if (drop > 65) {
        kept = 0;
    } else {
        const unsigned __int128 half = static_cast<unsigned __int128>(1) << (drop - 1);
        const unsigned __int128 rest = kept & ((half << 1) - 1);
        kept >>= drop;
        if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
    }
    int place = last;
    if (kept == 1U << 24) kept >>= 1, ++place;
    if (kept >= 1U << 23) {
        const int biased = place + 23 + 127;
        if (biased >= 255) return top | 0x7F800000U;
        return top | static_cast<std::uint32_t>(biased) << 23 |
               (static_cast<std::uint32_t>(kept) & 0x7FFFFFU);
    }
    return top | static_cast<std::uint32_t>(kept);  // subnormal: place is -149
}

std::uint32_t nearest(double value) {
    const auto bits = cast<std::uint64_t>(value);
    const int biased = static_cast<int>(bits >> 52 & 0x7FF);
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    if (biased == 0x7FF) return static_cast<std::uint32_t>(bits >> 63) << 31 | 0x7F800000U;  // infinity
    if (biased == 0) return nearest(bits >> 63, fraction, -1074);
    return nearest(bits >> 63, fraction | std::uint64_t{1} << 52, biased - 1075);
}

std::uint32_t nearest(std::int64_t value) {
    const auto magnitude =
        value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
    return nearest(value < 0, magnitude, 0);
}

Value value(Input& in) {
    switch (in.between(0, 6)) {
        case 0:
            return Value();
        case 1:
            return Value(in.one_in(2));
        case 2:
            return Value(in.bits<std::int64_t>());
        case 3:  // around powers of two, where rounding and ranges turn
            return Value(static_cast<std::int64_t>((std::uint64_t{1} << in.between(0, 63)) +
                                                   static_cast<std::uint64_t>(in.between(-3, 3))));
        case 4:
            return Value(in.bits<double>());
        case 5:
            return Value(static_cast<double>(in.bits<float>()));
        default:  // half way between two binary32
            return Value(cast<double>(cast<std::uint64_t>(static_cast<double>(in.bits<float>())) ^
                                      std::uint64_t{1} << in.between(26, 30)));
    }
}

enum class Verdict { good, type, overflow };
struct Outcome {
    Verdict verdict = Verdict::good;
    std::uint32_t bits = 0;
    bool nan = false;
};

/// The table of docs/contract.md, Values.
Outcome expected(Encoding encoding, const Value& v) {
    using Kind = Value::Kind;
    if (v.is_none()) return {Verdict::type};
    switch (encoding) {
        case Encoding::float32:
            if (v.kind() == Kind::boolean) return {Verdict::good, v.boolean() ? nearest(std::int64_t{1}) : 0};
            if (v.kind() == Kind::integer) return {Verdict::good, nearest(v.integer())};
            if (std::isnan(v.floating())) return {Verdict::good, 0, true};
            return {Verdict::good, nearest(v.floating())};
        case Encoding::int32:
            if (v.kind() != Kind::integer) return {Verdict::type};
            if (v.integer() < INT32_MIN || v.integer() > INT32_MAX) return {Verdict::overflow};
            return {Verdict::good, static_cast<std::uint32_t>(v.integer())};
        default:
            if (v.kind() != Kind::boolean) return {Verdict::type};
            return {Verdict::good, v.boolean()};
    }
}

/// The bits of a slot, read back.
std::uint32_t bits_of(Encoding encoding, const std::byte* slot) {
    if (encoding == Encoding::bool8) return static_cast<std::uint32_t>(*slot);
    std::uint32_t bits = 0;
    std::memcpy(&bits, slot, 4);
    return bits;
}

void check_bits(const Outcome& want, std::uint32_t got) {
    if (want.nan)
        FUZZ_CHECK((got & 0x7F800000U) == 0x7F800000U && (got & 0x7FFFFFU) != 0);
    else
        FUZZ_CHECK(got == want.bits);
}

template <class Put>
void check_refusal(Verdict verdict, const Put& put) {
    FUZZ_CHECK(verdict == Verdict::type ? FUZZ_THROWS(TypeError, put()) : FUZZ_THROWS(OverflowError, put()));
}

void check_ways_in(const DType& dtype, const std::vector<Value>& values) {
    const Encoding encoding = encoding_of(dtype);
    std::vector<Ref<Carrier>> kinds{Ref<Carrier>(make<CPU>(1, dtype)), Ref<Carrier>(make<Generic>(1, dtype))};
    if (encoding != Encoding::bool8) {
        Ref<FileBacked> file = make<FileBacked>(dtype);
        file->grow(1);
        kinds.emplace_back(std::move(file));
    }
    for (const Ref<Carrier>& c : kinds) {
        const std::unique_ptr<Intake> intake = c->open_intake();
        std::vector<Outcome> stored;
        for (const Value& v : values) {
            const Outcome want = expected(encoding, v);
            const std::uint64_t version = c->version();
            std::byte before[4] = {}, after[4] = {};
            const std::span<std::byte> whole(after, slot_bytes(encoding));
            c->read(0, 1, {before, whole.size()});
            if (want.verdict == Verdict::good) {
                c->set_value(0, v);
                FUZZ_CHECK(c->version() == version + 1);
                c->read(0, 1, whole);
                check_bits(want, bits_of(encoding, after));
                FUZZ_CHECK(normalize(encoding, c->get_value(0)).int32 == load_slot(encoding, after).int32 ||
                           want.nan);
            } else {
                check_refusal(want.verdict, [&] { c->set_value(0, v); });
                check_refusal(want.verdict, [&] { c->fill(v, 0, 1); });
                c->read(0, 1, whole);
                FUZZ_CHECK(c->version() == version && std::memcmp(before, after, 4) == 0);
            }
            if (v.is_none() && intake->takes_holes()) {
                intake->put(v);
                stored.emplace_back();
            } else if (want.verdict == Verdict::good) {
                intake->put(v);
                stored.push_back(want);
            } else {
                check_refusal(want.verdict, [&] { intake->put(v); });
            }
        }
        const Ref<Carrier> made = intake->finish();
        FUZZ_CHECK(made->size() == static_cast<std::int64_t>(stored.size()));
        for (std::size_t i = 0; i < stored.size(); ++i) {
            std::byte slot[4] = {};
            const auto at = static_cast<std::int64_t>(i);
            made->read(at, at + 1, {slot, slot_bytes(encoding)});
            check_bits(stored[i], bits_of(encoding, slot));
        }
    }
}

void run(Input& in) {
    const DType* const dtypes[] = {&DType::Float32(), &DType::Int32(), &DType::Bool()};
    const DType& dtype = *dtypes[in.between(0, 2)];
    std::vector<Value> values;
    while (!in.empty() && values.size() < 32) values.push_back(value(in));
    check_ways_in(dtype, values);
}

}  // namespace
}  // namespace carrier::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    carrier::fuzz::Input in(data, size);
    carrier::fuzz::run(in);
    return 0;
}
