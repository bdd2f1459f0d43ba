//! Law 1, proved case by case: the term of every output element, as lowering says it, is what every
//! pass leaves, under the chosen schedule and any other that is accepted.

use crate::specs::{Case, cases};
use cranefold::ir::eval::Terms;
use cranefold::schedule::choose;
use cranefold::{Problem, Reduction, Vectors, pipeline};
use proptest::prelude::*;

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
    let mut schedules = case.schedules(&problem);
    schedules.push(choose(&problem, case.width()));
    let mut naive: Option<Vec<Vec<Option<u128>>>> = None;
    for schedule in &schedules {
        let stages =
            pipeline::stages(&problem, schedule, Vectors::WIDEST).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut before = None;
        for (stage, nest) in stages {
            if before.as_ref() == Some(&nest) {
                continue;
            }
            // `Terms` panics where an element is stored twice.
            let terms = Terms::of(&nest);
            match &naive {
                Some(naive) => prop_assert!(*naive == terms, "other terms after {stage}, {schedule}\n{nest}"),
                None => {
                    stored_are_the_elements(&spec, &terms)?;
                    naive = Some(terms);
                }
            }
            before = Some(nest);
        }
    }
    Ok(())
}

/// The elements of the outputs are stored, and nothing between them.
fn stored_are_the_elements(spec: &Reduction, terms: &[Vec<Option<u128>>]) -> Result<(), TestCaseError> {
    for (o, terms) in terms.iter().enumerate() {
        let stored: Vec<bool> = terms.iter().map(Option::is_some).collect();
        prop_assert_eq!(stored, crate::execute::is_written(spec, o));
    }
    Ok(())
}
