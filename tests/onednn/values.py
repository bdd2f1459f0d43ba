#!/usr/bin/env python3
"""Writes values.json: reductions worked out by NumPy, with their buffers as they lie in memory.

It shares nothing with the Rust code: tags are read, axes are packed into blocks by reshape, transpose and pad, and
bf16 is rounded by its bits. Values are chosen so that every sum and product is exact in f32, in any order; then
each rounding is done as oneDNN defines it: post-ops in f32, one conversion to the destination. So results are equal
in bits, but for those with roots that are not square and functions such as tanh, which carry a number of `ulps` of
the destination. Run it without arguments; it is deterministic.
"""

import itertools
import json
import math
import os
import re

import numpy as np

F32 = np.float32
RANDOM = np.random.RandomState(20240)
STORED = {"f32": "<u4", "f16": "<u2", "bf16": "<u2", "s32": "<i4", "s8": "i1", "u8": "u1"}
RANGES = {"s8": (-128, 127), "u8": (0, 255), "s32": (-(2**31), 2**31 - 1)}


def bf16_bits(values):
    """f32 to the bits of bf16, to nearest even; NaN is the canonical one."""
    bits = values.astype(F32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def from_bits(dtype, bits):
    """What is stored, as f32, or as i64."""
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(F32)
    if dtype == "f16":
        return bits.view(np.float16).astype(F32)
    if dtype == "f32":
        return bits.view(F32)
    return bits.astype(np.int64)


def to_bits(dtype, values):
    """f32 or i64 as it is stored: floats to nearest even, integers rounded half to even and clamped, NaN is 0."""
    if dtype == "bf16":
        return bf16_bits(values)
    if dtype in ("f16", "f32"):
        kind, bits, nan = (np.float16, np.uint16, 0x7E00) if dtype == "f16" else (F32, np.uint32, 0x7FC00000)
        with np.errstate(over="ignore"):
            stored = values.astype(kind).view(bits)
        return np.where(np.isnan(values), bits(nan), stored)
    low, high = RANGES[dtype]
    if values.dtype.kind == "f":
        wide = values.astype(np.float64)
        values = np.clip(np.nan_to_num(np.rint(wide), nan=0, posinf=2.0**40, neginf=-(2.0**40)), low, high)
    return np.clip(values, low, high).astype(STORED[dtype])


def read_tag(tag):
    """The axes from the outermost, and the blocks as (axis, size)."""
    letters = re.match("[a-zA-Z]*", tag).group()
    blocks = [(ord(axis) - ord("a"), int(size)) for size, axis in re.findall("([0-9]+)([a-z])", tag[len(letters) :])]
    return [ord(letter) - ord("a") for letter in letters.lower()], blocks


def pack(array, tag, fill):
    """The buffer of an array in a layout, with `fill` in the padding."""
    order, blocks = read_tag(tag)
    pads, shape, starts = [], [], []
    for axis, extent in enumerate(array.shape):
        sizes = [size for of, size in blocks if of == axis]
        whole = math.prod(sizes)
        padded = -(-extent // whole) * whole
        pads.append((0, padded - extent))
        starts.append(len(shape))
        shape += [padded // whole] + sizes
    padded = np.pad(array, pads, constant_values=fill)
    used = dict.fromkeys(range(array.ndim), 0)
    inner = []
    for axis, _ in blocks:
        used[axis] += 1
        inner.append(starts[axis] + used[axis])
    return padded.reshape(shape).transpose([starts[axis] for axis in order] + inner).ravel()


def text(bits, dtype):
    return np.ascontiguousarray(bits.astype(STORED[dtype])).tobytes().hex()


def poison(dtype):
    """What lies in the padding of inputs: a NaN, or the end of the range."""
    return {"f32": 0x7FC00003, "f16": 0xFE01, "bf16": 0x7FC1, "s8": -128, "u8": 255, "s32": 2**31 - 1}[dtype]


def draw(dtype, shape, what):
    """Stored elements whose sums and products are exact."""
    if what == "mul":
        few = {"s8": [1] * 10 + [-1, 2, 3, -2], "u8": [1] * 9 + [2, 3]}.get(dtype, [1] * 17 + [-1, 0.5, 2, -2, 1.5, 2, 0.25])
    elif dtype == "s8":
        few = [-128, -100, -7, 0, 3, 50, 127]
    elif dtype == "u8":
        few = [0, 1, 9, 100, 200, 255]
    elif dtype == "s32":
        few = [0, 1, -5, 70000, -(2**20)]
    else:
        few = [-3, -1.5, -0.25, 0, 0.5, 1, 2.75, 8]
    values = np.array(few)[RANDOM.randint(0, len(few), size=shape)]
    return to_bits(dtype, values.astype(F32) if dtype in ("f32", "f16", "bf16") else values.astype(np.int64))


def reduced(alg, p, eps, values, axes, is_int):
    """The result before post-ops: exact integers in i64, else in f32."""
    with np.errstate(all="ignore"):
        count = math.prod(values.shape[axis] for axis in axes)
        exact = values.astype(object) if is_int else values.astype(np.float64)
        if alg == "max":
            return values.max(axis=axes, keepdims=True)
        if alg == "min":
            return values.min(axis=axes, keepdims=True)
        if alg == "sum":
            total = exact.sum(axis=axes, keepdims=True)
            assert is_int or (total == total.astype(F32)).all(), "inexact sum"
            return total.astype(np.int64 if is_int else F32)
        if alg == "mul":
            total = np.multiply.reduce(exact, axis=axes, keepdims=True)
            assert (abs(total) < 2**62).all() if is_int else (total == total.astype(F32)).all(), "inexact product"
            return total.astype(np.int64 if is_int else F32)
        if alg == "mean":
            total = exact.sum(axis=axes, keepdims=True).astype(np.float64)
            # Of integers the quotient is rounded once, to f64, as which halves are exact.
            return total / count if is_int else total.astype(F32) / F32(count)
        total = (np.abs(exact) ** p).sum(axis=axes, keepdims=True).astype(F32)
        assert (total == (np.abs(exact) ** p).sum(axis=axes, keepdims=True)).all(), "inexact sum"
        total = np.maximum(total, F32(eps)) if alg.endswith("max") else total + F32(eps)
        if "power_p" in alg or p == 1:
            return total
        return np.sqrt(total) if p == 2 else (total.astype(np.float64) ** (1 / p)).astype(F32)


def eltwise(alg, s, a, b):
    """oneDNN's functions of an f32, those with an exponential in f64 and rounded once; relu and round give no -0."""
    t = s.astype(np.float64)
    a, b = F32(a), F32(b)
    with np.errstate(all="ignore"):
        return {
            "relu": lambda: np.where(s > 0, s, a * s + F32(0)),
            "linear": lambda: a * s + b,
            "abs": lambda: np.abs(s),
            "square": lambda: s * s,
            "sqrt": lambda: np.sqrt(s),
            "clip": lambda: np.minimum(np.maximum(s, a), b),
            "clip_v2": lambda: np.minimum(np.maximum(s, a), b),
            "round": lambda: np.rint(s) + F32(0),
            "hardsigmoid": lambda: np.minimum(np.maximum(a * s + b, F32(0)), F32(1)),
            "hardswish": lambda: s * np.minimum(np.maximum(a * s + b, F32(0)), F32(1)),
            "elu": lambda: np.where(t > 0, t, a * np.expm1(t)),
            "tanh": lambda: np.tanh(t),
            "exp": lambda: np.exp(t),
            "log": lambda: np.log(t),
            "logistic": lambda: 1 / (1 + np.exp(-t)),
            "swish": lambda: t / (1 + np.exp(-a * t)),
            "soft_relu": lambda: np.logaddexp(0, a * t) / a,
            "mish": lambda: t * np.tanh(np.logaddexp(0, t)),
            "gelu_tanh": lambda: 0.5 * t * (1 + np.tanh(F32(0.7978846) * t * (1 + F32(0.044715) * t * t))),
            "pow": lambda: a * t ** np.float64(b),
        }[alg]().astype(F32)


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "eq": np.equal,
    "ne": np.not_equal,
}


def case(alg, types, src, axes, stag, dtag, post_ops="", p=1, eps=0, ulps=0):
    """One case; of `any` the destination has the source's tag."""
    source, destination = types.split("->")
    is_int = source in RANGES
    dst = [1 if axis in axes else extent for axis, extent in enumerate(src)]
    given = stag if dtag == "any" else dtag
    stored = draw(source, src, alg)
    old = draw(destination, dst, "old")
    result = reduced(alg, p, eps, from_bits(source, stored), tuple(axes), is_int)
    operands = []
    for op in filter(None, post_ops.split("+")):
        if result.dtype != F32:
            # A mean of integers is divided in f32 where the destination is an integer, as oneDNN does.
            result = result.astype(F32)
        words = op.split(":")
        number = lambda i, default: float(words[i]) if len(words) > i else default
        if words[0] == "sum":
            as_type = words[3] if len(words) > 3 else destination
            before = from_bits(as_type, old.view(STORED[as_type])).astype(F32)
            result = result + F32(number(1, 1)) * (before - F32(number(2, 0)))
        elif words[0] in BINARY:
            policy = words[2] if len(words) > 2 else "common"
            has = {"common": [], "per_oc": [1], "per_tensor": range(len(dst))}[policy]
            shape = [extent if axis in has else 1 for axis, extent in enumerate(dst)]
            operand = draw(words[1], shape, "operand")
            tag = words[3] if len(words) > 3 else "abcdef"[: len(shape)]
            operands.append(text(pack(operand, tag, poison(words[1])), words[1]))
            with np.errstate(all="ignore"):
                result = BINARY[words[0]](result, from_bits(words[1], operand).astype(F32)).astype(F32)
        else:
            result = eltwise(words[0], result, number(1, 0), number(2, 0))
        assert result.dtype == F32, (op, result.dtype)
    return {
        "alg": alg,
        "p": p,
        "eps": eps,
        "dts": types,
        "src": src,
        "dst": dst,
        "stag": stag,
        "dtag": dtag,
        "post_ops": post_ops,
        "ulps": ulps,
        "input": text(pack(stored, stag, poison(source)), source),
        "old": text(pack(old, given, 0), destination),
        "operands": operands,
        "expected": text(pack(to_bits(destination, result), given, 0), destination),
    }


TYPES = "bf16->bf16 bf16->f32 f16->f16 f16->f32 f32->f32 s8->f32 s8->s32 s8->s8 u8->f32 u8->s32 u8->u8".split()
LAYOUTS = [
    ("abcd", "abcd"),
    ("acdb", "any"),
    ("abcd", "acdb"),
    ("aBcd8b", "aBcd8b"),
    ("aBcd16b", "any"),
    ("aBcd16b", "abcd"),
    ("abcd", "aBcd16b"),
    ("aBcd8b", "acdb"),
    ("ABcd8a8b", "any"),
    ("ABcd4b8a4b", "aBcd8b"),
    ("acdb", "ABcd4b8a4b"),
    ("BAcd8a4b", "BAcd8a4b"),
]
AXES = [[0], [2, 3], [0, 2, 3], [1, 2, 3], [0, 1, 2, 3], [1], [3], [0, 1]]
SHAPES = [[2, 17, 2, 3], [3, 5, 3, 2], [2, 13, 1, 5], [5, 9, 2, 2]]


def cases():
    turn = itertools.count()
    take = lambda choices, n: choices[n % len(choices)]
    # Every algorithm in every pair of types.
    for alg in ["max", "min", "sum", "mul", "mean"]:
        for types in TYPES:
            n = next(turn)
            yield case(alg, types, take(SHAPES, n), take(AXES, n // 2), *take(LAYOUTS, n))
    for alg in ["norm_lp_max", "norm_lp_sum", "norm_lp_power_p_max", "norm_lp_power_p_sum"]:
        for types in TYPES[:5]:
            for p in [1, 2, 3]:
                n = next(turn)
                ulps = 2 if p == 3 and "power" not in alg else 0
                # Cubes of few elements, so that they add up exactly.
                yield case(alg, types, take(SHAPES, n), take(AXES, n // 3), *take(LAYOUTS, n), "", p, 0.5, ulps)
    # Chains of post-ops to every type.
    chains = [
        "sum+linear:2:1+add:f32",
        "add:f32:per_oc",
        "sum:0.5:3+relu",
        "mul:f16:per_tensor+clip:-40:30.5",
        "sub:s8:per_oc+abs+max:f32",
        "min:bf16:per_tensor:aBcd8b+linear:0.5:0.25+sum:-1",
        "relu:0.125+ge:f32:per_oc",
    ]
    for chain in chains:
        for i, types in enumerate(TYPES):
            n = next(turn)
            # The quotient of a mean is inexact, and of integers rounded twice to a float destination.
            alg = take(["sum", "max", "min", "sum", "mean" if types[0] in "fb" else "max"], n + i)
            yield case(alg, types, take(SHAPES, n), take(AXES, n + i), *take(LAYOUTS, n), chain)
    # The old destination as another type.
    for types, other in [("s8->s8", "u8"), ("u8->u8", "s8")]:
        yield case("max", types, [2, 9, 2, 2], [2, 3], "aBcd8b", "any", f"sum:1:0:{other}")
    # Each function and operation.
    exact = "relu relu:0.5 linear:-3:0.5 abs square clip:-2:4 clip_v2:-2:4 round hardsigmoid:0.25:0.5 hardswish:0.25:0.5"
    rounded = "sqrt elu:0.5 tanh exp log logistic swish:1.5 soft_relu:1 soft_relu:-1 mish gelu_tanh pow:2:3 pow:0.5:0.75"
    for op in exact.split():
        yield case("max", "f32->f32", [3, 9, 2, 2], [0, 3], "aBcd8b", "any", op)
        yield case("sum", "s8->s8", [2, 9, 1, 2], [0], "aBcd8b", "abcd", "linear:0.0625:0+" + op)
    for op in rounded.split():
        ulps = {"sqrt": 0, "pow": 2}.get(op.split(":")[0], 1)
        yield case("min", "f32->f32", [2, 9, 2, 2], [0], "aBcd8b", "any", op, ulps=ulps)
        yield case("sum", "f32->f32", [2, 9, 2, 2], [0, 2], "acdb", "aBcd8b", op, ulps=ulps)
    for op in BINARY:
        yield case("max", "f32->f32", [2, 9, 2, 2], [0, 3], "aBcd8b", "any", f"{op}:f32:per_tensor:acdb")
        yield case("sum", "u8->s32", [2, 5, 2, 2], [0, 3], "ABcd4a4b", "any", f"{op}:s8:per_oc")
    # Nothing to reduce, one element, more dims and fewer.
    yield case("sum", "f32->f32", [0, 1, 1, 4], [3], "abcd", "abcd")
    yield case("sum", "f32->f32", [2, 1, 3], [1, 2], "aBc8b", "any")
    yield case("sum", "s8->s32", [37], [0], "A16a", "any")
    yield case("max", "f16->f16", [5, 12], [0], "BA8a4b", "ab")
    yield case("sum", "bf16->f32", [2, 7, 2, 2, 3], [2, 4], "aBcde4b", "any")
    yield case("mean", "u8->u8", [2, 7, 2, 2, 1, 2], [2, 5], "aBcdef4b", "acdefb")


if __name__ == "__main__":
    everything = list(cases())
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "values.json")
    with open(path, "w") as file:
        head = {"source": "tests/onednn/values.py", "note": "buffers are hexadecimal bytes, little-endian"}
        lines = ",\n".join(json.dumps(one) for one in everything)
        file.write(json.dumps(head)[:-1] + ', "cases": [\n' + lines + "\n]}\n")
    print(len(everything), "cases,", os.path.getsize(path), "bytes")
