# What test scripts count their checks with: `source` it. Sets scratch, a directory that is gone in the end.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# count NAME STATUS: a check has passed if STATUS is 0.
count() {
  if [ "$2" = 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
    head -n 20 "$scratch"/{log,out,err} 2>/dev/null
  fi
}

# holds NAME COMMAND...: the command succeeds.
holds() {
  "${@:2}" >"$scratch/log" 2>&1
  count "$1" $?
}

# expect NAME STATUS PATTERN COMMAND...: the command ends, within $limit seconds, with STATUS, and a line of what it
# prints on either stream (then in $scratch/out and $scratch/err) matches the extended regular expression PATTERN.
limit=600
expect() {
  # (Not every command heeds SIGTERM.)
  timeout -k 10 $limit "${@:4}" >"$scratch/out" 2>"$scratch/err" </dev/null
  local got=$?
  [ $got = "$2" ] && cat "$scratch/out" "$scratch/err" | grep -Eq -- "$3"
  count "$1: status $got, expected $2 and a line like: $3" $?
}

summary() {  # the last line, and status 1 if a check has failed
  echo "$passed passed, $failed failed"
  [ $failed = 0 ]
}
