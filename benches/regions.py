#!/usr/bin/env python3
"""Regions of regions.txt with other libraries, and what the results say.

    regions.py PEER --out LINES.jsonl         times a peer: cranefold torch compile jax ort openvino
    regions.py --summary RESULTS.jsonl...     the table of what regions.sh collected

Each name after `#` in regions.txt has *forms*, which are functions that compute the region. The first form is the text
of the region, operation by operation, and every library runs it through an adapter. Further forms use a library's own
function, such as `F.layer_norm`. A peer is timed in each form that it has, and its fastest one counts.

The first form in float64 with NumPy is the reference. A form with another answer is reported and not timed: floats may
differ by 1e-3 of the greatest magnitude of the output (2e-2 in a bf16 region), i8 by 1, positions not at all.

Scalars of a region are constants to a peer and arguments to cranefold. A peer allocates its outputs as its users get
them: PyTorch and JAX in each call, ONNX Runtime and OpenVINO once.

Needs: numpy ml_dtypes onnx onnxruntime openvino jax torch, and g++ for torch.compile. The summary needs none of them.
"""

import argparse
import gc
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["torch", "compile", "jax", "ort", "openvino"]
OURS = "cranefold"
# Its first calls, less the first touch of their outputs.
TOUCHED = "cranefold, outputs touched"
SCALARS = {"scale": 0.125, "zero": 3.0, "delta": 1.0, "most": 1.0}
EXP_BOUND = re.compile("softmax|cross-entropy|KL|BCE|GELU|SwiGLU")


class Skip(Exception):
    """The reason why a peer has no time of a region."""


# ---- regions --------------------------------------------------------------------------------------------------------


class Case:
    """A line of regions.txt: its text before `#`, the name of its forms, and the head of its spec, read apart."""

    def __init__(self, line):
        text, name = line.rsplit("#", 1)
        self.text, self.name = text.strip(), name.strip()
        head = self.text.split("{")[0]
        found = re.findall(r"(\w+):(\w+)\[([\d,]*)\]", head)
        self.operands = [(n, dtype, tuple(int(d) for d in dims.split(",") if d)) for n, dtype, dims in found]
        self.scalars = re.findall(r"scalar (\w+):", head)
        shapes = [shape for _, _, shape in self.operands]
        rank = max(map(len, shapes))
        padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
        self.shape = tuple(max(extents) for extents in zip(*padded))
        axes = re.search(r"axes=\[([\d,-]*)\]", head)
        self.axes = tuple(int(a) % rank for a in axes[1].split(",")) if axes else tuple(range(rank))
        self.tolerance = 2e-2 if "bf16" in head else 1e-3

    def label(self):
        """The name with the type and the shape of the first operand."""
        _, dtype, shape = self.operands[0]
        return f"{self.name}, {dtype}[{','.join(map(str, shape))}]"

    def along(self, axis):
        """The shape of a vector along an axis of the region."""
        return [-1 if a == axis else 1 for a in range(len(self.shape))]

    def scalar_values(self):
        return [float(self.shape[0]) if name == "count" else SCALARS[name] for name in self.scalars]

    def arrays(self):
        """Random inputs, equal for each peer, at the start of a page; bf16 ones are of ml_dtypes' type."""
        rng = np.random.default_rng(7)
        classes = self.shape[-1]
        result = []
        for name, dtype, shape in self.operands:
            if dtype == "bool":
                value = rng.random(shape) < 0.7
            elif name == "label":
                value = rng.integers(0, classes, shape)
            elif dtype == "i8":
                value = rng.integers(-4, 5, shape) if name == "zero" else rng.integers(-128, 128, shape)
            elif name in ("r", "rstd", "scale"):
                value = 0.5 + rng.random(shape, np.float32)
            elif name == "p":
                value = rng.random(shape, np.float32)
                value /= value.sum(-1, keepdims=True)
            elif name == "logq":
                value = np.log(1e-3 + rng.random(shape, np.float32)) - np.float32(math.log(classes / 2))
            elif name == "t":
                value = rng.random(shape, np.float32)
            else:
                value = rng.standard_normal(shape, np.float32)
            result.append(aligned(value.astype(DTYPES[dtype])))
        return result


def aligned(array):
    buffer = np.empty(array.nbytes + 4096, np.uint8)
    start = -buffer.ctypes.data % 4096
    copy = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def cases(path, match):
    """The regions of a file, but those whose label does not match."""
    read = [Case(line) for line in open(path) if line.strip() and not line.startswith("#")]
    return [case for case in read if re.search(match, case.label())]


# ---- adapters: the operations of the first forms in each library ----------------------------------------------------
# A reduction goes over the axes of the region and keeps them with an extent of 1.


class Numpy:
    """The reference, in float64."""

    def __init__(self, case):
        self.case, self.axes = case, case.axes
        for name in ("exp", "log", "sqrt", "abs", "round", "where", "equal", "maximum", "minimum", "log1p"):
            setattr(self, name, getattr(np, name))

    def sum(self, x): return x.sum(self.axes, keepdims=True)
    def mean(self, x): return x.mean(self.axes, keepdims=True)
    def max(self, x): return x.max(self.axes, keepdims=True)
    def argmax(self, x): return x.argmax(self.axes[0], keepdims=True)
    def l2(self, x): return np.sqrt(self.sum(x * x))
    def std(self, x): return x.std(self.axes, keepdims=True)
    def rsqrt(self, x): return 1 / np.sqrt(x)
    def silu(self, x): return x / (1 + np.exp(-x))
    def tanh(self, x): return np.tanh(x)
    def take(self, x, label): return np.take_along_axis(x, label, self.axes[0])
    def f32(self, x): return x.astype(np.float64)
    def bf16(self, x): return x
    def i8(self, x): return np.clip(x, -128, 127).astype(np.int8)

    def erf(self, x):
        """|x| to 1.5e-7 by Abramowitz and Stegun, 7.1.26; the standard library's function is too slow here."""
        t = 1 / (1 + 0.3275911 * np.abs(x))
        p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
        return np.sign(x) * (1 - p * np.exp(-x * x))

    def position(self, axis): return np.arange(self.case.shape[axis]).reshape(self.case.along(axis))


class Torch:
    """PyTorch, for eager calls and for torch.compile."""

    def __init__(self, case):
        self.case, self.axes, self.dim, self.torch = case, list(case.axes), case.axes[0], torch
        self.F, self.aten = torch.nn.functional, torch.ops.aten
        for name in ("exp", "log", "sqrt", "rsqrt", "abs", "round", "erf", "tanh", "log1p", "where"):
            setattr(self, name, getattr(torch, name))
        self.silu, self.equal = self.F.silu, torch.eq

    def sum(self, x): return x.sum(self.axes, keepdim=True)
    def mean(self, x): return x.mean(self.axes, keepdim=True)
    def max(self, x): return x.amax(self.axes, keepdim=True)
    def argmax(self, x): return x.argmax(self.dim, keepdim=True)
    def l2(self, x): return torch.linalg.vector_norm(x, 2, self.axes, keepdim=True)
    def std(self, x): return x.std(self.axes, correction=0, keepdim=True)
    def take(self, x, label): return x.gather(self.dim, label)
    def f32(self, x): return x.float()
    def bf16(self, x): return x.bfloat16()
    def i8(self, x): return x.clamp(-128, 127).to(torch.int8)

    def maximum(self, x, y):
        return x.clamp(min=y) if isinstance(y, (int, float)) else torch.maximum(x, y)

    def minimum(self, x, y):
        return x.clamp(max=y) if isinstance(y, (int, float)) else torch.minimum(x, y)

    def position(self, axis): return torch.arange(self.case.shape[axis]).view(self.case.along(axis))


class Jax:
    """JAX, under `jit`."""

    def __init__(self, case):
        self.case, self.axes, self.dim = case, case.axes, case.axes[0]
        self.jax, self.np, self.nn = jax, jax.numpy, jax.nn
        for name in ("exp", "log", "sqrt", "abs", "round", "tanh", "log1p", "where", "equal", "maximum", "minimum"):
            setattr(self, name, getattr(jax.numpy, name))
        self.rsqrt, self.erf, self.silu = jax.lax.rsqrt, jax.lax.erf, jax.nn.silu

    def sum(self, x): return x.sum(self.axes, keepdims=True)
    def mean(self, x): return x.mean(self.axes, keepdims=True)
    def max(self, x): return x.max(self.axes, keepdims=True)
    def argmax(self, x): return x.argmax(self.dim, keepdims=True)
    def l2(self, x): return self.np.sqrt(self.sum(x * x))
    def std(self, x): return x.std(self.axes, keepdims=True)
    def take(self, x, label): return self.np.take_along_axis(x, label, self.dim)
    def f32(self, x): return x.astype(self.np.float32)
    def bf16(self, x): return x.astype(self.np.bfloat16)
    def i8(self, x): return self.np.clip(x, -128, 127).astype(self.np.int8)
    def position(self, axis): return jax.lax.broadcasted_iota(self.np.int32, self.case.shape, axis)


class Value:
    """A value of an ONNX graph; operators add nodes."""

    def __init__(self, graph, name, dtype):
        self.graph, self.name, self.dtype = graph, name, dtype

    def __neg__(self): return self.graph.op("Neg", self)
    def __add__(self, y): return self.graph.op("Add", self, y)
    def __radd__(self, y): return self.graph.op("Add", y, self)
    def __sub__(self, y): return self.graph.op("Sub", self, y)
    def __rsub__(self, y): return self.graph.op("Sub", y, self)
    def __mul__(self, y): return self.graph.op("Mul", self, y)
    def __rmul__(self, y): return self.graph.op("Mul", y, self)
    def __truediv__(self, y): return self.graph.op("Div", self, y)
    def __rtruediv__(self, y): return self.graph.op("Div", y, self)
    def __le__(self, y): return self.graph.op("LessOrEqual", self, y, dtypes=["bool"])
    def __gt__(self, y): return self.graph.op("Greater", self, y, dtypes=["bool"])


class Onnx:
    """A graph of ONNX operators, for ONNX Runtime and OpenVINO, as an exporter would make it."""

    def __init__(self, case):
        self.case, self.axes, self.dim = case, list(case.axes), case.axes[0]
        self.nodes, self.constants, self.names = [], [], 0

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def constant(self, value, dtype):
        name = self.name()
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(value, DTYPES[dtype]), name))
        return Value(self, name, dtype)

    def op(self, kind, *inputs, dtypes=None, domain="", **attributes):
        """A node with a result of each type of a list, or one result of the type of the first input that is no mask.
        Plain numbers have this type too."""
        first = next((x.dtype for x in inputs if isinstance(x, Value) and x.dtype != "bool"), "f32")
        inputs = [x if isinstance(x, Value) else self.constant(x, first) for x in inputs]
        values = [Value(self, self.name(), dtype) for dtype in dtypes or [first]]
        names = [value.name for value in inputs], [value.name for value in values]
        self.nodes.append(onnx.helper.make_node(kind, *names, domain=domain, **attributes))
        return values if len(values) > 1 else values[0]

    def over_axes(self, kind, x):
        return self.op(kind, x, self.constant(self.axes, "i64"), keepdims=1)

    def sum(self, x): return self.over_axes("ReduceSum", x)
    def mean(self, x): return self.over_axes("ReduceMean", x)
    def max(self, x): return self.over_axes("ReduceMax", x)
    def l2(self, x): return self.over_axes("ReduceL2", x)
    def argmax(self, x): return self.op("ArgMax", x, dtypes=["i64"], axis=self.dim, keepdims=1)
    def exp(self, x): return self.op("Exp", x)
    def log(self, x): return self.op("Log", x)
    def sqrt(self, x): return self.op("Sqrt", x)
    def rsqrt(self, x): return 1.0 / self.op("Sqrt", x)
    def abs(self, x): return self.op("Abs", x)
    def round(self, x): return self.op("Round", x)
    def erf(self, x): return self.op("Erf", x)
    def tanh(self, x): return self.op("Tanh", x)
    def log1p(self, x): return self.op("Log", 1.0 + x)
    def silu(self, x): return x * self.op("Sigmoid", x)
    def maximum(self, x, y): return self.op("Relu", x) if isinstance(y, int) and y == 0 else self.op("Max", x, y)
    def minimum(self, x, y): return self.op("Min", x, y)
    def equal(self, x, y): return self.op("Equal", x, y, dtypes=["bool"])
    def take(self, x, label): return self.op("GatherElements", x, label, axis=self.dim)
    def where(self, condition, x, y): return self.op("Where", condition, x, y)
    def cast(self, x, dtype): return self.op("Cast", x, dtypes=[dtype], to=ONNX_TYPES[dtype])
    def f32(self, x): return self.cast(x, "f32")
    def bf16(self, x): return self.cast(x, "bf16")
    def i8(self, x): return self.cast(self.op("Clip", x, -128.0, 127.0), "i8")

    def std(self, x):
        c = x - self.mean(x)
        return self.sqrt(self.mean(c * c))

    def position(self, axis):
        return self.constant(np.arange(self.case.shape[axis]).reshape(self.case.along(axis)), "i64")

    def model(self, function, arrays):
        """The bytes of the model that a form makes."""
        inputs = [Value(self, f"x{i}", name_of(array.dtype)) for i, array in enumerate(arrays)]
        outputs = in_list(function(self, *inputs, *self.case.scalar_values()))
        info = onnx.helper.make_tensor_value_info
        heads = [info(x.name, ONNX_TYPES[x.dtype], array.shape) for x, array in zip(inputs, arrays)]
        tails = [info(x.name, ONNX_TYPES[x.dtype], None) for x in outputs]
        opset = 23 if any(node.op_type == "RMSNormalization" for node in self.nodes) else 21
        imports = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("com.microsoft", 1)]
        if not any(node.domain for node in self.nodes):
            imports.pop()
        graph = onnx.helper.make_graph(self.nodes, "region", heads, tails, self.constants)
        return onnx.helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def in_list(outputs):
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


# ---- forms ----------------------------------------------------------------------------------------------------------


FORMS = defaultdict(list)


def form(name, kind=None, reshape=None):
    """Registers a function as a form of a region: the first without a kind of library, others for the libraries of one.
    `reshape` gives the operands other shapes before any call."""

    def register(function):
        FORMS[name].append((kind, function, reshape))
        return function

    return register


@form("softmax")
def _(xp, x):
    e = xp.exp(x - xp.max(x))
    return e / xp.sum(e)


form("softmax", "torch")(lambda xp, x: xp.F.softmax(x, 1))
form("softmax", "jax")(lambda xp, x: xp.nn.softmax(x, 1))
form("softmax", "onnx")(lambda xp, x: xp.op("Softmax", x, axis=1))


@form("softmax bf16")
def _(xp, x):
    x = xp.f32(x)
    e = xp.exp(x - xp.max(x))
    return xp.bf16(e / xp.sum(e))


form("softmax bf16", "torch")(lambda xp, x: xp.F.softmax(x, 1))
form("softmax bf16", "jax")(lambda xp, x: xp.nn.softmax(x, 1))
form("softmax bf16", "openvino")(lambda xp, x: xp.op("Softmax", x, axis=1))
form("softmax bf16", "onnx")(lambda xp, x: xp.bf16(xp.op("Softmax", xp.f32(x), axis=1)))


@form("masked softmax")
def _(xp, x, mask, scale):
    y = x * scale + mask
    m = xp.max(y)
    e = xp.exp(y - m)
    s = xp.sum(e)
    return e / s, m + xp.log(s)


@form("masked softmax", "torch")
def _(xp, x, mask, scale):
    y = xp.torch.add(mask, x, alpha=scale)
    return xp.F.softmax(y, 1), xp.torch.logsumexp(y, 1)


@form("masked softmax", "jax")
def _(xp, x, mask, scale):
    y = x * scale + mask
    return xp.nn.softmax(y, 1), xp.nn.logsumexp(y, 1)


@form("masked softmax", "onnx")
def _(xp, x, mask, scale):
    y = x * scale + mask
    return xp.op("Softmax", y, axis=1), xp.over_axes("ReduceLogSumExp", y)


@form("causal softmax")
def _(xp, x):
    y = xp.where(xp.position(2) <= xp.position(1), x, -math.inf)
    e = xp.exp(y - xp.max(y))
    return e / xp.sum(e)


@form("causal softmax", "torch")
def _(xp, x):
    # Models keep the mask from call to call.
    if not hasattr(xp, "mask"):
        xp.mask = xp.position(2) > xp.position(1)
    return xp.F.softmax(x.masked_fill(xp.mask, -math.inf), 2)


@form("causal softmax", "jax")
def _(xp, x):
    return xp.nn.softmax(xp.where(xp.position(2) <= xp.position(1), x, -math.inf), 2)


@form("causal softmax", "onnx")
def _(xp, x):
    return xp.op("Softmax", xp.where(xp.position(2) <= xp.position(1), x, -math.inf), axis=2)


@form("causal softmax", "onnx")
def _(xp, x):
    n = xp.case.shape[2]
    mask = np.where(np.tri(n, dtype=bool), 0, -np.inf)
    return xp.op("Softmax", x + xp.constant(mask, "f32"), axis=2)


@form("log softmax")
def _(xp, x):
    m = xp.max(x)
    return x - m - xp.log(xp.sum(xp.exp(x - m)))


form("log softmax", "torch")(lambda xp, x: xp.F.log_softmax(x, 1))
form("log softmax", "jax")(lambda xp, x: xp.nn.log_softmax(x, 1))
form("log softmax", "onnx")(lambda xp, x: xp.op("LogSoftmax", x, axis=1))


@form("cross-entropy")
def _(xp, x, label):
    m = xp.max(x)
    return m + xp.log(xp.sum(xp.exp(x - m))) - xp.take(x, label)


form("cross-entropy", "torch")(lambda xp, x, label: xp.F.cross_entropy(x, label.squeeze(1), reduction="none"))
form("cross-entropy", "torch")(lambda xp, x, label: xp.torch.logsumexp(x, 1, keepdim=True) - x.gather(1, label))
form("cross-entropy", "jax")(lambda xp, x, label: xp.nn.logsumexp(x, 1, keepdims=True) - xp.take(x, label))
form("cross-entropy", "jax")(lambda xp, x, label: -xp.take(xp.nn.log_softmax(x, 1), label))
form("cross-entropy", "onnx")(lambda xp, x, label: xp.over_axes("ReduceLogSumExp", x) - xp.take(x, label))
form("cross-entropy", "onnx", lambda x, label: (x, label.reshape(-1)))(
    lambda xp, x, label: xp.op("SoftmaxCrossEntropyLoss", x, label, reduction="none"))


@form("cross-entropy gradient")
def _(xp, x, label, count):
    e = xp.exp(x - xp.max(x))
    return (e / xp.sum(e) - xp.where(xp.equal(xp.position(1), label), 1.0, 0.0)) / count


@form("cross-entropy gradient", "torch")
def _(xp, x, label, count):
    p = xp.F.softmax(x, 1)
    p.scatter_add_(1, label, xp.torch.full_like(label, -1, dtype=p.dtype))
    return p.div_(count)


@form("cross-entropy gradient", "torch")
def _(xp, x, label, count):
    return (xp.F.softmax(x, 1) - xp.F.one_hot(label.squeeze(1), x.shape[1])) / count


@form("cross-entropy gradient", "jax")
def _(xp, x, label, count):
    return (xp.nn.softmax(x, 1) - xp.nn.one_hot(label[:, 0], x.shape[1])) / count


@form("cross-entropy gradient", "onnx")
def _(xp, x, label, count):
    return (xp.op("Softmax", x, axis=1) - xp.where(xp.equal(xp.position(1), label), 1.0, 0.0)) / count


@form("cross-entropy gradient", "onnx")
def _(xp, x, label, count):
    p = xp.op("Softmax", x, axis=1) * (1 / count)
    minus = xp.constant(np.full((xp.case.shape[0], 1), -1 / count), "f32")
    return xp.op("ScatterElements", p, label, minus, axis=1, reduction="add")


@form("softmax backward")
def _(xp, y, dy):
    return y * (dy - xp.sum(y * dy))


form("softmax backward", "torch")(lambda xp, y, dy: xp.aten._softmax_backward_data(dy, y, 1, y.dtype))


@form("log softmax backward")
def _(xp, y, dy):
    return dy - xp.exp(y) * xp.sum(dy)


form("log softmax backward", "torch")(lambda xp, y, dy: xp.aten._log_softmax_backward_data(dy, y, 1, y.dtype))


def normalised(xp, x, w, b, eps=1e-5):
    c = x - xp.mean(x)
    return c / xp.sqrt(xp.mean(c * c) + eps) * w + b


def normalised_at_once(xp, x, w, b, eps=1e-5):
    """The norm as Flax computes it, whose statistics take one visit."""
    m = xp.mean(x)
    v = xp.maximum(xp.mean(x * x) - m * m, 0.0)
    return (x - m) * (xp.rsqrt(v + eps) * w) + b


def onnx_layer_norm(xp, x, w, b):
    return xp.op("LayerNormalization", x, w, b, axis=1, epsilon=1e-5)


form("layer norm")(normalised)
form("layer norm", "torch")(lambda xp, x, w, b: xp.F.layer_norm(x, w.shape, w, b, 1e-5))
form("layer norm", "jax")(normalised_at_once)
form("layer norm", "jax")(lambda xp, x, w, b: xp.nn.standardize(x, axis=1, epsilon=1e-5) * w + b)
form("layer norm", "onnx")(onnx_layer_norm)

form("layer norm bf16")(lambda xp, x, w, b: xp.bf16(normalised(xp, *map(xp.f32, (x, w, b)))))
form("layer norm bf16", "torch")(lambda xp, x, w, b: xp.F.layer_norm(x, w.shape, w, b, 1e-5))
form("layer norm bf16", "jax")(lambda xp, x, w, b: xp.bf16(normalised_at_once(xp, *map(xp.f32, (x, w, b)))))
form("layer norm bf16", "onnx")(onnx_layer_norm)
form("layer norm bf16", "onnx")(lambda xp, x, w, b: xp.bf16(onnx_layer_norm(xp, *map(xp.f32, (x, w, b)))))


@form("residual layer norm")
def _(xp, x, h, w, b):
    y = x + h
    m = xp.mean(y)
    c = y - m
    r = 1.0 / xp.sqrt(xp.mean(c * c) + 1e-5)
    return y, c * r * w + b, m, r


@form("residual layer norm", "torch")
def _(xp, x, h, w, b):
    y = x + h
    return y, *xp.torch.native_layer_norm(y, w.shape, w, b, 1e-5)


@form("residual layer norm", "jax")
def _(xp, x, h, w, b):
    y = x + h
    m = xp.mean(y)
    r = xp.rsqrt(xp.maximum(xp.mean(y * y) - m * m, 0.0) + 1e-5)
    return y, (y - m) * (r * w) + b, m, r


@form("residual layer norm", "onnx")
def _(xp, x, h, w, b):
    y = x + h
    results = xp.op("LayerNormalization", y, w, b, dtypes=["f32"] * 3, axis=1, epsilon=1e-5)
    return y, *results


@form("residual layer norm", "onnx")
def _(xp, x, h, w, b):
    y = x + h
    m = xp.mean(y)
    c = y - m
    return y, onnx_layer_norm(xp, y, w, b), m, 1.0 / xp.sqrt(xp.mean(c * c) + 1e-5)


@form("layer norm to int8")
def _(xp, x, w, b, scale, zero):
    return xp.i8(xp.round(normalised(xp, x, w, b) / scale) + zero)


@form("layer norm to int8", "torch")
def _(xp, x, w, b, scale, zero):
    y = xp.F.layer_norm(x, w.shape, w, b, 1e-5)
    return xp.i8(xp.round(y / scale) + zero)


@form("layer norm to int8", "eager")
def _(xp, x, w, b, scale, zero):
    y = xp.F.layer_norm(x, w.shape, w, b, 1e-5)
    return xp.torch.quantize_per_tensor(y, scale, int(zero), xp.torch.qint8).int_repr()


@form("layer norm to int8", "jax")
def _(xp, x, w, b, scale, zero):
    return xp.i8(xp.round(normalised_at_once(xp, x, w, b) / scale) + zero)


@form("layer norm to int8", "onnx")
def _(xp, x, w, b, scale, zero):
    constants = xp.constant(scale, "f32"), xp.constant(zero, "i8")
    return xp.op("QuantizeLinear", onnx_layer_norm(xp, x, w, b), *constants, dtypes=["i8"])


@form("layer norm backward dx")
def _(xp, x, dy, w, mu, rstd):
    h = (x - mu) * rstd
    g = dy * w
    return (g - h * xp.mean(g * h) - xp.mean(g)) * rstd


@form("layer norm backward dx", "torch")
def _(xp, x, dy, w, mu, rstd):
    return xp.aten.native_layer_norm_backward(dy, x, w.shape, mu, rstd, w, None, [True, False, False])[0]


@form("dgamma and dbeta")
def _(xp, x, dy, mu, rstd):
    return xp.sum(dy * ((x - mu) * rstd)), xp.sum(dy)


@form("dgamma and dbeta", "torch")
def _(xp, x, dy, mu, rstd):
    if not hasattr(xp, "ones"):
        xp.ones = xp.torch.ones(x.shape[1])
    return xp.aten.native_layer_norm_backward(dy, x, [x.shape[1]], mu, rstd, xp.ones, xp.ones, [False, True, True])[1:]


@form("rms norm")
def _(xp, x, w):
    return x * xp.rsqrt(xp.mean(x * x) + 1e-6) * w


form("rms norm", "torch")(lambda xp, x, w: xp.F.rms_norm(x, w.shape, w, 1e-6))
form("rms norm", "onnx")(lambda xp, x, w: xp.op("RMSNormalization", x, w, axis=1, epsilon=1e-6))
form("rms norm", "ort")(lambda xp, x, w: xp.op("SimplifiedLayerNormalization", x, w, axis=1, epsilon=1e-6))


@form("rms norm bf16")
def _(xp, x, w):
    x32 = xp.f32(x)
    r = xp.rsqrt(xp.mean(x32 * x32) + 1e-6)
    return xp.bf16(xp.f32(xp.bf16(x32 * r)) * xp.f32(w))


form("rms norm bf16", "torch")(lambda xp, x, w: xp.F.rms_norm(x, w.shape, w, 1e-6))
form("rms norm bf16", "openvino")(lambda xp, x, w: xp.op("RMSNormalization", x, w, axis=1, epsilon=1e-6))
form("rms norm bf16", "ort")(
    lambda xp, x, w: xp.bf16(xp.op("SimplifiedLayerNormalization", xp.f32(x), xp.f32(w), axis=1, epsilon=1e-6)))


@form("rms norm backward")
def _(xp, x, dy, w, r):
    g = dy * w
    k = xp.mean(g * x)
    return g * r - x * (k * r * r * r)


@form("SwiGLU rms norm")
def _(xp, a, b, w):
    y = xp.silu(a) * b
    return y * xp.rsqrt(xp.mean(y * y) + 1e-6) * w


form("SwiGLU rms norm", "torch")(lambda xp, a, b, w: xp.F.rms_norm(xp.F.silu(a) * b, w.shape, w, 1e-6))
form("SwiGLU rms norm", "onnx")(
    lambda xp, a, b, w: xp.op("RMSNormalization", xp.silu(a) * b, w, axis=1, epsilon=1e-6))
form("SwiGLU rms norm", "ort")(
    lambda xp, a, b, w: xp.op("SimplifiedLayerNormalization", xp.silu(a) * b, w, axis=1, epsilon=1e-6))


def images(x, w, b):
    """The operands of a group norm in NCHW with all channels in one axis."""
    n, groups, channels, height, width = x.shape
    return x.reshape(n, groups * channels, height, width), w.reshape(-1), b.reshape(-1)


def images_last(x, w, b):
    return x.reshape(*x.shape[:3], -1), w.reshape(-1), b.reshape(-1)


def to_last(y):
    return y.permute(0, 2, 3, 1)


def channels_second(xp, x):
    return xp.op("Transpose", x, perm=[0, 3, 1, 2])


def channels_last(xp, x):
    return xp.op("Transpose", x, perm=[0, 2, 3, 1])


form("group norm NCHW")(normalised)
form("group norm NCHW", "torch", images)(lambda xp, x, w, b: xp.F.group_norm(x, 32, w, b, 1e-5))
form("group norm NCHW", "jax")(normalised_at_once)
form("group norm NCHW", "onnx", images)(
    lambda xp, x, w, b: xp.op("GroupNormalization", x, w, b, num_groups=32, epsilon=1e-5))

form("group norm NHWC")(normalised)
form("group norm NHWC", "torch", images_last)(
    lambda xp, x, w, b: to_last(xp.F.group_norm(x.permute(0, 3, 1, 2), 32, w, b, 1e-5)))
form("group norm NHWC", "jax")(normalised_at_once)


@form("group norm NHWC", "onnx", images_last)
def _(xp, x, w, b):
    y = xp.op("GroupNormalization", channels_second(xp, x), w, b, num_groups=32, epsilon=1e-5)
    return channels_last(xp, y)


def batch_norm(xp, x, w, b):
    m = xp.mean(x)
    c = x - m
    v = xp.mean(c * c)
    return c / xp.sqrt(v + 1e-5) * w + b, m, v


def batch_norm_at_once(xp, x, w, b):
    m = xp.mean(x)
    v = xp.maximum(xp.mean(x * x) - m * m, 0.0)
    return (x - m) * (xp.rsqrt(v + 1e-5) * w) + b, m, v


def torch_batch_norm(xp, x, w, b):
    y, m, r = xp.torch.native_batch_norm(x, w, b, None, None, True, 0.0, 1e-5)
    return y, m, 1 / (r * r) - 1e-5


def flat_parameters(x, w, b):
    return x, w.reshape(-1), b.reshape(-1)


def onnx_batch_norm(xp, x, w, b, axis=1):
    channels = xp.case.shape[axis]
    running = xp.constant(np.zeros(channels), "f32"), xp.constant(np.ones(channels), "f32")
    words = {"training_mode": 1, "momentum": 0.0, "epsilon": 1e-5}
    return xp.op("BatchNormalization", x, w, b, *running, dtypes=["f32"] * 3, **words)


def torch_batch_norm_last(xp, x, w, b):
    y, m, v = torch_batch_norm(xp, x.permute(0, 3, 1, 2), w, b)
    return to_last(y), m, v


form("batch norm NCHW")(batch_norm)
form("batch norm NCHW", "torch", flat_parameters)(torch_batch_norm)
form("batch norm NCHW", "jax")(batch_norm_at_once)
form("batch norm NCHW", "onnx", flat_parameters)(onnx_batch_norm)
form("batch norm NHWC")(batch_norm)
form("batch norm NHWC", "torch")(torch_batch_norm_last)
form("batch norm NHWC", "jax")(batch_norm_at_once)


@form("batch norm NHWC", "onnx")
def _(xp, x, w, b):
    y, m, v = onnx_batch_norm(xp, channels_second(xp, x), w, b, axis=3)
    return channels_last(xp, y), m, v


@form("L2 normalisation")
def _(xp, x):
    return x / xp.maximum(xp.l2(x), 1e-12)


form("L2 normalisation", "torch")(lambda xp, x: xp.F.normalize(x, dim=1, eps=1e-12))
form("L2 normalisation", "onnx")(lambda xp, x: xp.op("LpNormalization", x, axis=1, p=2))


@form("cosine similarity")
def _(xp, a, b):
    return xp.sum(a * b) / xp.maximum(xp.sqrt(xp.sum(a * a)) * xp.sqrt(xp.sum(b * b)), 1e-8)


form("cosine similarity", "torch")(lambda xp, a, b: xp.F.cosine_similarity(a, b, dim=1, eps=1e-8))
form("cosine similarity", "torch")(
    lambda xp, a, b: (a * b).sum(1, keepdim=True) / xp.maximum(xp.l2(a) * xp.l2(b), 1e-8))
form("cosine similarity", "onnx")(lambda xp, a, b: xp.sum(a * b) / xp.maximum(xp.l2(a) * xp.l2(b), 1e-8))


@form("MSE")
def _(xp, y, t):
    d = y - t
    return xp.mean(d * d)


form("MSE", "torch")(lambda xp, y, t: xp.F.mse_loss(y, t))


@form("KL divergence")
def _(xp, p, logq):
    return xp.sum(xp.where(p > 0, p * (xp.log(p) - logq), 0.0))


form("KL divergence", "torch")(lambda xp, p, logq: xp.F.kl_div(logq, p, reduction="none").sum(1))
form("KL divergence", "jax")(lambda xp, p, logq: xp.sum(xp.jax.scipy.special.xlogy(p, p) - p * logq))


@form("Huber loss")
def _(xp, y, t, delta):
    a = xp.abs(y - t)
    return xp.mean(xp.where(a <= delta, 0.5 * a * a, delta * (a - 0.5 * delta)))


form("Huber loss", "torch")(lambda xp, y, t, delta: xp.F.huber_loss(y, t, reduction="none", delta=delta).mean(1))


@form("BCE with logits")
def _(xp, x, t):
    return xp.mean(xp.maximum(x, 0) - x * t + xp.log1p(xp.exp(-xp.abs(x))))


form("BCE with logits", "torch")(
    lambda xp, x, t: xp.F.binary_cross_entropy_with_logits(x, t, reduction="none").mean(1))
form("BCE with logits", "torch")(lambda xp, x, t: (xp.F.softplus(x) - x * t).mean(1))
form("BCE with logits", "jax")(lambda xp, x, t: xp.mean(xp.nn.softplus(x) - x * t))
form("BCE with logits", "jax")(
    lambda xp, x, t: xp.mean(-t * xp.nn.log_sigmoid(x) - (1 - t) * xp.nn.log_sigmoid(-x)))
form("BCE with logits", "onnx")(lambda xp, x, t: xp.mean(xp.op("Softplus", x) - x * t))


@form("int8 quantisation of rows")
def _(xp, x):
    s = xp.max(xp.abs(x)) / 127.0
    return xp.i8(xp.round(x / s)), s


@form("int8 quantisation of rows", "torch")
def _(xp, x):
    s = xp.torch.linalg.vector_norm(x, math.inf, 1, keepdim=True) / 127.0
    return xp.round(x / s).to(xp.torch.int8), s


@form("int8 quantisation of rows", "jax")
def _(xp, x):
    s = xp.max(xp.abs(x)) / 127.0
    return xp.round(x / s).astype(xp.np.int8), s


@form("int8 quantisation of rows", "onnx")
def _(xp, x):
    s = xp.max(xp.abs(x)) / 127.0
    return xp.cast(xp.round(x / s), "i8"), s


@form("dequantise and reduce")
def _(xp, q, scale, zero):
    return xp.sum((xp.f32(q) - xp.f32(zero)) * scale)


form("dequantise and reduce", "torch")(lambda xp, q, scale, zero: (q.float() - zero) @ scale)
form("dequantise and reduce", "jax")(lambda xp, q, scale, zero: (xp.f32(q) - xp.f32(zero)) @ scale)
form("dequantise and reduce", "onnx")(
    lambda xp, q, scale, zero: xp.sum(xp.op("DequantizeLinear", q, scale, zero, dtypes=["f32"], axis=1)))
form("dequantise and reduce", "onnx")(lambda xp, q, scale, zero: xp.op("MatMul", xp.f32(q) - xp.f32(zero), scale))


@form("masked mean and variance")
def _(xp, x, mask):
    n = xp.sum(xp.f32(mask))
    m = xp.sum(xp.where(mask, x, 0.0)) / n
    d = xp.where(mask, x - m, 0.0)
    return m, xp.sum(d * d) / n


form("masked mean and variance", "torch")(
    lambda xp, x, mask: masked_moments(mask.float(), x, lambda e: e.sum(1, keepdim=True)))
form("masked mean and variance", "jax")(
    lambda xp, x, mask: (xp.np.mean(x, 1, where=mask), xp.np.var(x, 1, where=mask)))
form("masked mean and variance", "onnx")(lambda xp, x, mask: masked_moments(xp.f32(mask), x, xp.sum))


def masked_moments(weight, x, total):
    """The masked mean and variance by products, which are faster than a select where each operation is a kernel."""
    n = total(weight)
    m = total(x * weight) / n
    d = (x - m) * weight
    return m, total(d * d) / n


@form("max, argmax")
def _(xp, x):
    return xp.max(x), xp.argmax(x)


form("max, argmax", "torch")(lambda xp, x: tuple(x.max(1)))


@form("max, argmax", "onnx")
def _(xp, x):
    return xp.op("TopK", x, xp.constant([1], "i64"), dtypes=["f32", "i64"], axis=1)


@form("GELU and bias gradient")
def _(xp, x, dy):
    cdf = 0.5 * (1.0 + xp.erf(x * 0.7071067811865476))
    pdf = 0.3989422804014327 * xp.exp(-0.5 * x * x)
    dx = dy * (cdf + x * pdf)
    return dx, xp.sum(dx)


@form("GELU and bias gradient", "torch")
def _(xp, x, dy):
    dx = xp.aten.gelu_backward(dy, x, approximate="none")
    return dx, dx.sum(0)


@form("GELU and bias gradient", "jax")
def _(xp, x, dy):
    dx = xp.jax.vjp(lambda x: xp.nn.gelu(x, approximate=False), x)[1](dy)[0]
    return dx, dx.sum(0)


@form("GELU tanh")
def _(xp, x):
    return 0.5 * x * (1.0 + xp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


form("GELU tanh", "torch")(lambda xp, x: xp.F.gelu(x, approximate="tanh"))
form("GELU tanh", "jax")(lambda xp, x: xp.nn.gelu(x, approximate=True))
form("GELU tanh", "onnx")(lambda xp, x: xp.op("Gelu", x, approximate="tanh"))
form("GELU tanh", "ort")(lambda xp, x: xp.op("FastGelu", x, domain="com.microsoft"))


@form("global average pool with ReLU")
def _(xp, x):
    return xp.mean(xp.maximum(x, 0))


form("global average pool with ReLU", "torch")(lambda xp, x: xp.F.adaptive_avg_pool2d(xp.F.relu(x), 1))
form("global average pool with ReLU", "onnx")(lambda xp, x: xp.op("GlobalAveragePool", xp.op("Relu", x)))


def pixels(x):
    """The input of a pooling without axes of its own for the windows."""
    n, channels, height, a, width, b = x.shape
    return (x.reshape(n, channels, height * a, width * b),)


def rows_maximum(xp, x):
    return xp.torch.maximum(x[..., ::2, :], x[..., 1::2, :])


form("pooling 2x2")(lambda xp, x: xp.max(x))
form("pooling 2x2", "torch", pixels)(lambda xp, x: xp.F.max_pool2d(x, 2))
form("pooling 2x2", "torch", pixels)(
    lambda xp, x: xp.torch.maximum(rows_maximum(xp, x[..., ::2]), rows_maximum(xp, x[..., 1::2])))
form("pooling 2x2", "jax", pixels)(
    lambda xp, x: xp.jax.lax.reduce_window(x, -math.inf, xp.jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"))
form("pooling 2x2", "onnx", pixels)(lambda xp, x: xp.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))


@form("standardise")
def _(xp, x):
    return (x - xp.mean(x)) / xp.std(x)


@form("standardise", "torch")
def _(xp, x):
    std, mean = xp.torch.std_mean(x, 1, correction=0, keepdim=True)
    return (x - mean) / std


form("standardise", "torch")(lambda xp, x: xp.F.layer_norm(x, x.shape[1:], eps=0.0))
form("standardise", "jax")(lambda xp, x: xp.nn.standardize(x, axis=1, epsilon=0.0))
form("standardise", "onnx")(
    lambda xp, x: xp.op("LayerNormalization", x, xp.constant(np.ones(xp.case.shape[1]), "f32"), axis=1, epsilon=0.0))
form("standardise", "openvino")(lambda xp, x: xp.op("MeanVarianceNormalization", x, axes=[1]))


@form("clip by norm")
def _(xp, x, most):
    n = xp.l2(x)
    return x * xp.minimum(most / (n + 1e-6), 1.0), n


# ---- peers: what makes a form a call without arguments, which returns its outputs -----------------------------------


def name_of(dtype):
    return next(name for name, known in DTYPES.items() if known == dtype)


def torch_arrays(arrays):
    def tensor(array):
        if array.dtype == DTYPES["bf16"]:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    return [tensor(array) for array in arrays]


def torch_numpy(outputs):
    return [x.float().numpy() if x.dtype == torch.bfloat16 else x.numpy() for x in in_list(outputs)]


def prepare_torch(case, function, arrays):
    xp, inputs, scalars = Torch(case), torch_arrays(arrays), case.scalar_values()
    return lambda: (lambda: function(xp, *inputs, *scalars)), torch_numpy


def prepare_compile(case, function, arrays):
    xp, inputs, scalars = Torch(case), torch_arrays(arrays), case.scalar_values()

    def build():
        torch._dynamo.reset()
        compiled = torch.compile(lambda *inputs: function(xp, *inputs, *scalars), dynamic=False, fullgraph=True)
        return lambda: compiled(*inputs)

    return build, torch_numpy


def prepare_jax(case, function, arrays):
    xp, scalars = Jax(case), case.scalar_values()
    inputs = [jax.device_put(array) for array in arrays]

    def build():
        # One computation gives all outputs, which are ready together.
        compiled = jax.jit(lambda *inputs: tuple(in_list(function(xp, *inputs, *scalars))))

        def call():
            outputs = compiled(*inputs)
            outputs[-1].block_until_ready()
            return outputs

        return call

    return build, lambda outputs: [np.asarray(x) for x in outputs]


def prepare_ort(case, function, arrays):
    model = Onnx(case).model(function, arrays)

    def build():
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for place, array in zip(session.get_inputs(), arrays):
            kind = ONNX_TYPES[name_of(array.dtype)]
            binding.bind_input(place.name, "cpu", 0, kind, list(array.shape), array.ctypes.data)
        outputs = []
        for place in session.get_outputs():
            dtype = ORT_TYPES[place.type]
            array = aligned(np.zeros(place.shape, DTYPES[dtype]))
            binding.bind_output(place.name, "cpu", 0, ONNX_TYPES[dtype], place.shape, array.ctypes.data)
            outputs.append(array)

        def call():
            session.run_with_iobinding(binding)
            return outputs

        return call

    return build, list


def prepare_openvino(case, function, arrays):
    model = Onnx(case).model(function, arrays)
    config = {"INFERENCE_NUM_THREADS": THREADS, "NUM_STREAMS": "1", "PERFORMANCE_HINT": "LATENCY"}
    # On processors with bf16 its default is to compute in this type.
    config["INFERENCE_PRECISION_HINT"] = "f32"

    def tensor(array):
        if array.dtype == DTYPES["bf16"]:
            return openvino.Tensor(array.view(np.uint16), openvino.Shape(array.shape), openvino.Type.bf16)
        return openvino.Tensor(array, shared_memory=True)

    def build():
        compiled = CORE.compile_model(CORE.read_model(model), "CPU", config)
        request = compiled.create_infer_request()
        for i, array in enumerate(arrays):
            request.set_input_tensor(i, tensor(array))

        def call():
            request.infer(share_outputs=True)
            return request

        return call

    def outputs(request):
        narrow = openvino.Type.bf16
        return [t.data.view(DTYPES["bf16"]) if t.element_type == narrow else t.data for t in request.output_tensors]

    return build, outputs


KINDS = {
    "torch": ("torch", "eager"),
    "compile": ("torch",),
    "jax": ("jax",),
    "ort": ("onnx", "ort"),
    "openvino": ("onnx", "openvino"),
}
PREPARE = {
    "torch": prepare_torch,
    "compile": prepare_compile,
    "jax": prepare_jax,
    "ort": prepare_ort,
    "openvino": prepare_openvino,
}


# ---- measuring ------------------------------------------------------------------------------------------------------


def wrong(found, expected, tolerance):
    """What is wrong with outputs, or nothing."""
    if len(found) != len(expected):
        return f"{len(found)} outputs instead of {len(expected)}"
    for i, (x, y) in enumerate(zip(found, expected)):
        if x.size != y.size:
            return f"output {i} has {x.size} elements instead of {y.size}"
        x, y = x.astype(np.float64).reshape(-1), y.astype(np.float64).reshape(-1)
        if expected[i].dtype.kind == "i":
            limit, scale = (1 if expected[i].dtype == np.int8 else 0), 1
        else:
            limit, scale = tolerance, np.abs(y).max()
        error = np.abs(x - y).max() / scale
        if not error <= limit:
            return f"output {i} differs by {error:.2g}, more than {limit:g}"
    return None


def sample(call, budget_ms):
    """The median and the least time of a call, in ns, over samples of at least 0.2 ms."""
    clock = time.perf_counter_ns
    call()
    start = clock()
    call()
    inner = range(max(1, int(200_000 / max(clock() - start, 50))))
    times, start = [], clock()
    while len(times) < 5 or (clock() - start < budget_ms * 1e6 and len(times) < 1000):
        before = clock()
        for _ in inner:
            call()
        times.append((clock() - before) / len(inner))
        if len(times) >= 3 and clock() - start > 4e9:
            break
    return statistics.median(times), min(times)


def reason(error):
    return " ".join(f"{type(error).__name__}: {error}".split())[:160]


def time_case(peer, case, budget_ms):
    """The line of the fastest form."""
    arrays = case.arrays()
    first = FORMS[case.name][0][1]
    widened = [a if a.dtype == np.bool_ or a.dtype == np.int64 else a.astype(np.float64) for a in arrays]
    expected = in_list(first(Numpy(case), *widened, *case.scalar_values()))
    del widened
    best, reasons = None, []
    for number, (kind, function, reshape) in enumerate(FORMS[case.name]):
        if kind is not None and kind not in KINDS[peer]:
            continue
        label = "text" if kind is None else f"own {number}"
        call = None
        try:
            build, to_numpy = PREPARE[peer](case, function, reshape(*arrays) if reshape else arrays)
            start = time.perf_counter_ns()
            call = build()
            outputs = call()
            first_ns = time.perf_counter_ns() - start
            fault = wrong(to_numpy(outputs), expected, case.tolerance)
            del outputs
            if fault:
                print(f"{peer}: {case.label()}: form `{label}` is wrong: {fault}", file=sys.stderr)
                reasons.append(f"wrong: {fault}")
                continue
            median, least = sample(call, budget_ms)
            if best is None or least < best["min_ns"]:
                best = {"min_ns": least, "median_ns": median, "first_ns": first_ns, "form": label}
        except Exception as error:
            reasons.append(reason(error))
            print(f"{peer}: {case.label()}: form `{label}`: {reasons[-1]}", file=sys.stderr)
    if best is None:
        raise Skip(reasons[0] if reasons else "no form")
    return best


def time_peer(peer, chosen, budget_ms, out):
    for case in chosen:
        line = {"peer": peer, "threads": THREADS, "case": case.text}
        try:
            if case.name not in FORMS:
                raise Skip("no form has this name")
            line |= time_case(peer, case, budget_ms)
        except Skip as skip:
            line["skip"] = str(skip)
            print(f"{peer} skips {case.label()}: {skip}", file=sys.stderr)
        out.write(json.dumps(line) + "\n")
        out.flush()
        gc.collect()


def time_ours(binary, chosen, budget_ms, out):
    """Times cranefold. It spells a region in its own way, and answers in the order of the file."""
    path = out.name + ".cases"
    with open(path, "w") as file:
        file.writelines(case.text + "\n" for case in chosen)
    command = [binary, "bench", "--file", path, "--json", "--budget-ms", str(budget_ms), "--threads", str(THREADS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    os.unlink(path)
    lines = [json.loads(text) for text in done.stdout.splitlines()]
    if done.returncode != 0 or len(lines) != len(chosen):
        raise SystemExit(f"cranefold answered {len(lines)} of {len(chosen)} regions, status {done.returncode}")
    for case, line in zip(chosen, lines):
        keys = ["min_ns", "median_ns", "first_ns", "touch_ns", "bytes"]
        line = {"peer": OURS, "threads": THREADS, "case": case.text} | {key: line[key] for key in keys}
        out.write(json.dumps(line) + "\n")


def load(peer):
    """Imports the libraries of a peer, which read their settings as they are imported."""
    global np, torch, jax, onnx, ort, openvino, CORE, DTYPES, ONNX_TYPES, ORT_TYPES
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(THREADS)
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    if THREADS == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    import ml_dtypes
    import numpy as np

    DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i64": np.int64, "bool": np.bool_}
    DTYPES = {name: np.dtype(dtype) for name, dtype in DTYPES.items()}
    ONNX_TYPES = {"f32": 1, "i8": 3, "i64": 7, "bool": 9, "bf16": 16}
    ORT_TYPES = {"tensor(float)": "f32", "tensor(bfloat16)": "bf16", "tensor(int8)": "i8", "tensor(int64)": "i64"}
    if peer in ("torch", "compile"):
        import torch

        torch.set_num_threads(THREADS)
        torch.set_grad_enabled(False)
    if peer == "jax":
        import jax
        import jax.scipy.special

        # A call computes in the caller's thread, which is faster by microseconds.
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    if peer in ("ort", "openvino"):
        import onnx
        import onnx.numpy_helper
    if peer == "ort":
        import onnxruntime as ort

        ort.set_default_logger_severity(4)
    if peer == "openvino":
        import openvino

        CORE = openvino.Core()


# ---- the summary ----------------------------------------------------------------------------------------------------


def read(paths, threads, key):
    """{case: {peer: ns}}, {case: {peer: reason}} and {peer: first calls}. Of the rounds' medians the median counts, of
    their least times the least."""
    times, skips, firsts = defaultdict(lambda: defaultdict(list)), defaultdict(dict), defaultdict(list)
    for path in paths:
        for text in open(path):
            line = json.loads(text)
            if line.get("threads", 1) != threads:
                continue
            if "skip" in line:
                skips[line["case"]][line["peer"]] = line["skip"]
            else:
                times[line["case"]][line["peer"]].append(line[key])
                if line.get("round", 1) == 1:
                    firsts[line["peer"]].append(line["first_ns"])
                    if "touch_ns" in line:
                        firsts[TOUCHED].append(line["first_ns"] - line["touch_ns"])
    over = min if key == "min_ns" else statistics.median
    return {case: {peer: over(ns) for peer, ns in peers.items()} for case, peers in times.items()}, skips, firsts


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def us(ns):
    return "-" if ns is None else f"{ns / 1e3:.3g}" if ns < 1e6 else f"{ns / 1e3:.0f}"


def first_ms(times):
    return f"{statistics.median(times) / 1e6:.3g}" if times else "-"


def print_table(heads, rows, markdown):
    if markdown:
        print("| " + " | ".join(heads) + " |")
        print("|" + " --- |" + " ---: |" * (len(heads) - 1))
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    for row in [heads, *rows]:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip())


def summary(paths, known, threads, key, worst, markdown):
    times, skips, firsts = read(paths, threads, key)
    rows, ratios = [], []
    for case in known:
        peers = times.get(case.text, {})
        ours, others = peers.get(OURS), {peer: ns for peer, ns in peers.items() if peer != OURS}
        cells = [case.label(), us(ours), *(us(others.get(peer)) for peer in PEERS)]
        if ours is None or not others:
            rows.append([*cells, "-", "-"])
            continue
        fastest = min(others, key=others.get)
        ratios.append((others[fastest] / ours, case, cells, fastest))
        rows.append([*cells, fastest, f"{ratios[-1][0]:.2f}"])
    if not ratios:
        raise SystemExit("no region has times of cranefold and of a peer")
    heads = ["region", OURS, *PEERS, "fastest peer", "ratio"]
    of = "least times" if key == "min_ns" else "median times"
    print(f"{of} in us on {threads} thread{'s' * (threads > 1)}; ratio: the fastest peer's time over cranefold's\n")
    print_table(heads, rows, markdown)
    groups = [
        ("all", [r for r, *_ in ratios]),
        ("bound by exp", [r for r, case, *_ in ratios if EXP_BOUND.search(case.name)]),
        ("others", [r for r, case, *_ in ratios if not EXP_BOUND.search(case.name)]),
    ]
    lines = []
    for name, values in groups:
        if values:
            means = f"{geometric_mean(values):.2f}", f"{statistics.median(values):.2f}"
            under = [str(sum(r < limit for r in values)) for limit in (1, 0.9)]
            lines.append([name, str(len(values)), *means, *under])
    print()
    print_table(["regions", "number", "geometric mean", "median", "under 1", "under 0.9"], lines, markdown)
    lines, shown = [], [times.get(case.text, {}) for case in known]
    for peer in PEERS:
        both = [peers[peer] / peers[OURS] for peers in shown if peer in peers and OURS in peers]
        if both:
            best = sum(fastest == peer for *_, fastest in ratios)
            lines.append([peer, str(len(both)), f"{geometric_mean(both):.2f}", str(best), first_ms(firsts[peer])])
    lines.append([OURS, str(len(ratios)), "1.00", "-", first_ms(firsts[OURS])])
    if firsts[TOUCHED]:
        lines.append([TOUCHED, str(len(ratios)), "1.00", "-", first_ms(firsts[TOUCHED])])
    heads_of_peers = ["peer", "regions", "geometric mean of its ratios", "fastest in", "first call, median ms"]
    print()
    print_table(heads_of_peers, lines, markdown)
    print(f"\nthe {worst} worst:\n")
    ordered = sorted(ratios, key=lambda ratio: ratio[0])[:worst]
    print_table(heads, [[*cells, fastest, f"{r:.2f}"] for r, _, cells, fastest in ordered], markdown)
    left_out = [(case, peer, why) for case in known for peer, why in skips.get(case.text, {}).items()]
    if left_out:
        print("\nwithout a time:\n")
        for case, peer, why in left_out:
            print(f"{'- ' * markdown}{peer}: {case.label()}: {why}")


def main():
    global THREADS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="?", choices=[OURS, *PEERS])
    parser.add_argument("--cases", default=os.path.join(HERE, "regions.txt"))
    parser.add_argument("--match", default=".", help="only regions whose name, type and shape match a pattern")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget-ms", type=float, default=30, help="for the samples of a form, of which 5 are the least")
    parser.add_argument("--out", help="JSON lines are appended to this file")
    built = os.environ.get("CRANEFOLD", os.path.join(HERE, "../target/release/cranefold"))
    parser.add_argument("--binary", default=built, help="the command `cranefold`")
    parser.add_argument("--summary", nargs="+", metavar="RESULTS")
    parser.add_argument("--by", choices=["median", "min"], default="median")
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--markdown", action="store_true")
    a = parser.parse_args()
    THREADS = a.threads
    chosen = cases(a.cases, a.match)
    if a.summary:
        return summary(a.summary, chosen, THREADS, a.by + "_ns", a.worst, a.markdown)
    if not a.peer or not a.out:
        parser.error("a peer and --out, or --summary")
    with open(a.out, "a") as out:
        if a.peer == OURS:
            return time_ours(a.binary, chosen, int(a.budget_ms), out)
        load(a.peer)
        gc.disable()
        time_peer(a.peer, chosen, a.budget_ms, out)


main()
