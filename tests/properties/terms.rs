//! Law 1, proved case by case: the term of every output element, as lowering says it, is what every
//! pass leaves, under the chosen schedule and any other that is accepted.

use crate::cases;
use cranefold::ir::eval::{Misaligned, Terms};
use cranefold::lower::{self, Share};
use cranefold::ops::Form;
use cranefold::problem::search_windows::Windows;
use cranefold::schedule::{Bounds, Decided, Divided, choose_in};
use cranefold::{Problem, Schedule, Spec, Vectors, pipeline};
use cranefold_fuzz::specs::Case;
use proptest::prelude::*;
use std::collections::HashMap;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_pass_changes_a_term(case in cases(3000, 6)) {
        check(&case)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_pass_changes_a_term_of_many_blocks(case in cases(50_000, 3)) {
        check(&case)?;
    }
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let spec = case.spec();
    let problem = Problem::of(&spec);
    // Terms of another form are others.
    check_form(case, &spec, &problem, Form::Plain)?;
    match problem.reducer_in(Form::Direct) {
        Some(_) => check_form(case, &spec, &problem, Form::Direct),
        None => Ok(()),
    }
}

fn check_form(case: &Case, spec: &Spec, problem: &Problem, form: Form) -> Result<(), TestCaseError> {
    let whole = lower::lower_share(problem, form, "whole", &Share::Whole);
    let in_form = |schedule| Schedule { form, ..schedule };
    let mut schedules: Vec<Schedule> = case.schedules(problem).into_iter().map(in_form).collect();
    schedules.retain(|schedule| schedule.check(problem).is_ok());
    schedules.push(choose_in(problem, form, case.width()));
    // A value that is kept is a definition of its own, whose name is part of a term.
    let mut naives: HashMap<(bool, &[String]), Vec<_>> = HashMap::new();
    for schedule in &schedules {
        let is_divided = schedule.parts.of == Divided::Blocks && schedule.parts.count > 1;
        let of = (is_searched(problem) && is_divided, schedule.keep.as_slice());
        let decided = Decided::of(problem.clone(), Some(schedule), Bounds::new(Vectors::WIDEST));
        let decided = decided.map_err(|e| TestCaseError::fail(e.to_string()))?;
        let stages = pipeline::stages(&decided).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut before = None;
        for (stage, program) in stages {
            if before.as_ref() == Some(&program) {
                continue;
            }
            // `Terms` panics where an element is stored twice.
            let mut terms = Terms::new(&whole).with_states(program.states());
            let places = vec![case.place(); whole.buffers.len() + program.states().len()];
            program.interpret(&mut Misaligned { domain: &mut terms, elements: &places });
            let terms = terms.outputs[..spec.outputs().len()].to_vec();
            match naives.get(&of) {
                Some(naive) => prop_assert!(*naive == terms, "other terms after {stage}, {schedule}\n{program}"),
                None => {
                    stored_are_the_elements(spec, &terms)?;
                    naives.insert(of, terms);
                }
            }
            before = Some(program);
        }
    }
    Ok(())
}

/// Whether slices are searched where they are whole, and looked at twice where their blocks are shared out: the same element
/// is found by other operations.
fn is_searched(problem: &Problem) -> bool {
    problem.computation().is_some_and(|computation| Windows::of_computation(problem, &computation).is_some())
}

/// The elements of the outputs are stored, and nothing between them.
fn stored_are_the_elements(spec: &Spec, terms: &[Vec<Option<u128>>]) -> Result<(), TestCaseError> {
    for (o, terms) in terms.iter().enumerate() {
        let stored: Vec<bool> = terms.iter().map(Option::is_some).collect();
        prop_assert_eq!(stored, cranefold_fuzz::execute::is_written(spec, o));
    }
    Ok(())
}
