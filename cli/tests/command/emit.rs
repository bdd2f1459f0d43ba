//! `emit`: objects and headers, and what is refused.

use crate::{Files, cranefold, refuses, works};
use std::fs;
use std::path::Path;
use std::process::Command;

const SPEC: &str = "mean f32[4,10] axes=[1]";

#[test]
fn an_object_and_its_header_are_written() {
    let files = Files::of("an_object_and_its_header_are_written");
    for (target, features, machine) in [
        ("x86_64-unknown-linux-gnu", "x86-64-v4", 62u16),
        ("aarch64-unknown-linux-gnu", "", 183),
        ("riscv64gc-unknown-linux-gnu", "has_v,has_zbb", 243),
        ("s390x-unknown-linux-gnu", "arch13", 22),
    ] {
        let (object, header) = (files.path("mean.o"), files.path("mean.h"));
        let args = ["emit", SPEC, "--object", &object, "--header", &header, "--target", target, "--features", features];
        assert_eq!(works(&args), "");
        let first = fs::read(&object).expect("an object");
        assert_eq!(works(&args), "");
        let object = fs::read(object).expect("an object");
        assert!(object == first, "equal arguments give equal objects");
        assert_eq!(&object[..4], b"\x7fELF");
        let two = [object[18], object[19]];
        let found = if object[5] == 2 { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) };
        assert_eq!(found, machine, "{target}");
        let header = fs::read_to_string(header).expect("a header");
        assert!(header.contains(SPEC) && header.contains(&format!("for {target} with ")), "{header}");
        assert!(header.contains("void cranefold_mean_f32_4x10_"), "{header}");
    }
    let mut left: Vec<_> = fs::read_dir(&files.0).expect("a folder").map(|f| f.expect("a file").file_name()).collect();
    left.sort();
    assert_eq!(left, ["mean.h", "mean.o"]);
}

/// Two kernels of one program, in C and in C++ where there are compilers of them; of what is warned of, nothing.
#[test]
#[cfg(target_os = "linux")]
fn objects_link_with_c_and_cpp() {
    let files = Files::of("objects_link_with_c_and_cpp");
    for (n, spec) in [SPEC, "softmax f32[2,2] axes=[1]"].into_iter().enumerate() {
        let (object, header, symbol) =
            (files.path(&format!("k{n}.o")), files.path(&format!("k{n}.h")), format!("k{n}"));
        works(&["emit", spec, "--symbol", &symbol, "--object", &object, "--header", &header]);
    }
    let program = "#include \"k0.h\"\n#include \"k1.h\"\n#include \"k0.h\"\n\
        static float x[K0_X0_ELEMS], means[K0_OUT0_ELEMS], y[K1_X0_ELEMS];\n\
        int main(void) {\n  for (int i = 0; i < K0_X0_ELEMS; i++) x[i] = (float)i;\n  k0(x, means);\n  k1(y, y);\n  \
        return !(means[0] == 4.5f && means[3] == 34.5f && y[3] == 0.5f);\n}\n";
    for (compiler, name, standard) in [("cc", "main.c", "-std=c99"), ("c++", "main.cpp", "-std=c++11")] {
        if Command::new(compiler).arg("--version").output().is_err() {
            continue;
        }
        fs::write(files.path(name), program).expect("a program");
        // Objects may be anywhere, so that programs and shared libraries may.
        for (output, how) in [("main", "-pie"), ("main.so", "-shared")] {
            let mut command = Command::new(compiler);
            command.current_dir(&files.0).args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fPIC", how]);
            let done = command.args(["-o", output, name, "k0.o", "k1.o", "-lm"]).output().expect("a compiler");
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success() && said.is_empty(), "{compiler} {how}: {said}");
        }
        assert!(Command::new(files.path("main")).status().expect("a program").success(), "{compiler}");
    }
}

#[test]
fn what_cannot_be_is_refused_and_nothing_written() {
    let files = Files::of("what_cannot_be_is_refused_and_nothing_written");
    let (object, header) = (files.path("k.o"), files.path("k.h"));
    let emit = |spec: &str, more: &[&str], message: &str| {
        refuses(&[&["emit", spec, "--object", &object, "--header", &header], more].concat(), message);
    };
    let selects = "it selects elements by their order, which functions of the library do";
    emit("median f32[4,10] axes=[1]", &[], &format!("no object of `median`: {selects}"));
    emit("quantile(q=0.5) f32[4,10]", &[], &format!("no object of `quantile`: {selects}"));
    emit("mode i32[4,10]", &[], &format!("no object of `mode`: {selects}"));
    emit("mean f32[4,10] axes=[2]", &[], "axis 2 is out of range for rank 2: its axes are -2 to 1");
    emit(
        SPEC,
        &["--symbol", "row-means"],
        "no object of `row-means`: the name is no identifier of C, which is letters, digits and `_`, begins with no digit, and is no word of C",
    );
    emit(
        SPEC,
        &["--symbol", "int"],
        "no object of `int`: the name is no identifier of C, which is letters, digits and `_`, begins with no digit, and is no word of C",
    );
    emit(SPEC, &["--target", "pdp11"], "no target `pdp11`: Unrecognized architecture: pdp11");
    let unknown = "no target `i686-unknown-linux-gnu`: the architectures are x86_64, aarch64, riscv64 and s390x";
    emit(SPEC, &["--target", "i686-unknown-linux-gnu"], unknown);
    let apple = "no object of the target `aarch64-apple-darwin`: its objects are not ELF";
    emit(SPEC, &["--target", "aarch64-apple-darwin"], apple);
    let feature = "no target `s390x-unknown-linux-gnu`: there is no feature `has_avx`; there are has_mie3, has_vxrs_ext2, has_mie4, has_vxrs_ext3, arch13, arch14, arch15, z15, z16, z17";
    emit(SPEC, &["--target", "s390x-unknown-linux-gnu", "--features", "has_avx"], feature);
    emit(SPEC, &["--width", "100"], "width=100 is none of 0 (scalar), 64, 128, 256, 512 and 1024 bits");
    emit(SPEC, &["--schedule", "tile=i7:4"], "tile=i7: the problem has no output loop i7; it has i0");
    let requires = "the following required arguments were not provided: --target <TRIPLE>";
    emit(SPEC, &["--features", "has_v"], requires);
    assert!(!Path::new(&object).exists() && !Path::new(&header).exists());
}

#[test]
fn files_that_cannot_be_written_leave_the_other_as_it_was() {
    let files = Files::of("files_that_cannot_be_written_leave_the_other_as_it_was");
    let (object, folder) = (files.path("k.o"), files.0.to_str().expect("text").to_string());
    fs::write(&object, "before").expect("a file");
    let refused = |object: &str, header: &str, message: &str| {
        refuses(&["emit", SPEC, "--object", object, "--header", header], message);
    };
    let missing = "/no/such/k.h";
    refused(&object, missing, &format!("cannot write {missing}: No such file or directory (os error 2)"));
    refused(missing, &object, &format!("cannot write {missing}: No such file or directory (os error 2)"));
    refused(&object, &folder, &format!("cannot write {folder}: it is a directory: write the name of a file in it"));
    refused(&object, &object, &format!("{object} is the object and the header: they are two files"));
    let same = format!("{folder}/./k.o");
    refused(&same, &object, &format!("{same} is the object and the header: they are two files"));
    let new = files.path("new");
    refused(&new, &new, &format!("{new} is the object and the header: they are two files"));
    assert_eq!(fs::read_to_string(&object).expect("a file"), "before");
    assert_eq!(fs::read_dir(&files.0).expect("a folder").count(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn a_header_may_go_to_a_stream() {
    let files = Files::of("a_header_may_go_to_a_stream");
    let out = works(&["emit", SPEC, "--object", "/dev/null", "--header", "/dev/stdout"]);
    assert!(out.starts_with(&format!("/*\n * {SPEC}\n")), "{out}");
    assert_eq!(fs::read_dir(&files.0).expect("a folder").count(), 0);
    let help = cranefold(&["emit", "--help"]);
    assert!(help.code == Some(0) && help.out.contains("Examples:\n  cranefold emit "), "{}", help.out);
}
