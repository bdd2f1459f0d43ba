//! The command on a terminal: colours, the line that tells what is going on, Ctrl-C, narrow and wide windows.

#![allow(unsafe_code, reason = "opens terminals, and makes one that of a command")]

use crate::{cranefold, folder, write_npy};
use npyz::Order;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::ptr::{null, null_mut};

/// What erases the line that the cursor stands in.
const ERASE: &str = "\r\u{1b}[K";

/// A command whose exact check takes many seconds on any machine.
const LONG: [&str; 4] =
    ["run", "region x:f32[12000,600] axes=[1] { x * sum(x), sum(x*x), max(x), min(x) }", "--check", "all"];

/// A terminal of so many columns: the side of the person, and that of the command.
fn open(columns: u16) -> (File, OwnedFd) {
    let size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut person, mut command) = (0, 0);
    // SAFETY: two descriptors are written and the size is read; the name and the modes may be null.
    let opened = unsafe { libc::openpty(&mut person, &mut command, null_mut(), null(), &size) };
    assert_eq!(opened, 0, "{}", io::Error::last_os_error());
    // SAFETY: both were opened here, and nothing else owns them.
    unsafe { (File::from_raw_fd(person), OwnedFd::from_raw_fd(command)) }
}

/// Starts the command on a terminal, with its standard input from there too if no other is given.
fn start(args: &[&str], columns: u16, environment: &[(&str, &str)], input: Option<Stdio>) -> (Child, File) {
    let (person, end) = open(columns);
    let stream = || Stdio::from(end.try_clone().expect("a descriptor"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_cranefold"));
    command.args(args).env_remove("NO_COLOR").env("TERM", "xterm").envs(environment.iter().copied());
    command.stdin(input.unwrap_or_else(stream)).stdout(stream()).stderr(stream());
    let own_terminal = || {
        // SAFETY: neither call has a pointer.
        match unsafe { libc::setsid() >= 0 && libc::ioctl(1, libc::TIOCSCTTY, 0) >= 0 } {
            true => Ok(()),
            false => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: what runs between fork and exec makes two system calls, and allocates nothing.
    unsafe { command.pre_exec(own_terminal) };
    (command.spawn().expect("it starts"), person)
}

/// What a command prints on a terminal until some words stand there.
fn read_until(person: &mut File, words: &str) -> Vec<u8> {
    let mut said = vec![];
    while !String::from_utf8_lossy(&said).contains(words) {
        let mut some = [0; 256];
        let count = person.read(&mut some).expect("the words come before the end");
        said.extend(&some[..count]);
    }
    said
}

/// All that a command prints on a terminal.
fn says(args: &[&str], columns: u16, environment: &[(&str, &str)]) -> String {
    let (mut child, mut person) = start(args, columns, environment, None);
    let mut said = vec![];
    // Linux tells the end of a terminal by an error.
    let _ = person.read_to_end(&mut said);
    child.wait().expect("it ends");
    String::from_utf8(said).expect("it prints UTF-8").replace("\r\n", "\n")
}

#[test]
fn colours_are_on_terminals_alone() {
    let run = ["run", "sum i8[8]"];
    let said = says(&run, 80, &[]);
    assert!(
        said.contains("\u{1b}[1;33mnote:\u{1b}[0m") && said.contains("\u{1b}[1mspec    \u{1b}[0m sum i8[8]\n"),
        "{said:?}"
    );
    assert!(says(&["run", "wish"], 80, &[]).starts_with("\u{1b}[1;31merror:\u{1b}[0m "));
    for plain in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let said = says(&run, 80, &[plain]);
        assert!(
            said.contains("note: ") && said.contains("\nspec     sum i8[8]\n") && !said.contains('\u{1b}'),
            "{said:?}"
        );
    }
    assert!(says(&run, 80, &[("NO_COLOR", "")]).contains('\u{1b}'));
}

/// The line shows after a second, changes with the seconds alone, and is erased before the report.
#[test]
fn a_line_tells_what_takes_long() {
    let file = folder("a_line_tells_what_takes_long").join("x.npy");
    write_npy(&file, "<i8", Order::C, &[4], &[1; 32]);
    let (input, mut data) = io::pipe().expect("a pipe");
    let args = ["run", "sum i64[4]", "--input", "-"];
    let (mut child, mut person) = start(&args, 80, &[("NO_COLOR", "1")], Some(input.into()));
    let mut said = read_until(&mut person, "reading data ... 2 s");
    data.write_all(&fs::read(&file).expect("the file")).expect("the command reads");
    drop(data);
    let _ = person.read_to_end(&mut said);
    child.wait().expect("it ends");
    let said = String::from_utf8(said).expect("it prints UTF-8").replace("\r\n", "\n");
    let (lines, report) = said.rsplit_once(ERASE).expect("a line");
    assert!(report.starts_with("spec     sum i64[4]\n"), "{said:?}");
    let lines: Vec<&str> = lines.split(ERASE).collect();
    assert!(lines[0].is_empty() && lines.contains(&"reading data ... 1 s"), "{said:?}");
    assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "{said:?}");
}

/// Ctrl-C ends the command by the signal, which shells tell as 130, and leaves what was in the place of its output.
/// A bar stands on a terminal while a file is streamed, and is erased before the results.
#[test]
fn a_bar_tells_how_much_of_a_file_is_read() {
    let folder = folder("a_bar_tells_how_much_of_a_file_is_read");
    // Zeros without room on the disk, which take some tenths of a second.
    write_npy(&folder.join("x.npy"), "<f4", Order::C, &[1_500_000_000], &[]);
    let file = File::options().write(true).open(folder.join("x.npy")).expect("the file");
    let header = file.metadata().expect("its length").len();
    file.set_len(header + 6_000_000_000).expect("a sparse file");
    let path = folder.join("x.npy").display().to_string();
    let said = says(&["run", "sum f32[1500000000] order=logical", "--input", &path, "--memory", "64M"], 80, &[]);
    let (bar, results) = said.rsplit_once(ERASE).unwrap_or_else(|| panic!("no bar: {said}"));
    assert!(bar.contains("\r[#") && bar.contains(" of 1431 batches"), "{said}");
    assert!(results.starts_with("spec ") && results.contains("2862 shards"), "{said}");
}

#[test]
fn ctrl_c_leaves_no_part_of_a_file() {
    let folder = folder("ctrl_c_leaves_no_part_of_a_file");
    let place = folder.join("0.npy");
    fs::write(&place, "old").expect("a file");
    let places: Vec<String> =
        (0..4).map(|n| folder.join(format!("{n}.npy")).to_str().expect("text").to_string()).collect();
    let args: Vec<&str> =
        LONG.into_iter().chain(places.iter().flat_map(|place| ["--output", place.as_str()])).collect();
    let (mut child, mut person) = start(&args, 80, &[], None);
    read_until(&mut person, "checking ... ");
    person.write_all(b"\x03").expect("a key");
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.signal(), Some(libc::SIGINT), "{ended}");
    let names = fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("an entry").file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["0.npy"]);
    assert_eq!(fs::read(&place).expect("the file"), b"old");
}

/// No line is broken or cut by the command: a window of any width shows what a pipe gets.
#[test]
fn windows_of_any_width_show_the_same() {
    let long = r#"sum f32[64,512], f32[64,512] axes=[1] map="x0*x1 + x0*x1 + x0*x1" then="sqrt(r0) + nought""#;
    for args in [&["run", long][..], &["list", "mean"], &["run", "--help"]] {
        let piped = cranefold(args);
        for columns in [40, 200] {
            assert_eq!(says(args, columns, &[("NO_COLOR", "1")]), format!("{}{}", piped.out, piped.err), "{columns}");
        }
    }
}
