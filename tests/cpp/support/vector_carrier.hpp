// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "carrier/carrier.hpp"
#include "carrier/intake.hpp"

namespace carrier::testing {

/// Thrown by hooks that a test made fail.
struct HookFailure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Counts hook calls over all carriers that share it, and fails the one it is told to.
struct HookScript {
    int calls = 0;
    int fail_at = -1;
    std::function<void(const std::string&)> before = [](const std::string&) {};

    void step(const std::string& name) {
        before(name);
        if (calls++ == fail_at) throw HookFailure(name);
    }
};

/// A carrier without a block, as a user of the library would write one.
class VectorCarrier final : public Carrier {
  public:
    VectorCarrier(std::vector<Value> values, const DType& dtype, bool writable = true,
                  std::shared_ptr<HookScript> script = std::make_shared<HookScript>())
        : values_(std::move(values)), script_(std::move(script)) {
        describe_storage(dtype, writable);
    }
    std::string kind() const override { return "VectorCarrier"; }
    const std::shared_ptr<HookScript>& script() const { return script_; }

  protected:
    std::int64_t do_size() const override {
        script_->step("size");
        return static_cast<std::int64_t>(values_.size());
    }
    bool do_supports(const DType& dtype) const override { return &dtype == &this->dtype(); }
    Value do_get(std::int64_t index) const override {
        script_->step("get");
        return values_[static_cast<std::size_t>(index)];
    }
    void do_set(std::int64_t index, const Value& value) override {
        script_->step("set");
        values_[static_cast<std::size_t>(index)] = value;
    }
    Ref<Carrier> do_allocate_like(std::int64_t size, bool writable, const DType& dtype, bool) const override {
        script_->step("allocate");
        return Ref<Carrier>(
            make<VectorCarrier>(std::vector<Value>(static_cast<std::size_t>(size), storage_zero(dtype)),
                                dtype, writable, script_));
    }
    std::unique_ptr<Intake> do_intake(std::int64_t, bool writable, const DType& dtype) const override {
        return std::make_unique<VectorIntake>(*this, writable, dtype);
    }
    void do_release() override {
        script_->step("release");
        values_.clear();
    }
    bool do_runs_hooks() const noexcept override { return true; }

  private:
    class VectorIntake final : public Intake {
      public:
        VectorIntake(const VectorCarrier& like, bool writable, const DType& dtype)
            : Intake(encoding_of(dtype), true), script_(like.script_), dtype_(dtype), writable_(writable) {}
        std::span<std::byte> room(std::size_t) override { return slot_; }
        void filled(std::size_t slots) override {
            for (std::size_t i = 0; i < slots; ++i)
                values_.push_back(
                    to_value(encoding(), load_slot(encoding(), slot_ + i * slot_bytes(encoding()))));
        }
        Ref<Carrier> finish() override {
            return Ref<Carrier>(make<VectorCarrier>(std::move(values_), dtype_, writable_, script_));
        }

      private:
        std::byte slot_[16] = {};
        std::vector<Value> values_;
        std::shared_ptr<HookScript> script_;
        const DType& dtype_;
        bool writable_;
    };

    std::vector<Value> values_;
    std::shared_ptr<HookScript> script_;
};

}  // namespace carrier::testing
