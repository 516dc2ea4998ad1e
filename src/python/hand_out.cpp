// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/hand_out.hpp"

#include "carrier/errors.hpp"
#include "carrier/host_block.hpp"
#include "carrier/inner.hpp"
#include "carrier/subtensor_span.hpp"

namespace carrier::python {

namespace {

std::vector<std::int64_t> to_vector(std::span<const std::int64_t> numbers) {
    return {numbers.begin(), numbers.end()};
}

}  // namespace

std::optional<HandOut> shared(const Carrier& carrier) {
    carrier.require_live();
    Ref<Block> block = Inner::block(carrier);
    if (!block || block->data() == nullptr) return std::nullopt;
    const std::int64_t slots = carrier.size();
    return HandOut{std::move(block), encoding_of(carrier.dtype()), 0, slots, {slots}, {1}};
}

std::optional<HandOut> shared(const Tensor& tensor) {
    const Subtensor& part = tensor.single();
    std::optional<HandOut> all = shared(*part.carrier);
    if (!all) return std::nullopt;
    require_reach(part, "the Tensor");
    return HandOut{std::move(all->block),
                   all->encoding,
                   bytes_of(part.offset, all->encoding),
                   part.layout.cosize(),
                   to_vector(part.layout.shape().leaves()),
                   to_vector(part.layout.stride().leaves())};
}

HandOut copied(const Carrier& carrier) {
    carrier.require_live();
    const Encoding encoding = encoding_with_bytes(carrier.dtype());
    const std::int64_t slots = carrier.size();
    const Ref<HostBlock> block = HostBlock::allocate(bytes_of(slots, encoding), Fill::none);
    carrier.read(0, slots, {block->data(), block->size()});
    return {Ref<Block>(block), encoding, 0, slots, {slots}, {1}};
}

HandOut copied(const Tensor& tensor) {
    const Subtensor part = tensor.single();  // a copy: hooks may run
    part.carrier->require_live();
    const Encoding encoding = encoding_with_bytes(part.carrier->dtype());
    const std::int64_t slots = part.layout.size();
    const Ref<HostBlock> block = HostBlock::allocate(bytes_of(slots, encoding), Fill::none);
    tensor.read(0, slots, {block->data(), block->size()});
    std::vector<std::int64_t> shape = to_vector(part.layout.shape().leaves());
    std::vector<std::int64_t> strides;
    std::int64_t step = 1;
    for (const std::int64_t extent : shape) {
        strides.push_back(step);
        step *= extent;
    }
    return {Ref<Block>(block), encoding, 0, slots, std::move(shape), std::move(strides)};
}

template <class Source>
HandOut lent(const Source& source) {
    try {
        if (std::optional<HandOut> found = shared(source)) return std::move(*found);
    } catch (const StateError& error) {
        throw BufferError(error.what());
    }
    throw BufferError("the values of this " + carrier_behind(source).kind() +
                      " carrier are not in host memory, so only a copy can be handed out: numpy(), "
                      "numpy.asarray, or __dlpack__(copy=True)");
}

template <class Source>
HandOut lent_copy(const Source& source) {
    const Carrier& carrier = carrier_behind(source);
    try {
        carrier.require_live();
        if (encoding_of(carrier.dtype()) != Encoding::opaque) return copied(source);
    } catch (const StateError& error) {
        throw BufferError(error.what());
    }
    throw BufferError("slots of dtype " + carrier.dtype().name() + " have no bytes to hand out");
}

template HandOut lent(const Carrier&);
template HandOut lent(const Tensor&);
template HandOut lent_copy(const Carrier&);
template HandOut lent_copy(const Tensor&);

}  // namespace carrier::python
