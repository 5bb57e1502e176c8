#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "sparse/makers.hpp"
#include "sparse/pattern_builder.hpp"
#include "sparse/rng.hpp"

namespace spmv {

// Saddle point [H A'; A 0]: H is a band, and a constraint, a row of A, involves unknowns around the
// one that stands at the same fraction of the way, in pairs, and past an end from the other.
Pattern make_kkt(const Specification& spec) {
  const long long unknowns = spec.size(0), constraints = spec.size(1);
  if (constraints > unknowns) {
    spec.fail(fmt::format("has more constraints than the {} unknowns", unknowns));
  }
  const long long half_band = std::min(spec.get("hessian") / 2, std::max(unknowns - 1, 0ll));
  const long long in_hessian = unknowns * (2 * half_band + 1) - half_band * (half_band + 1);
  const long long nnz = spec.get("nnz", in_hessian + 2 * constraints * std::min(3ll, unknowns));
  if (nnz < in_hessian) {
    spec.fail(fmt::format("nnz = {} is less than the {} of H alone", nnz, in_hessian));
  }
  const long long in_constraints = (nnz - in_hessian) / 2;
  const long long mean = constraints ? (in_constraints + constraints - 1) / constraints : 0;
  const long long width = spec.get("width", mean);
  if (in_constraints > width * constraints || width > unknowns) {
    spec.fail(fmt::format("nnz = {} does not fit; {} constraints of width {} over {} unknowns", nnz,
                          constraints, width, unknowns));
  }
  const long long places = std::max(width * constraints, 1ll);
  const std::uint64_t share =
      (static_cast<std::uint64_t>(in_constraints) << 32) / static_cast<std::uint64_t>(places);
  const long long reach = std::min(spec.get("reach", width), unknowns);
  // Place k of a constraint is in a pair of neighbours; the pairs lie evenly within reach.
  const long long pairs = (width + 1) / 2;
  const long long spacing = std::max(reach / std::max(pairs, 1ll), 2ll);
  const auto distance = [=](long long k) { return (k / 2 - pairs / 2) * spacing + k % 2; };
  const auto wrap = [unknowns](long long at) { return (at % unknowns + unknowns) % unknowns; };
  const auto involved = [&](long long constraint, long long k) {
    return mix64(spec.seed() * kGoldenGamma + static_cast<std::uint64_t>(constraint * width + k)) >>
           32 < share;
  };

  PatternBuilder builder(spec, unknowns + constraints, unknowns + constraints,
                         static_cast<double>(nnz));
  std::vector<Index> columns;
  const auto end_sorted_row = [&] {
    std::sort(columns.begin(), columns.end());
    builder.add_row(columns);
    columns.clear();
  };
  for (long long unknown = 0; unknown < unknowns; ++unknown) {
    const long long begin = std::max(unknown - half_band, 0ll);
    builder.add_run(begin, std::min(unknown + half_band + 1, unknowns) - begin);
    for (long long k = 0; k < width; ++k) {
      const long long centre = wrap(unknown - distance(k));
      const long long constraint = (centre * constraints + unknowns - 1) / unknowns;
      const bool is_centre =
          constraint < constraints && constraint * unknowns / constraints == centre;
      if (is_centre && involved(constraint, k))
        columns.push_back(static_cast<Index>(unknowns + constraint));
    }
    end_sorted_row();
  }
  for (long long constraint = 0; constraint < constraints; ++constraint) {
    const long long centre = constraint * unknowns / constraints;
    for (long long k = 0; k < width; ++k) {
      if (involved(constraint, k))
        columns.push_back(static_cast<Index>(wrap(centre + distance(k))));
    }
    end_sorted_row();
  }
  return builder.take();
}

}  // namespace spmv
