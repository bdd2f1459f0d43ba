"""Kernels of specs and regions, and `reduce`."""

import pickle

import numpy as np
import pytest

import cranefold as cf

X = np.arange(12, dtype=np.float32).reshape(3, 4)
NORM = """region x:f32[3,4], h:f32[3,4], w:f32[4] axes=[1] scalar eps:f32 {
  y = x + h
  c = centered(y)
  y, c / sqrt(mean(c * c) + eps) * w, mean(y)
}"""


def test_kernel():
    k = cf.compile("mean f32[3,4] axes=[1]")
    np.testing.assert_array_equal(k(X), X.mean(1))
    out = np.zeros(3, np.float32)
    assert k(X, out=out) is out
    np.testing.assert_array_equal(out, X.mean(1))
    np.testing.assert_array_equal(k(X.reshape(-1)), X.mean(1))
    assert k.spec == "mean f32[3,4] axes=[1]" and repr(k) == "<cranefold.Kernel mean f32[3,4] axes=[1]>"
    assert k.inputs == [((3, 4), "float32")] and k.outputs == [((3,), "float32")] and k.bytes == 60


def test_region_with_a_scalar():
    k = cf.compile(NORM)
    w = np.ones(4, np.float32)
    y, norm, mean = k(X, X, w, 1e-5)
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_allclose(mean, 2 * X.mean(1))
    np.testing.assert_allclose(norm, cf.layer_norm(2 * X), rtol=1e-5)
    outs = (np.zeros_like(y), np.zeros_like(norm), np.zeros_like(mean))
    assert k(X, X, w, 1e-5, out=outs) == outs
    assert outs[1].tobytes() == norm.tobytes()


def test_layouts():
    k = cf.compile("sum f32[3,4]@(1,3) axes=[1]")
    np.testing.assert_array_equal(k(np.asfortranarray(X)), X.sum(1))
    k = cf.compile("sum f32[3,4]@ba+2 axes=[0] -> f64")
    np.testing.assert_array_equal(k(np.concatenate([[9, 9], X.T.reshape(-1)]).astype(np.float32)), X.sum(0))
    k = cf.compile("max f32[3,4] axes=[0] keep_dims -> @(8,2)")
    found = k(X)
    np.testing.assert_array_equal(found, X.max(0, keepdims=True))
    assert found.strides[1] == 8


def test_old_outputs():
    k = cf.compile('sum f32[3,4] axes=[1] then="r0 + d"')
    with pytest.raises(TypeError, match="read before it is written"):
        k(X)
    out = np.full(3, 100, np.float32)
    k(X, out=out)
    np.testing.assert_array_equal(out, X.sum(1) + 100)


def test_forced_choices():
    spec = "sum f32[64,1000] axes=[1]"
    x = np.random.default_rng(0).standard_normal((64, 1000)).astype(np.float32)
    expected = cf.compile(spec)(x).tobytes()
    for given in ({"width": 128}, {"width": 256}, {"schedule": cf.compile(spec).schedule}):
        assert cf.compile(spec, **given)(x).tobytes() == expected
    assert "width=128" in cf.compile(spec, width=128).schedule


def test_text():
    k = cf.compile("sum f32[64,1000] axes=[1]")
    assert "predicted" in k.explain() and "for i0 in 0..64" in k.dump("nest") and "problem {" in k.dump("problem")
    assert "nest" in k.dump()


def test_page():
    page = cf.compile("region x:f32[64,1000] axes=[1] { s = sum(x); x / s, s }")._repr_html_()
    assert "region x:f32[64,1000]" in page and "predicted" in page and "us a call from Python" in page
    assert page.count("<mark") >= 1 and "GB/s" in page
    assert "not measured" in cf.compile('sum f32[4] then="r0 + d"')._repr_html_()


def test_hot_loop():
    from cranefold._html import hot_loop

    nest = "nest {\n  for i in 0..4 {\n    a = 0\n    for j in 0..8 {\n      a = a + x[j]\n    }\n    for k in 0..2 { b }\n  }\n}"
    assert list(hot_loop(nest)) == [3, 4, 5]
    assert list(hot_loop("no loops")) == []


def test_reduce():
    total, most = cf.reduce("sum, max axes=[1]", X)
    np.testing.assert_array_equal(total, X.sum(1))
    np.testing.assert_array_equal(most, X.max(1))
    np.testing.assert_array_equal(cf.reduce("mean", X), X.mean())
    np.testing.assert_array_equal(cf.reduce("var(ddof=1) axes=[0]", X), cf.var(X, 0, ddof=1))
    np.testing.assert_array_equal(cf.reduce("sum axes=[1] map='x0*x1' -> f64", X, X[0]), (X * X[0]).sum(1))
    np.testing.assert_array_equal(cf.reduce('sum axes=[1] scalar k:f32 then="r0*k"', X, 3), X.sum(1) * 3)
    np.testing.assert_array_equal(cf.reduce("region axes=[1] { sum(x0) }", X), X.sum(1))
    np.testing.assert_array_equal(cf.reduce("region a, b axes=[1] { sum(a * b) }", X, X[0]), (X * X[0]).sum(1))
    np.testing.assert_array_equal(
        cf.reduce('combiner(identity="0", lift="x0", combine="a0 + b0", commutative) axes=[1]', X), X.sum(1)
    )
    out = np.zeros(3, np.float32)
    assert cf.reduce("sum axes=[1]", X, out=out) is out


def test_reduce_is_in_logical_order():
    x = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    expected = cf.reduce("sum", x).tobytes()
    assert cf.reduce("sum", np.asfortranarray(x)).tobytes() == expected == cf.sum(x).tobytes()
    assert cf.reduce("sum", x[::-1][::-1]).tobytes() == expected
    memory = cf.reduce("sum order=memory", x).tobytes()
    assert memory == cf.reduce("sum", x, order="memory").tobytes()


def test_many_texts():
    """The table of texts is bounded."""
    for n in range(1, 40):
        assert cf.reduce(f"sum map='x0 * {n}'", X) == 66 * n


def test_settings():
    import io

    stream = io.StringIO()
    facts = cf.show_config(stream)
    assert f"threads          {cf.get_num_threads()}\n" in stream.getvalue()
    assert facts["results_version"] >= 1 and facts["version"] == cf.__version__
    with pytest.raises(TypeError):
        pickle.dumps(cf.compile("sum f32[4]"))
