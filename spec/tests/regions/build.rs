//! Regions made in Rust: the same as by text, with the same errors.

use super::spec;
use cranefold_ir::expression::name;
use cranefold_spec::DType::{Bf16, Bool, F32, F64, I64};
use cranefold_spec::{Layout, Order, RegionBuilder, Spec, SpecError, op};

#[test]
fn a_builder_makes_the_spec_of_a_text() {
    let mut r = Spec::region();
    let x = r.input("x", F32, &[8, 768]);
    let h = r.input("h", F32, &[8, 768]);
    let w = r.input("w", F32, &[768]);
    r.axes([-1]);
    let y = r.define("y", x + h);
    let squared = r.reduce("mean", y.clone() * y.clone());
    let scale = r.define("r", 1 / (squared + 1e-5).sqrt());
    r.output(y.clone());
    r.output((y * scale.clone() * w).cast(Bf16));
    r.output(scale);
    let text = "region x:f32[8,768], h:f32[8,768], w:f32[768] axes=[1] {
        y = x + h; r = 1 / sqrt(mean(y * y) + 1e-5); y, bf16(y * r * w), r }";
    assert_eq!(r.build().as_ref(), Ok(&spec(text)));
}

#[test]
fn every_call_of_the_builder() {
    let mut r = Spec::region();
    let x = r.input_at("x", F32, &[4, 6], Layout::tag("ba").expect("a tag"));
    let keep = r.input("keep", Bool, &[6]);
    let k = r.scalar("k", F64);
    r.axes([1]);
    r.keep_dims(true);
    r.accumulator(F64);
    r.order(Order::Logical);
    let masked = r.define("masked", keep.select(x * k, f64::NEG_INFINITY));
    let m = r.reduce("max", masked.clone());
    let results = r.results("mode", masked.clone());
    let [v] = &r.results(op::var().ddof(1), masked.clone())[..] else { panic!("one result") };
    let total = r.total("sum", m.clone(), [0]);
    let p = r.position(-1);
    let n = r.extent(1);
    let old = r.old(0);
    r.output((masked - m.clone()).exp() + p.cast(F64) * n + old);
    r.output(m);
    r.output_at(results[0].clone() + v.clone(), Layout::strides([2, 1]));
    r.output(results[1].clone());
    r.output(total);
    let text = "region x:f32[4,6]@ba, keep:bool[6] axes=[1] keep_dims scalar k:f64 acc=f64 order=logical {
        masked = select(keep, x * k, -inf); t0 = max(masked); t1, t2 = mode(masked);
        exp(masked - t0) + f64(position(1)) * 6 + old(0), t0, t1 + var(masked, ddof=1)@(2,1), t2, sum(t0, axes=[0]) }";
    let built = r.build().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((built.to_string(), &built), (spec(text).to_string(), &spec(text)));
}

#[test]
fn names_that_the_builder_makes_are_free() {
    let mut r = Spec::region();
    let t0 = r.input("t0", F32, &[4, 6]);
    let s = r.reduce("sum", t0.clone());
    r.output(t0 / s.clone());
    r.output(s);
    assert_eq!(r.build().expect("a spec").to_string(), "region t0:f32[4,6] { t1 = sum(t0); t0 / t1, t1 }");
}

#[test]
fn reductions_in_reductions_stay_short() {
    let mut r = Spec::region();
    let mut x = r.input("x", F32, &[4]);
    for _ in 0..200 {
        x = r.define(&format!("a{}", x.to_string().len()), x.clone()) * 1;
    }
    r.output(x);
    // The names are all the same, so that the second definition is refused, with a place.
    let Err(SpecError::Region(error)) = r.build() else { panic!("built") };
    assert!(error.message.contains("defined twice"), "{error}");
}

#[test]
fn errors_point_into_the_text() {
    let refused = |make: &dyn Fn(&mut RegionBuilder)| {
        let mut r = Spec::region();
        make(&mut r);
        r.build().expect_err("a refusal").to_string()
    };
    for (make, message) in [
        (
            &(|r: &mut RegionBuilder| {
                let x = r.input("x", F32, &[4, 6]);
                r.output(x + name("y"));
            }) as &dyn Fn(&mut RegionBuilder),
            "unknown name `y`; the names here are x\n  region x:f32[4,6] { x + y }\n                          ^",
        ),
        (
            &|r: &mut RegionBuilder| {
                let x = r.input("x", I64, &[4, 6]);
                let m = r.reduce("mean", x);
                r.output(m);
            },
            "`mean` of integers is refused: i64 given; convert, as in `mean(f32(x))`\n  region x:i64[4,6] { mean(x) }\n                      ^",
        ),
        (
            &|r: &mut RegionBuilder| {
                let x = r.input("max", F32, &[4, 6]);
                r.output(x);
            },
            "`max` is an op and cannot be a name\n  region max:f32[4,6] { <max has a meaning of its own and cannot be a...\n         ^",
        ),
        (
            &|r: &mut RegionBuilder| {
                let x = r.input("x", F32, &[4, 6]);
                r.output(x + name("not a name"));
            },
            "\"not a name\" is no name: letters, digits and underscores\n  region x:f32[4,6] { x + <\"not a name\" is no name: letters, digits and underscores> }\n                          ^",
        ),
        (
            &|r: &mut RegionBuilder| {
                let x = r.input("x", F32, &[4, 6]);
                r.axes([2]);
                r.output(x);
            },
            "axis 2 is out of range for rank 2: its axes are -2 to 1\n  region x:f32[4,6] axes=[2] { x }\n                    ^",
        ),
        (
            &|r: &mut RegionBuilder| {
                let x = r.input("x", F32, &[4, 6]);
                let m = r.reduce("meen", x);
                r.output(m);
            },
            "unknown function `meen`; did you mean `mean`?\n  region x:f32[4,6] { meen(x) }\n                      ^",
        ),
    ] {
        assert_eq!(refused(make), message);
    }
    assert!(Spec::region().build().is_err());
}
