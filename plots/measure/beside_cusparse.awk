# Ratios from the record of 06_pcsr/one_pass/example/beside_cusparse.cu:
#   awk -f plots/measure/beside_cusparse.awk plots/results/NVIDIA_H200/beside_cusparse.txt
BEGIN {
  FS = "[ ,()]+"
  print "                          v vectors / one   cuSPARSE / ours   transposed: cuSPARSE / ours   A^T pays off"
  print "matrix               v =   2    4    8       2    4    8      atomics    A^T   against cuSPARSE's"
}
NF == 1 { matrix = $1 }
$2 == "rows" { precision = $5 }
$2 ~ /^[248]$/ { cost[$2] = $2 * $4 / $3; faster[$2] = $5 / $4 }  # vectors, one by one, several, cuSPARSE
$1 == "transposed:" {
  printf "%-19s %s  %5.1f%5.1f%5.1f   %5.2f%5.2f%5.2f   %10.2f%7.2f%21.0f\n", matrix, precision, cost[2], cost[4], cost[8],
    faster[2], faster[4], faster[8], $12 / $3, $12 / $7, $10 / ($12 - $7)
}
