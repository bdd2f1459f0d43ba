//! The grammar at the head of the crate has every word that the printer prints, and no other.

use cranefold_ir::*;
use std::collections::BTreeSet;

/// The head of the crate, without the marks of comments.
fn head() -> String {
    let text = include_str!("../src/lib.rs");
    text.lines().filter_map(|line| line.strip_prefix("//!")).map(|line| format!("{line}\n")).collect()
}

/// The grammar: from its first rule to the end of its block.
fn grammar() -> String {
    let head = head();
    let (_, rest) = head.split_once("```text\n nest      = ").expect("the grammar");
    rest.split_once("```").expect("its end").0.to_string()
}

/// The words between double quotes in the grammar.
fn quoted(grammar: &str) -> BTreeSet<String> {
    // The one rule with a quote between single ones is that of quoted text.
    let lines = grammar.lines().filter(|line| !line.contains("'\"'"));
    let words = lines.flat_map(|line| line.split('"').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>());
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).collect()
}

/// A statement of each kind, in a nest that declares enough. A new kind has no arm here and does not compile.
fn every_statement() -> Nest {
    let var = |over| LoopVar { over, id: 0 };
    let number = || Expr::Const(Scalar::float(DType::F32, 1.0));
    let (zero, acc, v) = (Index::default, AccId(0), Var(0));
    let for_loop = |kind| Stmt::For(Loop::new(var(Over::Jam), 2, kind, vec![]));
    let all = vec![
        for_loop(LoopKind::Parallel),
        for_loop(LoopKind::Seq),
        for_loop(LoopKind::Lanes),
        Stmt::Acc { acc, dtype: DType::F32, len: 1, init: Scalar::float(DType::F32, f64::INFINITY) },
        Stmt::Acc { acc, dtype: DType::F32, len: 1, init: Scalar::nan(DType::F32) },
        Stmt::Acc { acc, dtype: DType::F32, len: 1, init: Scalar::from_bits(DType::F32, 0x7fc0_0001) },
        Stmt::Acc { acc, dtype: DType::Bool, len: 1, init: Scalar::bool(true) },
        Stmt::Acc { acc, dtype: DType::Bool, len: 1, init: Scalar::bool(false) },
        Stmt::Let { var: v, value: number() },
        Stmt::Call { vars: vec![v], def: DefId(0), args: vec![number()] },
        Stmt::Set { acc, index: zero(), value: number() },
        Stmt::Store { buf: BufId(0), index: zero(), value: number() },
        Stmt::Carry { var: var(Over::Level), of: zero() },
        Stmt::Pick { var: var(Over::Start), value: number(), most: 7 },
        Stmt::Misalign { var: var(Over::Start), buf: BufId(0), index: zero(), lanes: 16 },
        Stmt::Rotate { acc, start: 0, len: 1, by: var(Over::Start) },
        Stmt::Prefetch { buf: BufId(0), index: zero(), far: true },
        Stmt::Merge { accs: vec![acc], def: DefId(0), blocks: 2, elems: 1 },
        Stmt::Fold { accs: vec![acc], def: DefId(0), present: 2, lanes: 2, elems: 1 },
        Stmt::Select { vars: vec![v], what: Selection::Nth(vec![1]), acc, len: 3 },
        Stmt::Select { vars: vec![v], what: Selection::Mode, acc, len: 3 },
        Stmt::Transpose(Transpose {
            acc,
            buf: BufId(0),
            first: zero(),
            lanes: 4,
            stride: 3,
            runs: 2,
            run_stride: 24,
            columns: vec![0, 2],
            within: 12,
        }),
        Stmt::TransposedStore(Transpose {
            acc,
            buf: BufId(1),
            first: zero(),
            lanes: 4,
            stride: 3,
            runs: 3,
            run_stride: -40,
            columns: vec![0, 2],
            within: 0,
        }),
        Stmt::Wide { body: vec![] },
    ];
    for stmt in &all {
        match stmt {
            Stmt::For(_) | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } => {}
            Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Merge { .. } => {}
            Stmt::Fold { .. }
            | Stmt::Select { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_)
            | Stmt::Wide { .. }
            | Stmt::Prefetch { .. } => {}
            Stmt::Misalign { .. } | Stmt::Rotate { .. } => {}
        }
    }
    let results = vec![Expr::Var(Var(1), DType::F32)];
    let def = Def { name: "def".into(), params: vec![DType::F32], lets: vec![number()], results };
    let roles = BufferRole::ALL;
    let buffers = roles.map(|role| Buffer { role, dtype: DType::F32, len: 1 }).into();
    Nest { name: "nest".into(), buffers, defs: vec![def], body: all }
}

/// The words of a printed nest: no number and no name with a number.
fn printed(nest: &Nest) -> BTreeSet<String> {
    let text = nest.to_string();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(str::to_string);
    let is_name = |word: &str| word.len() > 1 && word[1..].chars().all(|c| c.is_ascii_digit());
    let is_word = |word: &String| word.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_name(word);
    words.filter(is_word).collect()
}

#[test]
fn the_grammar_has_the_words_of_the_printer() {
    let mut words = printed(&every_statement());
    words.extend(DType::ALL.map(|dtype| dtype.name().to_string()));
    // A conversion is written as its type.
    words.extend(Op::ALL.into_iter().filter(|op| *op != Op::Cast).map(|op| op.name().to_string()));
    words.extend(Over::LETTERS.map(|(_, letter)| letter.to_string()));
    let quoted = quoted(&grammar());
    let missing: Vec<&String> = words.difference(&quoted).collect();
    let unused: Vec<&String> = quoted.difference(&words).collect();
    assert!(missing.is_empty() && unused.is_empty(), "the grammar lacks {missing:?}, the printer {unused:?}");
}

#[test]
fn the_grammar_is_not_longer_than_its_column() {
    let long: Vec<String> = grammar().lines().filter(|line| line.len() > 120).map(str::to_string).collect();
    assert!(long.is_empty(), "{long:?}");
}
