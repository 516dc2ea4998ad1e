// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/plan_run.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "os/testing.hpp"

namespace carrier::testing {
namespace {

constexpr std::int64_t kMany = 3 << 20;

struct Job {
    std::string name;
    Shape shape;
    Stride source;
    Stride destination;
    Conversion conversion = Conversion::none;
};

const Job kJobs[] = {
    {"one run", Shape{4 * kMany}, Stride{1}, Stride{1}},
    {"a run that ends in the middle of a page", Shape{9'000'017}, Stride{1}, Stride{1}},
    {"steps", Shape{kMany}, Stride{1}, Stride{3}},
    {"transposed", Shape{1700, 1701}, Stride{1, 1700}, Stride{1701, 1}},
    {"rows with holes", Shape{10, kMany / 10}, Stride{1, 10}, Stride{1, 16}},
    {"few long rows", Shape{kMany, 2}, Stride{1, kMany}, Stride{1, kMany + 5}},
    {"integers", Shape{kMany}, Stride{2}, Stride{1}, Conversion::int32_to_float32},
    {"truths", Shape{kMany}, Stride{1}, Stride{1}, Conversion::bool_to_float32},
    {"several to a slot", Shape{2, kMany}, Stride{kMany, 1}, Stride{0, 1}},
    {"slots that meet", Shape{1 << 11, 1 << 11}, Stride{1, 1 << 11}, Stride{1, 1}},
};

class LargePlans : public ::testing::TestWithParam<Job> {};

TEST_P(LargePlans, DoWhatThePlanDoesWithThreadsAndWithout) {
    const Job& job = GetParam();
    const Layout from(job.shape, job.source);
    const Layout to(job.shape, job.destination);
    const CopyPlan plan(from, to, 4, job.conversion);
    const auto slots = static_cast<std::size_t>(from.cosize());
    std::vector<std::byte> source(slots * source_width(4, job.conversion));
    for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<std::byte>((i * 2654435761u) >> 13 & (i % 3 == 0 ? 0u : 0xFFu));
    const std::vector<std::byte> before(static_cast<std::size_t>(to.cosize()) * 4, std::byte{7});
    std::vector<std::byte> expected = before;
    plan.run(source.data(), expected.data());
    for (const bool threads : {true, false}) {
        std::vector<std::byte> got = before;
        const os::testing::Fail refused(os::Call::thread, threads ? 1'000'000 : 0, EAGAIN);
        run_plan(plan, source.data(), got.data());
        EXPECT_TRUE(got == expected) << job.name << (threads ? "" : ", where no thread can be started");
    }
}

INSTANTIATE_TEST_SUITE_P(Jobs, LargePlans, ::testing::ValuesIn(kJobs));

}  // namespace
}  // namespace carrier::testing
