#!/usr/bin/env bash
# Times cranefold and other libraries on the regions of regions.txt, in interleaved rounds:
#   benches/regions.sh [OPTION...] OUT.jsonl
# The summary that regions.py makes of OUT.jsonl is printed at the end.
#   --rounds N       2; every second round has the programs in the opposite order
#   --threads N      1; each process is pinned to the first N cores
#   --budget-ms MS   30, for the samples of a region
#   --match REGEX    only regions whose name, type and shape match
#   --peers "A B"    only these of torch, jax, ort, openvino and compile
#   --by min         the summary compares the least times, not the medians
#   --markdown       the summary as Markdown
#   --fresh-pages    large outputs of peers that allocate them in each call lie on new pages each time
# $P (~/.cache/reduction-peers) has a virtual environment `venv` with the Python packages numpy, ml_dtypes, onnx,
# onnxruntime, openvino, jax and torch; it is made if it is missing. torch.compile needs g++.
# $CRANEFOLD is the command; without it target/release/cranefold is built and taken.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }

rounds=2 threads=1 budget=30 match=. peers='torch jax ort openvino compile' by=median markdown='' fresh='' out=''
while [ $# -gt 0 ]; do
  case $1 in
    --rounds | --threads | --budget-ms | --match | --peers | --by)
      [ $# -ge 2 ] || usage
      name=${1#--}; declare "${name%-ms}=$2"; shift 2 ;;
    --markdown) markdown=--markdown; shift ;;
    --fresh-pages) fresh=yes; shift ;;
    -*) usage ;;
    *) [ -z "$out" ] || usage; out=$1; shift ;;
  esac
done
[ -n "$out" ] || usage
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export P=${P:-$HOME/.cache/reduction-peers}
python=$P/venv/bin/python
if [ ! -x "$python" ]; then
  mkdir -p "$P"
  python3 -m venv "$P/venv"
  "$P/venv/bin/pip" install -q numpy ml_dtypes onnx onnxruntime openvino jax torch
fi
if [ -z "${CRANEFOLD:-}" ]; then
  (cd "$here/.." && cargo build --release -p cranefold-cli)
  CRANEFOLD=${CARGO_TARGET_DIR:-$here/../target}/release/cranefold
fi
export CRANEFOLD
cores=0; [ "$threads" = 1 ] || cores=0-$((threads - 1))
# torch.compile keeps its kernels from round to round, so that the first calls of round 1 alone compile.
export TORCHINDUCTOR_CACHE_DIR=$work/inductor
# A library that allocates its outputs in each call would get new pages for the large ones each time, and spend most of
# its time on page faults: about 20 ms for 32 MB, where the region takes 5. The C library keeps its memory instead, and
# asks for huge pages, as cranefold's command does.
allocator=(MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=$((1 << 40)) GLIBC_TUNABLES=glibc.malloc.hugetlb=1)
[ -z "$fresh" ] || allocator=()

: >"$out"
for round in $(seq "$rounds"); do
  order="cranefold $peers"
  [ $((round % 2)) = 1 ] || order=$(tac -s ' ' <<<"$(echo $order)" | tr '\n' ' ')
  for name in $order; do
    : >"$work/lines"
    start=$SECONDS memory=()
    [ "$name" = cranefold ] || memory=("${allocator[@]}")
    env "${memory[@]}" taskset -c "$cores" "$python" -W ignore "$here/regions.py" "$name" --out "$work/lines" \
      --match "$match" --threads "$threads" --budget-ms "$budget" \
      || { echo "$name failed" >&2; [ "$name" != cranefold ] || exit 1; }
    sed "s/^{/{\"round\": $round, /" "$work/lines" >>"$out"
    echo "round $round: $name, $(wc -l <"$work/lines") regions, $((SECONDS - start)) s" >&2
  done
done
python3 "$here/regions.py" --summary "$out" --match "$match" --threads "$threads" --by "$by" $markdown
