//! `tune`: lines that compilers take schedules from.

use super::cranefold as run;
use std::fs;

#[test]
fn the_fastest_schedule_is_kept_and_taken() {
    let path = std::env::temp_dir().join(format!("cranefold-tune-{}.schedules", std::process::id()));
    let _ = fs::remove_file(&path);
    let file = path.to_str().expect("a path in UTF-8");
    let spec = "sum f32[64,64] axes=[0]";
    let done = run(&["tune", spec, "max f32[16]", "--file", file, "--budget", "0.05"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    assert!(done.out.starts_with(&format!("{spec}: ")) && done.out.contains(" times as fast: width="), "{}", done.out);
    let text = fs::read_to_string(&path).expect("a file");
    let fields: Vec<&str> = text.lines().next().expect("a line").split(" | ").collect();
    assert_eq!((fields.len(), fields[3]), (6, "1"), "{text}");
    let told = run(&["explain", spec, "--schedules", file]);
    assert!(told.out.contains("of a line of the schedule file") && told.out.contains(fields[4]), "{}", told.out);
    let same = |more: &[&str]| run(&[&["run", spec, "--random", "7"], more].concat()).code;
    assert_eq!((same(&[]), same(&["--schedules", file])), (Some(0), Some(0)));

    let threads = run(&["tune", "sum f32[1000000]", "--file", file, "--budget", "0.05", "--threads", "2"]);
    assert_eq!(threads.code, Some(0), "{}", threads.err);
    assert_eq!(
        fs::read_to_string(&path).expect("a file").lines().last().expect("a line").split(" | ").nth(3),
        Some("2")
    );
    fs::remove_file(path).expect("the file");
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_written() {
    let file = std::env::temp_dir().join(format!("cranefold-none-{}.schedules", std::process::id()));
    let path = file.to_str().expect("a path in UTF-8");
    for (args, says) in [
        (&["sum f32[4]", "--file", path, "--budget", "0"][..], "budget=0 is outside 0 to 3600 seconds"),
        (&["sum f32[4]", "--file", path, "--budget", "NaN"], "budget=NaN is outside 0 to 3600 seconds"),
        (&["sum f32[4]", "sum g32[4]", "--file", path], "g32"),
        (&["sum f32[4]", "--file", path, "--threads", "0"], "threads=0 is outside 1 to 1024"),
    ] {
        let done = run(&[&["tune"], args].concat());
        assert_eq!(done.code, Some(2));
        assert!(done.err.contains(says), "{}", done.err);
    }
    assert!(!file.exists());
    let done = run(&["tune", "sum f32[64,64] axes=[0]", "--budget", "0.01", "--file", "/nowhere/at/all"]);
    assert!(done.code == Some(2) && done.err.contains("cannot write /nowhere/at/all: "), "{}", done.err);
}
