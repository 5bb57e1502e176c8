// Records: lines of JSON for the plots, one a measurement, none without verification.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/kernel.hpp"
#include "harness/report.hpp"

namespace spmv {

// What every record begins with: kernel, matrix, precision, machine and software. `program` tells
// the records of a step's own program (command.hpp) from each other and from those of plain `spmv`,
// for which it is empty.
nlohmann::ordered_json begin_record(const std::string& program, const KernelInfo& kernel,
                                    const std::string& choice, const MatrixSource& source,
                                    Index rows, Index cols, Index nnz, const std::string& precision,
                                    const Environment& environment);

// Appends `lines` to the file `path` in one write, so that an interrupted run leaves whole lines.
// Throws InputError when it cannot be written.
void append_lines(const std::string& path, const std::string& lines);

}  // namespace spmv
