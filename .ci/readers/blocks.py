"""Blocks of models as exporters write them, in the newest operator set; weights are inputs."""

import onnx
from onnx import parser

HEAD = f'<ir_version: 10, opset_import: ["" : {onnx.defs.onnx_opset_version()}]>\n'

GELU = """
    {out}_a = Div({x}, root2)
    {out}_b = Erf({out}_a)
    {out}_c = Add({out}_b, one)
    {out}_d = Mul({x}, {out}_c)
    {out} = Mul({out}_d, half)
"""

RMS_NORM = """
    {out}_a = Pow({x}, two)
    {out}_b = ReduceMean<keepdims = 1>({out}_a, last)
    {out}_c = Add({out}_b, eps)
    {out}_d = Sqrt({out}_c)
    {out}_e = Reciprocal({out}_d)
    {out}_f = Mul({x}, {out}_e)
    {out} = Mul({w}, {out}_f)
"""

ROTARY = """
    {out}_a = Slice({x}, zeros, halves, last)
    {out}_b = Slice({x}, halves, ends, last)
    {out}_c = Neg({out}_b)
    {out}_d = Concat<axis = -1>({out}_c, {out}_a)
    {out}_e = Mul({x}, cos)
    {out}_f = Mul({out}_d, sin)
    {out} = Add({out}_e, {out}_f)
"""

BATCH_NORM = "{out} = BatchNormalization({x}, {p}_scale, {p}_bias, {p}_mean, {p}_var)\n"


def encoder():
    """A layer of a transformer encoder, normalised after each residual."""
    return f"""g (float[N,128,256] x, float[N,1,1,128] mask, float[256,256] wq, float[256,256] wk, float[256,256] wv,
        float[256,256] wo, float[256] bq, float[256] bk, float[256] bv, float[256] bo, float[256] g1, float[256] b1,
        float[256,1024] w1, float[1024] c1, float[1024,256] w2, float[256] c2, float[256] g2, float[256] b2)
        => (float[N,128,256] y)
        <int64[4] heads = {{0, 0, 4, 64}}, int64[3] joined = {{0, 0, 256}}, float scale = {{8.0}},
        float root2 = {{1.4142135}}, float one = {{1.0}}, float half = {{0.5}}> {{
        q1 = MatMul(x, wq) q2 = Add(q1, bq) q3 = Reshape(q2, heads) q = Transpose<perm = [0, 2, 1, 3]>(q3)
        k1 = MatMul(x, wk) k2 = Add(k1, bk) k3 = Reshape(k2, heads) k = Transpose<perm = [0, 2, 3, 1]>(k3)
        v1 = MatMul(x, wv) v2 = Add(v1, bv) v3 = Reshape(v2, heads) v = Transpose<perm = [0, 2, 1, 3]>(v3)
        s1 = MatMul(q, k) s2 = Div(s1, scale) s3 = Add(s2, mask) p = Softmax<axis = -1>(s3)
        a1 = MatMul(p, v) a2 = Transpose<perm = [0, 2, 1, 3]>(a1) a3 = Reshape(a2, joined)
        o1 = MatMul(a3, wo) o2 = Add(o1, bo) r1 = Add(o2, x)
        h = LayerNormalization<axis = -1, epsilon = 1e-12>(r1, g1, b1)
        f1 = MatMul(h, w1) f2 = Add(f1, c1) {GELU.format(x="f2", out="f3")}
        f4 = MatMul(f3, w2) f5 = Add(f4, c2) r2 = Add(f5, h)
        y = LayerNormalization<axis = -1, epsilon = 1e-12>(r2, g2, b2)
    }}"""


def decoder():
    """A layer of a decoder: RMS norm in primitives, rotary embedding, a causal mask, a gated product, a last RMS norm."""
    return f"""g (float[N,96,256] x, float[256,256] wq, float[256,256] wk, float[256,256] wv, float[256,256] wo,
        float[96,64] cos, float[96,64] sin, float[256] g1, float[256] g2, float[256] g3, float[256,688] wgate,
        float[256,688] wup, float[688,256] wdown) => (float[N,96,256] y)
        <int64[4] heads = {{0, 0, 4, 64}}, int64[3] joined = {{0, 0, 256}}, float scale = {{0.125}}, float two = {{2.0}},
        float eps = {{0.000001}}, int64[1] last = {{-1}}, int64[1] zeros = {{0}}, int64[1] halves = {{32}},
        int64[1] ends = {{64}}, float low = {{-1e9}}, int64 first = {{0}}, int64 step = {{1}}, int64 length = {{96}},
        int64[1] column = {{1}}> {{
        {RMS_NORM.format(x="x", w="g1", out="n1")}
        q1 = MatMul(n1, wq) q2 = Reshape(q1, heads) q3 = Transpose<perm = [0, 2, 1, 3]>(q2) {ROTARY.format(x="q3", out="q")}
        k1 = MatMul(n1, wk) k2 = Reshape(k1, heads) k3 = Transpose<perm = [0, 2, 1, 3]>(k2) {ROTARY.format(x="k3", out="k")}
        v1 = MatMul(n1, wv) v2 = Reshape(v1, heads) v = Transpose<perm = [0, 2, 1, 3]>(v2)
        kt = Transpose<perm = [0, 1, 3, 2]>(k) s1 = MatMul(q, kt) s2 = Mul(s1, scale)
        at = Range(first, length, step) rows = Unsqueeze(at, column) later = Greater(at, rows)
        s3 = Where(later, low, s2) p = Softmax<axis = -1>(s3)
        a1 = MatMul(p, v) a2 = Transpose<perm = [0, 2, 1, 3]>(a1) a3 = Reshape(a2, joined) o = MatMul(a3, wo)
        h = Add(x, o) {RMS_NORM.format(x="h", w="g2", out="n2")}
        gate = MatMul(n2, wgate) up = MatMul(n2, wup) gs = Sigmoid(gate) silu = Mul(gate, gs) mixed = Mul(silu, up)
        down = MatMul(mixed, wdown) r = Add(h, down) y = RMSNormalization<axis = -1, epsilon = 1e-6>(r, g3)
    }}"""


def resnet():
    """A bottleneck of a ResNet with squeeze and excitation, and the classifier."""
    norms = ", ".join(f"float[{c}] {p}_{v}" for p, c in [("n1", 64), ("n2", 64), ("n3", 256)]
                      for v in ["scale", "bias", "mean", "var"])  # fmt: skip
    norm = lambda x, p, out: BATCH_NORM.format(x=x, p=p, out=out)
    return f"""g (float[N,256,28,28] x, float[64,256,1,1] w1, float[64,64,3,3] w2, float[256,64,1,1] w3, {norms},
        float[16,256,1,1] s1, float[256,16,1,1] s2, float[1000,256] w, float[1000] b) => (float[N,1000] y)
        <int64[2] plane = {{2, 3}}> {{
        c1 = Conv(x, w1) {norm("c1", "n1", "d1")} e1 = Relu(d1)
        c2 = Conv<pads = [1, 1, 1, 1]>(e1, w2) {norm("c2", "n2", "d2")} e2 = Relu(d2)
        c3 = Conv(e2, w3) {norm("c3", "n3", "d3")}
        q = ReduceMean<keepdims = 1>(d3, plane) q1 = Conv(q, s1) q2 = Relu(q1) q3 = Conv(q2, s2) q4 = Sigmoid(q3)
        e3 = Mul(d3, q4) r = Add(e3, x) e4 = Relu(r)
        p = GlobalAveragePool(e4) f = Flatten(p) l = Gemm<transB = 1>(f, w, b) y = Softmax<axis = -1>(l)
    }}"""


def convnext():
    """A block of a ConvNeXt of the second version, a normalised downsampling, and the head's pool."""
    return f"""g (float[N,96,28,28] x, float[96,1,7,7] wd, float[96] g1, float[96] b1, float[96,384] w1, float[384] c1,
        float[384] gg, float[384] gb, float[384,96] w2, float[96] c2, float[96,1,1] g2, float[96,1,1] b2,
        float[192,96,2,2] ws, float[192] g3, float[192] b3) => (float[N,192] y)
        <float root2 = {{1.4142135}}, float one = {{1.0}}, float half = {{0.5}}, float two = {{2.0}},
        float eps = {{0.000001}}, int64[2] plane = {{1, 2}}, int64[1] last = {{-1}}, int64[1] channel = {{1}}> {{
        d1 = Conv<pads = [3, 3, 3, 3], group = 96>(x, wd) d2 = Transpose<perm = [0, 2, 3, 1]>(d1)
        n = LayerNormalization<axis = -1, epsilon = 1e-6>(d2, g1, b1)
        f1 = MatMul(n, w1) f2 = Add(f1, c1) {GELU.format(x="f2", out="f3")}
        r1 = ReduceL2<keepdims = 1>(f3, plane) r2 = ReduceMean<keepdims = 1>(r1, last) r3 = Add(r2, eps) r4 = Div(r1, r3)
        r5 = Mul(f3, r4) r6 = Mul(gg, r5) r7 = Add(gb, r6) r8 = Add(f3, r7)
        f4 = MatMul(r8, w2) f5 = Add(f4, c2) f6 = Transpose<perm = [0, 3, 1, 2]>(f5) h = Add(x, f6)
        m1 = ReduceMean<keepdims = 1>(h, channel) m2 = Sub(h, m1) m3 = Pow(m2, two)
        m4 = ReduceMean<keepdims = 1>(m3, channel) m5 = Add(m4, eps) m6 = Sqrt(m5) m7 = Div(m2, m6)
        m8 = Mul(g2, m7) m9 = Add(m8, b2) s = Conv<strides = [2, 2]>(m9, ws)
        p = GlobalAveragePool(s) f = Flatten(p) y = LayerNormalization<axis = -1, epsilon = 1e-6>(f, g3, b3)
    }}"""


def blocks(batch):
    """The blocks by name, with this extent of their symbolic dim `N`."""
    for build in [encoder, decoder, resnet, convnext]:
        model = parser.parse_model(HEAD + build())
        for value in [*model.graph.input, *model.graph.output]:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param == "N":
                    dim.dim_value = batch
        onnx.checker.check_model(model)
        yield build.__name__, model
