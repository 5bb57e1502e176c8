// The Markov chain of wireless nodes that share a channel: Bylina, Bylina and Karwacki 2011,
// section 2.2.
//
// A node holds c packets, up to C. Its state (c, k, f, s) is the text's:
//
//   (0, 0, 0, 0)  idle
//   (c, k, 0, 0)  about to send after k failed attempts: it looks whether the channel is free
//   (c, k, f, 0)  waiting, f slots left; 1 <= f <= 2^k W
//   (c, 0, 0, 1)  sending
//
// and moves
//
//   (c, k, f, s) -> (c+1, k, f, s)             lambda          a packet arrives, c < C
//   (c, k, f, 0) -> (c, k, f-1, 0)             eta             f > 1: a slot is over
//   (c, k, 1, 0) -> (c, min(k+1, m), 0, 0)     eta             the last slot is over
//   (c, k, 0, 0) -> (c, 0, 0, 1)               eta             the channel is free
//   (c, k, 0, 0) -> (c, k, f, 0), each f       eta / (2^k W)   it is not: a wait is drawn
//   (c, 0, 0, 1) -> (c-1, 0, 0, 0)             mu              the packet is sent
//
// Only the paper's text was at hand, not its figure of the model. What the text leaves open is
// chosen here: to look at the channel takes a slot, so that its rate is eta; a wait drawn from 0 to
// 2^k W - 1 slots ends after one more; k stops at m and falls to 0 with the next packet; a packet
// that finds the node idle looks at once.
//
// The channel is taken with probability p by devices outside of the model, and by whichever of the
// chain's `nodes` nodes is sending: never two at once, since each looks first. The text has one
// node and p. The sizes in table 3 are those of several nodes and no p: with
// t = (2^(m+1) - 1) W, Y = C (t + m + 1) + 1 states of a node that is not sending, the chain has
// Y^(N-1) (Y + N C) states, and all twelve rows of the table are chains of 2 to 5 nodes, with their
// rows, nonzeros, shortest and longest row exact. There, and here, a wait goes on while others
// send, where the text has it frozen. States that cannot be reached from the empty system are
// counted there (states=all): with p = 0 a node fails only while another sends, so that at least
// one has not failed since its last packet.
//
// The matrix is the transpose of the rates Q, for products with a distribution from the left:
// (pi Q)' = Q' pi. States are numbered lexicographically, the first node's c first: nearly all
// nonzeros lie on the main diagonal and two more for each node, one for arrivals and one for slots.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sparse/makers.hpp"

namespace spmv {
namespace {

struct Rates {
  double arrival = 0, service = 0, slot = 0;
  double taken = 0;  // probability that a device outside of the model has the channel
};

// One node: its states, numbered lexicographically, and how it moves.
class Node {
 public:
  Node(Index capacity, int max_failures, Index window, const Rates& rates)
      : capacity_(capacity), window_(window), rates_(rates) {
    for (int k = 0; k <= max_failures; ++k) {
      looks_.push_back(static_cast<Index>(phases_.size()));
      phases_.push_back({k, 0});
      if (k == 0) phases_.push_back({0, kSending});
      for (Index slots = 1; slots <= window << k; ++slots) phases_.push_back({k, slots});
    }
    size_ = static_cast<Index>(phases_.size());
  }

  Index states() const { return 1 + capacity_ * size_; }
  Index sending_states() const { return capacity_; }
  bool sends(Index state) const { return state > 0 && (state - 1) % size_ == kSendingPhase; }
  // Since its last packet was sent.
  bool has_failed(Index state) const { return state > 0 && (state - 1) % size_ > kSendingPhase; }
  // How many of the states before `state` are sending ones.
  Index sending_before(Index state) const {
    return state == 0 ? 0 : (state - 1 + size_ - 1 - kSendingPhase) / size_;
  }

  // Calls move(next state, rate) for each move out of `state`, while another node sends or not.
  template <typename Move>
  void for_each_move(Index state, bool another_sends, Move&& move) const {
    if (state == 0) {
      move(1, rates_.arrival);
      return;
    }
    const Index level =
        state - 1 - (state - 1) % size_;  // states before those with as many packets
    const Index phase = state - 1 - level;
    const auto [k, slots] = phases_[phase];
    if (level + size_ < states() - 1) move(state + size_, rates_.arrival);
    if (slots == kSending) {
      move(level == 0 ? 0 : level - size_ + 1, rates_.service);
    } else if (slots > 1) {
      move(state - 1, rates_.slot);
    } else if (slots == 1) {
      const bool last = k + 1 == static_cast<int>(looks_.size());
      move(1 + level + looks_[last ? k : k + 1], rates_.slot);
    } else {
      const double taken = another_sends ? 1 : rates_.taken;
      if (taken < 1) move(1 + level + kSendingPhase, rates_.slot * (1 - taken));
      if (taken > 0) {
        const Index draws = window_ << k;
        const Index first = 1 + level + phase + (k == 0 ? kSendingPhase : 0) + 1;
        for (Index draw = 0; draw < draws; ++draw) move(first + draw, rates_.slot * taken / draws);
      }
    }
  }

 private:
  static constexpr Index kSending = -1;
  static constexpr Index kSendingPhase = 1;  // right after that of looking for the first time
  struct Phase {
    int k;
    Index slots;  // 0: looks at the channel
  };

  Index capacity_, window_;
  Rates rates_;
  Index size_ = 0;             // states with a given number of packets, more than 0
  std::vector<Phase> phases_;  // those states
  std::vector<Index> looks_;   // of each k: the phase that looks at the channel
};

// All nodes together: one of them sends, or none. States are numbered lexicographically.
class Network {
 public:
  Network(const Node& node, int nodes) : node_(node), free_(nodes), taken_(nodes), state_(nodes) {
    const Index sending = node.sending_states();
    const Index others = node.states() - sending;
    long long free = 1, taken = 1;
    for (int rest = 0; rest < nodes; ++rest) {
      free_[rest] = free;
      taken_[rest] = taken;
      free = others * free + sending * taken;
      taken *= others;
    }
    states_ = static_cast<Index>(free);
  }

  Index states() const { return states_; }

  // Calls move(next state's number, rate) for each move out of the present state, at first number
  // 0.
  template <typename Move>
  void for_each_move(Move&& move) {
    const int sending = count_sending();
    for (Index& state : state_) {
      const Index before = state;
      const bool another = sending > (node_.sends(before) ? 1 : 0);
      node_.for_each_move(before, another, [&](Index next, double rate) {
        state = next;
        move(pack(), rate);
      });
      state = before;
    }
  }

  bool all_have_failed() const {
    return std::all_of(state_.begin(), state_.end(),
                       [&](Index state) { return node_.has_failed(state); });
  }

  // To the state with the next number; from the last one to number 0.
  void advance() {
    do {
      for (std::size_t k = state_.size(); k-- > 0 && ++state_[k] == node_.states();) state_[k] = 0;
    } while (count_sending() > 1);
  }

 private:
  int count_sending() const {
    int sending = 0;
    for (const Index state : state_) sending += node_.sends(state);
    return sending;
  }

  // In how many ways the first node of `rest` + 1, before which one sends or none, can be in a
  // state before `state`, and the rest anywhere.
  long long ways_before(Index state, int rest, bool channel_taken) const {
    const long long sending = node_.sending_before(state), others = state - sending;
    return channel_taken ? others * taken_[rest] : others * free_[rest] + sending * taken_[rest];
  }

  Index pack() const {
    long long number = 0;
    bool taken = false;
    int rest = static_cast<int>(state_.size());
    for (const Index state : state_) {
      number += ways_before(state, --rest, taken);
      taken |= node_.sends(state);
    }
    return static_cast<Index>(number);
  }

  const Node& node_;
  std::vector<long long> free_, taken_;  // states of so many nodes, of which one may send or none
  std::vector<Index> state_;             // of each node
  Index states_ = 0;
};

// States of `nodes` nodes, of which at most one sends.
double count_states(double capacity, double failures, double window, double nodes) {
  const double waits = window * (std::exp2(failures + 1) - 1);
  const double others = capacity * (waits + failures + 1) + 1;  // of a node that is not sending
  return std::pow(others, nodes) + nodes * capacity * std::pow(others, nodes - 1);
}

}  // namespace

Pattern make_wlan(const Specification& spec) {
  const auto capacity = static_cast<Index>(spec.get("C")),
             window = static_cast<Index>(spec.get("W"));
  const auto failures = static_cast<int>(spec.get("m")),
             nodes = static_cast<int>(spec.get("nodes"));
  const Rates rates{spec.real("lambda"), spec.real("mu"), spec.real("eta"),
                    spec.real("p", nodes == 1 ? 0.1 : 0)};
  const double states = count_states(capacity, failures, window, nodes);
  spec.check_size(states, states, states);
  const Node node(capacity, failures, window, rates);
  Network network(node, nodes);

  // The number in the matrix of each state, or -1.
  const bool all = spec.get("states") == 1 || rates.taken > 0;
  std::vector<Index> numbers(network.states(), -1);
  Index count = 0;
  for (Index& number : numbers) {
    if (all || !network.all_have_failed()) number = count++;
    network.advance();
  }

  // Row j of the transpose holds the moves into j. States are passed in ascending order twice, to
  // count and to fill, so that columns ascend in each row.
  Pattern pattern;
  pattern.rows = pattern.cols = count;
  pattern.row_offsets.assign(static_cast<std::size_t>(count) + 1, 0);
  const auto for_each_number = [&](const auto& visit) {
    for (const Index number : numbers) {
      if (number >= 0) visit(number);
      network.advance();
    }
  };
  double nonzeros = count;
  for_each_number([&](Index number) {
    ++pattern.row_offsets[number + 1];
    network.for_each_move([&](Index next, double) {
      ++pattern.row_offsets[numbers[next] + 1];
      ++nonzeros;
    });
  });
  // Rates are doubles before they are values, and states have numbers and ends of rows.
  spec.check_size(count, count, nonzeros, nonzeros * sizeof(double) + states * 2 * sizeof(Index));
  for (Index row = 0; row < count; ++row) pattern.row_offsets[row + 1] += pattern.row_offsets[row];
  pattern.column_indices.resize(pattern.row_offsets[count]);
  pattern.values.resize(pattern.row_offsets[count]);
  std::vector<Index> ends(pattern.row_offsets.begin(), pattern.row_offsets.end() - 1);
  for_each_number([&](Index number) {
    const Index diagonal = ends[number]++;
    double rate_out = 0;
    network.for_each_move([&](Index next, double rate) {
      const Index at = ends[numbers[next]]++;
      pattern.column_indices[at] = number;
      pattern.values[at] = rate;
      rate_out += rate;
    });
    pattern.column_indices[diagonal] = number;
    pattern.values[diagonal] = -rate_out;
  });
  return pattern;
}

}  // namespace spmv
