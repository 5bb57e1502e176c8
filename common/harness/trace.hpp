// A recorded run as a line of JSON, for --trace. common/watch/README.md describes the file.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "harness/run.hpp"
#include "sparse/matrix.hpp"

namespace spmv {

inline constexpr int kTraceVersion = 4;

// Does `work` and records it in record.trace, in up to `limit` bytes of events, also where it
// throws; record.traffic is what it asked of memory. `gpu`: whose caches are modelled, as --gpu
// takes it; empty: none, as where several GPUs run at once. CPU backend.
void record_trace(Record& record, std::size_t limit, const std::string& gpu,
                  const std::function<void()>& work);

// The first rows in which y is wrong, into record.wrong_rows.
template <typename T>
void note_wrong_rows(Record& record, const std::vector<T>& y, const Reference& reference);

// The whole line, from a record that has a trace, and the matrix.
template <typename T>
std::string trace_line(const Record& record, const Matrix<T>& matrix, const RunOptions& options,
                       const std::string& precision);

}  // namespace spmv
