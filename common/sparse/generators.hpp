// Matrices from a line of text: "stencil2d:1000x1000,points=9,seed=7".
//
// A specification is the same matrix on every machine and with every compiler: all decisions are
// made in integers by a generator of our own, rows are drawn independently of each other, and
// values are multiples of 2^-20 in [-1, 1] without 0, which float and double hold alike. The values
// of wlan are the rates of a Markov chain instead (wlan.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparse/matrix.hpp"
#include "sparse/memory.hpp"

namespace spmv {

class Specification;

// True when `spec` starts with "name:" where name is a generator, whether or not the rest is good.
bool is_generator(const std::string& spec);

// `spec` with every default that it leaves out, the seed included, written out.
std::string full_specification(const std::string& spec);

// The matrix that `spec` describes. Throws InputError when the specification is wrong, when the
// matrix would need indices of more than 32 bits, and when it would not fit in `memory_limit`
// bytes; the last two before anything is allocated.
template <typename T>
Csr<T> generate(const std::string& spec, std::uint64_t memory_limit = default_memory_limit());

// The same matrix by rows: some can be made without the others, and the matrix may have more
// nonzeros than 32 bits count, as long as what is made at a time has not. How many nonzeros each of
// the rows [first, end) has, before any that coincide are added up; and these rows, before which
// there are `nonzeros_before` nonzeros, counted so.
std::vector<Index> generated_lengths(const Specification& spec, Index first, Index end);
template <typename T>
Csr<T> generate_rows(const Specification& spec, Index first, Index end, long long nonzeros_before);

// Every generator with its keys and their defaults, a few lines each, for --help.
std::string generator_help();

}  // namespace spmv
