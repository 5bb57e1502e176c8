// The process with a student's kernels: runs what the judge asks for, and holds no verdict.
//
// It starts with a step's kernels linked to it, gets requests (protocol.hpp) from its standard
// input and returns answers by its standard output (confine.hpp). What a kernel prints goes
// nowhere.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "coursework/confine.hpp"
#include "coursework/protocol.hpp"
#include "device/buffer.hpp"
#include "device/csr.hpp"
#include "harness/kernel.hpp"
#include "harness/time_model.hpp"
#include "primer/run.hpp"
#include "sparse/convert.hpp"

#include "simt/cache_model.hpp"
#include "simt/engine.hpp"
#include "simt/profile.hpp"
#include "simt/shared_memory.hpp"

namespace spmv::coursework {
namespace {

template <typename T>
Matrix<T> to_matrix(const Coo<double>& triplets) {
  Matrix<T> matrix;
  matrix.coo = {triplets.rows,
                triplets.cols,
                triplets.row_indices,
                triplets.column_indices,
                {triplets.values.begin(), triplets.values.end()}};
  matrix.csr = to_csr(matrix.coo);
  return matrix;
}

const simt::Gpu& kGpu = *simt::find_gpu("h200");  // whose times are estimated

void configure(int order, std::uint64_t seed, bool counted, bool checked) {
  constexpr simt::Schedule kSchedules[] = {simt::Schedule::kForward, simt::Schedule::kReverse,
                                           simt::Schedule::kRandom, simt::Schedule::kLockstep};
  simt::Settings& settings = simt::settings();
  settings.schedule = kSchedules[std::min(order, 3)];
  settings.late_streams = settings.schedule == simt::Schedule::kRandom;
  settings.seed = seed;
  settings.workers = 1;           // one order of a race, and so one result, on every machine
  settings.more_workers = false;  // a thread that starts now would pass for an attack
  settings.check_races = settings.check_uninitialised = checked;
  settings.constant_program = true;
  // Small, so that the blocks of a kernel whose threads fetch their work compete for it.
  settings.multiprocessors = counted ? simt::Settings{}.multiprocessors : 4;
}

// Adds what was counted to an answer.
void fill_counts(Reply& reply, const std::string& kernel, const simt::Profile& profile) {
  std::vector<const void*> pcs;
  for (const auto& [key, counts] : profile.accesses) pcs.push_back(key.pc);
  const std::vector<simt::SourceLine> sources = simt::find_sources(pcs);
  std::map<std::tuple<std::string, std::string, std::string, std::string, unsigned>,
           simt::AccessCounts>
      lines;
  auto source = sources.begin();
  for (const auto& [key, counts] : profile.accesses) {
    const simt::SourceLine& place = *source++;
    if (key.space == simt::Space::kNone) continue;
    const std::string file = place.file.substr(place.file.find_last_of('/') + 1);
    lines[{key.array, simt::to_string(key.space), simt::to_string(key.access), file, place.line}] +=
        counts;
  }
  if (lines.size() > kMostCounts) {
    throw device::DeviceError("it accesses memory in more lines than are counted: " +
                              std::to_string(kMostCounts));
  }
  for (const auto& [key, counts] : lines) {
    const auto& [array, space, access, file, line] = key;
    // (Sectors of a vector of 32 bytes count once, though it is two requests.)
    reply.lines.push_back({array, space, access, file, line, counts.requests, counts.lanes,
                           counts.sectors - counts.repeated_sectors, counts.ideal_sectors,
                           counts.addresses, counts.passes});
  }
  for (const auto& [function, counts] : profile.kernels) {
    reply.steps += counts.busiest_warp();
    const simt::Spread& warps = counts.warps;
    reply.mean_steps += warps.parts ? (warps.total + warps.parts - 1) / warps.parts : 0;
  }
  if (!kernel.empty()) reply.time = describe(estimate_time(kernel, work_of(profile), kGpu));
}

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || !std::memcmp(a.data(), b.data(), a.size() * sizeof(T)));
}

// Of the product's precision: `bytes` holds doubles.
template <typename T>
std::vector<T> rounded(const Json& bytes) {
  const std::vector<double> values = elements<double>(bytes.get_binary());
  return {values.begin(), values.end()};
}

// The answer, and y.
template <typename T>
std::pair<Reply, std::vector<double>> multiply(const Kernel& kernel, const Coo<double>& triplets,
                                               const Product& product) {
  Reply reply;
  std::vector<T> result;
  try {
    const Matrix<T> matrix = to_matrix<T>(triplets);
    const device::DeviceCsr<T> csr(matrix.csr);
    const Problem<T> problem{matrix, csr, product.padding_limit};
    const device::Buffer<T> x("x", rounded<T>(product.x));
    device::Buffer<T> y("y", rounded<T>(product.y));
    const device::Stream stream;
    const std::unique_ptr<Spmv<T>> spmv = kernel.set_up(problem);
    device::check(cudaDeviceSynchronize(), "setting up");
    spmv->preprocess(stream.get());
    stream.synchronize();
    if (product.counted) simt::start_profile(&kGpu);
    const auto run = [&] {
      spmv->multiply(static_cast<T>(product.alpha), x.data(), static_cast<T>(product.beta),
                     y.data(), stream.get());
      stream.synchronize();
    };
    run();
    if (product.again) {
      y.upload(rounded<T>(product.y));
      run();
    }
    if (product.counted) fill_counts(reply, product.kernel, simt::stop_profile());
    result = y.download();
    const bool kept = same_bytes(x.download(), rounded<T>(product.x)) &&
                      same_bytes(csr.row_offsets.download(), matrix.csr.row_offsets) &&
                      same_bytes(csr.column_indices.download(), matrix.csr.column_indices) &&
                      same_bytes(csr.values.download(), matrix.csr.values);
    if (!kept) throw device::DeviceError("it overwrites its input: x or the matrix");
    reply.answer = "done";
  } catch (const Unsuitable& reason) {
    reply.answer = "refused", reply.text = reason.what();
  } catch (const device::DeviceError& error) {
    reply.answer = "failed", reply.text = error.what();
    if (product.counted) simt::stop_profile();
  }
  return {reply, {result.begin(), result.end()}};
}

std::vector<std::string> first_of(std::vector<std::string> remarks) {
  remarks.resize(std::min(remarks.size(), kMostRemarks));
  return remarks;
}

// Called once per second when the time is up. A kernel has three to end with a report; what no
// longer calls simt, as a loop that the compiler has emptied, then ends without.
void on_time_up(int) {
  static volatile std::sig_atomic_t seconds = 0;
  simt::end_soon();
  seconds = seconds + 1;
  if (seconds == 3) std::signal(SIGXCPU, SIG_DFL);
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// Runs the puzzle in four orders up to one in which it is wrong, and counts it where it is right;
// writes its report as JSON. (A puzzle gives no points, so a changed report gains nothing.)
void run_puzzle(const char* path, int argument) {
  Reply said;
  for (int pass = 0; pass <= 4 && said.answer.empty(); ++pass) {
    const bool counted = pass == 4;
    configure(pass % 4, 1, counted, true);
    try {
      if (counted) simt::start_profile(&kGpu);
      said.text = primer::run(argument);
      if (counted) fill_counts(said, "", simt::stop_profile());
      if (!said.text.empty()) said.answer = pass % 4 ? "order" : "result";
    } catch (const device::DeviceError& error) {
      said.answer = "error", said.text = error.what();
    }
    for (const std::string& remark : first_of(simt::take_remarks().unpromised)) {
      said.remarks.push_back(remark);
    }
  }
  std::ofstream(path) << text_of(said);
}

int answer_judge() {
  std::vector<std::string> answers;
  Coo<double> triplets;  // of the matrix that was sent last
  while (const std::optional<std::string> frame = exchange(std::move(answers))) {
    answers.clear();
    const Json request = Json::from_msgpack(*frame);
    if (request.contains("rows")) {
      request.at("rows").get_to(triplets.rows);
      request.at("cols").get_to(triplets.cols);
      triplets.row_indices = elements<Index>(request.at("row_indices").get_binary());
      triplets.column_indices = elements<Index>(request.at("column_indices").get_binary());
      triplets.values = elements<double>(request.at("values").get_binary());
      continue;
    }
    const auto product = request.get<Product>();
    configure(product.order, product.seed, product.counted, product.checked);
    const Kernel& kernel = *find_kernels(product.kernel).at(0);
    auto [reply, y] = product.single ? multiply<float>(kernel, triplets, product)
                                     : multiply<double>(kernel, triplets, product);
    const simt::Remarks remarks = simt::take_remarks();
    reply.remarks = first_of(remarks.unpromised);
    reply.if_wrong = first_of(remarks.if_wrong);
    answers.push_back(text_of(reply));
    if (reply.answer == "done") {
      answers.emplace_back(reinterpret_cast<const char*>(y.data()), y.size() * sizeof(double));
    }
  }
  return 0;
}

}  // namespace
}  // namespace spmv::coursework

// With arguments it runs the puzzle that it is linked with, without a judge: `--trace FILE` records
// it for common/watch, `--say FILE NUMBER` writes what is to be said of it (NUMBER: what it is
// called with; 0: none).
int main(int count, char** words) {
  simt::set_quiet_reports(true);
  std::signal(SIGXCPU, spmv::coursework::on_time_up);
  try {
    if (count == 1) return spmv::coursework::answer_judge();
    if (count == 3) primer::write_trace(words[0], words[2]);
    if (count == 4) spmv::coursework::run_puzzle(words[2], std::atoi(words[3]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "runner: %s\n", error.what());
    return 2;
  }
}
