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
// The paper's figure of the model is lost. What the text leaves open is chosen here: to look at the
// channel takes a slot, so that its rate is eta; a wait drawn from 0 to 2^k W - 1 slots ends after
// one more; k stops at m and falls to 0 with the next packet; a packet that finds the node idle
// looks at once.
//
// The channel is taken with probability p by devices outside of the model, and by whichever of the
// chain's `nodes` nodes is sending: never two at once, since each looks first. The text has one
// node and p. The sizes in table 3 are those of several nodes and no p: with
// t = (2^(m+1) - 1) W, Y = C (t + m + 1) + 1 states of a node that is not sending, the chain has
// Y^(N-1) (Y + N C) states, and all twelve rows of the table are chains of 2 to 5 nodes, with their
// rows, nonzeros, shortest and longest row exact. There a wait goes on while others send, where the
// text has it frozen (freeze=1), and states that cannot be reached from the empty system are
// counted (states=all): with p = 0 not all nodes can wait at once.
//
// The matrix is the transpose of the rates Q, for products with a distribution from the left:
// (pi Q)' = Q' pi. States are numbered lexicographically, the first node's c first: nearly all
// nonzeros lie on the main diagonal and two more for each node, one for arrivals and one for slots.
#pragma once

#include "sparse/specification.hpp"

namespace spmv {

inline constexpr char kWlanStates[] = "reachable,all";

Pattern make_wlan(const Specification& spec);

}  // namespace spmv
