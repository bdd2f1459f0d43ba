#!/usr/bin/env python3
"""Draws the pictures of the documentation: `python3 docs/pictures/draw.py [FOLDER]`.

Writes pipeline.svg and tree.svg, and rustdoc.md, which holds both as data links for the rendered documentation of
the crate. The background is transparent. Boxes have a light fill and dark text, everything else is a grey that stands
out on white and on black, so one picture serves light and dark pages.
"""

import base64
import pathlib
import sys

INK = "#1c2733"
GREY = "#78828d"
BLUE, GREEN, AMBER, ROSE = "#cfe3fb", "#cdeed6", "#fae3b4", "#f8d3d6"
FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"


def text(x, y, words, size=13, fill=GREY, anchor="middle", weight=None, font=None):
    words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    given = [("text-anchor", anchor, "middle"), ("fill", fill, GREY), ("font-weight", weight, None), ("font-family", font, None)]
    rest = "".join(f" {name}='{value}'" for name, value, default in given if value != default)
    return f"<text x='{x:g}' y='{y:g}' font-size='{size}'{rest}>{words}</text>"


def box(x, y, width, height, fill, title, lines=(), mono=()):
    """A box with a title, lines of text and lines of code."""
    out = [
        f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='7' fill='{fill}' "
        f"stroke='{GREY}'/>"
    ]
    middle, count = x + width / 2, 1 + len(lines) + len(mono)
    at = y + height / 2 - (count - 1) * 8.5 + 5
    out.append(text(middle, at, title, 14, INK, weight="bold"))
    for words in lines:
        at += 17
        out.append(text(middle, at, words, 11.5, INK))
    for words in mono:
        at += 17
        out.append(text(middle, at, words, 10.5, INK, font=MONO))
    return "".join(out)


def arrow(points, dashed=False):
    """A line through points with a head at its end."""
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    dash = " stroke-dasharray='5 4'" if dashed else ""
    return (
        f"<polyline points='{path}' fill='none' stroke='{GREY}' stroke-width='1.6'{dash} "
        "marker-end='url(#head)'/>"
    )


def line(points):
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f"<polyline points='{path}' fill='none' stroke='{GREY}' stroke-width='1.6'/>"


def picture(width, height, title, parts):
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}' role='img'\nfont-family='{FONT}' text-anchor='middle' fill='{GREY}'>\n<title>{title}</title>\n"
        "<defs><marker id='head' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7' markerHeight='7' "
        f"orient='auto-start-reverse'><path d='M0,0 L10,5 L0,10 z' fill='{GREY}'/></marker></defs>\n"
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def pipeline():
    width, height, top = 176, 66, 14
    lefts = [8, 246, 484, 722, 960]
    middle = top + height / 2
    parts = [
        box(lefts[0], top, width, height, BLUE, "spec", ["text or builder, checked once"], ["sum f32[4,10] axes=[1]"]),
        box(lefts[1], top, width, height, BLUE, "problem", ["dims sorted and merged;", "equal problems share code"]),
        box(lefts[2], top, width, height, BLUE, "nest", ["plain loops over", "buffers and accumulators"]),
        box(lefts[3], top, width, height, BLUE, "legal nest", ["loops over vectors", "that the target has"]),
        box(lefts[4], top, width, height, BLUE, "machine code", ["Cranelift: 128 bits", "x86-64: 256, 512 bits"]),
    ]
    names = ["canonical", "lower", "passes", "generate"]
    for left, right, name in zip(lefts, lefts[1:], names):
        parts.append(arrow([(left + width + 3, middle), (right - 4, middle)]))
        parts.append(text((left + width + right) / 2, middle - 9, name, 11))
    # Below the row: the decisions that enter it.
    low = 150
    parts += [
        box(lefts[1] + 119, low, width, 66, AMBER, "reduction tree", ["lanes, steps and blocks:", "part of the meaning"]),
        box(lefts[2] + 119, low, width, 66, AMBER, "schedule", ["chosen by a cost model,", "or forced"]),
        arrow([(lefts[1] + 207, low - 3), (lefts[1] + 207, middle + 8)]),
        arrow([(lefts[2] + 207, low - 3), (lefts[2] + 207, middle + 8)]),
        box(lefts[4], low - 28, width, 34, GREEN, "kernel in memory"),
        box(lefts[4], low + 16, width, 34, GREEN, "object, C header"),
        box(lefts[4], low + 60, width, 34, GREEN, "partial results"),
        line([(lefts[4] + 88, top + height + 2), (lefts[4] + 88, low - 40)]),
        arrow([(lefts[4] + 88, low - 42), (lefts[4] + 88, low - 31)]),
    ]
    # At the bottom: the two slow executors that judge.
    floor = 256
    parts += [
        box(lefts[0], floor, 414, 44, ROSE, "reference", ["walks the spec in exact arithmetic: error within a bound"]),
        box(lefts[2], floor, 414, 44, ROSE, "interpreter", ["runs the nest after every pass: the same bits"]),
        arrow([(lefts[0] + 75, floor - 3), (lefts[0] + 75, top + height + 5)], dashed=True),
        arrow([(lefts[2] + 88, floor - 3), (lefts[2] + 88, top + height + 5)], dashed=True),
        arrow([(lefts[3] + 140, floor - 3), (lefts[3] + 140, top + height + 5)], dashed=True),
    ]
    return picture(1144, 308, "The way of a reduction from its spec to machine code", parts)


def tree():
    cell, lanes, pitch, left, top = 32, 4, 170, 86, 58
    elements, most = 71, 4
    steps = -(-elements // lanes)
    blocks = -(-steps // most)
    fills = [BLUE, GREEN, AMBER, ROSE]
    parts = []

    def cells(x, y, labels):
        for lane, label in enumerate(labels):
            if label is None:
                continue
            parts.append(
                f"<rect x='{x + lane * cell:g}' y='{y:g}' width='{cell}' height='24' fill='{fills[lane]}' "
                f"stroke='{GREY}'/>"
            )
            parts.append(text(x + lane * cell + cell / 2, y + 16, str(label), 11, INK))

    centre = lambda n: left + n * pitch + lanes * cell / 2
    number = 0
    for block in range(blocks):
        x = left + block * pitch
        parts.append(text(centre(block), top - 26, f"block {block}", 13, weight="bold"))
        for lane in range(lanes):
            parts.append(text(x + lane * cell + cell / 2, top - 8, f"{lane}", 10.5))
        for step in range(min(most, steps - block * most)):
            row = [number + lane if number + lane < elements else None for lane in range(lanes)]
            number += lanes
            cells(x, top + step * 24, row)
    parts.append(text(left - 10, top - 8, "lane", 10.5, anchor="end"))
    for step in range(most):
        parts.append(text(left - 10, top + step * 24 + 16, f"step {step}", 10.5, anchor="end"))
    # The state of each block: a lane has combined its column from the top down.
    state = top + most * 24 + 34
    for block in range(blocks):
        bottom = top + min(most, steps - block * most) * 24
        parts.append(arrow([(centre(block), bottom + 3), (centre(block), state - 4)]))
        cells(left + block * pitch, state, [""] * lanes)
    parts.append(text(left - 10, state + 16, "states", 10.5, anchor="end"))
    # Merges: older state first.
    first, second, third = state + 62, state + 112, state + 162
    places = {0: (centre(0), state + 24), 1: (centre(1), state + 24), 2: (centre(2), state + 24),
              3: (centre(3), state + 24), 4: (centre(4), state + 24)}

    def merge(older, newer, y, label):
        (ax, ay), (bx, by) = places[older], places[newer]
        x = (ax + bx) / 2
        parts.append(arrow([(ax, ay + 2), (ax, y), (x - 34, y)]))
        parts.append(arrow([(bx, by + 2), (bx, y), (x + 34, y)]))
        parts.append(
            f"<rect x='{x - 31:g}' y='{y - 13:g}' width='62' height='26' rx='6' fill='#e9edf2' stroke='{GREY}'/>"
        )
        parts.append(text(x, y + 4, label, 11, INK))
        places[older] = (x, y + 13)

    merge(0, 1, first, "0 + 1")
    merge(2, 3, first, "2 + 3")
    merge(0, 2, second, "0 to 3")
    merge(0, 4, third, "0 to 4")
    # Folds: lane l takes lane l + 2, then l + 1.
    x, y = places[0]
    low = y + 30
    parts.append(arrow([(x, y + 2), (x, low - 4)]))
    cells(x - 2 * cell, low, ["0", "1", "2", "3"])
    parts.append(arrow([(x + 2 * cell + 4, low + 12), (x + 2 * cell + 36, low + 12)]))
    cells(x + 2 * cell + 40, low, ["0+2", "1+3"])
    at = x + 4 * cell + 40
    parts.append(arrow([(at + 4, low + 12), (at + 36, low + 12)]))
    parts.append(f"<rect x='{at + 40:g}' y='{low:g}' width='66' height='24' rx='6' fill='#e9edf2' stroke='{GREY}'/>")
    parts.append(text(at + 73, low + 16, "result", 11, INK))
    parts.append(text(x - 2 * cell - 12, low + 16, "fold lanes by halving, then finish", 12, anchor="end"))
    parts.append(text(left - 10, first + 4, "merge,", 12, anchor="end"))
    parts.append(text(left - 10, first + 20, "older first", 10.5, anchor="end"))
    width = left + blocks * pitch - (pitch - lanes * cell) + 14
    return picture(int(width), int(low + 44), "The reduction tree of one slice of 71 elements", parts)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    links = []
    for name, drawing in [("pipeline", pipeline()), ("tree", tree())]:
        (folder / f"{name}.svg").write_text(drawing, encoding="utf-8")
        data = base64.b64encode(drawing.encode()).decode()
        links.append(f"[picture of the {name}]: data:image/svg+xml;base64,{data}\n")
    (folder / "rustdoc.md").write_text("\n".join(links), encoding="utf-8")


main()
