#!/usr/bin/env bash
# Builds libcranefold and installs it, its headers and its pkg-config file under a folder:
#
#     capi/install.sh PREFIX
#     export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig LD_LIBRARY_PATH=PREFIX/lib
#     cc main.c $(pkg-config --cflags --libs cranefold) -o main
#
# It needs Rust (https://rustup.rs) and, for programs, a C compiler. Nothing is written outside PREFIX and target/.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: capi/install.sh PREFIX" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo --version >/dev/null 2>&1 || { echo "install.sh: Rust is missing; https://rustup.rs installs it" >&2; exit 1; }

cargo build --release -p cranefold-capi
built=${CARGO_TARGET_DIR:-target}/release
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

mkdir -p "$prefix"/{lib/pkgconfig,include}
install -m 644 capi/include/cranefold.h capi/include/cranefold.hpp "$prefix/include/"
install -m 644 "$built/libcranefold.a" "$prefix/lib/"
if [ -f "$built/libcranefold.dylib" ]; then
  install -m 755 "$built/libcranefold.dylib" "$prefix/lib/"
else
  # Programs find the library by the version of its ABI.
  install -m 755 "$built/libcranefold.so" "$prefix/lib/libcranefold.so.1"
  ln -sf libcranefold.so.1 "$prefix/lib/libcranefold.so"
  # Line tables are for backtraces of the library's own bugs, and most of its size.
  if command -v strip >/dev/null; then strip --strip-debug "$prefix/lib/libcranefold.so.1"; fi
fi
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" capi/cranefold.pc.in >"$prefix/lib/pkgconfig/cranefold.pc"
echo "installed under $prefix: PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib"
