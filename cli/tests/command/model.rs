//! `model`: graphs dumped, planned, run, timed and compiled ahead of time.

use super::{cranefold, folder, read_npy, refuses, works, write_npy};
use npyz::Order;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const GRAPH: &str = "graph {\n  x: f32[3,5] = input\n  p: f32[3,5] = softmax(x) axes=[1]\n  return p\n}\n";

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../graph/tests/data").join(name)
}

fn bytes(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

#[test]
fn a_graph_is_dumped_and_planned() {
    let file = folder("model_text").join("softmax.txt");
    fs::write(&file, GRAPH).expect("a file");
    let path = file.to_str().expect("a path in UTF-8");
    assert_eq!(works(&["model", "dump", path]), GRAPH);
    assert!(works(&["model", "plan", path]).starts_with("kernel 0: region x0:f32[3,5] axes=[1] order=logical {"));
    let plan = works(&["model", "plan", path, "--json"]);
    for key in [
        "\"kernels\":[{",
        "\"spec\":\"region ",
        "\"nodes\":[\"p\"]",
        "\"opaque\":[]",
        "\"bytes_before\":",
        "\"bytes_after\":",
    ] {
        assert!(plan.contains(key), "{key} in {plan}");
    }
    let onnx = data("reduce_sum.onnx");
    let graph = "graph {\n  x: f32[2,3] = input\n  y: f32[1,1] = sum(x) axes=[0,1] keep_dims\n  return y\n}\n";
    assert_eq!(works(&["model", "dump", onnx.to_str().expect("a path")]), graph);
    let xml = data("reduce_max.xml");
    let graph = "graph {\n  x: f32[2,3] = input\n  y: f32[2] = max(x) axes=[1]\n  return y\n}\n";
    assert_eq!(works(&["model", "dump", xml.to_str().expect("a path")]), graph);
}

/// The kernel of a model has the bits of the spec alone; an input in Fortran order is the same array.
#[test]
fn a_model_runs_with_the_bits_of_the_spec() {
    let folder = folder("model_run");
    let path = |name: &str| folder.join(name).to_str().expect("a path in UTF-8").to_string();
    fs::write(path("softmax.txt"), GRAPH).expect("a file");
    let value = |i: usize| (i as f32 * 0.37).sin() * 3.0;
    write_npy(&folder.join("x.npy"), "<f4", Order::C, &[3, 5], &bytes((0..15).map(value)));
    let columns = (0..5).flat_map(|column| (0..3).map(move |row| value(5 * row + column)));
    write_npy(&folder.join("columns.npy"), "<f4", Order::Fortran, &[3, 5], &bytes(columns));
    works(&["run", "softmax f32[3,5] axes=[1]", "--input", &path("x.npy"), "--output", &path("wanted.npy")]);
    let wanted = read_npy(&folder.join("wanted.npy"));
    for (input, output) in [("x.npy", "p.npy"), ("columns.npy", "q.npy")] {
        let (input, output) = (format!("x={}", path(input)), path(output));
        let out = works(&["model", "run", &path("softmax.txt"), "--input", &input, "--output", &output]);
        assert_eq!(out, "p f32[3, 5]\n");
        assert_eq!(read_npy(&PathBuf::from(&output)), wanted);
    }
    let found = cranefold(&["model", "run", &path("softmax.txt"), "--input", &path("x.npy")]);
    assert_eq!((found.code, found.out.as_str()), (Some(0), "p f32[3, 5]\n"));
}

#[test]
fn what_is_no_model_or_no_input_is_refused() {
    let folder = folder("model_refused");
    let path = |name: &str| folder.join(name).to_str().expect("a path in UTF-8").to_string();
    let (good, bad, opaque) = (path("softmax.txt"), path("bad.onnx"), path("opaque.txt"));
    fs::write(&good, GRAPH).expect("a file");
    fs::write(&bad, [0xff; 40]).expect("a file");
    write_npy(&folder.join("x.npy"), "<f4", Order::C, &[5, 3], &[0; 60]);
    let (x, out) = (path("x.npy"), path("out.npy"));
    refuses(&["model", "run", &good], &format!("{good}: no file for the input `x`: --input x=F.npy"));
    refuses(
        &["model", "run", &good, "--input", &x, "--output", &out],
        &format!("{x}: the file has shape [5,3], x has shape [3,5]; a file has the shape of its operand"),
    );
    refuses(
        &["model", "run", &good, "--input", &format!("x={x}"), "--input", &format!("x={x}")],
        &format!("{good}: the input `x` is given twice"),
    );
    refuses(&["model", "run", &good, "--input", &x, "--input", &x], &format!("{good}: 2 input files for x"));
    assert_eq!(cranefold(&["model", "dump", &bad]).code, Some(2));
    assert_eq!(cranefold(&["model", "dump", &path("none.onnx")]).code, Some(2));
    let text = "graph {\n  x: f32[2] = input\n  y: f32[2] = opaque(x) op=\"Conv\"\n  return y\n}\n";
    fs::write(&opaque, text).expect("a file");
    let done = cranefold(&["model", "run", &opaque, "--input", &x]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains(": no kernel computes node `y` (Conv): "), "{}", done.err);
    assert!(!folder.join("out.npy").exists());
}

#[test]
fn dims_are_bound_by_name() {
    let folder = folder("model_bound");
    let path = |name: &str| folder.join(name).to_str().expect("a path in UTF-8").to_string();
    let text = "graph {\n  x: f32[N,S] = input\n  m: f32[N] = mean(x) axes=[1]\n  return m\n}\n";
    let (graph, fixed) = (path("graph.txt"), path("fixed.txt"));
    fs::write(&graph, text).expect("a file");
    fs::write(&fixed, GRAPH).expect("a file");
    let bound = works(&["model", "dump", &graph, "--bind", "S=7", "--bind", "N=4"]);
    assert_eq!(bound, text.replace('N', "4").replace('S', "7"));
    let refused = |binds: &[&str], message: &str| {
        let binds = binds.iter().flat_map(|bind| ["--bind", *bind]);
        let command: Vec<&str> = ["model", "plan", &graph].into_iter().chain(binds).collect();
        refuses(&command, &format!("{graph}: {message}"));
    };
    let missing = "line 2, column 9: the extent `S` is not static: bind it to a number, as by --bind \"S=8\"";
    refused(&["N=4"], missing);
    refused(&["N=4", "S=7", "M=1"], "there is no symbolic dim `M`: there are `N`, `S`");
    refused(&["N=4", "N=5"], "--bind N=5: `N` is bound twice");
    for wrong in ["N", "N=", "N=-1", "N=1.5", "=4", "N=18446744073709551616"] {
        refused(&[wrong], &format!("--bind {wrong}: write NAME=EXTENT, where EXTENT is an integer of 0 and more"));
    }
    refused(
        &["N=4", "S=18446744073709551615"],
        &format!("node `x`: shape [4,{}] has more than {} elements", u64::MAX, 1u64 << 60),
    );
    let static_dims = format!("{fixed}: there is no symbolic dim `N`: all dims are static");
    refuses(&["model", "dump", &fixed, "--bind", "N=4"], &static_dims);
    let onnx = data("reduce_sum.onnx");
    let onnx = onnx.to_str().expect("a path");
    let message = format!("{onnx}: node `x`: the extent of axis 0 is 2, so `x.0` cannot be bound");
    refuses(&["model", "dump", onnx, "--bind", "x.0=4"], &message);
    let xml = data("reduce_max.xml");
    let xml = xml.to_str().expect("a path");
    refuses(
        &["model", "dump", xml, "--bind", "x.1=4"],
        &format!("{xml}: node `x`: Parameter: axis 1 is 3, so `x.1` cannot be bound"),
    );
}

/// Two kernels of one spec, one of another, and a node that no kernel computes.
const OPAQUE: &str = "graph {
  x: f32[8,64] = input
  p: f32[8,64] = softmax(x) axes=[1]
  c: f32[8,64] = opaque(p) op=\"Conv\" why=\"it is the host's\"
  q: f32[8,64] = softmax(c) axes=[1]
  d: f32[8,64] = opaque(q) op=\"Conv\" why=\"it is the host's\"
  m: f32[8] = mean(d) axes=[1]
  return m
}
";

#[test]
fn each_distinct_kernel_is_timed() {
    let file = folder("model_bench").join("graph.txt");
    fs::write(&file, OPAQUE).expect("a file");
    let path = file.to_str().expect("a path in UTF-8");
    let found = works(&["model", "bench", path, "--budget-ms", "1"]);
    let lines: Vec<Vec<&str>> = found.lines().map(|line| line.split_whitespace().collect()).collect();
    let at = lines.iter().position(|words| words.first() == Some(&"kernel")).expect("a head");
    let (softmax, mean) = (&lines[at + 1], &lines[at + 2]);
    assert_eq!((softmax[0], softmax[1], softmax[softmax.len() - 1]), ("0", "2", "p"), "{found}");
    assert_eq!((mean[0], mean[1], mean[mean.len() - 1]), ("2", "1", "m"), "{found}");
    assert!(found.contains("\ntotal: 3 kernels, 2 of them distinct: "), "{found}");
    assert!(found.ends_with("left out: c, Conv: it is the host's\nleft out: d, Conv: it is the host's\n"), "{found}");
    let found = works(&["model", "bench", path, "--budget-ms", "1", "--threads", "2", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&found).expect("one object");
    let of = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {found}"));
    let kernels = found["kernels"].as_array().expect("kernels");
    assert_eq!(kernels.iter().map(|k| k["kernels"].to_string()).collect::<Vec<_>>(), ["[0,1]", "[2]"]);
    assert!(kernels.iter().all(|k| k["median_ns"].as_f64() > Some(0.0) && k["ceiling_ns"].as_f64() > Some(0.0)));
    // A total counts each kernel as often as the plan has it.
    let total =
        |key: &str| 2.0 * kernels[0][key].as_f64().expect("a number") + kernels[1][key].as_f64().expect("a number");
    assert_eq!(of("total_bytes"), (2 * 2 * 8 * 64 * 4 + 8 * 64 * 4 + 8 * 4) as f64);
    assert!(
        (of("total_ns") - total("median_ns")).abs() < 1.0 && (of("total_ceiling_ns") - total("ceiling_ns")).abs() < 1.0
    );
    assert_eq!(found["opaque"].as_array().map(Vec::len), Some(2));
    fs::write(&file, "graph { x: f32[3] = input; return x }").expect("a file");
    assert!(works(&["model", "bench", path]).ends_with("\ntotal: no kernels\n"));
}

/// A program in C that runs the kernels of a plan has the bits of `model run`.
#[test]
#[cfg(target_os = "linux")]
fn the_kernels_of_a_model_are_compiled_into_one_object() {
    let folder = folder("model_emit");
    let path = |name: &str| folder.join(name).to_str().expect("a path in UTF-8").to_string();
    // The mean is wanted over other axes: two kernels.
    let text = "graph {\n  x: f32[6,40] = input\n  p: f32[6,40] = softmax(x) axes=[1]\n  m: f32[40] = mean(p) axes=[0]\n  \
                return p, m\n}\n";
    fs::write(path("graph.txt"), text).expect("a file");
    let value = |i: usize| (i as f32 * 0.37).sin() * 3.0;
    let x = bytes((0..240).map(value));
    write_npy(&folder.join("x.npy"), "<f4", Order::C, &[6, 40], &x);
    fs::write(path("x.bin"), &x).expect("a file");
    works(&[
        "model",
        "run",
        &path("graph.txt"),
        "--input",
        &path("x.npy"),
        "--output",
        &path("p.npy"),
        "--output",
        &path("m.npy"),
    ]);
    let emit = |model: &str, more: &[&str]| {
        let (object, header) = (path("block.o"), path("block.h"));
        let command = ["emit", "--model", model, "--object", &object, "--header", &header];
        command.into_iter().chain(more.iter().copied()).map(str::to_string).collect::<Vec<_>>()
    };
    works(&emit(&path("graph.txt"), &["--symbol", "block"]));
    let header = fs::read_to_string(path("block.h")).expect("a header");
    for said in [
        " * Kernels of the model graph.txt: 2. Functions, one for each distinct spec: 2.\n",
        " * Kernel 0 of the plan: p.\n",
        "#define BLOCK_0_X0_ELEMS 240\n",
        "void block_0(",
        " * Kernel 1 of the plan: m.\n",
        "void block_1(",
    ] {
        assert!(header.contains(said), "{said}: {header}");
    }
    let program = "#include <stdio.h>\n#include \"block.h\"\n#include \"block.h\"\n\
        static float x[BLOCK_0_X0_ELEMS], p[BLOCK_0_OUT0_ELEMS], m[BLOCK_1_OUT0_ELEMS];\n\
        static char scratch[BLOCK_0_SCRATCH_BYTES + BLOCK_1_SCRATCH_BYTES + 64] __attribute__((aligned(64)));\n\
        int main(void) {\n  FILE *in = fopen(\"x.bin\", \"rb\"), *out = fopen(\"out.bin\", \"wb\");\n  \
        if (!in || !out || fread(x, 1, sizeof x, in) != sizeof x) return 1;\n  (void)scratch;\n  CALLS\n  \
        fwrite(p, 1, sizeof p, out);\n  fwrite(m, 1, sizeof m, out);\n  return fclose(out);\n}\n";
    let scratch =
        |n: u32| if header.contains(&format!("#define BLOCK_{n}_SCRATCH_BYTES 0\n")) { "" } else { ", scratch" };
    let calls = format!("block_0(x, p{}); block_1(p, m{});", scratch(0), scratch(1));
    let wanted = [read_npy(&folder.join("p.npy")).2, read_npy(&folder.join("m.npy")).2].concat();
    for (compiler, name, standard) in [("cc", "main.c", "-std=c99"), ("c++", "main.cpp", "-std=c++11")] {
        if Command::new(compiler).arg("--version").output().is_err() {
            continue;
        }
        fs::write(path(name), program.replace("CALLS", &calls)).expect("a program");
        let mut command = Command::new(compiler);
        command
            .current_dir(&folder)
            .args([standard, "-Wall", "-Wextra", "-Werror", "-o", "main", name, "block.o", "-lm"]);
        let done = command.output().expect("a compiler");
        assert!(done.status.success(), "{compiler}: {}", String::from_utf8_lossy(&done.stderr));
        assert!(Command::new(path("main")).current_dir(&folder).status().expect("a program").success(), "{compiler}");
        assert!(fs::read(path("out.bin")).expect("the outputs") == wanted, "{compiler}: other bits than `model run`");
    }
    // Nothing is written of a model that has opaque nodes, unless they are to be left out.
    fs::write(path("opaque.txt"), OPAQUE).expect("a file");
    let before = fs::read(path("block.o")).expect("an object");
    let opaque = "no kernel computes node `c` (Conv): it is the host's; node `d` (Conv): it is the host's";
    let message = format!("{}: {opaque}; --kernels-only leaves them out", path("opaque.txt"));
    refuses(&emit(&path("opaque.txt"), &[]), &message);
    assert!(fs::read(path("block.o")).expect("an object") == before);
    works(&emit(&path("opaque.txt"), &["--kernels-only"]));
    let header = fs::read_to_string(path("block.h")).expect("a header");
    assert!(
        header
            .replace("\n * ", " ")
            .contains("3. Functions, one for each distinct spec: 2. Opaque nodes that are left out: 2."),
        "{header}"
    );
    assert!(header.contains(" * Kernel 0 of the plan: p. Kernel 1 of the plan: q.\n"), "{header}");
    assert!(header.contains("void cranefold_") && header.contains("#ifndef CRANEFOLD_MODEL_H\n"), "{header}");
    works(&emit(&path("opaque.txt"), &["--kernels-only", "--target", "s390x-unknown-linux-gnu"]));
    fs::write(path("none.txt"), "graph { x: f32[3] = input; return x }").expect("a file");
    refuses(&emit(&path("none.txt"), &[]), &format!("{}: its plan has no kernels", path("none.txt")));
    refuses(
        &emit(&path("graph.txt"), &["--symbol", "a b"]),
        "no object of `a b`: the name is no identifier of C, which is letters, digits and `_`, begins with no digit, and is no word of C",
    );
}

/// A tensor outside of the model, by a file of the same folder and by links that lead out of it.
#[test]
#[cfg(unix)]
fn tensors_beside_a_model_stay_in_its_folder() {
    let folder = folder("model_external");
    let text = |field: u8, text: &[u8]| [&[field << 3 | 2, text.len() as u8], text].concat();
    let external = [text(1, b"location"), text(2, b"w.bin")].concat();
    let tensor = [vec![1 << 3, 3, 2 << 3, 1], text(8, b"w"), text(13, &external), vec![14 << 3, 1]].concat();
    let node = [text(1, b"w"), text(2, b"y"), text(4, b"Neg")].concat();
    let graph = [text(1, &node), text(5, &tensor), text(12, &text(1, b"y"))].concat();
    let model = [vec![1 << 3, 8], text(8, &[2 << 3, 13]), text(7, &graph)].concat();
    let inside = folder.join("inside");
    fs::create_dir_all(&inside).expect("a folder");
    fs::write(inside.join("m.onnx"), model).expect("a file");
    let (path, weights) = (inside.join("m.onnx"), inside.join("w.bin"));
    let path = path.to_str().expect("a path in UTF-8");
    let refused = |reason: &str| refuses(&["model", "dump", path], &format!("{path}: node `w`: w.bin{reason}"));
    refused(": No such file or directory (os error 2)");
    fs::write(&weights, [0; 11]).expect("a file");
    refused(": bytes 0 to 12 of 11");
    fs::write(&weights, bytes([1.0, 2.0, 3.0].into_iter())).expect("a file");
    assert!(works(&["model", "dump", path]).contains("const [-1.0, -2.0, -3.0]\n"));
    fs::rename(&weights, folder.join("secret.bin")).expect("a file");
    std::os::unix::fs::symlink("../secret.bin", &weights).expect("a link");
    refused(" leads out of the model's folder");
    // A stream says no length.
    let endless = folder.join("endless.onnx");
    std::os::unix::fs::symlink("/dev/null", &endless).expect("a link");
    let endless = endless.to_str().expect("a path in UTF-8");
    refuses(&["model", "dump", endless], &format!("{endless}: the file is empty"));
}
