//! The messages of wrong command lines: one line each, with what to write where that is clear.

/// Flags that people know from elsewhere, each with what takes their place.
const ELSEWHERE: [(&str, &str); 17] = [
    ("-h", "`--help`"),
    ("-i", "`--input F.npy`"),
    ("-o", "`--output F.npy`"),
    ("-q", "`--quiet`"),
    ("-v", "`explain SPEC` tells more than `run SPEC`"),
    ("--verbose", "`explain SPEC` tells more than `run SPEC`"),
    ("--in", "`--input F.npy`"),
    ("--out", "`--output F.npy`"),
    ("--seed", "`--random SEED`"),
    ("--spec", "the spec follows the command, without a flag: `cranefold run \"sum f32[2,3]\"`"),
    ("--op", "the spec begins with the op: `cranefold run \"sum f32[2,3]\"`"),
    ("--axis", "`axes=[1]` in the spec"),
    ("--axes", "`axes=[1]` in the spec"),
    ("--dim", "`axes=[1]` in the spec"),
    ("--dtype", "`-> f64` in the spec"),
    ("--keepdims", "`keep_dims` in the spec"),
    ("--no-check", "`--check none`"),
];

/// The commands of `model`.
const MODEL: &str = "dump, plan, run and bench";

/// The reasons of Rust for which a text is no number, each with ours.
const NUMBERS: [(&str, &str); 4] = [
    (": invalid digit found in string", "a whole number of 0 or more is expected"),
    (": invalid float literal", "a number is expected, such as 2.5"),
    (": number too large to fit in target type", "the greatest is 18446744073709551615"),
    (": cannot parse integer from empty string", "a whole number of 0 or more is expected"),
];

/// The message for clap's: its first paragraph, and its tip or one of ours.
pub fn message(clap: &str) -> String {
    let (first, rest) = clap.split_once("\n\n").unwrap_or((clap, ""));
    let text = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    for (why, instead) in NUMBERS {
        if let Some(before) = text.strip_suffix(why) {
            return format!("{before}: {instead}");
        }
    }
    // The help of a command alone, in place of a message.
    if !text.contains('\'') && rest.starts_with("Usage: cranefold model") {
        return format!("`model` takes a command: {MODEL}");
    }
    let given = |before: &str| text.strip_prefix(before).and_then(|rest| rest.split('\'').next());
    let hint = given("unexpected argument '").and_then(|given| of_argument(given, text, rest)).or_else(|| {
        let word = given("unrecognized subcommand '")?;
        Some(match word {
            "help" => "`cranefold --help` and `cranefold run --help` tell".to_string(),
            word if word.contains(['[', ' ']) => {
                "a spec follows a command, as in `cranefold run \"sum f32[2,3]\"`".into()
            }
            _ if rest.contains("Usage: cranefold model") => format!("`model` takes {MODEL}"),
            _ => "`cranefold --help` lists the commands".into(),
        })
    });
    let tip =
        rest.lines().find_map(|line| line.trim_start().strip_prefix("tip: ")).filter(|tip| tip.contains("similar"));
    match hint.or(tip.map(str::to_string)) {
        Some(hint) => format!("{text}: {hint}"),
        None => text.to_string(),
    }
}

/// The hint for an argument that nothing takes; the text says `found` where it stands by itself.
fn of_argument(given: &str, text: &str, rest: &str) -> Option<String> {
    let usage = rest.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
    let takes_spec = usage.contains("SPEC");
    if !given.starts_with('-') {
        let is_array = [".npy", ".npz"].iter().any(|end| given.ends_with(end));
        return text.ends_with(" found").then(|| match is_array {
            true if takes_spec => format!("a file is given as `--input {given}` or `--output {given}`"),
            _ if given.contains('[') && given.contains(' ') => "one spec is taken; `bench` takes several".into(),
            _ if takes_spec => "a spec is one argument, in quotes".into(),
            _ => format!("`{}` takes no more", usage.split(['[', '<']).next().unwrap_or_default().trim_end()),
        });
    }
    if given == "--stage" {
        return Some("`dump SPEC --stage` prints stages".into());
    }
    let (_, instead) = ELSEWHERE.iter().find(|(flag, _)| *flag == given)?;
    Some(if instead.starts_with("`-") || instead.ends_with("in the spec") {
        format!("write {instead}")
    } else {
        instead.to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tips_of_clap_are_kept() {
        let clap =
            "error: unexpected argument '--widht' found\n\n  tip: a similar argument exists: '--width'\n\nUsage: x\n";
        assert_eq!(message(clap), "unexpected argument '--widht' found: a similar argument exists: '--width'");
        assert_eq!(
            message("error: the following required arguments were not provided:\n  <SPEC>\n\nUsage: x\n"),
            "the following required arguments were not provided: <SPEC>"
        );
    }
}
