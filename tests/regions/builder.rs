//! Every region of the list made by the builder: the same problem and the same signature as from text.

mod formulas;
mod losses;
mod norms;

use super::list;
use cranefold::ir::expression::Expression;
use cranefold::spec::RegionBuilder;
use cranefold::{Compiler, DType, Problem, Spec};

const F32: DType = DType::F32;

/// A region's name in the list, and what makes it.
type Built = (&'static str, fn(&mut RegionBuilder));

/// The maximum and the sum of exponentials.
fn sum_exp(r: &mut RegionBuilder, x: impl Into<Expression>) -> (Expression, Expression) {
    let [m, s] = r.results("sum_exp", x).try_into().expect("two results");
    (m, s)
}

/// The mean of a value's squares.
fn mean_square(r: &mut RegionBuilder, x: &Expression) -> Expression {
    r.reduce("mean", x.clone() * x.clone())
}

/// Inputs of `f32`, in order.
fn inputs<const N: usize>(r: &mut RegionBuilder, of: [(&str, &[u64]); N]) -> [Expression; N] {
    of.map(|(name, shape)| r.input(name, F32, shape))
}

/// Scalars of `f32`, in order.
fn scalars<const N: usize>(r: &mut RegionBuilder, names: [&str; N]) -> [Expression; N] {
    names.map(|name| r.scalar(name, F32))
}

#[test]
fn a_region_of_the_builder_is_that_of_its_text() {
    let compiler = Compiler::host().expect("a compiler");
    let built: Vec<&Built> = formulas::BUILT.iter().chain(losses::BUILT).chain(norms::BUILT).collect();
    for (name, listed) in list() {
        let found: Vec<&&Built> = built.iter().filter(|(of, _)| *of == name).collect();
        let [(_, make)] = found.as_slice() else { panic!("{name}: {} regions by the builder", found.len()) };
        let mut r = Spec::region();
        make(&mut r);
        let spec = r.build().unwrap_or_else(|e| panic!("{name}: {e}"));
        let [problem, expected] = [&spec, &listed].map(Problem::of);
        assert_eq!(problem, expected, "{name}:\n{spec}\n{listed}\n{problem}\n{expected}");
        let signatures = [&spec, &listed].map(|spec| compiler.keyed(spec).signature().clone());
        assert_eq!(signatures[0], signatures[1], "{name}");
        assert_eq!(spec.to_string().parse::<Spec>().as_ref(), Ok(&spec), "{name}");
    }
    assert_eq!(built.len(), list().len());
}

#[test]
fn a_region_of_the_builder_with_another_number_is_another() {
    let problem = |eps: f64| {
        let mut r = Spec::region();
        let x = r.input("x", F32, &[8, 100]);
        r.axes([1]);
        let norm = r.reduce("l2", x.clone());
        r.output(x / norm.max(eps));
        Problem::of(&r.build().expect("a region"))
    };
    assert_eq!(problem(1e-12), problem(1e-12));
    assert_ne!(problem(1e-12), problem(1e-11));
}
