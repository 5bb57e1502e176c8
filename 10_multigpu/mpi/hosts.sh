#!/usr/bin/env bash
# spmv_mpi on several hosts, which are network namespaces of this machine, joined by a bridge: Open
# MPI starts its daemons in them and has nothing but TCP between them.
#   hosts.sh SPMV_MPI MPIRUN
if [ -z "${HOSTS:-}" ]; then
  own_network=(unshare -n)
  [ "$(id -u)" = 0 ] || own_network=(unshare -rn)
  for tool in ip tc nsenter unshare; do
    command -v $tool >/dev/null || { echo "skipped: several hosts: there is no $tool (iproute2, util-linux)"; exit 0; }
  done
  "${own_network[@]}" ip link add one type veth peer name other 2>/dev/null ||
    { echo 'skipped: several hosts: this user may not make network namespaces'; exit 0; }
  $2 --version 2>/dev/null | grep -q 'Open MPI' || { echo 'skipped: several hosts: mpirun is not that of Open MPI'; exit 0; }
  HOSTS=4 exec "${own_network[@]}" bash "$0" "$@"
fi
source "$(dirname "${BASH_SOURCE[0]}")/../../common/tests/checks.sh"
spmv_mpi=$1 mpirun=$2
export ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
limit=60

# Host h has the address 10.77.0.h, a name of its own, and a sleeping process that keeps it.
ip link set lo up
ip link add bridge type bridge && ip link set bridge up
keepers=()
trap 'kill "${keepers[@]}" 2>/dev/null; rm -rf "$scratch"' EXIT
in_host() { nsenter -t "${keepers[$1]}" -n -u -- "${@:2}"; }
for h in 1 2 3 4; do
  unshare -n -u sleep 600 &
  keepers[h]=$! && echo $! >"$scratch/10.77.0.$h"
  while [ "$(readlink "/proc/${keepers[h]}/ns/net")" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
  ip link add "to$h" type veth peer name eth0 netns "${keepers[h]}"
  ip link set "to$h" master bridge up
  in_host $h bash -c "hostname host$h; ip link set lo up; ip address add 10.77.0.$h/24 dev eth0; ip link set eth0 up"
done
# What Open MPI calls in the place of ssh: HOST COMMAND...
cat >"$scratch/agent" <<AGENT
#!/usr/bin/env bash
exec nsenter -t "\$(cat "$scratch/\$1")" -n -u -- bash -c "\${*:2}"
AGENT
# mpi HOSTS COMMAND...: HOSTS are addresses' last numbers, with the ranks there: 1:1,2:2.
cat >"$scratch/mpi" <<MPI
#!/usr/bin/env bash
exec nsenter -t ${keepers[1]} -n -u -- $mpirun --oversubscribe --mca plm_rsh_agent "$scratch/agent" --mca btl tcp,self \
  --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 --host "10.77.0.\${1//,/,10.77.0.}" "\${@:2}"
MPI
chmod +x "$scratch/agent" "$scratch/mpi"
mpi=$scratch/mpi
checksum() { grep -o 'checksum of the result .*' "$scratch/out"; }
crossed() { in_host 2 awk '/eth0/ { print $2 }' /proc/net/dev; }  # bytes that host 2 has received

# Rows of very different lengths: parts with equal nonzeros have unequal rows.
graph='--matrix powerlaw:3000x3000,nnz=30000 --iterate 10'
expect 'one rank' 0 checksum "$mpi" 1:1 "$spmv_mpi" $graph --kernel pcsr
result=$(checksum)
before=$(crossed)
for hosts in 1:1,2:1 1:1,2:1,3:1,4:1 1:1,2:2; do
  expect "hosts and ranks $hosts" 0 'verified: the first step and the last' "$mpi" $hosts "$spmv_mpi" $graph --kernel pcsr
  holds 'have the bits of one rank' test "$(checksum)" = "$result"
done
# 10 steps, in each of which some 1,000 entries of 8 bytes come from host 1.
holds 'and their entries cross the link' test $(($(crossed) - before)) -gt 200000
expect 'each host reports its name' 0 '^host4$' "$mpi" 1:1,2:1,3:1,4:1 hostname

SECONDS=0
expect 'a rank that dies on another host ends all' 137 'rank 1 .* on node 10.77.0.2 exited on signal 9' "$mpi" 1:1,2:1,3:1 bash -c '
  [ "$OMPI_COMM_WORLD_RANK" = 1 ] && { sleep 2; kill -KILL $$; } &
  exec "$0" --matrix stencil2d:9x8 --iterate 1000000' "$spmv_mpi"
holds 'within 10 s' test $SECONDS -lt 12

# A link of 4 Mbit/s from host 2: 16,000 entries, 20 times, are 2.6 MB, which take it 5 s.
in_host 2 tc qdisc add dev eth0 root tbf rate 4mbit burst 32kbit latency 400ms
SECONDS=0
expect 'over a slow link' 0 'verified' "$mpi" 1:1,2:1 "$spmv_mpi" --matrix random:32000x32000,nnz_per_row=8 --iterate 10
holds 'which takes its time' test $SECONDS -ge 3
summary
