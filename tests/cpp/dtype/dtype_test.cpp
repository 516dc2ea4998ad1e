// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "carrier/errors.hpp"
#include "carrier/storage_dtype.hpp"

namespace carrier {
namespace {

TEST(DTypes, BuiltInsAreFoundByNameAsTheSameObject) {
    EXPECT_EQ(DType::built_in().size(), 14U);
    for (const DType* d : DType::built_in()) EXPECT_EQ(&DType::from_name(d->name()), d);
    EXPECT_EQ(&DType::from_name("Float32"), &DType::Float32());
    EXPECT_THROW(DType::from_name("Nothing"), LookupError);
    EXPECT_EQ(DType::find("Nothing"), nullptr);
}

TEST(DTypes, KnowTheirPlace) {
    EXPECT_TRUE(DType::Float32().is_subtype_of(DType::Floating()));
    EXPECT_TRUE(DType::Float32().is_subtype_of(DType::Any()));
    EXPECT_FALSE(DType::Bool().is_subtype_of(DType::Integer()));
    EXPECT_EQ(DType::Int8().supertypes(), (std::vector{&DType::Integer(), &DType::Any()}));
    EXPECT_EQ(DType::E3M2().bits(), 6);
    EXPECT_EQ(DType::Any().bits(), std::nullopt);
}

TEST(DTypes, ConstructingRegistersOrChangesNothing) {
    const std::size_t before = DType::registered().size();
    EXPECT_THROW(DType::category(""), ValueError);
    EXPECT_THROW(DType::category("Float32"), ValueError);
    EXPECT_THROW(DType::simple("TestNoBits", 0, DType::Any()), ValueError);
    EXPECT_THROW(DType::simple("TestBelowSimple", 8, DType::Float32()), ValueError);
    const DType* one[] = {&DType::Float32()};
    EXPECT_THROW(DType::compound("TestOnePlane", one), ValueError);
    const DType* category[] = {&DType::Float32(), &DType::Any()};
    EXPECT_THROW(DType::compound("TestCategoryPlane", category), ValueError);
    EXPECT_EQ(DType::registered().size(), before);
    const DType* planes[] = {&DType::Float32(), &DType::Int8()};
    const DType& pair = DType::compound("TestPair", planes);
    EXPECT_TRUE(pair.is_compound());
    EXPECT_EQ(pair.planes().size(), 2U);
    EXPECT_EQ(DType::registered().size(), before + 1);
}

TEST(StorageDtypes, ValidateByIdentityAndExplainThemselves) {
    const DType* accepted[] = {&DType::Float32(), &DType::Int32()};
    EXPECT_EQ(&validate_storage_dtype(DType::Int32(), "X", accepted), &DType::Int32());
    EXPECT_THROW(validate_storage_dtype(DType::Floating(), "X", accepted), ValueError);
    const DType* planes[] = {&DType::Float32(), &DType::Float32()};
    try {
        validate_storage_dtype(DType::compound("TestTwoPlanes", planes), "X", accepted);
        FAIL();
    } catch (const ValueError& error) {
        EXPECT_NE(std::string(error.what()).find("plane"), std::string::npos) << error.what();
    }
    EXPECT_EQ(storage_zero(DType::Bool()), Value(false));
    EXPECT_TRUE(storage_zero(DType::Float64()).is_none());
}

TEST(Values, RoundOnceAndKeepWhatBinary32Keeps) {
    const auto f32 = [](const Value& v) { return normalize(Encoding::float32, v).float32; };
    EXPECT_EQ(f32(Value(1e70)), std::numeric_limits<float>::infinity());
    EXPECT_EQ(f32(Value((std::int64_t{1} << 54) - (1 << 29) - 1)), 0x1.fffffep+53F);
    EXPECT_TRUE(std::signbit(f32(Value(-0.0))));
    EXPECT_EQ(f32(Value(0x1p-149)), 0x1p-149F);
    EXPECT_TRUE(std::isnan(f32(Value(std::nan("")))));
    EXPECT_EQ(f32(Value(true)), 1.0F);
    EXPECT_THROW(f32(Value()), TypeError);
}

TEST(Values, IntegersAndBooleansDoNotMix) {
    EXPECT_EQ(normalize(Encoding::int32, Value(-2147483648LL)).int32,
              std::numeric_limits<std::int32_t>::min());
    EXPECT_THROW(normalize(Encoding::int32, Value(2147483648LL)), OverflowError);
    EXPECT_THROW(normalize(Encoding::int32, Value(true)), TypeError);
    EXPECT_THROW(normalize(Encoding::bool8, Value(1)), TypeError);
    EXPECT_THROW(normalize(Encoding::bool8, Value(1.0)), TypeError);
}

TEST(Values, SlotsMayBeUnalignedAndForeignBooleansAreTrueWhenNotZero) {
    std::byte raw[8] = {};
    store_slot(Encoding::float32, raw + 1, Scalar{.float32 = 2.5F});
    EXPECT_EQ(load_slot(Encoding::float32, raw + 1).float32, 2.5F);
    raw[0] = std::byte{0xFE};
    EXPECT_TRUE(load_slot(Encoding::bool8, raw).bool8);
}

}  // namespace
}  // namespace carrier
