//! A problem in benchdnn's notation, and its translation.

use cranefold::spec::Dims;
use cranefold::spec::onednn::{PostOp, Primitive};
use cranefold::{DType, Layout, Spec, SpecError};
use serde_json::Value;

/// Element type, dims and tag of a tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub dtype: DType,
    pub dims: Vec<i64>,
    pub tag: String,
}

/// A reduction with its post-ops as benchdnn writes them: `sum:2+relu+add:f32:per_oc`.
#[derive(Clone, Debug)]
pub struct Problem {
    pub alg: String,
    pub p: f32,
    pub eps: f32,
    pub src: Tensor,
    pub dst: Tensor,
    pub post_ops: String,
}

/// oneDNN's name of a type.
pub fn dtype(name: &str) -> DType {
    name.replace("s8", "i8").replace("s32", "i32").parse().expect("a dtype")
}

pub fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).expect("JSON");
    file["cases"].as_array().expect("cases").clone()
}

pub fn ints(value: &Value) -> Vec<i64> {
    value.as_array().expect("a list").iter().map(|v| v.as_i64().expect("an integer")).collect()
}

pub fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The texts of a list.
pub fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(text).collect()
}

impl Tensor {
    pub fn new(dtype: DType, dims: &[i64], tag: &str) -> Tensor {
        Tensor { dtype, dims: dims.into(), tag: tag.into() }
    }

    fn dims(&self) -> Dims<'_> {
        let layout = match self.tag.as_str() {
            "any" => Layout::any(),
            tag => Layout::tag(tag).expect("a tag"),
        };
        Dims::new(self.dtype, &self.dims).at(layout)
    }
}

impl Problem {
    pub fn translate(&self) -> Result<Spec, SpecError> {
        let operands = self.operands();
        let mut operand = operands.iter();
        let mut primitive = Primitive::new(&self.alg, self.src.dims(), self.dst.dims()).p(self.p).eps(self.eps);
        for text in self.post_ops.split('+').filter(|text| !text.is_empty()) {
            let words: Vec<&str> = text.split(':').collect();
            let number = |i: usize, default: f32| words.get(i).map_or(default, |w| w.parse().expect("a number"));
            primitive = primitive.post_op(match words[0] {
                "sum" => PostOp::Sum {
                    scale: number(1, 1.0),
                    zero_point: number(2, 0.0) as i32,
                    dtype: words.get(3).map(|name| dtype(name)),
                },
                alg if is_binary(alg) => PostOp::binary(alg, operand.next().expect("an operand").dims()),
                alg => PostOp::eltwise(alg, number(1, 0.0), number(2, 0.0)),
            });
        }
        primitive.translate()
    }

    /// The operands of binary post-ops: `add:f32:per_oc:aBcd16b` has the destination's channels.
    fn operands(&self) -> Vec<Tensor> {
        let chain = self.post_ops.split('+').map(|text| text.split(':').collect::<Vec<_>>());
        let operand = |words: Vec<&str>| {
            let has = |axis: usize| match words.get(2).copied().unwrap_or("common") {
                "common" => false,
                "per_oc" => axis == 1,
                "per_tensor" => true,
                policy => panic!("policy {policy}"),
            };
            let dims = self.dst.dims.iter().enumerate();
            let dims: Vec<i64> = dims.map(|(axis, &dim)| if has(axis) { dim } else { 1 }).collect();
            let plain: String = ('a'..).take(dims.len()).collect();
            Tensor::new(dtype(words[1]), &dims, words.get(3).unwrap_or(&plain.as_str()))
        };
        chain.filter(|words| is_binary(words[0])).map(operand).collect()
    }
}

fn is_binary(alg: &str) -> bool {
    ["add", "sub", "mul", "div", "max", "min", "ge", "gt", "le", "lt", "eq", "ne"].contains(&alg)
}

/// All combinations of algorithm, types, p and eps, and post-ops of a case: p and eps are varied for norms
/// only, of which those of integers are left out.
pub fn combinations(case: &Value) -> Vec<Problem> {
    let mut all = vec![];
    for alg in texts(&case["algs"]) {
        let norm = alg.starts_with("norm");
        for dts in texts(&case["dts"]) {
            let (from, to) = dts.split_once("->").expect("two types");
            let (from, to) = (dtype(from), dtype(to));
            if norm && from.is_int() {
                continue;
            }
            let p_eps = case["p_eps"].as_array().expect("a list");
            for p_eps in if norm { p_eps.as_slice() } else { &p_eps[..1] } {
                let number = |i: usize| p_eps[i].as_f64().expect("a number") as f32;
                for post_ops in texts(&case["post_ops"]) {
                    all.push(Problem {
                        alg: alg.into(),
                        p: number(0),
                        eps: number(1),
                        src: Tensor::new(from, &ints(&case["src"]), text(&case["stag"])),
                        dst: Tensor::new(to, &ints(&case["dst"]), text(&case["dtag"])),
                        post_ops: post_ops.into(),
                    });
                }
            }
        }
    }
    all
}
