//! Every refusal of a region, with its message and the caret under the place.
//!
//! `refused.txt` holds the texts and the messages; `BLESS=1 cargo test` writes the messages.

use cranefold_ir::DType;
use cranefold_ir::ops::ROWS;
use cranefold_spec::Spec;
use std::fmt::Write;
use std::path::Path;

/// The cases of the file: the lines of a text behind `> `, then the message.
fn texts(golden: &str) -> Vec<String> {
    let mut texts = vec![];
    for case in golden.split("\n\n") {
        let lines: Vec<&str> = case.lines().filter_map(|line| line.strip_prefix("> ")).collect();
        if !lines.is_empty() {
            texts.push(lines.join("\n"));
        }
    }
    texts
}

#[test]
fn refused_regions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regions/refused.txt");
    let golden = std::fs::read_to_string(&path).expect("the golden file");
    let head: String =
        golden.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let mut found = head;
    for text in texts(&golden) {
        let error = match text.parse::<Spec>() {
            Ok(spec) => panic!("{spec} is not refused"),
            Err(error) => error.to_string(),
        };
        // A text that began another case would never be read.
        assert!(!text.lines().skip(1).any(|line| line.starts_with("region ")), "two cases in one:\n{text}");
        let lines: String = text.lines().map(|line| format!("> {line}\n")).collect();
        let _ = write!(found, "\n{lines}{error}\n");
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &found).expect("a file to write");
    }
    assert!(found == golden || std::env::var_os("BLESS").is_some(), "BLESS=1 writes:\n{found}");
}

#[test]
fn calls_in_calls_of_long_sums() {
    // Each call is shallow for itself; together they would be deep.
    let ones = "+ 1".repeat(98);
    let nest = (0..99).fold("i".to_string(), |value, _| format!("centered({value} {ones})"));
    let text = format!("region i:i32[8] {{ {nest} }}");
    assert!(text.len() < 100_000);
    assert!(text.parse::<Spec>().is_err());
    let nest = (0..8).fold("x".to_string(), |value, _| format!("centered({value} {ones})"));
    assert!(format!("region x:f32[8] {{ {nest} }}").parse::<Spec>().is_ok());
}

#[test]
fn limits() {
    let refused = |text: String| match text.parse::<Spec>() {
        Ok(_) => panic!("{} bytes are not refused", text.len()),
        Err(error) => error.to_string().lines().next().unwrap_or_default().to_string(),
    };
    let chain = |n: usize| -> String { (1..n).map(|i| format!("a{i} = a{} + 1; ", i - 1)).collect() };
    let region = |n: usize| format!("region x:f32[8] {{ a0 = x * 2; {} a{} }}", chain(n), n - 1);
    assert!(region(1000).parse::<Spec>().is_ok());
    assert_eq!(refused(region(1001)), "the region has more than 1000 definitions");
    let outputs = |n: usize| format!("region x:f32[8] {{ {} }}", vec!["x"; n].join(", "));
    assert!(outputs(16).parse::<Spec>().is_ok());
    assert_eq!(refused(outputs(17)), "the region has more than 16 outputs");
    let stages = |n: usize| {
        let visits: String = (0..n)
            .map(|i| format!("s{i} = sum(x{}); ", if i > 0 { format!(" * s{}", i - 1) } else { String::new() }))
            .collect();
        format!("region x:f32[8] {{ {visits} s{} }}", n - 1)
    };
    assert!(stages(8).parse::<Spec>().is_ok());
    assert_eq!(refused(stages(9)), "this reduction needs 8 visits before it; the limit is 8 stages");
    let deep = |n: usize| format!("region x:f32[8] {{ {}x{} }}", "sqrt(".repeat(n), ")".repeat(n));
    assert!(deep(100).parse::<Spec>().is_ok());
    assert_eq!(refused(deep(101)), "the expression nests more than 100 deep");
    let long = |n: usize| format!("region x:f32[8] {{ x }}{}", " ".repeat(n));
    assert!(long(99_000).parse::<Spec>().is_ok());
    assert_eq!(refused(long(100_000)), "the text has 100021 bytes; the limit is 100000");
    let wide = |levels: usize| {
        let sum = (0..levels).fold("x".to_string(), |sum, _| format!("({sum}+{sum})"));
        format!("region x:f32[8] {{ {sum} }}")
    };
    assert!(wide(12).parse::<Spec>().is_ok());
    assert_eq!(refused(wide(13)), "the expression has more than 10000 nodes");
    let operands = |n: usize| {
        format!(
            "region {} {{ {} }}",
            vec!["f32[8]"; n].join(", "),
            (0..n).map(|i| format!("x{i}")).collect::<Vec<_>>().join(" + ")
        )
    };
    assert!(operands(64).parse::<Spec>().is_ok());
    assert_eq!(refused(operands(65)), "65 inputs are above the limit of 64");
}

/// The first line of the message for a text that is refused.
fn message(text: &str) -> String {
    match text.parse::<Spec>() {
        Ok(spec) => panic!("{spec} is not refused"),
        Err(error) => error.to_string().lines().next().unwrap_or_default().to_string(),
    }
}

#[test]
fn no_word_of_regions_names_a_value() {
    let words = "region axes scalar keep_dims acc order memory logical position extent old centered or and not inf nan";
    for word in words.split(' ') {
        for text in [
            format!("region x:f32[8] {{ {word} = x; {word} }}"),
            format!("region {word}:f32[8] {{ {word} }}"),
            format!("region x:f32[8] scalar {word}:f32 {{ x * {word} }}"),
            format!("region x:f32[8] {{ {word}, s = sum_exp(x); s }}"),
        ] {
            let found = message(&text);
            assert!(found.ends_with("cannot be a name"), "{text}: {found}");
        }
    }
}

#[test]
fn no_op_names_a_value_and_no_normalisation_is_called() {
    for row in ROWS {
        let text = format!("region x:f32[8] {{ {0} = x; {0} }}", row.name);
        assert_eq!(message(&text), format!("`{}` is an op and cannot be a name", row.name));
        if row.applies {
            let found = message(&format!("region x:f32[8] {{ {}(x) }}", row.name));
            let start = format!("`{}` writes a value at each position: in a region write its text", row.name);
            assert!(found.starts_with(&start), "{found}");
        }
        let aliases = row.aliases.iter().filter(|alias| alias.chars().all(|c| c.is_alphanumeric() || c == '_'));
        for alias in aliases.filter(|&&alias| !["or", "and"].contains(&alias)) {
            let found = message(&format!("region x:f32[8] {{ {alias}(x) }}"));
            assert_eq!(found, format!("`{alias}` is written `{}` in regions", row.name));
        }
    }
}

#[test]
fn rows_of_floats_refuse_integers_and_rows_of_integers_refuse_floats() {
    for row in ROWS.iter().filter(|row| !row.applies) {
        // Of 1 and 2 it is another row.
        let value = |name| if name == "p" { 3 } else { 1 };
        let params: String = row.params.iter().map(|p| format!(", {}={}", p.name, value(p.name))).collect();
        let names: Vec<String> = (0..row.results.len()).map(|n| format!("r{n}")).collect();
        let names = names.join(", ");
        let text = |dtype: &str| format!("region x:{dtype}[8] {{ {names} = {}(x{params}); {names} }}", row.name);
        for dtype in ["i8", "u16", "i32", "u32", "i64", "u64"] {
            let convert = format!("convert, as in `{}(f32(x))`", row.name);
            match text(dtype).parse::<Spec>() {
                Ok(_) => assert!(row.takes(DType::I32), "{} takes {dtype}", row.name),
                Err(error) if row.takes(DType::I32) => assert!(error.to_string().contains(&convert), "{error}"),
                Err(_) => {}
            }
        }
        for dtype in ["f32", "f64", "bf16", "f16", "bool"] {
            let is_taken = text(dtype).parse::<Spec>().is_ok();
            assert_eq!(is_taken, row.takes(dtype.parse().expect("a dtype")), "{} of {dtype}", row.name);
        }
    }
}
