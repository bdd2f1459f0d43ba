#!/usr/bin/env bash
# Times cranefold, the hand-written loops and other libraries on one grid of cases, in interleaved rounds:
#   benches/peers.sh PEERS_DIR [OPTION...] OUT.jsonl
# PEERS_DIR has cases.py, bench_py.py and setup.sh, which has installed the libraries. What peers.py makes of OUT.jsonl
# is printed at the end.
#   --installed DIR  where they are installed; ~/.cache/reduction-peers
#   --rounds N       rounds of the fastest peers and of cranefold; 7
#   --match REGEX    only cases whose name matches
#   --peers "A B"    only these peers
#   --fastest K      how many peers a case are timed again; 2
#   --first FILE     results of an earlier pass over all peers, by which they are chosen, instead of a new one
#   --threads N      1; each process is pinned to the first N cores
#   --budget-ms MS   for cranefold's samples of a case; 60, as the peers take
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }

installed=$HOME/.cache/reduction-peers rounds=7 match=. fastest=2 first='' threads=1 budget=60 places=()
peers='numpy torch compile jax ort openvino onednn onednn26 tvm halide ndarray candle burn-flex tract-core
       tract-linalg rust-iter bottleneck numexpr'
while [ $# -gt 0 ]; do
  case $1 in
    --installed | --rounds | --match | --peers | --fastest | --first | --threads | --budget-ms)
      [ $# -ge 2 ] || usage
      name=${1#--}; declare "${name%-ms}=$2"; shift 2 ;;
    -*) usage ;;
    *) places+=("$1"); shift ;;
  esac
done
[ ${#places[@]} = 2 ] || usage
here=$(cd "$(dirname "$0")" && pwd) from=${places[0]} out=${places[1]}
[ -f "$from/cases.py" ] && [ -d "$installed" ] || usage
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export P=$installed
cores=0; [ "$threads" = 1 ] || cores=0-$((threads - 1))
core="timeout 3600 taskset -c $cores"

# Times a peer on a file of cases; it appends lines to a file.
peer() { # PEER CASES LINES
  case $1 in
    cranefold)
      local more=(); [ "$threads" = 1 ] || more=(--threads "$threads")
      $core "$built/cranefold" bench --file "$2" --json --budget-ms "$budget" "${more[@]}" >>"$3" ;;
    onednn) LD_LIBRARY_PATH=$P/venv-dnnl/lib OCL_ICD_FILENAMES=$P/venv-dnnl/lib/libintelocl.so \
      $core "$P/dnnl/bench_dnnl_pypi" "$2" "$3" onednn "$threads" ;;
    onednn26) OMP_NUM_THREADS=$threads $core "$P/dnnl/bench_dnnl_deb" "$2" "$3" onednn26 "$threads" ;;
    *-sse2) $core "$P/rust-sse2/release/peers_rs" "$1" "$2" "$3" "$threads" ;;
    ndarray | candle | burn-flex | tract-core | tract-linalg | rust-iter)
      $core "$P/rust-native/release/peers_rs" "$1" "$2" "$3" "$threads" ;;
    *)
      local venv=venv; [ "$1" != tvm ] || venv=venv-tvm
      $core "$P/$venv/bin/python" -W ignore "$from/bench_py.py" "$1" --cases "$2" --threads "$threads" --out "$3" ;;
  esac
}

# A round: cranefold, then each peer that has a file of cases, or the other way about in every second round.
round() { # NUMBER FOLDER
  local order="cranefold $peers"
  [ $(($1 % 2)) = 0 ] || order=$(tac -s ' ' <<<"$(echo $order)" | tr '\n' ' ')
  for name in $order; do
    [ -s "$2/$name" ] || continue
    : >"$work/lines"
    local start=$SECONDS
    peer "$name" "$2/$name" "$work/lines" 2>"$work/stderr" >&2 \
      || { echo "$name failed: $(tail -n 1 "$work/stderr")" >&2; [ "$name" != cranefold ] || exit 1; }
    sed "s/^{/{\"round\":$1,/" "$work/lines" >>"$out"
    echo "round $1: $name, $(wc -l <"$2/$name") cases, $((SECONDS - start)) s" >&2
  done
}

(cd "$here/.." && cargo build --release -p cranefold-cli)
built=${CARGO_TARGET_DIR:-$here/../target}/release
python3 "$from/cases.py" "$work/all" >&2
awk -v match_="$match" '$1 ~ match_' "$work/all" >"$work/cases"
[ -s "$work/cases" ] || { echo "no case matches $match" >&2; exit 2; }
[ -z "$first" ] || [ ! "$first" -ef "$out" ] || { echo "$out would be overwritten before it is read" >&2; exit 2; }
: >"$out"
if [ -z "$first" ]; then
  mkdir "$work/0"
  for name in $peers; do cp "$work/cases" "$work/0/$name"; done
  # torch.compile takes seconds a case.
  [ ! -e "$work/0/compile" ] || grep -E '^(sum|max|mean|var|logsumexp|arg|any)' "$work/cases" >"$work/0/compile" || true
  python3 "$here/peers.py" ours "$work/cases" >"$work/0/cranefold"
  round 0 "$work/0"
  first=$out
fi
mkdir "$work/1"
python3 "$here/peers.py" choose "$first" "$work/cases" "$work/1" --fastest "$fastest" --threads "$threads" \
  --peers "$(echo $peers)"
for number in $(seq "$rounds"); do round "$number" "$work/1"; done
python3 "$here/peers.py" table "$out" --threads "$threads"
