// Step 10: runs, verifies, times and records one way to multiply after the other, on the GPUs of
// one process (spmv multigpu --gpus 1,2,4 --exchange packed --iterate 100 --matrix ...) or with a
// process per GPU (mpi/spmv_mpi.cpp).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/command.hpp"
#include "machine.hpp"

namespace spmv::multigpu {

inline const std::map<std::string, Partition> kPartitions{{"rows", Partition::kRows},
                                                          {"nonzeros", Partition::kNonzeros}};
// Of one process. Between processes packed entries go by "mpi" or "nccl".
inline const std::map<std::string, Exchange> kExchanges{{"none", Exchange::kNone},
                                                        {"parts", Exchange::kParts},
                                                        {"packed", Exchange::kPacked},
                                                        {"stores", Exchange::kStores}};

struct Options {
  std::vector<int> gpus{2};  // or ranks: numbers of parts
  std::vector<std::string> partitions{"nonzeros"};
  std::vector<std::string> exchanges{"none"};
  int steps = 0;
};

// Every number of parts, partition, exchange and kernel, on each of arguments.matrices. The first
// step and the last are verified. Throws InputError for a kernel that cannot multiply a part, GPUs
// that cannot exchange in a way, what is no matrix, a matrix that is not square where y is the next
// x; std::runtime_error where a product is wrong.
void measure(const Options& options, const CommandArguments& arguments,
             const Processes& processes = kOneProcess);

}  // namespace spmv::multigpu
