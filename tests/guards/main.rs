//! No kernel reads or writes outside of its buffers, not even what it throws away: inputs, outputs and scratch memory end
//! where an inaccessible page begins, or begin where one ends, or lie off alignment between bytes that must stay.
//!
//! Every op on every type it takes meets every length of a tail from 0 to 130, and with them, each pair at least once but
//! for those that an op or a problem refuses: where the tail lies and how operands are laid out ([`cases::FORMS`]), the
//! bits of vectors, and what a schedule may force. Those that select elements have longer slices besides, which they gather
//! in scratch memory. Each case is compiled twice, as the compiler chooses at that width, for one thread or three, and by
//! the schedule; each kernel is run in ordinary memory, at both ends of guarded memory, and twice off alignment, by bytes
//! and by elements; what writes the slice over its input too. All runs give the same bits, which of every eighth case are
//! compared with the interpreter's.
//!
//! A fault ends a process, so the cases run in processes of their own, and the case that ended one is named.

mod callers;
mod cases;
mod children;
mod memory;

use cases::{Case, FORCED, FORMS, TAILS, WIDTHS};
use children::{Share, Tally};
use cranefold::{Compiler, Kernel, Options, Problem, lower};
use cranefold_fuzz::data::Buffer;
use cranefold_fuzz::execute::{Memory, is_written};
use memory::{Guarded, Place};
use std::collections::HashSet;

/// Where buffers lie: at both ends, and off alignment by any number of bytes, and by whole elements.
fn places(case: &Case) -> [Place; 4] {
    let element = case.spec.inputs()[0].dtype().bytes() as usize;
    [Place::End, Place::Begin, Place::Off(case.number % 64), Place::Off(case.number / 64 * element % 64)]
}

/// Both kernels of a case, and what made them.
fn kernels(compilers: &[Compiler; 2], case: &Case) -> [(String, Kernel); 2] {
    let width = Some(WIDTHS[case.width]);
    let chosen = Options { schedule: None, width };
    let forced = Options { schedule: Some(case.schedule.clone()), width };
    [("chosen", chosen), ("forced", forced)].map(|(word, options)| {
        let compiled = compilers[case.number % 2].compile_with(&case.spec, &options);
        let kernel = compiled.unwrap_or_else(|error| panic!("{}, {word}: {error}", case.spec));
        (format!("{word} at {} bits", WIDTHS[case.width]), kernel)
    })
}

fn try_case(case: &Case, compilers: &[Compiler; 2], guarded: &mut Guarded, share: &mut Share, tally: &mut Tally) {
    let mut count = |what: String| *tally.entry(what).or_default() += 1;
    share.begin(case.number, "compiling");
    let kind = [3, 5, 0][case.number % 3];
    let memory = Memory::of(&case.spec, kind, case.number as u64, (0, 0));
    let mut first: Option<Vec<Buffer>> = None;
    count("cases".into());
    for (word, kernel) in kernels(compilers, case) {
        share.begin(case.number, &word);
        let outputs = memory.run(&kernel);
        let expected = first.get_or_insert_with(|| outputs.clone());
        let same = outputs.iter().zip(&*expected).all(|(a, b)| a.bytes() == b.bytes());
        assert!(same, "{}: the schedule {} changes the bits", case.spec, kernel.schedule());
        for place in places(case) {
            share.begin(case.number, &format!("{word}, {place}"));
            let ran = guarded.run(&kernel, &memory, expected, place);
            ran.unwrap_or_else(|wrong| panic!("{}, {}, {word}, {place}: {wrong}", case.spec, kernel.schedule()));
            count("runs".into());
        }
        if can_be_in_place(&kernel) {
            for place in [Place::End, Place::Begin] {
                share.begin(case.number, &format!("{word} in place, {place}"));
                let ran = guarded.run_in_place(&kernel, &memory, place);
                ran.unwrap_or_else(|wrong| panic!("{}, {}, {word}, {place}: {wrong}", case.spec, kernel.schedule()));
                count("runs in place".into());
            }
        }
        let wide_functions = kernel.facts().wide_functions.vector_bits;
        count(format!(
            "kernels of {} bits",
            if wide_functions > 0 { wide_functions } else { kernel.schedule().width.min(128) }
        ));
        if kernel.scratch_bytes() > 0 {
            count("kernels with scratch memory".into());
        }
        if kernel.parts() > 1 {
            count("kernels of parts".into());
        }
    }
    let expected = first.expect("two kernels");
    stays_between_elements(case, &memory, &expected);
    if case.number % 8 == case.number / 8 % 8 {
        let naive = lower::lower(&Problem::of(&case.spec), "naive");
        let same = memory.interpreted(&naive).iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes());
        assert!(same, "{}: other bits than the interpreter's", case.spec);
        count("compared with the interpreter".into());
    }
}

/// Gaps between the elements of outputs hold what they held.
fn stays_between_elements(case: &Case, memory: &Memory, after: &[Buffer]) {
    for (o, (before, after)) in memory.outputs.iter().zip(after).enumerate() {
        let size = case.spec.outputs()[o].dtype().bytes() as usize;
        let pairs = before.bytes().chunks(size).zip(after.bytes().chunks(size));
        let stays = pairs.zip(is_written(&case.spec, o)).all(|((before, after), written)| written || before == after);
        assert!(stays, "{}: bytes between the elements of output {o} are written", case.spec);
    }
}

fn can_be_in_place(kernel: &Kernel) -> bool {
    let spec = kernel.spec().expect("a kernel of a spec");
    let (input, outputs) = (&spec.inputs()[0], spec.outputs());
    let fits = |o: &cranefold::spec::Operand| o.dtype() == input.dtype() && o.placement() == input.placement();
    spec.applies() && matches!(outputs, [output] if fits(output))
}

#[test]
fn no_kernel_leaves_its_buffers() {
    let ops = cases::ops();
    let Some(mut share) = Share::of_this_process() else {
        let tally = children::run("no_kernel_leaves_its_buffers");
        assert_eq!(tally["cases"] as usize, cases::count(&ops), "{tally:?}");
        for (what, least) in [
            ("runs", 8 * tally["cases"]),
            ("runs in place", 5000),
            ("compared with the interpreter", tally["cases"] / 9),
            ("kernels with scratch memory", 900),
            ("kernels of parts", 1000),
            ("kernels of 0 bits", 1000),
            ("kernels of 64 bits", 1000),
            ("kernels of 128 bits", 1000),
        ] {
            assert!(tally.get(what).is_some_and(|&n| n >= least), "{what}: fewer than {least} of {tally:?}");
        }
        for bits in [256, 512] {
            let has = Compiler::host().expect("this machine").vectors().bits >= bits;
            let made = tally.get(&format!("kernels of {bits} bits")).copied().unwrap_or(0);
            assert!(!has || made > 1000, "{bits} bits: {tally:?}");
        }
        return;
    };
    let with_threads =
        |threads| Compiler::builder().threads(threads).most_kernels(64).build().expect("a compiler for this machine");
    let compilers = [1, 3].map(with_threads);
    let (mut guarded, mut tally) = (Guarded::default(), Tally::new());
    for number in share.cases(cases::count(&ops)) {
        try_case(&Case::of(&ops, number), &compilers, &mut guarded, &mut share, &mut tally);
    }
    share.finish(&tally);
}

/// Pairs of factors that do not meet in any case: of an op and a form that it refuses, and of a schedule and a form or a
/// tail that has no such loop or too few blocks: slices of bytes are one block of `argmax` where others have two.
const APART: [((Factor, Factor), usize); 4] = [
    ((Factor::Op, Factor::Form), 349),
    ((Factor::Op, Factor::Forced), 248),
    ((Factor::Tail, Factor::Forced), 15),
    ((Factor::Form, Factor::Forced), 66),
];

#[derive(Clone, Copy, PartialEq)]
enum Factor {
    Op,
    Tail,
    Form,
    Width,
    Forced,
}

/// Any two factors meet, but for those [`APART`].
#[test]
fn the_cases_are_pairwise_complete() {
    let ops = cases::ops();
    let all: Vec<Case> = (0..ops.len() * TAILS as usize).map(|number| Case::of(&ops, number)).collect();
    let factors = [
        (Factor::Op, ops.len()),
        (Factor::Tail, TAILS as usize),
        (Factor::Form, FORMS.len()),
        (Factor::Width, WIDTHS.len()),
        (Factor::Forced, FORCED.len()),
    ];
    let of = |case: &Case, factor: Factor| match factor {
        Factor::Op => case.op,
        Factor::Tail => case.tail as usize,
        Factor::Form => case.form,
        Factor::Width => case.width,
        Factor::Forced => case.forced,
    };
    for (n, &(a, all_a)) in factors.iter().enumerate() {
        for &(b, all_b) in &factors[n + 1..] {
            let meet: HashSet<_> = all.iter().map(|case| (of(case, a), of(case, b))).collect();
            let apart = APART.iter().find(|(pair, _)| *pair == (a, b)).map_or(0, |(_, apart)| *apart);
            assert_eq!(meet.len(), all_a * all_b - apart, "factors {} and {}", a as u8, b as u8);
        }
    }
}
