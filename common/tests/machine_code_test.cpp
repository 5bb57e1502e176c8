#include "harness/machine_code.hpp"

#include <zlib.h>

#include <cstdlib>

#include "harness/records.hpp"
#include "sparse/matrix.hpp"
#include "tests/catch.hpp"
#include "tests/scratch.hpp"

namespace spmv {
namespace {

const std::string kDouble = "_Z12scale_kernelIdEvPT_S0_", kFloat = "_Z12scale_kernelIfEvPT_S0_",
                  kHidden = "_ZN12_GLOBAL__N_113hidden_kernelEPi";

struct TemporaryFile {
  test::ScratchDirectory scratch;
  std::string path = scratch / "file";
  void write(const std::string& bytes) const { test::write_bytes(path, bytes); }
};

// What nvcc made of machine_code.cu, for compute capabilities 8.0 and 9.0.
std::string compiled() {
  std::string bytes(1 << 16, '\0');
  gzFile file = gzopen(SPMV_SOURCE_DIR "/common/tests/machine_code.o.gz", "rb");
  REQUIRE(file);
  const int size = gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  REQUIRE(size > 0);
  bytes.resize(static_cast<std::size_t>(size));
  return bytes;
}

}  // namespace

TEST_CASE("the machine code of each CUDA function has a hash", "[machine_code]") {
  const TemporaryFile file;
  const std::string bytes = compiled();
  file.write(bytes);
  const auto functions = machine_code(file.path, 90);
  REQUIRE(functions.size() == 3);
  CHECK(functions.contains(kDouble));
  CHECK(functions.contains(kHidden));
  CHECK(functions.at(kDouble) != functions.at(kFloat));
  CHECK(functions.at(kDouble).size() == 16);

  // That of the newest architecture that the device can run.
  CHECK(machine_code(file.path, 86).at(kDouble) == machine_code(file.path, 80).at(kDouble));
  CHECK(machine_code(file.path, 80).at(kDouble) != functions.at(kDouble));
  CHECK(machine_code(file.path, 75).empty());
  CHECK(machine_code(file.path, 100).empty());

  // A bit changed in one function changes its hash and no other.
  std::size_t changed = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 64) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 1);
    file.write(other);
    const auto found = machine_code(file.path, 90);  // whatever it is that changed: no crash
    if (found.size() != 3 || !found.contains(kDouble) || !found.contains(kHidden)) continue;
    const int differences =
        (found.at(kDouble) != functions.at(kDouble)) + (found.at(kHidden) != functions.at(kHidden));
    CHECK(differences <= 1);
    changed += differences;
  }
  CHECK(changed >= 2 * 384 / 64);  // each function has 384 bytes; some bits are of headers
}

TEST_CASE("a file without machine code has none, and none is read past its end", "[machine_code]") {
  const TemporaryFile file;
  file.write("no ELF");
  CHECK(machine_code(file.path, 90).empty());
  CHECK_THROWS_AS(machine_code("/nonexistent", 90), InputError);
  const std::string bytes = compiled();
  for (std::size_t size = 1; size < bytes.size(); size += 97) {
    file.write(bytes.substr(0, size));
    CHECK(machine_code(file.path, 90).size() <= 3);
  }
#ifndef SPMV_CUDA
  CHECK(own_machine_code(90).empty());
#endif
}

TEST_CASE("what nvcc makes today is read as well", "[machine_code]") {
  const TemporaryFile file;
  const std::string command = "nvcc -std=c++20 --no-compress -arch=sm_90 -c -o '" + file.path +
                              "' '" SPMV_SOURCE_DIR "/common/tests/machine_code.cu' 2>/dev/null";
  if (std::system(command.c_str()) != 0) return;
  const auto functions = machine_code(file.path, 90);
  CHECK(functions.size() == 3);
  CHECK(functions.contains(kHidden));
}

TEST_CASE("an anonymous namespace has one name wherever it is compiled", "[machine_code]") {
  CHECK(without_file("_ZN37_GLOBAL__N__7963b01d_5_mc_cu_6e03831313hidden_kernelEPi") == kHidden);
  CHECK(without_file("_ZN32_GLOBAL__N__5c480c0c_4_k_cu_main13hidden_kernelEPi") == kHidden);
  CHECK(without_file(kDouble) == kDouble);
  CHECK(without_file("_GLOBAL__N__") == "12_GLOBAL__N_1");
}

TEST_CASE("a record names its machine code, or says that a library ran", "[machine_code]") {
  const TemporaryFile file;
  Environment environment;
  environment.run = "R";
  environment.arch = 90;
  Records records(environment);
  KernelInfo kernel;
  kernel.name = "k";
  const auto add = [&](const std::set<std::string>& functions) {
    records.add("", kernel, "", {{"m", MatrixSource::Origin::kGenerated, "m"}, 1, 1, 1, "f64"});
    records.add_code(functions);
  };
  add({});
  add({"_Znot_in_this_program"});
  records.append_to(file.path);
  const std::string text = test::read_bytes(file.path);
  CHECK(text.find(R"("code":"library")") != std::string::npos);
  CHECK(text.find("not_in_this_program") == std::string::npos);
}

}  // namespace spmv
