// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Values in memory, moved to a file and back; a failing call that says what to do.
#include <carrier/cpu.hpp>
#include <carrier/errors.hpp>
#include <carrier/evictable.hpp>
#include <carrier/file_backed.hpp>
#include <cstdlib>
#include <iostream>
#include <vector>

int main() {
    using namespace carrier;

    // A carrier of the same kind, filled from anything that iterates.
    const CPU prototype(0);
    const Ref<Carrier> values = prototype.new_like(std::vector{0.5, 1.5, 2.5});
    values->set_value(1, 42.0);

    // Two carriers as one. The hierarchy owns both tiers.
    const Ref<FileBacked> file = make<FileBacked>(DType::Float32());
    const Ref<Evictable> weights = make<Evictable>(values, Ref<Carrier>(file));
    weights->evict();
    std::cout << "evicted to " << file->path() << '\n';

    try {
        weights->get_value(1);
        return EXIT_FAILURE;
    } catch (const StateError& error) {
        std::cout << "refused: " << error.what() << '\n';
    }

    weights->promote();
    std::cout << "back: " << weights->get_value(1).floating() << ", version " << weights->version() << '\n';
    return weights->get_value(1) == Value(42.0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
