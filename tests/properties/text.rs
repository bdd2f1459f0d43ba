//! Every stage reads back as it prints, and no text makes a parser panic.

use crate::cases;
use cranefold::ir::Nest;
use cranefold::lower::program::Program;
use cranefold::schedule::{Bounds, Decided, choose};
use cranefold::{Problem, Schedule, Spec, Vectors, pipeline};
use cranefold_fuzz::data::Random;
use cranefold_fuzz::specs::Case;
use proptest::prelude::*;

/// The stages by a schedule, each verified.
fn stages(problem: &Problem, schedule: &Schedule) -> Result<Vec<(&'static str, Program)>, String> {
    let decided = Decided::of(problem.clone(), Some(schedule), Bounds::new(Vectors::WIDEST));
    pipeline::stages(&decided.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_stage_reads_back(case in cases(1 << 22, 6)) {
        let spec = case.spec();
        prop_assert_eq!(spec.to_string().parse::<Spec>(), Ok(spec.clone()));
        let problem = Problem::of(&spec);
        prop_assert_eq!(problem.to_string().parse::<Problem>(), Ok(problem.clone()), "{}", problem);
        // With outputs as they are where nothing is said: refused, or whole.
        let text = spec.to_string();
        if let Some(Ok(other)) = text.rsplit_once(" -> ").map(|(head, _)| head.parse::<Spec>()) {
            prop_assert_eq!(other.to_string().parse::<Spec>(), Ok(other.clone()));
            let problem = Problem::of(&other);
            prop_assert_eq!(problem.to_string().parse::<Problem>(), Ok(problem.clone()), "{}", problem);
            stages(&problem, &choose(&problem, 512)).map_err(TestCaseError::fail)?;
        }
        let mut schedules = case.schedules(&problem);
        schedules.extend([0, 128, 256, 512].map(|width| choose(&problem, width)));
        for schedule in schedules {
            prop_assert_eq!(schedule.to_string().parse::<Schedule>(), Ok(schedule.clone()), "{}", schedule);
            // Each nest is verified on the way.
            for (stage, program) in stages(&problem, &schedule).map_err(TestCaseError::fail)? {
                prop_assert_eq!(program.to_string().parse::<Program>(), Ok(program.clone()), "after {}", stage);
                for nest in program.all_nests() {
                    prop_assert_eq!(nest.to_string().parse::<Nest>(), Ok(nest.clone()), "after {}", stage);
                }
            }
        }
    }

    #[test]
    fn arbitrary_schedules_never_panic(text in ".*") {
        let _ = text.parse::<Schedule>();
    }

    #[test]
    fn schedules_of_the_right_words_never_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "width", "tile", "jam", "in_flight", "parts", "@blocks", "@runs", "=", " ", "i0", "i4294967295", "i4294967296", ":", "0", "1", "64", "65", "128", "-1", "+8",
            "18446744073709551615", "18446744073709551616", "b0", "i", "é", "\n", "\u{0}",
        ]), 0..16)
    ) {
        if let Ok(schedule) = words.concat().parse::<Schedule>() {
            prop_assert_eq!(schedule.to_string().parse(), Ok(schedule));
        }
    }

    #[test]
    fn schedules_of_any_numbers_are_checked(width: u32, var: u32, by: u64, jam: u64, case in cases(1 << 20, 4)) {
        let text = format!("width={} tile=i{}:{by}{} jam={} in_flight={}", [0, 128, 512, width][jam as usize % 4], var % 8, ["", "@runs", "@blocks"][width as usize % 3], jam % 70, jam % 19);
        if let Ok(schedule) = text.parse::<Schedule>() {
            // Accepted or refused with a reason; what is accepted makes nests that verify.
            let problem = Problem::of(&case.spec());
            if schedule.check(&problem).is_ok() {
                let stages = stages(&problem, &schedule);
                prop_assert!(stages.is_ok(), "{text}: {}", stages.err().unwrap_or_default());
            }
        }
    }

    #[test]
    fn arbitrary_problems_never_panic(text in ".*") {
        let _ = text.parse::<Problem>();
    }

    #[test]
    fn damaged_problems_never_panic(case in cases(1 << 20, 4), seed: u64, times in 1..6usize) {
        let text = damaged(&Problem::of(&case.spec()).to_string(), seed, times);
        if let Ok(problem) = text.parse::<Problem>() {
            prop_assert_eq!(problem.to_string().parse(), Ok(problem.clone()), "{}", text);
            // What is read is whole: it goes all the way, if perhaps to outputs that overlap.
            let schedule = cranefold::schedule::choose(&problem, 512);
            let _ = stages(&problem, &schedule);
        }
    }

    #[test]
    fn damaged_nests_never_panic(case in cases(1 << 20, 3), seed: u64, times in 1..6usize) {
        let nest = naive(&case);
        if let Ok(nest) = damaged(&nest.to_string(), seed, times).parse::<Nest>() {
            prop_assert_eq!(nest.to_string().parse(), Ok(nest.clone()), "{}", nest);
            // Most break a rule; the verifier says so or finds none broken.
            let _ = cranefold::ir::verify(&nest);
        }
    }
}

fn naive(case: &Case) -> Nest {
    let problem = Problem::of(&case.spec());
    cranefold::lower::lower(&problem, "damaged")
}

/// The text with words and characters taken out, doubled, exchanged or replaced.
fn damaged(text: &str, seed: u64, times: usize) -> String {
    const WORDS: [&str; 24] = [
        "0",
        "-1",
        "1",
        "18446744073709551615",
        "9223372036854775807",
        "-9223372036854775808",
        "nan",
        "slices at 0 -> 0\n",
        "elements at 0\n",
        "positions at 0 -> 0\n",
        "padding of x1 at 0\n",
        "dim 2: 1 -> 1\n",
        "dim 2: 1\n",
        "beside 0\n",
        "position 1",
        " at ",
        "->",
        ": ",
        ", ",
        "in",
        "over",
        "}",
        "é",
        "f64",
    ];
    let mut random = Random::new(seed);
    let mut pieces: Vec<String> = vec![String::new()];
    for c in text.chars() {
        let last = pieces.last_mut().expect("one at least");
        let joins = c.is_alphanumeric() && last.chars().all(char::is_alphanumeric);
        if joins { last.push(c) } else { pieces.push(c.into()) }
    }
    for _ in 0..times {
        let at = random.below(pieces.len() as u64) as usize;
        let other = random.below(pieces.len() as u64) as usize;
        match random.below(4) {
            0 => pieces[at].clear(),
            1 => pieces[at] = random.pick(&WORDS).into(),
            2 => pieces[at] = pieces[other].clone(),
            _ => pieces.swap(at, other),
        }
    }
    pieces.concat()
}
