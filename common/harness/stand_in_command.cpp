// `spmv stand-in -m FILE --kind KIND`: the specification of the stand-in that would be made for a
// real matrix from its size, longest row and spread alone. Without -m: those of the catalogue, by
// which plots/ tells whether a record is of a stand-in as it is made now.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "sparse/catalogue.hpp"
#include "sparse/generators.hpp"
#include "sparse/load.hpp"
#include "sparse/stand_in.hpp"
#include "sparse/statistics.hpp"

namespace spmv {
namespace {

struct Options {
  std::string kind;
  Index unknowns = 1;
};

int print_stand_ins(const Options& options, const CommandArguments& arguments) {
  if (arguments.matrices.empty()) {
    for (const CatalogueEntry& entry : catalogue()) {
      if (!entry.exact) fmt::print("{}\t{}\n", entry.name, full_specification(entry.source));
    }
    return 0;
  }
  for (const std::string& matrix : arguments.matrices) {
    const Statistics s = compute_statistics(load_matrix<float>(matrix, arguments.load).csr);
    fmt::print("{}\n",
               full_specification(stand_in_for({s.rows, s.cols, s.nnz, options.kind,
                                                options.unknowns, s.max_row, s.stddev_row})));
  }
  return 0;
}

const bool registered = add_command(
    "stand-in", "what would stand for a matrix, made from its size, longest row and spread alone",
    [](CLI::App& app) {
      auto own = std::make_shared<Options>();
      std::string kinds;
      for (const StandInKind& kind : stand_in_kinds()) {
        kinds += fmt::format("{}{} ({})", kinds.empty() ? "" : "; ", kind.name, kind.meaning);
      }
      app.add_option("--kind", own->kind, kinds);
      app.add_option("--unknowns", own->unknowns, "of a mesh: unknowns per node")
          ->check(CLI::PositiveNumber);
      return [own](const CommandArguments& arguments) { return print_stand_ins(*own, arguments); };
    });

}  // namespace
}  // namespace spmv
