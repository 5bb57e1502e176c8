#include "sparse/catalogue.hpp"

#include <sstream>

namespace spmv {

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = [] {
    std::istringstream lines(
#include "sparse/catalogue.tsv"
    );
    std::vector<CatalogueEntry> all;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('#')) continue;
      std::istringstream cells(line);
      CatalogueEntry& e = all.emplace_back();
      cells >> e.name >> e.group >> e.collection_name >> e.rows >> e.cols >> e.nnz;
      e.source = line.substr(line.rfind('\t') + 1);
    }
    return all;
  }();
  return entries;
}

const CatalogueEntry* find_in_catalogue(std::string_view name) {
  for (const CatalogueEntry& entry : catalogue()) {
    if (name == entry.name || name == entry.collection_name) return &entry;
  }
  return nullptr;
}

}  // namespace spmv
