// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/python_carrier.hpp"

#include <array>
#include <vector>

#include "carrier/errors.hpp"
#include "carrier/intake.hpp"
#include "carrier/tensor.hpp"
#include "python/convert.hpp"
#include "python/interpreter.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

struct Hook {
    const char* name;
    const char* signature;
    mutable PyObject* interned = nullptr;

    nb::handle key() const {
        if (interned == nullptr) interned = PyUnicode_InternFromString(name);
        return interned;
    }
};

constexpr std::size_t kMostArguments = 4;

const Hook kSize{"_size", "_size()"};
const Hook kDType{"_dtype", "_dtype()"};
const Hook kGet{"_get_value", "_get_value(index)"};
const Hook kSet{"_set_value", "_set_value(index, value)"};
const Hook kIsMutable{"_is_mutable", "_is_mutable()"};
const Hook kNewLike{"_new_like", "_new_like(values, mutable, dtype)"};
const Hook kAllocateLike{"_allocate_like", "_allocate_like(size, mutable, dtype, empty)"};
const Hook kScatter{"_scatter", "_scatter(source, base, mapping)"};
const Hook kRelease{"_release", "_release()"};
const Hook kSupports{"_supports_storage_dtype", "_supports_storage_dtype(dtype)"};
const Hook kDispatch{"_dispatch_op", "_dispatch_op(name)"};

bool has(nb::handle self, const Hook& hook) noexcept {
    return PyObject_HasAttr(self.ptr(), hook.key().ptr()) != 0;
}

void require(nb::handle self, const Hook& hook) {
    if (!has(self, hook))
        throw NotImplementedError(class_name(self) + " does not implement the hook " + hook.signature);
}

template <class... Arguments>
nb::object call(nb::handle self, const Hook& hook, const Arguments&... arguments) {
    static_assert(sizeof...(arguments) <= kMostArguments);
    std::array<PyObject*, 1 + sizeof...(arguments)> stack{self.ptr(), arguments.ptr()...};
    PyObject* result = PyObject_VectorcallMethod(hook.key().ptr(), stack.data(), stack.size(), nullptr);
    if (result != nullptr) return nb::steal(result);
    nb::python_error raised;
    if (raised.matches(PyExc_AttributeError)) require(self, hook);
    throw raised;
}

/// Hook answers are user code's: say whose it was.
std::string answer_of(nb::handle self, const Hook& hook) { return class_name(self) + "." + hook.name + "()"; }

bool truth(nb::handle self, const Hook& hook, nb::handle answer) {
    return exact_bool(answer, answer_of(self, hook).c_str());
}

Ref<Carrier> fresh(nb::handle self, const Hook& hook, nb::handle answer) {
    Carrier* made = instance_of<Carrier>(answer);
    if (made == nullptr)
        throw TypeError(answer_of(self, hook) + " must return a Carrier, not " + class_name(answer));
    return Ref<Carrier>(made);
}

nb::object boolean(bool value) { return nb::borrow(value ? Py_True : Py_False); }
nb::object integer(std::int64_t value) { return nb::steal(PyLong_FromLongLong(value)); }

/// Collects normalized values for `_new_like`.
class HookIntake final : public Intake {
  public:
    HookIntake(nb::handle self, bool writable, const DType& dtype)
        : Intake(encoding_of(dtype), true), self_(nb::borrow(self)), dtype_(dtype), writable_(writable) {}
    ~HookIntake() override {
        const Held lock;
        values_.reset();
        self_.reset();
    }

    std::span<std::byte> room(std::size_t) override { return chunk_; }
    void filled(std::size_t slots) override {
        const Held lock;
        const std::size_t width = slot_bytes(encoding());
        for (std::size_t i = 0; i < slots; ++i) {
            const nb::object value =
                nb::steal(box(encoding(), load_slot(encoding(), chunk_.data() + i * width)));
            if (!value.is_valid()) throw nb::python_error();
            values_.append(value);
        }
    }
    Ref<Carrier> finish() override {
        const Held lock;
        return fresh(self_, kNewLike, call(self_, kNewLike, values_, boolean(writable_), object_of(dtype_)));
    }

  private:
    nb::object self_;
    nb::list values_;
    const DType& dtype_;
    bool writable_;
    std::array<std::byte, std::size_t{4} << 10> chunk_;
};

}  // namespace

std::string PyCarrier::kind() const {
    const Held lock;
    return class_name(self());
}

std::int64_t PyCarrier::do_size() const {
    const Held lock;
    return size_of(call(self(), kSize), answer_of(self(), kSize).c_str());
}

const DType& PyCarrier::do_dtype() const {
    const Held lock;
    const nb::object answer = call(self(), kDType);
    if (!is_instance<DType>(answer))
        throw TypeError(answer_of(self(), kDType) + " must return a DType, not " + class_name(answer));
    return *dtype_of(answer);
}

bool PyCarrier::do_supports(const DType& asked) const {
    const Held lock;
    if (!has(self(), kSupports)) return &asked == &dtype();
    return truth(self(), kSupports, call(self(), kSupports, object_of(asked)));
}

bool PyCarrier::do_is_mutable() const {
    const Held lock;
    if (!has(self(), kSet)) return false;
    return !has(self(), kIsMutable) || truth(self(), kIsMutable, call(self(), kIsMutable));
}

Value PyCarrier::do_get(std::int64_t index) const {
    const Held lock;
    return value_of(*this, call(self(), kGet, integer(index)));
}

void PyCarrier::do_set(std::int64_t index, const Value& value) {
    const Held lock;
    call(self(), kSet, integer(index), object_of(value));
}

Ref<Carrier> PyCarrier::do_allocate_like(std::int64_t size, bool writable, const DType& asked,
                                         bool empty) const {
    const Held lock;
    return fresh(
        self(), kAllocateLike,
        call(self(), kAllocateLike, integer(size), boolean(writable), object_of(asked), boolean(empty)));
}

std::unique_ptr<Intake> PyCarrier::do_intake(std::int64_t, bool writable, const DType& asked) const {
    const Held lock;
    require(self(), kNewLike);
    return std::make_unique<HookIntake>(self(), writable, asked);
}

Ref<Carrier> PyCarrier::new_opaque(nb::handle values, const NewOptions& options) const {
    const DType& asked = do_validate(options.dtype != nullptr ? *options.dtype : dtype());
    if (encoding_of(asked) != Encoding::opaque) return nullptr;
    require(self(), kNewLike);
    const nb::object listed = nb::steal(PySequence_List(values.ptr()));
    if (!listed.is_valid()) throw nb::python_error();
    return fresh(self(), kNewLike,
                 call(self(), kNewLike, listed, boolean(options.writable), object_of(asked)));
}

void PyCarrier::do_scatter(const Tensor& source, std::int64_t base, const Layout& mapping) {
    const Held lock;
    if (!has(self(), kScatter)) return Carrier::do_scatter(source, base, mapping);
    call(self(), kScatter, nb::cast(source), integer(base), nb::cast(mapping));
}

void PyCarrier::do_release() {
    const Held lock;
    if (has(self(), kRelease)) call(self(), kRelease);
}

nb::object PyCarrier::dispatch(nb::handle name) const {
    if (!has(self(), kDispatch)) return {};
    return call(self(), kDispatch, name);
}

void PyCarrier::do_dispatch(std::string_view name) const {
    const Held lock;
    const nb::object asked =
        nb::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    if (!asked.is_valid()) throw nb::python_error();
    if (!dispatch(asked).is_valid()) Carrier::do_dispatch(name);
}

}  // namespace carrier::python
