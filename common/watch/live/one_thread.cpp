// In place of what needs several threads of the host: steps of an iteration by persistent kernels.
#include "../../../10_multigpu/persistent.hpp"

namespace spmv::multigpu {

[[noreturn]] static void refuse() {
  throw InputError("in a browser blocks cannot wait for each other: take --way packed or parts");
}

template <typename T>
std::unique_ptr<Machine<T>> make_persistent(const std::vector<Part<T>>&, const Setup&,
                                            const Processes&, const PersistentOptions<T>&) {
  refuse();
}
template std::unique_ptr<Machine<float>> make_persistent(const std::vector<Part<float>>&,
                                                         const Setup&, const Processes&,
                                                         const PersistentOptions<float>&);
template std::unique_ptr<Machine<double>> make_persistent(const std::vector<Part<double>>&,
                                                          const Setup&, const Processes&,
                                                          const PersistentOptions<double>&);

}  // namespace spmv::multigpu
