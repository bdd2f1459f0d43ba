"""Times `cranefold run --memory` on a file beside `cat FILE > /dev/null`, in turns, and tells the peak resident memory.

    cargo build --release && python3 benches/files.py [--gb 8] [--rounds 5] [--folder /tmp]

The file lies in the page cache, and is dropped from it before each run in the second half. The result's bits are compared
with those of one kernel over the array in memory, which needs twice the file's size. Nothing but Python is needed.
"""

import argparse
import multiprocessing
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

COMMAND = os.path.join(os.path.dirname(__file__), "..", "target", "release", "cranefold")
ELEMENT = 4  # Bytes of an f32.


def write(path, shape):
    """A .npy file of f32: a block of 64 MB of elements from -1 to 1, repeated with another sign each time."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    count = 1 << 24
    state, values = 1, bytearray()
    for _ in range(count // 1024):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        part = [(((state >> 20) * (2 * i + 1)) % 2**24) / 2**23 - 1 for i in range(1024)]
        values += struct.pack("<1024f", *part)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())
        size = ELEMENT
        for extent in shape:
            size *= extent
        while size > 0:
            size -= file.write(values[: min(size, len(values))])
        file.flush()
        os.fsync(file.fileno())


def timed(arguments, **options):
    """The seconds that a process takes and its peak resident memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, **options)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status != 0:
        sys.exit(f"{arguments} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def drop(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=8, help="the size of the file, in units of 2^30 bytes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", default="256M")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--no-whole", action="store_true", help="do not compare with the kernel in memory")
    given = parser.parse_args()
    rows = int(given.gb * 2**20)
    specs = [
        (f"sum f32[{rows * 256}] order=logical", [rows * 256]),
        (f"var f32[{rows * 256}] order=logical", [rows * 256]),
        (f"argmax f32[{rows * 256}] order=logical", [rows * 256]),
        (f"sum f32[{rows},256] axes=[0] order=logical", [rows, 256]),
        (f"mean,max f32[256,{rows}] axes=[1] order=logical", [256, rows]),
    ]
    path = os.path.join(given.folder, "cranefold-files.npy")
    kept = None
    print("| spec | page cache | threads | GB/s of `cat` | times its rate | peak MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    try:
        for spec, shape in specs:
            if shape != kept:
                # In a process of its own: a process begins with the peak memory of the one that starts it.
                writer = multiprocessing.Process(target=write, args=(path, shape))
                writer.start()
                writer.join()
                if writer.exitcode != 0:
                    sys.exit(f"{path} is not written")
                kept = shape
            size = os.path.getsize(path)
            outputs = [os.path.join(given.folder, f"cranefold-files-{n}.npy") for n in range(spec.split()[0].count(",") + 1)]
            named = [word for output in outputs for word in ("--output", output)]
            base = [COMMAND, "run", spec, "--input", path, *named]
            for cached in (True, False):
                if cached:
                    timed(["cat", path])
                cat, ours, peak = [], {1: [], 2: []}, {1: 0, 2: 0}
                for _ in range(given.rounds):
                    if not cached:
                        drop(path)
                    with open(os.devnull, "wb") as null:
                        start = time.perf_counter()
                        subprocess.run(["cat", path], stdout=null, check=True)
                        cat.append(time.perf_counter() - start)
                    for threads in ours:
                        if not cached:
                            drop(path)
                        command = [*base, "--memory", given.memory, "--threads", str(threads)]
                        seconds, most = timed(command)
                        ours[threads].append(seconds)
                        peak[threads] = max(peak[threads], most)
                for threads, seconds in ours.items():
                    ratio = statistics.median(c / s for c, s in zip(cat, seconds))
                    rate = size / statistics.median(cat) / 1e9
                    place = "held" if cached else "dropped"
                    print(f"| `{spec}` | {place} | {threads} | {rate:.1f} | {ratio:.2f} | {peak[threads]:.0f} |", flush=True)
            streamed = [open(output, "rb").read() for output in outputs]
            if not given.no_whole:
                timed([*base, "--check", "none"])
                if streamed != [open(output, "rb").read() for output in outputs]:
                    sys.exit(f"`{spec}` has other bits in memory")
    finally:
        for name in os.listdir(given.folder):
            if name.startswith("cranefold-files"):
                os.remove(os.path.join(given.folder, name))


main()
