// A recorded run as a line of JSON, for --trace. common/watch/README.md describes the file.
#pragma once

#include <cstddef>
#include <string>

#include "harness/run.hpp"
#include "sparse/matrix.hpp"

namespace simt {
struct Trace;
}

namespace spmv {

inline constexpr int kTraceVersion = 1;

// The recorded part of a trace: what ran, in which lines of which sources, and the events.
// Members of a JSON object without its braces.
std::string trace_members(const simt::Trace& trace);

// The whole line, from a record that has a trace, and the matrix.
template <typename T>
std::string trace_line(const Record& record, const Matrix<T>& matrix, const RunOptions& options,
                       const std::string& precision);

extern template std::string trace_line(const Record&, const Matrix<float>&, const RunOptions&,
                                       const std::string&);
extern template std::string trace_line(const Record&, const Matrix<double>&, const RunOptions&,
                                       const std::string&);

}  // namespace spmv
