//! The loop nest beside its machine code: each loop's statements in one row with the instructions made of them.

use super::html::escape;

/// Lines of one text that stand directly in one loop.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch<'a> {
    /// The variable of the innermost loop around them; empty outside of all loops.
    inside: String,
    lines: Vec<&'a str>,
}

/// The stretches of a text, given what each line begins (a loop, by its variable) or ends.
fn stretches<'a>(lines: impl Iterator<Item = (&'a str, Event<'a>)>) -> Vec<Stretch<'a>> {
    let mut all: Vec<Stretch> = vec![];
    let mut open: Vec<&str> = vec![];
    let push = |line, inside: &str, all: &mut Vec<Stretch<'a>>| match all.last_mut() {
        Some(last) if last.inside == inside => last.lines.push(line),
        _ => all.push(Stretch { inside: inside.to_string(), lines: vec![line] }),
    };
    for (line, event) in lines {
        if let Event::Begins(var) = event {
            open.push(var);
        }
        push(line, open.last().copied().unwrap_or_default(), &mut all);
        if let Event::Ends = event {
            open.pop();
        }
    }
    all
}

/// The meaning of a line for the loops around it.
enum Event<'a> {
    Begins(&'a str),
    Ends,
    Stays,
}

/// The variable of a line `for VAR in ..`.
fn loop_var(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("for ")?.split_once(" in ").map(|(var, _)| var)
}

/// The stretches of a nest. A loop over lanes is one vector statement, and belongs to the loop around it.
fn of_nest(nest: &str) -> Vec<Stretch<'_>> {
    // The braces that are open, and whether each is a loop's that counts.
    let mut braces: Vec<bool> = vec![];
    let events = nest.lines().map(move |line| {
        let (opens, closes) = (line.matches('{').count(), line.matches('}').count());
        let counts = loop_var(line).filter(|_| opens > closes && !line.contains(" lanes {"));
        if opens > closes {
            braces.extend(std::iter::repeat_n(counts.is_some(), opens - closes));
            return (line, counts.map_or(Event::Stays, Event::Begins));
        }
        let ends = (closes > opens).then(|| braces.pop()).flatten().unwrap_or(false);
        (line, if ends { Event::Ends } else { Event::Stays })
    });
    stretches(events)
}

/// The stretches of a disassembly, whose comments name the loops.
fn of_code(code: &str) -> Vec<Stretch<'_>> {
    let events = code.lines().map(|line| {
        let comment = line.trim_start().strip_prefix("; ");
        let event = match comment.and_then(loop_var) {
            Some(var) => Event::Begins(var),
            None if comment.is_some_and(|text| text.starts_with("end of for ")) => Event::Ends,
            None => Event::Stays,
        };
        (line, event)
    });
    stretches(events)
}

/// Pairs of stretches in order: those of one loop beside one another, as many as can be, and the others alone.
fn pairs(left: &[Stretch], right: &[Stretch]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut longest = vec![vec![0u32; right.len() + 1]; left.len() + 1];
    for l in (0..left.len()).rev() {
        for r in (0..right.len()).rev() {
            longest[l][r] = match left[l].inside == right[r].inside {
                true => 1 + longest[l + 1][r + 1],
                false => longest[l + 1][r].max(longest[l][r + 1]),
            };
        }
    }
    let (mut l, mut r, mut pairs) = (0, 0, vec![]);
    while l < left.len() || r < right.len() {
        let both = l < left.len() && r < right.len();
        if both && left[l].inside == right[r].inside {
            pairs.push((Some(l), Some(r)));
            (l, r) = (l + 1, r + 1);
        } else if r == right.len() || both && longest[l + 1][r] >= longest[l][r + 1] {
            pairs.push((Some(l), None));
            l += 1;
        } else {
            pairs.push((None, Some(r)));
            r += 1;
        }
    }
    pairs
}

/// The most stretches of each text; beyond, both stand as they are.
const MOST: usize = 1500;

/// The table of the nest beside its code, the rows of the hot loop marked.
pub fn table(nest: &str, code: &str, hot: Option<&str>) -> String {
    let (left, right) = (of_nest(nest), of_code(code));
    if left.len() > MOST || right.len() > MOST {
        return format!("<pre>{}</pre>\n<pre>{}</pre>", escape(nest), escape(code));
    }
    let mut rows = String::new();
    for (l, r) in pairs(&left, &right) {
        let inside = l.map(|l| &left[l]).or(r.map(|r| &right[r])).map_or("", |stretch| stretch.inside.as_str());
        let is_hot = hot == Some(inside);
        let cell = |stretch: Option<&Stretch>| match stretch {
            Some(s) => format!("<td><pre>{}</pre></td>", s.lines.iter().map(line).collect::<String>()),
            None => "<td></td>".into(),
        };
        let name = match inside {
            "" => "<span class=\"mute\">outside</span>".to_string(),
            var => format!("<code>{}</code>", escape(var)),
        };
        rows += &format!(
            "<tr{}><th scope=\"row\">{name}{}</th>{}{}</tr>\n",
            if is_hot { " class=\"hot\"" } else { "" },
            if is_hot { " <span class=\"badge\">hot</span>" } else { "" },
            cell(l.map(|l| &left[l])),
            cell(r.map(|r| &right[r]))
        );
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The loop nest beside its machine code\"><table \
         class=\"code\">\n<thead><tr><th scope=\"col\">loop</th><th scope=\"col\">statements</th><th scope=\"col\">machine \
         code</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>"
    )
}

/// A line that wraps where its column is narrow, further in than it begins.
fn line(text: &&str) -> String {
    let indent = text.len() - text.trim_start().len();
    format!("<span class=\"line\" style=\"--in:{indent}\">{}</span>", escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEST: &str = "nest \"\" {\n  for i0 in 0..4 parallel {\n    acc a0\n    for k1 in 0..2 seq {\n      for l2 in 0..4 lanes { a }\n      for l3 in 0..4 lanes {\n        b\n      }\n    }\n    c\n  }\n}";
    const CODE: &str = "f:\n 0: push\n ; for i0 in 0..4 parallel\n 1: a\n ; for k1 in 0..2 seq\n 2: b\n ; end of for k1 in 0..2 seq\n 3: c\n ; end of for i0 in 0..4 parallel\n 4: ret";

    #[test]
    fn statements_stand_beside_their_code() {
        let names = |all: &[Stretch]| all.iter().map(|s| s.inside.clone()).collect::<Vec<_>>();
        assert_eq!(names(&of_nest(NEST)), ["", "i0", "k1", "i0", ""]);
        assert_eq!(names(&of_code(CODE)), ["", "i0", "k1", "i0", ""]);
        assert_eq!(of_nest(NEST)[2].lines.len(), 6);
        let all: Vec<_> = (0..5).map(|n| (Some(n), Some(n))).collect();
        assert_eq!(pairs(&of_nest(NEST), &of_code(CODE)), all);
        let table = table(NEST, CODE, Some("k1"));
        assert_eq!(table.matches("class=\"hot\"").count(), 1, "{table}");
        // Every line of both texts stands in the table once.
        for line in NEST.lines().chain(CODE.lines()).map(str::trim).filter(|line| line.len() > 3) {
            assert!(table.contains(&escape(line)), "{line}: {table}");
        }
    }

    #[test]
    fn loops_that_one_side_lacks_stand_alone() {
        let code = "f:\n ; for k1 in 0..2 seq\n 2: b\n ; end of for k1 in 0..2 seq\n 4: ret";
        let alone = pairs(&of_nest(NEST), &of_code(code));
        assert_eq!(alone.iter().filter(|(l, r)| l.is_some() && r.is_some()).count(), 3, "{alone:?}");
        assert_eq!(alone.len(), 5);
    }
}
