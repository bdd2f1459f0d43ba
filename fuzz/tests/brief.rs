//! Every target: all of its corpus, then some inputs of a fixed seed.

use cranefold_fuzz::inputs::Inputs;
use std::panic;

/// Tries them; an input that fails is shown as text.
fn tried(name: &str, inputs: usize) {
    let target = cranefold_fuzz::target(name).expect("a target");
    let corpus =
        target.corpus().expect("the corpus").into_iter().map(|(path, bytes)| (path.display().to_string(), bytes));
    let made = Inputs::new(target, 7).take(inputs).enumerate().map(|(n, bytes)| (format!("input {n}"), bytes));
    let mut accepted = 0;
    for (which, bytes) in corpus.chain(made) {
        match panic::catch_unwind(|| (target.run)(&bytes)) {
            Ok(is_accepted) => accepted += usize::from(is_accepted),
            Err(panic) => {
                eprintln!("{name}, {which}:\n{}", String::from_utf8_lossy(&bytes));
                panic::resume_unwind(panic);
            }
        }
    }
    // So that what is beyond the parser is reached.
    assert!(accepted > inputs / 100, "{name}: {accepted} of {inputs} are accepted");
}

macro_rules! targets {
    ($($name:ident $inputs:literal)*) => {
        $(#[test]
        fn $name() {
            tried(stringify!($name), $inputs);
        })*

        #[test]
        fn every_target_is_tried() {
            let names = [$(stringify!($name)),*];
            assert!(cranefold_fuzz::TARGETS.iter().map(|target| target.name).eq(names));
        }
    };
}

targets! {
    spec 60_000
    region 60_000
    problem 60_000
    schedule 60_000
    nest 20_000
    program 30_000
    expression 60_000
    combiner 30_000
    layout 60_000
    value 60_000
    isa 10_000
    onednn 20_000
    stages 2_000
    compile 2_000
    given 6_000
    run 600
    run_region 300
    state 20_000
    onnx 20_000
    openvino 20_000
    graph 20_000
    plan 20_000
}
