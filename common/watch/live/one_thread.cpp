// In place of what needs several threads of the host: steps of an iteration by persistent kernels.
#include "../../../10_multigpu/machine.hpp"

namespace spmv::multigpu {

std::unique_ptr<Machine> make_persistent(std::vector<Part>, const Processes&,
                                         const PersistentOptions&) {
  throw InputError("in a browser blocks cannot wait for each other: take --way packed or parts");
}

}  // namespace spmv::multigpu
