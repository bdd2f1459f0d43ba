//! Regions of the list made by the builder: the same specs and the same bits as from text.

use super::list;
use cranefold::spec::RegionBuilder;
use cranefold::{Compiler, DType, Spec};
use cranefold_fuzz::bits::are_equal;
use cranefold_fuzz::execute::Memory;

const F32: DType = DType::F32;

fn softmax() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[6, 200]);
    r.axes([-1]);
    let m = r.reduce("max", x.clone());
    let m = r.define("m", m);
    let e = r.define("e", (x - m).exp());
    let sum = r.reduce("sum", e.clone());
    r.output(e / sum);
    r
}

fn log_softmax() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[6, 200]);
    r.axes([-1]);
    let pair = r.results("sum_exp", x.clone(), &[]);
    r.output(x - pair[0].clone() - pair[1].clone().log());
    r
}

fn causal_softmax() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[2, 40, 40]);
    r.axes([-1]);
    let (column, row) = (r.position(2), r.position(1));
    let y = r.define("y", column.le(row).select(x, f64::NEG_INFINITY));
    let pair = r.results("sum_exp", y.clone(), &[]);
    let (m, s) = (pair[0].clone(), pair[1].clone());
    r.output((y - m.clone()).exp() / s.clone());
    r.output(m + s.log());
    r
}

fn cross_entropy() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[8, 50]);
    let label = r.input("label", DType::I64, &[8, 1]);
    r.axes([1]);
    let pair = r.results("sum_exp", x.clone(), &[]);
    let position = r.position(1);
    let picked = r.reduce("sum", position.eq(label.clone()).select(x, 0));
    let picked = r.define("picked", picked);
    let valid = r.define("valid", label.ne(-100));
    let loss = valid.clone().select(pair[0].clone() + pair[1].clone().log() - picked, 0);
    let loss = r.define("loss", loss);
    let total = r.total("sum", loss.clone(), &[0]);
    let total = r.define("total", total);
    let count = r.total("sum", valid.cast(F32), &[0]);
    let count = r.define("count", count);
    r.output(loss);
    r.output(total / count);
    r
}

fn layer_norm() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[8, 768]);
    let [w, b] = ["w", "b"].map(|name| r.input(name, F32, &[768]));
    r.axes([1]);
    let c = r.centered(x);
    let c = r.define("c", c);
    let squares = r.reduce("mean", c.clone() * c.clone());
    r.output(c / (squares + 1e-5).sqrt() * w + b);
    r
}

fn quantised() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[8, 300]);
    let [w, b] = ["w", "b"].map(|name| r.input(name, F32, &[300]));
    let [scale, zero] = ["scale", "zero"].map(|name| r.scalar(name, F32));
    r.axes([1]);
    let c = r.centered(x);
    let c = r.define("c", c);
    let squares = r.reduce("mean", c.clone() * c.clone());
    let y = r.define("y", c / (squares + 1e-5).sqrt() * w + b);
    r.output(((y / scale).round() + zero).cast(DType::I8));
    r
}

fn rms_norm() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", DType::Bf16, &[8, 512]);
    let w = r.input("w", DType::Bf16, &[512]);
    r.axes([1]);
    let squares = r.reduce("mean", x.clone() * x.clone());
    let scale = r.define("r", (squares + 1e-6).rsqrt());
    r.output(((x * scale).cast(DType::Bf16).cast(F32) * w).cast(DType::Bf16));
    r
}

fn mean_absolute_deviation() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[8, 100]);
    r.axes([1]);
    let c = r.centered(x);
    let mean = r.reduce("mean", c.abs());
    r.output(mean);
    r
}

fn max_argmax_count() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[8, 100]);
    r.axes([1]);
    let m = r.reduce("max", x.clone());
    let m = r.define("m", m);
    let at = r.reduce("argmax", x.clone());
    let count = r.reduce("sum", x.eq(m.clone()).cast(DType::I64));
    r.output(m);
    r.output(at);
    r.output(count);
    r
}

fn accumulate() -> RegionBuilder {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[8, 100]);
    r.axes([1]);
    let sum = r.reduce("sum", x.clone());
    let (first, second) = (r.old(0), r.old(1));
    r.output(sum + first);
    r.output(x.cast(F32) + second);
    r
}

/// The text with the names that the builder gives to the two results of `sum_exp`.
fn renamed(text: &str) -> String {
    if !text.contains("m, s = sum_exp") {
        return text.to_string();
    }
    let mut word = String::new();
    let mut renamed = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        renamed.push_str(match word.as_str() {
            "m" => "t0",
            "s" => "t1",
            other => other,
        });
        renamed.push(c);
        word.clear();
    }
    renamed.trim_end().to_string()
}

#[test]
fn a_region_of_the_builder_is_that_of_its_text() {
    let compiler = Compiler::host().expect("a compiler");
    let built: [(&str, RegionBuilder); 10] = [
        ("softmax", softmax()),
        ("log-softmax", log_softmax()),
        ("causal softmax by position", causal_softmax()),
        ("cross-entropy by label with ignore index", cross_entropy()),
        ("layer norm", layer_norm()),
        ("layer norm quantised", quantised()),
        ("RMS norm in bf16", rms_norm()),
        ("mean absolute deviation", mean_absolute_deviation()),
        ("max with argmax and count", max_argmax_count()),
        ("accumulate into what is there", accumulate()),
    ];
    let list = list();
    for (name, builder) in built {
        let spec = builder.build().unwrap_or_else(|e| panic!("{name}: {e}"));
        let (_, listed) = list.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("no region {name}"));
        let listed = renamed(&listed.to_string());
        let parsed: Spec = listed.parse().unwrap_or_else(|e| panic!("{name}: {e}\n{listed}"));
        assert_eq!(spec.to_string(), parsed.to_string(), "{name}");
        assert_eq!(spec, parsed, "{name}");
        let run = |spec: &Spec| {
            let memory = Memory::of(spec, 5, 23, (0, 0));
            memory.run(&compiler.compile(spec).unwrap_or_else(|e| panic!("{name}: {e}")))
        };
        let (_, original) = list.iter().find(|(of, _)| of == name).expect("found before");
        assert!(are_equal(&run(&spec), &run(original)), "{name}");
    }
}
