#!/usr/bin/env python3
"""Cases of peers.sh, and what its results say.

    peers.py table RESULTS.jsonl              every case beside the fastest peer, and what holds of all
    peers.py readme RESULTS.jsonl CASES       the README's table, of the cases that a file names, one a line
    peers.py ours CASES                       the cases that cranefold is given: also those oneDNN's driver adds
    peers.py choose RESULTS.jsonl CASES DIR   for each of the fastest peers of a case, in a file of its name

A line is the median of one process in one round. The peer that counts is the one whose median over the rounds is the
least. The ratio is its time over ours, round by round, so above 1 ours is faster; shown is the median of the rounds'
ratios, and an interval by order statistics: the k-th least to the k-th greatest ratio, with the greatest k for which
that holds the true median in 90 % of all cases or more (98 % for 7 rounds, all of them; 5 rounds are the least).
"""

import argparse
import json
import math
import os
import re
import statistics
from collections import defaultdict

OURS = "cranefold"
BLOCKED = ".nChw16c"


def counts(peer, case):
    """Whether what a peer computes is the case: some sum 8 bits in 8 bits, or halves in halves."""
    if peer in ("candle", "tract-core"):
        return not re.match(r"sum\.[iu]8\.", case)
    if peer in ("numpy", "openvino"):
        return not case.startswith("sum.bf16.")
    return True


def read(path, threads, with_first=False):
    """{case: {peer: {round: line}}}: timed lines; of several in a round the fastest. Rounds of the fastest peers
    replace the first pass, number 0, in which they were chosen, but `with_first`."""
    results = defaultdict(lambda: defaultdict(dict))
    for text in open(path):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        peer, case = line.get("peer", ""), line.get("case", "")
        if "median_ns" not in line or case.startswith("__") or line.get("threads", 1) != threads:
            continue
        if not peer.startswith("ceiling") and counts(peer, case):
            rounds, number = results[case][peer], line.get("round", 0)
            if number not in rounds or line["median_ns"] < rounds[number]["median_ns"]:
                rounds[number] = line
    for case, peers in results.items():
        if not with_first and any(number > 0 for rounds in peers.values() for number in rounds):
            for rounds in peers.values():
                rounds.pop(0, None)
            results[case] = defaultdict(dict, {peer: rounds for peer, rounds in peers.items() if rounds})
    return results


def median(rounds, key="median_ns"):
    values = [line[key] for line in rounds.values() if key in line]
    return statistics.median(values) if values else None


def interval(values, level=0.9):
    """The ends of the interval for the median, or nothing where there are too few values."""
    n, best = len(values), None
    for k in range(1, n // 2 + 1):
        outside = 2 * sum(math.comb(n, i) for i in range(k)) / 2**n
        if 1 - outside < level:
            break
        best = sorted(values)[k - 1], sorted(values)[n - k]
    return best


class Case:
    """A case in which cranefold and a peer were timed."""

    def __init__(self, name, peers):
        ours = peers[OURS]
        self.name, self.ns, self.bytes = name, median(ours), next(iter(ours.values()))["bytes"]
        others = {peer: rounds for peer, rounds in peers.items() if peer != OURS and rounds.keys() & ours.keys()}
        self.peer = min(others, key=lambda peer: median(others[peer]))
        rounds = others[self.peer]
        self.peer_ns = median(rounds)
        ratios = [rounds[n]["median_ns"] / ours[n]["median_ns"] for n in sorted(rounds.keys() & ours.keys())]
        self.ratio, self.interval = statistics.median(ratios), interval(ratios)
        self.rounds, self.loop_ns = len(ratios), median(ours, "loop_ns")
        self.loop = next((line["loop"] for line in ours.values() if "loop" in line), "-")

    def rate(self, ns):
        return "-" if ns is None else f"{self.bytes / ns:.3g}" if self.bytes / ns < 100 else f"{self.bytes / ns:.0f}"

    def share(self):
        return "-" if self.loop_ns is None else f"{100 * self.loop_ns / self.ns:.0f} %"


def compared(results):
    timed = {name: peers for name, peers in results.items() if peers.get(OURS)}
    beside = lambda peers: any(rounds.keys() & peers[OURS].keys() for peer, rounds in peers.items() if peer != OURS)
    return [Case(name, peers) for name, peers in timed.items() if beside(peers)]


def time(ns):
    return f"{ns:.0f} ns" if ns < 1e4 else f"{ns / 1e3:.0f} us" if ns < 1e7 else f"{ns / 1e6:.1f} ms"


def table(results):
    cases = sorted(compared(results), key=lambda case: case.ratio)
    if not cases:
        raise SystemExit("no case has times of cranefold and of a peer in one round")
    width = max(len(case.name) for case in cases)
    print("ratio: the fastest peer's time over ours, the median of the rounds' ratios; 90 %: its interval by order")
    print("statistics; loop: the nearest hand-written loop, its GB/s, and our share of it; GB/s: bytes of the inputs\n")
    heads = ["case", "ours", "GB/s", "peer", "its time", "ratio", "90 %", "loop", "share", "of"]
    form = f"{{:<{width}}} {{:>8}} {{:>6}}  {{:<12}} {{:>8}} {{:>6}}  {{:<13}} {{:>5}} {{:>6}}  {{}}"
    print(form.format(*heads))
    for case in cases:
        ends = "-" if case.interval is None else "{:.2f} to {:.2f}".format(*case.interval)
        ours = [case.name, time(case.ns), case.rate(case.ns), case.peer, time(case.peer_ns), f"{case.ratio:.2f}", ends]
        print(form.format(*ours, case.rate(case.loop_ns), case.share(), case.loop))
    mean = lambda cases: f"{math.exp(statistics.fmean(math.log(case.ratio) for case in cases)):.2f}"
    grid = [case for case in cases if not case.name.endswith(BLOCKED)]
    rounds = sorted({case.rounds for case in cases})
    print(f"\n{len(cases)} cases, each of {rounds[0]} to {rounds[-1]} rounds; {len(results) - len(cases)} without a peer or us")
    if grid:
        print(f"geometric mean of the ratios: {mean(grid)}")
    if len(grid) < len(cases):
        print(f"with the {len(cases) - len(grid)} cases that oneDNN alone has, in blocks of channels: {mean(cases)}")
    for limit in (0.9, 1.0):
        under = [case.name for case in cases if case.interval is not None and case.interval[1] < limit]
        print(f"{len(under)} with the interval under {limit}: {' '.join(under)}".rstrip(": "))
    if any(case.interval is None for case in cases):
        print("cases of less than 5 rounds have no interval, and are not judged by it")


def readme(results, names):
    cases = {case.name: case for case in compared(results)}
    print("| case | GB/s | fastest peer | its GB/s | ratio | ceiling GB/s | share |")
    print("| --- " * 7 + "|")
    for name in names:
        if name not in cases:
            raise SystemExit(f"`{name}` was not compared")
        c = cases[name]
        cells = [f"`{name}`", c.rate(c.ns), c.peer, c.rate(c.peer_ns), f"{c.ratio:.2f}", c.rate(c.loop_ns), c.share()]
        print("| " + " | ".join(cells) + " |")


def lines(path):
    return [line.split("#")[0].split() for line in open(path) if line.split("#")[0].split()]


def ours(cases, named):
    """The lines of cases; after a 4-D case in NCHW the one with channels in blocks of 16 that oneDNN's driver adds to
    it, where its name is wanted."""
    for words in cases:
        yield words
        blocked = words[0] + BLOCKED
        if words[3] == "64x128x56x56" and words[5] == "c" and named(blocked):
            yield [blocked, *words[1:5], "b16", words[6]]


def choose(results, cases, folder, fastest, allowed):
    """A file for each peer with the cases on which it is among the fastest, and one for cranefold with them all."""
    chosen = defaultdict(set)
    for name, peers in results.items():
        others = sorted((median(rounds), peer) for peer, rounds in peers.items() if peer in allowed)
        for _, peer in others[:fastest]:
            chosen[peer].add(name.removesuffix(BLOCKED))
    files = {peer: [words for words in cases if words[0] in names] for peer, names in chosen.items()}
    any_chosen = [words for words in cases if any(words in file for file in files.values())]
    files[OURS] = ours(any_chosen, lambda name: name in results)
    for peer, file in files.items():
        with open(os.path.join(folder, peer), "w") as out:
            out.writelines(" ".join(words) + "\n" for words in file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["table", "readme", "ours", "choose"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--fastest", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", default="", help="those that may be chosen")
    a = parser.parse_args()
    match a.do, a.files:
        case "table", [results]:
            table(read(results, a.threads))
        case "readme", [results, names]:
            readme(read(results, a.threads), [words[0] for words in lines(names)])
        case "ours", [cases]:
            print(*(" ".join(words) for words in ours(lines(cases), lambda _: True)), sep="\n")
        case "choose", [results, cases, folder]:
            choose(read(results, a.threads, True), lines(cases), folder, a.fastest, a.peers.split())
        case _:
            parser.error(f"`{a.do}` takes other files")


main()
