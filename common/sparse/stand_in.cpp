#include "sparse/stand_in.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace spmv {
namespace {

std::string with_row_lengths(const MatrixFacts& facts, std::string text) {
  if (facts.max_row >= 0) text += fmt::format(",max_row={}", facts.max_row);
  if (facts.row_stddev >= 0) {
    // As specifications take it: at most two digits after the point.
    text += fmt::format(",stddev={:g}", std::floor(facts.row_stddev * 100 + 0.5) / 100);
  }
  return text;
}

// A mesh in two dimensions where nodes have few neighbours, in three where they have many.
struct MeshShape {
  MeshShape(const MatrixFacts& known, double most_in_plane)
      : facts(known),
        couplings(static_cast<double>(facts.nnz) / facts.rows / facts.unknowns),
        dims(couplings <= most_in_plane ? 2 : 3) {
    if (facts.row_stddev < 0 && facts.max_row >= 0) {
      // The longest of many rows lies about three standard deviations above the mean.
      facts.row_stddev = std::max(facts.max_row - couplings * facts.unknowns, 0.0) / 3;
    }
  }

  std::string text() const {
    const std::string sizes = fmt::format("mesh:{},nnz={},dims={}", facts.rows, facts.nnz, dims);
    const std::string block =
        facts.unknowns > 1 ? fmt::format(",block={}", facts.unknowns) : std::string();
    return with_row_lengths(facts, sizes + block);
  }

  // A coupling with a node far away takes the place of a near one where rows are as long as they
  // may be, so that it may take a quarter of the room that the longest row leaves.
  std::string numbering() const {
    double far = 40;
    if (facts.max_row >= 0) {
      const double room = static_cast<double>(facts.max_row) / facts.unknowns - couplings;
      far = std::clamp(25 * room, 0.0, far);
    }
    return fmt::format("{},far={:.0f}", dims == 2 ? ",disorder=8" : "", far);
  }

  MatrixFacts facts;
  double couplings;  // per node, with itself
  int dims;
};

std::string irregular_mesh(const MatrixFacts& facts, const char* keys) {
  const MeshShape shape(facts, 9);
  return shape.text() + shape.numbering() + keys;
}
std::string plane_mesh(const MatrixFacts& facts, const char* keys) {
  const MeshShape shape(facts, static_cast<double>(facts.nnz));
  return shape.text() + shape.numbering() + keys;
}
// Of a 5-point stencil with irregularities, and a 7-point stencil.
std::string grid(const MatrixFacts& facts, const char* keys) {
  return MeshShape(facts, 6.6).text() + keys;
}

std::string graph(const MatrixFacts& facts, const char* keys) {
  return with_row_lengths(facts,
                          fmt::format("graph:{}x{},nnz={}", facts.rows, facts.cols, facts.nnz)) +
         keys;
}

struct Recipe {
  StandInKind kind;
  std::string (*make)(const MatrixFacts&, const char*);
  const char* keys;
};

// Fitted on files that plots/measure/calibration.csv marks `fit`, judged on the others.
const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all{
      {{"mesh", "finite elements or volumes, on nodes with irregular connectivity"},
       irregular_mesh,
       ""},
      {{"plane mesh", "the same in two dimensions, however many couplings there are"},
       plane_mesh,
       ""},
      {{"structured grid", "finite differences or volumes on a grid, with few irregularities"},
       grid,
       ",irregular=10,far=0"},
      {{"web graph", "pages in the order of their addresses"},
       graph,
       ",empty=10,group=32,alike=60,copy=80,run=300,local=95,reach=1024"},
      {{"collaboration graph", "authors or actors, in the order of their communities"},
       graph,
       ",empty=7,group=16,alike=60,copy=70,run=190,local=93,reach=256"},
      {{"unordered graph", "people, papers, words: the numbers of neighbours say nothing"},
       graph,
       ",empty=5,group=8,alike=50,copy=20,run=112,local=35,reach=1024"},
      {{"circuit", "short rows, few dense rows and columns, and blocks of gates"},
       graph,
       ",group=32,alike=95,copy=70,run=200,local=95,reach=64,diagonal=1"},
      {{"netlist", "nets of a chip over the cells that they connect, in the order of neither"},
       graph,
       ",group=8,alike=95,copy=10,run=110,local=40,reach=64"},
      {{"process", "economic models and chemical processes: coupled units"},
       graph,
       ",group=32,alike=75,copy=60,run=140,local=90,reach=64,diagonal=1"},
      {{"linear program", "constraints over clusters of variables"},
       graph,
       ",alike=0,copy=0,run=850,local=0,column_skew=1"},
      {{"staircase program", "constraints of periods or stages, over neighbouring variables"},
       graph,
       ",alike=90,copy=90,run=400,local=90,column_skew=1"},
  };
  return all;
}

}  // namespace

const std::vector<StandInKind>& stand_in_kinds() {
  static const std::vector<StandInKind> kinds = [] {
    std::vector<StandInKind> names;
    for (const Recipe& recipe : recipes()) names.push_back(recipe.kind);
    return names;
  }();
  return kinds;
}

std::string stand_in_for(const MatrixFacts& facts) {
  std::string names;
  for (const Recipe& recipe : recipes()) {
    if (recipe.kind.name == facts.kind) return recipe.make(facts, recipe.keys);
    names += (names.empty() ? "" : ", ") + std::string(recipe.kind.name);
  }
  throw InputError(fmt::format("no stand-in is of kind '{}'; there are {}", facts.kind, names));
}

}  // namespace spmv
