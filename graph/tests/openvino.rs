//! OpenVINO models that are malformed: each is refused with its reason, at once.

use cranefold_graph::ReadOptions;
use cranefold_graph::openvino::{MAX_LAYERS, read};
use std::time::{Duration, Instant};

const XML: &str = include_str!("data/reduce_max.xml");
const BIN: &[u8] = include_bytes!("data/reduce_max.bin");

/// The message of the refusal, which has to come soon.
fn refusal(xml: &str) -> String {
    let start = Instant::now();
    let error = read(xml.as_bytes(), BIN, &ReadOptions::default()).expect_err("a refusal").to_string();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}: {error}", start.elapsed());
    assert!(error.len() < 2000, "{error}");
    error
}

/// The model with one text in the place of another.
fn with(old: &str, new: &str) -> String {
    assert!(XML.contains(old), "{old}");
    XML.replace(old, new)
}

#[test]
fn both_versions_are_read() {
    let graph = read(XML.as_bytes(), BIN, &ReadOptions::default()).expect("a model");
    let older = with("version=\"11\"", "version=\"10\"").replace(" output_names=\"y\"", "");
    assert_eq!(read(older.as_bytes(), BIN, &ReadOptions::default()), Ok(graph));
    assert_eq!(refusal(&with("version=\"11\"", "version=\"12\"")), "the IR version is \"12\"; 10 and 11 are read");
    let root = "the file is no OpenVINO model: its root element is `nat`, and that of a model is `net`";
    assert_eq!(refusal("<nat version=\"11\"/>"), root);
}

#[test]
fn files_that_are_no_model() {
    let start = "the file is no OpenVINO model: it is no ";
    for (text, end) in [("no model", "XML: unknown token at 1:1"), ("", "XML: the document does not have a root node")]
    {
        assert_eq!(refusal(text), format!("{start}{end}"));
    }
    let binary = read(&[0xff; 40], BIN, &ReadOptions::default()).expect_err("a refusal").to_string();
    assert_eq!(binary, format!("{start}UTF-8 text"));
    let alone = read(XML.as_bytes(), &[], &ReadOptions::default()).expect_err("a refusal").to_string();
    let reason = "Const: its 8 bytes lie in the .bin file beside the model, which is missing or empty";
    assert!(alone.ends_with(reason), "{alone}");
}

#[test]
fn edges_that_lead_nowhere() {
    let error = refusal(&with("from-layer=\"0\"", "from-layer=\"7\""));
    assert!(error.ends_with("<edge>: there is no layer 7"), "{error}");
    let edge = "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"2\" to-port=\"0\" />";
    assert_eq!(refusal(&with(edge, "")), "node `ReduceMax_4`: ReduceMax: no edge leads to its input port 0");
    let cycle = "<edge from-layer=\"2\" from-port=\"2\" to-layer=\"2\" to-port=\"0\" />";
    assert_eq!(refusal(&with(edge, cycle)), "node `ReduceMax_4`: ReduceMax: the layer depends on itself");
    assert!(refusal(&with("id=\"1\"", "id=\"0\"")).contains("the id 0 stands twice"));
}

#[test]
fn constants_of_wrong_length() {
    let error = refusal(&with("size=\"8\"", "size=\"80\""));
    assert!(error.ends_with("Const: 80 bytes at 0 leave the .bin file of 8 bytes"), "{error}");
    assert!(refusal(&with("offset=\"0\"", "offset=\"18446744073709551615\"")).contains("leave the .bin file"));
    let error = refusal(&with("size=\"8\"", "size=\"4\""));
    assert!(error.ends_with("4 bytes of data, and i64 of shape [1] needs 8"), "{error}");
    assert!(
        refusal(&with("shape=\"2,3\"", "shape=\"2,?\""))
            .contains("node `x`, axis 1: the extent `x.1` is not static: bind it to a number")
    );
}

#[test]
fn ops_of_the_future() {
    let error = refusal(&with("type=\"ReduceMax\" version=\"opset1\"", "type=\"ReduceMax\" version=\"opset99\""));
    assert_eq!(error, "node `ReduceMax_4`: ReduceMax: the op is of \"opset99\"; opset1 to opset17 are read");
}

#[test]
fn what_no_kernel_computes_is_opaque_by_name() {
    let xml = with("type=\"ReduceMax\"", "type=\"Einsum\"");
    let text = read(xml.as_bytes(), BIN, &ReadOptions::default()).expect("a model").to_string();
    assert!(text.contains("y: f32[2] = opaque(x, v0) op=\"Einsum\" why=\"no kernel computes this op\""), "{text}");
}

#[test]
fn limits() {
    let layer = "<layer id=\"N\" name=\"n\" type=\"Parameter\"/>";
    let many: String = (0..1_000_000).map(|id| layer.replace('N', &id.to_string())).collect();
    let many = format!("<net version=\"11\"><layers>{many}</layers></net>");
    assert_eq!(refusal(&many), format!("more than {MAX_LAYERS} layers"));
    let deep = "<a>".repeat(100_000);
    assert_eq!(refusal(&deep), "more than 200 elements in one another");
    let ports = "<port id=\"0\"/>".repeat(2000);
    let wide = format!(
        "<net version=\"11\"><layers><layer id=\"0\" name=\"n\" type=\"T\"><input>{ports}</input></layer></layers></net>"
    );
    assert_eq!(refusal(&wide), "more than 1000 ports of a layer");
    let (opened, closed) = ("a".repeat(50_000), "b".repeat(50_000));
    let long = refusal(&format!("<{opened}></{closed}>"));
    assert!(long.len() < 300 && long.ends_with("at 1:50003"), "{long}");
    let entities = "<!DOCTYPE net [<!ENTITY a \"aaaa\">]><net version=\"11\">&a;</net>";
    assert!(refusal(entities).contains("DTD"), "{}", refusal(entities));
}
