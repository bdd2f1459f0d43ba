//! The choice of schedules: what is chosen, and what it is chosen from, keeps the limits of schedules.

use crate::cases;
use cranefold::schedule::{Schedule, choose_for, choose_in, consider};
use cranefold::{Problem, ops};
use cranefold_fuzz::regions::RegionCase;
use proptest::prelude::*;

/// Widths of vectors and numbers of threads.
const WIDTHS: [u32; 5] = [0, 64, 128, 256, 512];
const THREADS: [usize; 2] = [2, 7];

fn check(problem: &Problem) -> Result<(), TestCaseError> {
    let fits = |schedule: &Schedule, how: &str| match schedule.check(problem) {
        Ok(()) => Ok(()),
        Err(error) => Err(TestCaseError::fail(format!("{how} {schedule}: {error}\n{problem}"))),
    };
    for width in WIDTHS {
        let choice = consider(problem, width);
        fits(&choice.schedule, "chosen")?;
        for (other, _) in &choice.others {
            fits(other, "considered")?;
        }
        for threads in THREADS {
            fits(&choose_for(problem, width, threads), &format!("chosen for {threads} threads"))?;
        }
        for form in [ops::Form::Plain, ops::Form::Direct] {
            if problem.reducer_in(form).is_some() {
                fits(&choose_in(problem, form, width), &format!("chosen in the form {form:?}"))?;
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn schedules_that_are_chosen_for_specs_fit(case in cases(1 << 24, 6)) {
        check(&Problem::of(&case.spec()))?;
    }

    #[test]
    fn schedules_that_are_chosen_for_regions_fit(bytes in prop::collection::vec(any::<u8>(), RegionCase::BYTES)) {
        check(&Problem::of(&RegionCase::of(&bytes, 1 << 24).spec()))?;
    }
}
