//! The flags that serve a shell: JSON, quiet, checks, streams, archives, pages, completions.

use crate::{bytes, cranefold, folder, read_npy, refuses, works, write_npy};
use npyz::Order;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&works(args)).expect("one JSON object")
}

/// The schemas of docs/shell.md, in their order.
fn schemas() -> Vec<serde_json::Value> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").join("docs/shell.md");
    let page = fs::read_to_string(page).expect("the page");
    let texts = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().expect("its end"));
    texts.map(|text| serde_json::from_str(text).expect("the schema is JSON")).collect()
}

/// Every key of the schemas of `bench`, `model plan` and `model bench` stands in their objects, and no other.
#[test]
fn figures_have_the_keys_of_their_schemas() {
    let [_, bench, plan, times] = &schemas()[..] else { panic!("four schemas") };
    let found = works(&["bench", "sum f32[64]", "sum f32[9] map=\"exp(x0)\"", "--json", "--budget-ms", "1"]);
    for line in found.lines() {
        agrees(bench, &serde_json::from_str(line).expect("an object on a line"), "bench");
    }
    assert_eq!(found.lines().count(), 2);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas.txt");
    let graph =
        "graph { x: f32[3,5] = input; s: f32[3] = sum(x) axes=[1]; y: f32[3] = opaque(s) op=\"Conv\"; return y }";
    fs::write(&file, graph).expect("a file");
    let path = file.to_str().expect("a path in UTF-8");
    agrees(plan, &json(&["model", "plan", path, "--json"]), "model plan");
    let times_found = json(&["model", "bench", path, "--json", "--budget-ms", "1"]);
    agrees(times, &times_found, "model bench");
    assert_eq!(times_found["opaque"].as_array().map(Vec::len), Some(1));
}

/// Every key of the schema of `run` stands in the object, and no other.
#[test]
fn json_has_the_keys_of_its_schema() {
    let schema = &schemas()[0];
    let object = json(&["run", "max,argmax f32[8,16] axes=[1]", "--json"]);
    agrees(schema, &object, "run");
    assert_eq!(object["spec"], "max, argmax f32[8,16] axes=[1]");
    assert_eq!(object["outputs"][1]["dtype"], "i64");
    assert_eq!(object["outputs"][0]["first"].as_array().expect("elements").len(), 6);
    assert_eq!((&object["check"]["state"], &object["outputs"][0]["check"]["checked"]), (&"right".into(), &8.into()));
    for (how, state) in [("none", "none"), ("all", "right")] {
        assert_eq!(json(&["run", "sum f32[64]", "--json", "--check", how])["check"]["state"], state);
    }
    assert_eq!(json(&["run", "sum f32[64]", "--json", "--executor", "reference"])["check"]["state"], "reference");
    let nan = json(&["run", "mean f32[0]", "--json"]);
    assert_eq!(nan["outputs"][0]["first"][0], "nan");
    assert_eq!(json(&["run", "sum i8[9]", "--json"])["notes"].as_array().expect("notes").len(), 1);
}

/// An object of JSON Schema's: type, properties, required, items.
fn agrees(schema: &serde_json::Value, value: &serde_json::Value, at: &str) {
    let types: Vec<&str> = match &schema["type"] {
        serde_json::Value::String(one) => vec![one],
        many => many.as_array().into_iter().flatten().filter_map(|t| t.as_str()).collect(),
    };
    let found = match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "boolean",
        serde_json::Value::Number(_) => "number",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
    };
    assert!(types.is_empty() || types.contains(&found), "{at} is {found}, and the schema says {types:?}");
    for item in value.as_array().into_iter().flatten() {
        agrees(&schema["items"], item, &format!("{at}[]"));
    }
    let Some(object) = value.as_object() else { return };
    let properties = schema["properties"].as_object().unwrap_or_else(|| panic!("{at} has no properties"));
    let required = schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().expect("a name"));
    required.for_each(|name| assert!(object.contains_key(name), "{at} lacks {name}"));
    for (name, value) in object {
        agrees(
            properties.get(name).unwrap_or_else(|| panic!("{at}.{name} is not in the schema")),
            value,
            &format!("{at}.{name}"),
        );
    }
}

#[test]
fn quiet_prints_nothing_and_notes_go_to_stderr() {
    assert_eq!(works(&["run", "sum i8[64]", "--quiet"]), "");
    let done = cranefold(&["run", "sum i8[64,512] axes=[1]"]);
    assert_eq!(done.code, Some(0));
    assert_eq!(
        done.err,
        "note: `sum` of i8 is i8, modulo 2^8: totals beyond 127 wrap; `-> i64` gives them whole, `saturate` clamps them\n"
    );
    assert!(cranefold(&["explain", "sum f32[8] -> f64"]).err.starts_with("note: `sum` accumulates in f32"));
    // A wrong answer is an error, quiet or not.
    let broken = r#"combiner(identity="1", lift="x0", combine="a0+b0", commutative) f32[64]"#;
    assert_eq!(cranefold(&["run", broken, "--quiet"]).code, Some(2));
}

#[test]
fn checks_are_as_long_as_is_wanted() {
    assert!(works(&["run", "sum f32[64]", "--check", "none"]).contains("\nerror    not checked: --check none\n"));
    let large = "region x:f32[600,600] axes=[1] { x * sum(x), sum(x*x), max(x), min(x) }";
    let line = |how: &str| {
        let out = works(&["run", large, "--check", how]);
        out.lines().find(|line| line.starts_with("error 0")).or(out.lines().last()).expect("a line").to_string()
    };
    assert!(line("sample").contains("the limit is 2 s; --check all waits for it"), "{}", line("sample"));
    assert!(line("all").ends_with("(all 360000 outputs checked)"), "{}", line("all"));
}

/// The standard input and output hold arrays, and the report goes to the standard error.
#[test]
fn arrays_pass_through_pipes() {
    let folder = folder("arrays_pass_through_pipes");
    let path = folder.join("x.npy");
    write_npy(&path, "<f4", Order::C, &[2, 3], &bytes!([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let mut command = Command::new(env!("CARGO_BIN_EXE_cranefold"));
    command.args(["run", "sum f32[2,3] axes=[1]", "--input", "-", "--output", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(&fs::read(&path).expect("the array")).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    assert!(done.status.success() && done.stderr.starts_with(b"spec     sum f32[2,3] axes=[1]\n"));
    let out = folder.join("out.npy");
    fs::write(&out, done.stdout).expect("a file");
    assert_eq!(read_npy(&out), ("'<f4'".into(), vec![2], bytes!([6.0f32, 15.0])));
}

/// An archive of stored and of compressed arrays, as NumPy writes them.
#[test]
fn arrays_come_from_archives() {
    let folder = folder("arrays_come_from_archives");
    let npy = folder.join("a.npy");
    let mut entries: Vec<(&str, bool, Vec<u8>)> = vec![];
    for (name, elements) in [("a", [1.0f32, 2.0]), ("b", [10.0, 20.0])] {
        write_npy(&npy, "<f4", Order::C, &[2], &bytes!(elements));
        entries.push((name, name == "b", fs::read(&npy).expect("an array")));
    }
    let path = folder.join("ab.npz");
    fs::write(&path, archive(&entries)).expect("a file");
    let name = path.to_str().expect("text");
    let first = |input: &str| {
        let object = json(&["run", "sum f32[2]", "--input", input, "--json"]);
        object["outputs"][0]["first"][0].as_f64().expect("a number")
    };
    assert_eq!((first(&format!("{name}:a")), first(&format!("{name}:b"))), (3.0, 30.0));
    let several = format!("{name}: the archive has 2 arrays, a, b; FILE.npz:a names one");
    refuses(&["run", "sum f32[2]", "--input", name], &several);
    let none = format!("{name}:c");
    refuses(
        &["run", "sum f32[2]", "--input", &none],
        &format!("{none}: there is no array `c` in the archive; it has a, b"),
    );
    fs::write(&path, archive(&entries[..1])).expect("a file");
    assert_eq!(first(name), 3.0);
    // Cut anywhere, it is refused in one line.
    let whole = archive(&entries);
    for len in (0..whole.len()).step_by(13) {
        fs::write(&path, &whole[..len]).expect("a file");
        let done = cranefold(&["run", "sum f32[2]", "--input", &format!("{name}:b"), "--quiet"]);
        assert_eq!((done.code, done.err.lines().count()), (Some(2), 1), "{len}: {}", done.err);
    }
}

/// An archive in the form of ZIP, with stored arrays, or in one stored block of `deflate`.
fn archive(entries: &[(&str, bool, Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut directory) = (vec![], vec![]);
    for (name, is_compressed, bytes) in entries {
        let packed = match is_compressed {
            false => bytes.clone(),
            true => {
                let len = bytes.len() as u16;
                [&[1], &len.to_le_bytes()[..], &(!len).to_le_bytes()[..], bytes].concat()
            }
        };
        let name = format!("{name}.npy");
        let sizes = [packed.len() as u32, bytes.len() as u32].map(u32::to_le_bytes).concat();
        let method = if *is_compressed { 8u16 } else { 0 }.to_le_bytes();
        let middle = [&method[..], &[0; 8], &sizes, &(name.len() as u16).to_le_bytes(), &[0; 2]].concat();
        let at = (file.len() as u32).to_le_bytes();
        file.extend([b"PK\x03\x04\x14\0\0\0", &middle[..], name.as_bytes(), &packed].concat());
        directory.extend([b"PK\x01\x02\x14\0\x14\0\0\0", &middle[..], &[0; 10], &at, name.as_bytes()].concat());
    }
    let end = [entries.len() as u16; 2].map(u16::to_le_bytes).concat();
    let places = [directory.len() as u32, file.len() as u32].map(u32::to_le_bytes).concat();
    [&file, &directory, &b"PK\x05\x06\0\0\0\0"[..], &end, &places, &[0; 2]].concat()
}

/// A page is one file without addresses of a network, and everything in it that a user has typed is escaped.
#[test]
fn pages_are_whole() {
    let folder = folder("pages_are_whole");
    let path = folder.join("page.html");
    let name = path.to_str().expect("text");
    for spec in [
        "sum f32[64,512] axes=[1]",
        "max f32[3,20,7,7]@aBcd16b axes=[2,3]",
        "softmax f32[8,16] axes=[1]",
        "median f32[30,99] axes=[1]",
        "sum f32[4,5] axes=[] -> f64",
        "sum f32[3,0] axes=[0]",
        "any f32[8,9] axes=[1] map=\"x0 < 1 and x0 > 0\"",
        "region x:f32[8,16] axes=[1] { x - max(x) }",
    ] {
        let said = works(&["explain", spec, "--html", name]);
        assert!(said.starts_with(&format!("{name} has the pictures of ")), "{said}");
        let page = fs::read_to_string(&path).expect("the page");
        for part in [
            "id=\"tree\"",
            "id=\"layout\"",
            "id=\"loops\"",
            "id=\"roofline\"",
            "id=\"schedules\"",
            "predicted",
            "measured",
        ] {
            assert!(page.contains(part), "{spec}: no {part}");
        }
        assert!(!page.contains("http") && !page.contains("<script") && !page.contains("x0 < 1 and"), "{spec}");
        for (open, close) in
            [("<svg", "</svg>"), ("<section", "</section>"), ("<table", "</table>"), ("<pre", "</pre>")]
        {
            assert_eq!(page.matches(open).count(), page.matches(close).count(), "{spec}: {open}");
        }
    }
    let sum = works(&["explain", "sum f32[64,512] axes=[1]", "--html", "-"]);
    assert!(sum.starts_with("<!doctype html>") && sum.contains("class=\"hot\"") && sum.contains("<svg"), "{sum}");
    let link = "a<b.html";
    let odd = folder.join(link);
    works(&["explain", "sum f32[64]", "--html", odd.to_str().expect("text")]);
}

/// Files in place of random data are what is timed.
#[test]
fn files_are_measured() {
    let path = folder("files_are_measured").join("x.npy");
    write_npy(&path, "<f4", Order::C, &[8], &bytes!([1.0f32; 8]));
    let name = path.to_str().expect("text");
    let spec = "sum f32[8] scalar k:f32 then=\"r0/k\"";
    assert!(works(&["explain", spec, "--measure", "--input", name]).contains("\nmeasured "));
    assert!(
        works(&["bench", spec, "--budget-ms", "0", "--input", name])
            .contains(spec.split(" scalar").next().expect("a part"))
    );
    let other = format!("{name}: the file has shape [8], input 0 has shape [9]; a file has the shape of its operand");
    refuses(&["explain", "sum f32[9]", "--html", "-", "--input", name], &other);
}

#[test]
fn charts_are_drawn() {
    let folder = folder("charts_are_drawn");
    let path = folder.join("rates.svg");
    let name = path.to_str().expect("text");
    let out = works(&["bench", "sum f32[8,1024] axes=[1]", "--svg", name, "--budget-ms", "1"]);
    assert_eq!((out.lines().count(), out.matches(" at ").count()), (2, 14), "{out}");
    let svg = fs::read_to_string(&path).expect("the chart");
    assert!(svg.starts_with("<svg xmlns") && svg.matches("<circle").count() == 7 && svg.ends_with("</svg>\n"), "{svg}");
    let path = folder.join("map.html");
    let name = path.to_str().expect("text");
    let done = cranefold(&["bench", "--scan", "--shapes", "1", "--seed", "3", "--limit", "1000", "--html", name]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""), "{}", done.err);
    assert!(done.err.ends_with("seed 3\n"), "{}", done.err);
    let page = fs::read_to_string(&path).expect("the map");
    assert!(page.contains("softmax bf16") && page.matches("class=\"cell\"").count() > 60, "{page}");
}

#[test]
fn one_op_is_listed() {
    let of = works(&["list", "ReduceMax"]);
    assert!(of.starts_with("max = greatest x\n") && works(&["list"]).contains(&of), "{of}");
    assert!(cranefold(&["list", "meen"]).err.starts_with("error: unknown op `meen`: did you mean `mean`?\n"));
}

#[test]
fn shells_get_completions_and_a_manual() {
    for (shell, part) in
        [("bash", "complete -F _cranefold"), ("zsh", "#compdef cranefold"), ("fish", "complete -c cranefold")]
    {
        let script = works(&["completions", shell]);
        assert!(script.contains(part) && script.contains("explain") && script.contains("html"), "{shell}: {script}");
    }
    let page = works(&["man"]);
    assert!(
        page.contains(".TH cranefold 1") && page.contains("\\-\\-html") && page.contains("CRANEFOLD EXPLAIN"),
        "{page}"
    );
}

#[test]
fn the_doctor_looks_at_everything() {
    let page = works(&["doctor"]);
    let names: Vec<&str> = page.lines().map(|line| line.split(' ').next().expect("a name")).collect();
    assert_eq!(
        names,
        ["version", "target", "vectors", "threads", "caches", "memory", "pages", "perf", "kernel"],
        "{page}"
    );
    assert!(page.ends_with(" and right\n"), "{page}");
}

/// No colours and no progress where the streams are pipes, whatever the environment says.
#[test]
fn pipes_get_plain_text() {
    let done = cranefold(&["run", "sum f32[4096,4096] axes=[1]", "--check", "none"]);
    assert!(!done.out.contains('\u{1b}') && done.err.is_empty(), "{done:?}");
    assert!(!cranefold(&["run", "wish"]).err.contains('\u{1b}'));
}

/// A command that is interrupted while it writes leaves the old file, and no other.
#[cfg(unix)]
#[test]
fn an_interrupted_command_leaves_no_part_of_a_file() {
    let folder = folder("an_interrupted_command");
    let out = folder.join("out.npy");
    fs::write(&out, "old").expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cranefold"));
    command.args(["run", "sum f32[16777216,4] axes=[1]", "--check", "none", "--output", out.to_str().expect("text")]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    // As soon as the file beside the place is there, or the command has ended.
    while child.try_wait().expect("a state").is_none() && fs::read_dir(&folder).expect("the folder").count() < 2 {
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let ended = child.wait().expect("it ends");
    let files: Vec<_> = fs::read_dir(&folder).expect("the folder").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(files, ["out.npy"], "{ended}");
    let len = fs::metadata(&out).expect("the file").len();
    assert!(len == 3 || len > 64 << 20, "{len} bytes, {ended}");
}
