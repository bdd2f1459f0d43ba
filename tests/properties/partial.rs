//! Random specs in random shards, combined in random brackets, have the bits of the whole.

use crate::cases;
use crate::shards::fault;
use cranefold::{Compiler, Error, Problem, lower};
use cranefold_fuzz::data::Random;
use cranefold_fuzz::execute::Memory;
use cranefold_fuzz::specs::Case;
use proptest::prelude::*;
use std::sync::LazyLock;

static COMPILER: LazyLock<Compiler> = LazyLock::new(|| Compiler::host().expect("this machine"));

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shards_combine_to_the_bits_of_the_whole(case in cases(20_000, 5)) {
        check(&case)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shards_of_many_elements_combine_to_the_bits_of_the_whole(case in cases(200_000, 3)) {
        check(&case)?;
    }
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let spec = case.spec();
    let partial = match COMPILER.partial(&spec) {
        Err(Error::NotInBlocks { .. }) => return Ok(()),
        partial => partial.map_err(|e| TestCaseError::fail(e.to_string()))?,
    };
    let naive = lower::lower(&Problem::of(&spec), "naive");
    let memories = [0, 1].map(|n| Memory::of(&spec, case.kind, case.seed ^ n, case.offsets));
    let expected = memories.each_ref().map(|memory| memory.interpreted(&naive));
    let mut random = Random::new(case.seed);
    let fault = fault(&partial, memories.each_ref(), expected.each_ref().map(Vec::as_slice), &mut random);
    prop_assert!(fault.is_none(), "{}", fault.expect("a fault"));
    Ok(())
}
